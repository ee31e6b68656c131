//! The planted mistakes of `tests/check`, and what must not be taken for one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Interpreters, Report, Surroundings, check};
use crate::config::{Config, Wanted};
use crate::discovery::{Status, read_file};

fn checked(folder: &Path) -> Report {
    let wanted = Wanted { tools: vec![folder.to_owned()], ..Wanted::default() };
    let config = Config::load(&wanted, folder).unwrap();
    let interpreters = Interpreters(BTreeSet::from([(3, 9), (3, 11)]));
    check(&[folder.to_owned()], &[], &Surroundings { config, interpreters, installed: |_, _| None })
}

fn rules_of(folder: &Path) -> Vec<(String, &'static str)> {
    let report = checked(folder);
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    report.findings().map(|(file, finding)| (name(&file.path), finding.rule.name)).collect()
}

#[test]
fn every_planted_mistake_is_found_and_nothing_else() {
    let folder = PathBuf::from("tests/check/tools");
    let report = checked(&folder);
    let clean: Vec<_> = report.files.iter().filter(|file| file.findings.is_empty()).map(|file| &file.path).collect();
    assert_eq!(clean, [&folder.join("nothing_wrong.py"), &folder.join("switched_off.py")]);
    assert!(report.files.len() > 40);
    insta::assert_debug_snapshot!(rules_of(&folder));
}

#[test]
fn the_examples_have_no_flaw() {
    assert_eq!(rules_of(Path::new("examples/tools")), []);
}

/// What is told of a text under one rule.
fn told_of(text: &str, rule: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("one.py"), text).unwrap();
    let report = checked(folder.path());
    let of_rule = report.findings().filter(|(_, finding)| finding.rule.name == rule);
    of_rule.map(|(_, finding)| format!("{}; {}", finding.message, finding.fix)).collect()
}

#[test]
fn what_to_write_for_a_shared_default_can_be_copied() {
    for (parameter, right) in [
        ("acc: list = []", "acc: list | None = None"),
        ("acc: dict[str, int] = {}", "acc: dict[str, int] | None = None"),
        ("acc: list | None = []", "acc: list | None = None"),
        ("acc: 'list[int]' = []", "acc: 'list[int] | None' = None"),
        ("acc: Optional[list] = []", "acc: Optional[list] = None"),
        ("acc=[]", "acc: list[str] | None = None"),
        ("acc=[1]", "acc: list[int] | None = None"),
        ("acc: dict[\n  str, int] = {}", "acc: dict[ str, int] | None = None"),
    ] {
        let told =
            told_of(&format!("def f({parameter}) -> int:\n    \"\"\"F.\"\"\"\n    return 1\n"), "shared-default");
        let [told] = &told[..] else { panic!("{parameter}: {told:?}") };
        assert!(told.contains(&format!("; write `{right}`, and `acc = acc or ")), "{parameter}: {told}");
    }
}

#[test]
fn methods_are_told_to_be_no_tools_where_nothing_else_is_offered() {
    let class =
        "class Client:\n    def __init__(self): ...\n    def _own(self): ...\n    def search(self, query: str): ...\n";
    let told = told_of(class, "no-tools");
    let right = "no public functions: methods of a class, such as `Client.search`, are no tools; define a function outside of \
                 the class, without a leading underscore, that calls it";
    assert_eq!(told, [right]);
    assert!(told_of("class Client:\n    x = 1\n", "no-tools")[0].starts_with("no public functions; "));
    assert_eq!(told_of(&format!("{class}{WELL}"), "no-tools"), [] as [&str; 0]);
}

fn of_text(text: &str) -> Vec<&'static str> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("one.py"), text).unwrap();
    rules_of(folder.path()).into_iter().map(|(_, rule)| rule).collect()
}

const WELL: &str = "def well(number: int) -> int:\n    \"\"\"Give it back.\"\"\"\n    return number\n";

