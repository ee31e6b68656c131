use super::super::{cannot_start, scan};
use super::folders::folder;

const EMPTY: &str = "# /// script\n# dependencies = []\n# ///\n";
const DECLARED: &str = "# /// script\n# dependencies = [\"anything\"]\n# ///\n";

/// What is said of the file `a.py` of this text, beside which there are a module, a package and a namespace.
fn said(text: &str) -> Option<String> {
    let text = format!("{text}\ndef f(): ...\n");
    let folder = folder(&[
        ("a.py", &text),
        ("beside.py", "X = 1\n"),
        ("package/__init__.py", ""),
        ("space/part.py", ""),
        ("further/far.py", ""),
        ("fast.cpython-311-x86_64-linux-gnu.so", ""),
        ("old.pyc", ""),
        ("adding.py", "import sys\nsys.path.append('/x')\n"),
    ]);
    let found = scan(&[folder.path().to_owned()]);
    let file = found.files.iter().find(|file| file.path.ends_with("a.py")).expect("a tool file");
    cannot_start(file, vec![folder.path().join("further")]).map(|reason| reason.to_string())
}

#[test]
fn a_file_that_declares_nothing_cannot_import_a_package() {
    for (text, words) in [
        (
            "import requests\n",
            "nothing provides the module `requests`; write `dependencies = [\"requests\"]` under [tool.a] in",
        ),
        (&format!("{EMPTY}import json, yaml.nodes\n"), "`yaml`; write `dependencies = [\"pyyaml\"]` in the header"),
        ("from bs4 import X\nfrom requests import get\n", "the modules `bs4`, `requests`; write"),
        ("from mcp.server import Server\nimport mcp_types\n", "write `dependencies = [\"mcp\"]` under"),
        ("from mcp.server import Server\n", "write `dependencies = [\"mcp<2\"]` under"),
        ("import no_such_package\n", "with the packages that provide `no_such_package`,"),
    ] {
        assert!(said(text).is_some_and(|said| said.contains(words)), "{text}: {:?}", said(text));
    }
}

#[test]
fn what_may_be_there_is_not_missed() {
    for text in [
        "import json, os.path\nfrom concurrent.futures import wait\n",
        "import beside, package, space.part, far\n",
        "import hostler\n",
        "try:\n    import requests\nexcept ImportError:\n    requests = None\n",
        "if True:\n    import requests\n",
        "def g():\n    import requests\n",
        "from . import beside\n",
        "import sys\nsys.path.insert(0, '/x')\nimport requests\n",
        "import site\nsite.addsitedir('/x')\nimport requests\n",
        &format!("{DECLARED}import requests\n"),
        "import fast, old\n",
        "import adding\nimport requests\n",
        "from sys import path\npath.append('/x')\nimport requests\n",
    ] {
        assert_eq!(said(text), None, "{text}");
    }
}

#[test]
fn a_file_named_after_a_package_is_not_that_module() {
    let text = "from redis.client import Redis\ndef f(): ...\n";
    let own = "import mine\ndef f(): ...\n";
    let files = [("redis.py", text), ("a.py", "import redis\ndef f(): ...\n"), ("mine.py", own), ("b.py", own)];
    let folder = folder(&files);
    let found = scan(&[folder.path().to_owned()]);
    let said = |name: &str| {
        let file = found
            .files
            .iter()
            .find(|file| file.path.ends_with(name))
            .unwrap_or_else(|| panic!("{name} is not a tool file"));
        cannot_start(file, Vec::new()).map(|reason| reason.fix)
    };
    for name in ["redis.py", "a.py"] {
        assert!(said(name).is_some_and(|fix| fix.contains("\"redis\"")), "{name}: {:?}", said(name));
    }
    assert!(said("b.py").is_none(), "`mine` is not a known package");
    assert!(found.files.iter().all(|file| file.imports.iter().all(|it| it != "redis") || file.helpers.is_empty()));
}

#[test]
fn what_is_in_a_folder_above_is_named_with_it() {
    let text = "from utils.text import clean\nimport db, requests\nimport nowhere\ndef f(): ...\n";
    let local = "import db\ndef f(): ...\n";
    let files = [
        ("app/tools/a.py", text),
        ("app/tools/b.py", local),
        ("app/utils/text.py", ""),
        ("db.py", ""),
        ("app/nowhere/x.txt", ""),
    ];
    let folder = folder(&files);
    let found = scan(&[folder.path().join("app/tools")]);
    let said = |name: &str| {
        let file = found.files.iter().find(|file| file.path.ends_with(name)).expect("a tool file");
        cannot_start(file, Vec::new()).expect("that it cannot start").fix
    };
    let (top, app) = (folder.path().display(), folder.path().join("app"));
    let fix = said("a.py");
    assert!(fix.contains("[\"requests\", …]`, with the packages that provide `nowhere`,"), "{fix}");
    let paths =
        format!("`python_path = [\"{top}\", \"{}\"]` under [tool.a] in hostler.toml, for `utils`, `db`", app.display());
    assert!(fix.contains(&paths), "{fix}");
    let only = format!("write `python_path = [\"{top}\"]` under [tool.b] in hostler.toml, for `db`");
    assert_eq!(said("b.py"), only);
}

#[test]
fn a_file_of_a_package_imports_from_it() {
    let text = "from kit import helper\nimport kit.other\ndef f(): ...\n";
    let folder = folder(&[("kit/a.py", text), ("kit/helper.py", ""), ("kit/other.py", "")]);
    let found = scan(&[folder.path().join("kit")]);
    let file = found.files.iter().find(|file| file.path.ends_with("a.py")).expect("a tool file");
    assert_eq!(cannot_start(file, Vec::new()), None);
    let archive = folder.path().join("kit/a.py");
    let text = "import requests\ndef f(): ...\n";
    std::fs::write(&archive, text).unwrap();
    let found = scan(&[folder.path().join("kit")]);
    let file = found.files.iter().find(|file| file.path.ends_with("a.py")).expect("a tool file");
    assert!(cannot_start(file, Vec::new()).is_some());
    assert_eq!(cannot_start(file, vec![archive]), None, "what is no folder may be an archive of modules");
}
