//! Variables of the environment, which workers do not inherit.

use super::{WELL, of_text};

#[test]
fn variables_that_are_written_or_provided_for_need_not_be_there() {
    for code in [
        "os.environ['SHED'] = '1'",
        "os.environ['SHED'] += '1'",
        "os.environ.setdefault('SHED', '1')",
        "del os.environ['SHED']",
        "x = os.getenv('SHED') or '/tmp'",
        "x = os.environ.get('SHED', '/tmp')",
        "x = os.getenv('SHED', default='/tmp')",
        "try:\n    x = os.environ['SHED']\nexcept KeyError:\n    x = 1",
        "if 'SHED' in os.environ:\n    x = os.environ['SHED']",
        "x = os.environ['SHED'] if 'SHED' in os.environ else 1",
        "if 'SHED' in os.environ:\n    x = os.getenv('SHED')",
        "x = os.environ.get('SHED') if 'SHED' in os.environ else 1",
        "if __name__ == '__main__':\n    x = os.environ['SHED']",
        "from contextlib import suppress\nwith suppress(KeyError):\n    x = os.environ['SHED']",
    ] {
        assert_eq!(of_text(&format!("import os\n{code}\n\n{WELL}")), [] as [&str; 0], "{code}");
    }
    for code in [
        "x = os.environ['SHED']",
        "x = os.getenv('SHED')",
        "x = 1 or os.getenv('SHED')",
        "x = f(os.getenv('SHED')) or 1",
        "x = os.getenv('SHED') and 1",
        "x = os.environ['SHED'] if f() else 1",
        "if f():\n    x = os.environ['SHED']",
        "if 'SHED' in f():\n    x = os.environ['SHED']",
        "if f(os.environ):\n    x = os.environ['SHED']",
        "if __name__ != '__main__':\n    x = os.environ['SHED']",
        "if f == '__main__':\n    x = os.environ['SHED']",
        "try:\n    x = os.environ['SHED']\nexcept ValueError:\n    x = 1",
        "with f():\n    x = os.environ['SHED']",
        "try:\n    x = os.getenv('SHED')\nexcept KeyError:\n    x = 1",
    ] {
        assert_eq!(of_text(&format!("import os\n{code}\n\n{WELL}")), ["environment-read"], "{code}");
    }
    let asked = "if 'SHED' in os.environ:\n    input()";
    assert_eq!(of_text(&format!("import os\n{asked}\n\n{WELL}")), ["reads-input"], "what else is asked for there");
}

#[test]
fn a_declared_secret_is_not_to_be_read_from_the_environment_whatever_else_is_provided() {
    let declaring = |name: &str, code: &str| {
        of_text(&format!(
            "# /// script\n# [tool.hostler]\n# secrets = [\"{name}\"]\n# ///\nimport os\n{code}\n\n{WELL}"
        ))
    };
    assert_eq!(declaring("SHED", "x = os.getenv('SHED', '')"), ["environment-read"]);
    assert_eq!(declaring("BARN", "x = os.getenv('SHED', '')"), [] as [&str; 0]);
}

#[test]
fn variables_that_reach_workers_may_be_read() {
    let text = format!(
        "import os\nfrom os import environ as env\n\nHOME = os.environ[\"HOME\"], env.get(\"LC_ALL\")\n\n{WELL}"
    );
    assert_eq!(of_text(&text), [] as [&str; 0]);
    let text = format!("from os import environ as env\n\nHOME = env.get(\"SHED\")\n\n{WELL}");
    assert_eq!(of_text(&text), ["environment-read"]);
}