#[test]
fn imports_that_may_fail_or_are_for_type_checkers_need_no_package() {
    let text = format!(
        "from __future__ import annotations\nfrom typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import \
         numpy\n\ntry:\n    import orjson\nexcept (ImportError, ValueError):\n    orjson = None\n\n{WELL}"
    );
    assert_eq!(of_text(&text), [] as [&str; 0]);
    let text = format!("try:\n    import orjson\nexcept ValueError:\n    orjson = None\n\n{WELL}");
    assert_eq!(of_text(&text), ["undeclared-import"]);
    for code in [
        "try:\n    import json\nexcept ImportError:\n    import simplejson as json\n",
        "try:\n    import orjson\nexcept (ModuleNotFoundError, ValueError):\n    import ujson\nelse:\n    import orjson_x\n",
        "import sys\nif sys.version_info < (3, 11):\n    import tomli\nelse:\n    import tomllib\n",
        "import sys\nif sys.platform == 'win32':\n    import win32api\n",
        "import platform\nif platform.system() == 'Windows':\n    import win32api\n",
        "import os\nif os.name == 'nt':\n    import win32api\n",
        "import sys\nif 'PyPy' in sys.version:\n    import win32api\n",
        "import sys\nif sys.implementation.name == 'pypy':\n    import win32api\n",
        "import sys\nif is_slow(sys.implementation):\n    import win32api\n",
        "import contextlib\nwith contextlib.suppress(ImportError):\n    import orjson\n",
        "from contextlib import suppress\nwith suppress(ModuleNotFoundError):\n    import orjson\n",
        "from importlib.util import find_spec\nif find_spec('orjson'):\n    import orjson\n",
        "import importlib.util\nif importlib.util.find_spec('orjson') is not None:\n    import orjson\n",
        "if __name__ == '__main__':\n    import orjson\n    print(input())\n",
        "import _thread\n",
    ] {
        assert_eq!(of_text(&format!("{code}\n{WELL}")), [] as [&str; 0], "{code}");
    }
    for code in [
        "import contextlib\nwith contextlib.suppress(ValueError):\n    import orjson\n",
        "with open(ImportError):\n    import orjson\n",
        "if x:\n    import orjson\n",
        "import typing\nif typing.TYPE_CHECKING:\n    import numpy\nelse:\n    import orjson\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy\nelse:\n    import orjson\n",
        "if __name__ == '__main__':\n    import numpy\nelse:\n    import orjson\n",
    ] {
        assert_eq!(of_text(&format!("{code}\n{WELL}")), ["undeclared-import"], "{code}");
    }
}

fn report_of(folder: &Path, installed: Installed) -> super::Report {
    let wanted = Wanted { tools: vec![folder.to_owned()], ..Wanted::default() };
    let config = Config::load(&wanted, folder).unwrap();
    let surroundings = Surroundings { config, interpreters: Interpreters::default(), installed };
    check(&[folder.to_owned()], &[], &surroundings)
}

fn level_of(folder: &Path, text: &str, installed: Installed) -> Option<(super::Level, String)> {
    std::fs::write(folder.join("one.py"), text).unwrap();
    let report = report_of(folder, installed);
    let told = report.findings().find(|(_, finding)| finding.rule.name == "undeclared-import");
    told.map(|(_, finding)| (finding.level, finding.fix.clone()))
}

type Installed = fn(&Config, &crate::discovery::ToolFile) -> Option<BTreeSet<String>>;

#[test]
fn what_a_declared_package_may_bring_is_no_error() {
    use super::Level;
    let folder = tempfile::tempdir().unwrap();
    let level = |dependencies: &str, code: &str, installed| {
        let text = format!("# /// script\n# dependencies = {dependencies}\n# ///\n{code}\n\n{WELL}");
        level_of(folder.path(), &text, installed)
    };
    let unbuilt: Installed = |_, _| None;
    let (told, fix) = level("[\"shed-tools\"]", "import shedlib", unbuilt).unwrap();
    assert_eq!(told, Level::Warning);
    assert!(
        fix.starts_with("does shed-tools bring it? then say so with `# hostler: ignore[undeclared-import]`; else if"),
        "{fix}"
    );
    let (told, fix) = level("[\"httpx\"]", "import httpx, bs4", unbuilt).unwrap();
    assert_eq!(told, Level::Warning);
    assert!(fix.ends_with("add \"beautifulsoup4\" to `dependencies` in the header"), "{fix}");
    assert_eq!(level("[\"requests\"]", "import request", unbuilt).unwrap().0, Level::Error, "a slip");
    assert_eq!(level("[]", "import shedlib", unbuilt).unwrap().0, Level::Error, "nothing could bring it");
    let (_, fix) = level_of(folder.path(), &format!("import shedlib\n\n{WELL}"), unbuilt).unwrap();
    assert!(fix.contains("give the file a header with `dependencies = [\"shedlib\"]`"), "{fix}");
    for path in ["import sys\nsys.path.insert(0, '/shed')", "import site\nsite.addsitedir('/shed')"] {
        let (told, fix) = level("[]", &format!("{path}\nimport shedlib"), unbuilt).unwrap();
        assert_eq!(told, Level::Warning, "who knows what is there");
        assert!(fix.starts_with("if a folder that this file adds to sys.path has it, "), "{fix}");
    }
    for (dependency, module) in [("fastapi", "starlette"), ("PyOpenGL", "OpenGL"), ("pymongo", "bson")] {
        assert_eq!(level(&format!("[\"{dependency}\"]"), &format!("import {module}"), unbuilt), None, "{module}");
    }
    let built: Installed = |_, _| Some(BTreeSet::from(["shedlib".to_owned()]));
    assert_eq!(level("[\"shed-tools\"]", "import shedlib", built), None);
    assert_eq!(level("[\"shed-tools\"]", "import barnlib", built).unwrap().0, Level::Error);
}

#[test]
fn only_packages_that_no_import_explains_are_asked_about() {
    let folder = tempfile::tempdir().unwrap();
    let asked = |dependencies: &str, code: &str| {
        let text = format!("# /// script\n# dependencies = [{dependencies}]\n# ///\n{code}\n\n{WELL}");
        let (_, fix) = level_of(folder.path(), &text, |_, _| None).unwrap();
        fix.split(" bring it?").next().unwrap().to_owned()
    };
    assert_eq!(asked("\"shed-tools\", \"httpx\"", "import httpx, shedlib"), "does shed-tools");
    assert_eq!(asked("\"shed-tools\", \"barn-tools\"", "import shedlib"), "does shed-tools or barn-tools");
    assert_eq!(asked("\"httpx\"", "import httpx, shedlib"), "does httpx");
    let many = "\"a-tools\", \"b-tools\", \"c-tools\", \"d-tools\"";
    assert_eq!(asked(many, "import shedlib"), "does one of the declared packages");
}

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
fn every_mistake_of_a_header_stands_at_its_own_line() {
    let folder = tempfile::tempdir().unwrap();
    let header = "# /// script\n# dependences = []\n# [tool.hostler]\n# timeot = 3\n# ///\n";
    std::fs::write(folder.path().join("one.py"), format!("{header}{WELL}")).unwrap();
    let report = checked(folder.path());
    let lines: Vec<_> = report
        .findings()
        .map(|(file, finding)| (file.text.line_of(finding.range.as_ref().unwrap().start), finding.fix.clone()))
        .collect();
    assert_eq!(lines, [(2, "did you mean `dependencies`?".to_owned()), (4, "did you mean `timeout`?".to_owned())]);
}

#[test]
fn a_neighbour_needs_no_package() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("one.py"), format!("import _shared\nfrom helper import x\n\n{WELL}")).unwrap();
    std::fs::write(folder.path().join("_shared.py"), "").unwrap();
    std::fs::create_dir(folder.path().join("helper")).unwrap();
    assert_eq!(rules_of(folder.path()), []);
}

#[test]
fn a_helper_that_is_no_python_is_found() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("one.py"), format!("import helper, _hidden\n\n{WELL}")).unwrap();
    std::fs::write(folder.path().join("helper.py"), "def undocumented(x): return x\n").unwrap();
    std::fs::write(folder.path().join("_hidden.py"), "x = (\n").unwrap();
    assert_eq!(rules_of(folder.path()), [("_hidden".to_owned(), "syntax")]);
    std::fs::write(folder.path().join("_hidden.py"), "x = 1\n").unwrap();
    assert_eq!(rules_of(folder.path()), []);
}

#[test]
fn syntax_that_is_newer_than_what_the_header_allows_is_found() {
    let of_python = |wish: &str, code: &str| {
        of_text(&format!("# /// script\n# requires-python = \"{wish}\"\n# ///\n{code}\n\n{WELL}"))
    };
    assert_eq!(of_python(">=3.11", "type X = int"), ["newer-syntax"]);
    assert_eq!(of_python(">=3.12", "type X = int"), ["python-absent"]);
    assert_eq!(of_python(">=3.9,<4", "match 1:\n    case 1: pass"), ["newer-syntax"]);
    assert_eq!(of_python(">=3.11", "try: pass\nexcept* ValueError: pass"), [] as [&str; 0]);
    assert_eq!(of_text(&format!("type X = int\n\n{WELL}")), [] as [&str; 0], "no version is asked for");
    let folder = tempfile::tempdir().unwrap();
    let text = format!("# /// script\n# requires-python = \">=3.11\"\n# ///\ntype X = int\n\n{WELL}");
    std::fs::write(folder.path().join("one.py"), text).unwrap();
    let report = report_of(folder.path(), |_, _| None);
    let (_, finding) = report.findings().next().unwrap();
    assert!(
        finding.message.starts_with("not every version that `>=3.11` allows can read this: "),
        "{}",
        finding.message
    );
    assert_eq!(finding.fix, "let `requires-python` begin with \">=3.12\", or write it otherwise");
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

#[test]
fn a_file_that_no_walker_could_stand_is_told_and_does_no_harm() {
    let deep = format!("x = {}{}\n{WELL}", "[".repeat(9_000), "]".repeat(9_000));
    of_text(&deep);
    assert_eq!(of_text(&format!("x = {}\n", "[".repeat(20_000))), ["name"]);
}

#[test]
fn what_is_no_python_is_told_in_the_same_words_as_in_lists() {
    let report = checked(Path::new("tests/check/tools"));
    let mut told = 0;
    for (file, finding) in report.findings().filter(|(_, finding)| finding.rule.name == "syntax") {
        let line = finding.range.as_ref().map(|range| file.text.line_of(range.start));
        let reason = format!("{}; {}", finding.message, finding.fix);
        assert_eq!(read_file(&file.path).status, Status::Broken { line, reason }, "{}", file.path.display());
        told += 1;
    }
    assert!(told >= 7);
}

/// What `check` says of a configuration with one tool, `one`.
fn of_settings(text: &str) -> Vec<(usize, &'static str, String)> {
    told_of_settings(text).into_iter().map(|(line, rule, message, _)| (line, rule, message)).collect()
}

fn fix_of_settings(text: &str) -> String {
    told_of_settings(text).remove(0).3
}

fn told_of_settings(text: &str) -> Vec<(usize, &'static str, String, String)> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("tools")).unwrap();
    std::fs::write(folder.path().join("tools/one.py"), WELL).unwrap();
    std::fs::write(folder.path().join("hostler.toml"), text).unwrap();
    let wanted = Wanted { config: Some(folder.path().join("hostler.toml")), ..Wanted::default() };
    let config = Config::load(&wanted, folder.path()).unwrap();
    let interpreters = Interpreters(BTreeSet::from([(3, 9), (3, 11)]));
    let mut report = check(
        &config.tools.value,
        &[],
        &Surroundings { config: config.clone(), interpreters: interpreters.clone(), installed: |_, _| None },
    );
    report.programs(&config, &interpreters);
    let line = |file: &super::FileReport, finding: &super::Finding| {
        finding.range.as_ref().map_or(0, |range| file.text.line_of(range.start))
    };
    let told = |(file, finding): (&super::FileReport, &super::Finding)| {
        (line(file, finding), finding.rule.name, finding.message.clone(), finding.fix.clone())
    };
    report.findings().map(told).collect()
}

#[test]
fn programs_of_the_configuration_that_are_not_there_are_told_with_their_lines() {
    let one = |line: &str| of_settings(&format!("[environment]\n{line}\n"));
    let said = |rule, text: &str| vec![(2, rule, text.to_owned())];
    let uv = "`environment.uv` is \"/nowhere/uv\", which is not a program";
    assert_eq!(one("uv = \"/nowhere/uv\""), said("absent-program", uv));
    let python = "`environment.python` is \"/nowhere/python\", which is not there";
    assert_eq!(one("python = \"/nowhere/python\""), said("absent-program", python));
    let absent = "no interpreter here is 3.12; there are 3.9, 3.11 by name";
    assert_eq!(one("python = \"3.12\""), said("python-absent", absent));
    let fix = |line: &str| fix_of_settings(&format!("[environment]\n{line}\n"));
    assert_eq!(fix("uv = \"/nowhere/uv\""), "correct the path, or remove the line");
    assert_eq!(fix("python = \"/nowhere/python\""), "correct the path, or remove the line");
    assert!(fix("python = \"3.12\"").starts_with("install it (`uv python install 3.12`), let uv fetch it"));
    for fine in
        ["uv = \"/bin/sh\"", "python = \"/bin/sh\"", "python = \"3.11.4\"", "python = \"pypy\"", "python = \">=3.9\""]
    {
        assert_eq!(one(fine), [], "{fine}");
    }
}

#[test]
fn more_workers_kept_than_there_may_be_is_told_where_that_is_said() {
    let more = "`min_workers = 3` is more than the `max_workers = 2` of one";
    let told = of_settings("[tool.one]\nmax_workers = 2\nmin_workers = 3\n");
    assert_eq!((told.len(), told[0].0, told[0].1), (1, 3, "unused-settings"));
    assert!(told[0].2.starts_with(more) && told[0].2.contains("hostler.toml:2): no more"), "{told:?}");
    let fix = fix_of_settings("[tool.one]\nmax_workers = 2\nmin_workers = 3\n");
    assert_eq!(fix, "raise that to 3, or write `min_workers = 2`");
    let fix = fix_of_settings("[tool]\nmin_workers = 2\n");
    assert_eq!(fix, "write `max_workers = 2` beside it, or write `min_workers = 1`");
    let told = of_settings("[tool]\nmin_workers = 2\n");
    assert!(told[0].2.contains("`max_workers = 1` of one (default)"), "{told:?}");
    assert_eq!(of_settings("[tool.one]\nmax_workers = 3\nmin_workers = 3\n"), []);
}
