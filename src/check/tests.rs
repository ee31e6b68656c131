//! The planted mistakes of `tests/check`, and what must not be reported as one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Finding, Interpreters, Level, Report, Surroundings, check};
use crate::config::origin::Diagnosis;
use crate::config::{Config, ConfigOptions};
use crate::discovery::{Status, ToolFile, read_file};

const WELL: &str = "def well(number: int) -> int:\n    \"\"\"Give it back.\"\"\"\n    return number\n";

type Installed = fn(&Config, &ToolFile) -> Option<BTreeSet<String>>;

fn surroundings(config: Config, installed: Installed) -> Surroundings {
    let interpreters = Interpreters(BTreeSet::from([(3, 9), (3, 11)]));
    Surroundings { config, interpreters, installed, built_in: Vec::new(), known: None }
}

fn report_of(folder: &Path, installed: Installed) -> Report {
    let wanted = ConfigOptions { tools: vec![folder.to_owned()], ..ConfigOptions::default() };
    let config = Config::load(&wanted, folder).unwrap();
    check(&[folder.to_owned()], &[], &surroundings(config, installed))
}

fn rules_of(folder: &Path) -> Vec<(String, &'static str)> {
    let report = report_of(folder, |_, _| None);
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    report.findings().map(|(file, finding)| (name(&file.path), finding.rule.name)).collect()
}

fn findings_of(text: &str, installed: Installed) -> Vec<Finding> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("one.py"), text).unwrap();
    report_of(folder.path(), installed).findings().map(|(_, finding)| finding.clone()).collect()
}

fn rules_of_text(text: &str) -> Vec<&'static str> {
    findings_of(text, |_, _| None).iter().map(|finding| finding.rule.name).collect()
}

#[test]
fn every_planted_mistake_is_found_and_nothing_else() {
    let folder = PathBuf::from("tests/check/tools");
    let report = report_of(&folder, |_, _| None);
    let clean: Vec<_> = report.files.iter().filter(|file| file.findings.is_empty()).map(|file| &file.path).collect();
    assert_eq!(clean, [&folder.join("nothing_wrong.py"), &folder.join("switched_off.py")]);
    assert!(report.files.len() > 35);
    insta::assert_debug_snapshot!(rules_of(&folder));
}

#[test]
fn the_examples_have_no_findings() {
    assert_eq!(rules_of(Path::new("examples/tools")), []);
}

#[test]
fn every_mistake_of_a_header_has_its_own_line() {
    let folder = tempfile::tempdir().unwrap();
    let header = "# /// script\n# dependences = []\n# [tool.hostler]\n# timeot = 3\n# ///\n";
    std::fs::write(folder.path().join("one.py"), format!("{header}{WELL}")).unwrap();
    let report = report_of(folder.path(), |_, _| None);
    let line =
        |(file, finding): (&super::FileReport, &Finding)| file.text.line_of(finding.range.as_ref().unwrap().start);
    assert_eq!(report.findings().map(line).collect::<Vec<_>>(), [2, 4]);
}

#[test]
fn a_helper_that_is_not_valid_python_is_found() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("one.py"), format!("import helper, _hidden\n\n{WELL}")).unwrap();
    std::fs::write(folder.path().join("helper.py"), "def undocumented(x): return x\n").unwrap();
    std::fs::write(folder.path().join("_hidden.py"), "x = (\n").unwrap();
    assert_eq!(rules_of(folder.path()), [("_hidden".to_owned(), "syntax")]);
    std::fs::write(folder.path().join("_hidden.py"), "x = 1\n").unwrap();
    assert_eq!(rules_of(folder.path()), []);
}

#[test]
fn syntax_that_is_newer_than_the_header_allows_is_found() {
    let rules = |range: &str, code: &str| {
        rules_of_text(&format!("# /// script\n# requires-python = \"{range}\"\n# ///\n{code}\n\n{WELL}"))
    };
    assert_eq!(rules(">=3.11", "type X = int"), ["newer-syntax"]);
    assert_eq!(rules(">=3.12", "type X = int"), ["python-absent"]);
    assert_eq!(rules(">=3.9,<4", "match 1:\n    case 1: pass"), ["newer-syntax"]);
    assert_eq!(rules(">=3.11", "try: pass\nexcept* ValueError: pass"), [] as [&str; 0]);
    assert_eq!(rules_of_text(&format!("type X = int\n\n{WELL}")), [] as [&str; 0], "no range, no minimum");
}

#[test]
fn a_file_nested_too_deeply_is_reported_and_does_no_harm() {
    let deep = format!("x = {}{}\n{WELL}", "[".repeat(9_000), "]".repeat(9_000));
    rules_of_text(&deep);
    assert_eq!(rules_of_text(&format!("x = {}\n", "[".repeat(20_000))), ["name"]);
}

#[test]
fn invalid_python_is_reported_in_the_same_words_as_in_lists() {
    let report = report_of(Path::new("tests/check/tools"), |_, _| None);
    let mut count = 0;
    for (file, finding) in report.findings().filter(|(_, finding)| finding.rule.name == "syntax") {
        let line = finding.range.as_ref().map(|range| file.text.line_of(range.start));
        let reason = Diagnosis::new(finding.message.clone(), finding.fix.clone());
        assert_eq!(read_file(&file.path).status, Status::Broken { line, reason }, "{}", file.path.display());
        count += 1;
    }
    assert!(count >= 2, "{count}");
}

#[test]
fn a_file_with_methods_only_offers_no_tools() {
    let class = "class Client:\n    def __init__(self): ...\n    def search(self, query: str): ...\n";
    let found = findings_of(class, |_, _| None);
    assert!(found.len() == 1 && found[0].rule.name == "no-tools", "{found:?}");
    assert_eq!(rules_of_text(&format!("{class}{WELL}")), [] as [&str; 0]);
}

#[test]
fn imports_under_a_condition_need_no_package() {
    for code in [
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy\n",
        "try:\n    import json\nexcept ImportError:\n    import simplejson as json\n",
        "import sys\nif sys.version_info < (3, 11):\n    import tomli\nelse:\n    import tomllib\n",
        "import contextlib\nwith contextlib.suppress(ImportError):\n    import orjson\n",
        "if __name__ == '__main__':\n    import orjson\n    print(input())\n",
        "import _thread\n",
    ] {
        assert_eq!(rules_of_text(&format!("{code}\n{WELL}")), [] as [&str; 0], "{code}");
    }
    for code in ["import orjson", "def f():\n    import orjson", "with open('x'):\n    from orjson.x import y"] {
        assert_eq!(rules_of_text(&format!("{code}\n\n{WELL}")), ["undeclared-import"], "{code}");
    }
}

#[test]
fn a_file_without_a_header_is_told_all_that_it_needs_at_once() {
    let findings = findings_of(
        &format!(
            "import yaml\nimport fastmcp\nimport starlette\nimport mine\nfrom mcp.server.fastmcp import FastMCP\n{WELL}"
        ),
        |_, _| None,
    );
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(finding.rule.name, "undeclared-import");
    assert!(finding.fix.starts_with("write `dependencies = [\"pyyaml\", \"fastmcp\", …]`"), "{}", finding.fix);
    assert!(finding.fix.contains("under [tool.one] in hostler.toml"), "{}", finding.fix);
    let old = findings_of(&format!("from mcp.server.fastmcp import FastMCP\n{WELL}"), |_, _| None);
    assert!(old[0].fix.contains("[\"mcp<2\"]"), "{}", old[0].fix);
    let new = findings_of(&format!("from mcp.server.mcpserver import MCPServer\n{WELL}"), |_, _| None);
    assert!(new[0].fix.contains("[\"mcp\"]"), "{}", new[0].fix);
}

#[test]
fn a_file_may_import_its_own_package() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("shop");
    std::fs::create_dir(&package).unwrap();
    std::fs::write(package.join("__init__.py"), "").unwrap();
    std::fs::write(package.join("units.py"), "unit = 1\n").unwrap();
    std::fs::write(package.join("one.py"), format!("from shop.units import unit\nfrom . import units\n{WELL}"))
        .unwrap();
    assert_eq!(rules_of(&package), []);
    let config = Config::load(&ConfigOptions::default(), folder.path()).unwrap();
    let report = check(std::slice::from_ref(&package), &[], &surroundings(config, |_, _| None));
    let names: Vec<_> = report.files.iter().map(|file| file.path.file_name().unwrap().to_owned()).collect();
    assert!(!names.iter().any(|name| name == "units.py"), "{names:?}: it is a helper");
}

#[test]
fn a_secret_that_is_read_from_the_environment_is_missed() {
    for (read, expected) in [
        ("os.getenv(\"WEATHER_API_KEY\")", vec!["environment-read"]),
        ("os.environ.get(\"WEATHER_API_KEY\")", vec!["environment-read"]),
        ("os.getenv(\"WEATHER_API_KEY\", \"\")", vec![]),
        ("os.getenv(\"DEBUG\")", vec![]),
        ("os.environ.get(\"PATH\")", vec![]),
    ] {
        assert_eq!(rules_of_text(&format!("import os\nkey = {read}\n{WELL}")), expected, "{read}");
    }
}

#[test]
fn an_undeclared_import_is_an_error_only_where_that_is_certain() {
    let finding = |dependencies: &str, code: &str, installed| {
        let text = format!("# /// script\n# dependencies = {dependencies}\n# ///\n{code}\n\n{WELL}");
        let found = findings_of(&text, installed);
        found.first().map(|finding| (finding.level, finding.fix.clone()))
    };
    let level = |dependencies: &str, code: &str, installed| finding(dependencies, code, installed).map(|found| found.0);
    let unbuilt: Installed = |_, _| None;
    let built: Installed = |_, _| Some(BTreeSet::from(["shedlib".to_owned()]));
    assert_eq!(level("[]", "import shedlib", unbuilt), Some(Level::Error), "nothing could provide it");
    assert_eq!(level("[\"shed-tools\"]", "import shedlib", unbuilt), Some(Level::Warning));
    assert_eq!(level("[\"shed-tools\"]", "import shedlib", built), None);
    assert_eq!(level("[\"shed-tools\"]", "import barnlib", built), Some(Level::Error));
    for path in ["import sys\nsys.path.insert(0, '/shed')", "import site\nsite.addsitedir('/shed')"] {
        assert_eq!(level("[]", &format!("{path}\nimport shedlib"), unbuilt), Some(Level::Warning));
    }
    assert_eq!(level("[\"pymongo\"]", "import bson", unbuilt), None);
    let fix = |code| finding("[]", code, unbuilt).unwrap().1;
    assert!(fix("import bs4").contains("\"beautifulsoup4\""));
    assert!(!fix("import request").contains("\"request\""), "a misspelt name must not lead to an unknown package");
}

#[test]
fn what_a_folder_declares_is_no_finding_unless_it_cannot_be_used() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("one.py"), format!("import orjson\n{WELL}")).unwrap();
    let requirements = folder.path().join("requirements.txt");
    std::fs::write(&requirements, "orjson>=3\n").unwrap();
    assert_eq!(rules_of(folder.path()), []);
    std::fs::write(&requirements, "orjson>=3\n-r more.txt\n").unwrap();
    let rules: Vec<_> = rules_of(folder.path()).into_iter().map(|(_, rule)| rule).collect();
    assert_eq!(rules, ["requirements", "undeclared-import"]);
    std::fs::write(&requirements, "or json\n").unwrap();
    let rules: Vec<_> = rules_of(folder.path()).into_iter().map(|(_, rule)| rule).collect();
    assert_eq!(rules, ["requirements", "undeclared-import"], "no requirement");
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
fn environment_variables_that_are_required_must_reach_a_worker() {
    for code in [
        "os.environ['SHED'] = '1'",
        "del os.environ['SHED']",
        "x = os.getenv('SHED')",
        "x = os.environ.get('SHED', '/tmp')",
        "try:\n    x = os.environ['SHED']\nexcept KeyError:\n    x = 1",
        "if 'SHED' in os.environ:\n    x = os.environ['SHED']",
        "x = os.environ['SHED'] if 'SHED' in os.environ else 1",
        "from contextlib import suppress\nwith suppress(KeyError):\n    x = os.environ['SHED']",
        "x = os.environ['HOME']",
    ] {
        assert_eq!(rules_of_text(&format!("import os\n{code}\n\n{WELL}")), [] as [&str; 0], "{code}");
    }
    let env = "from os import environ as env\n\nx = env['SHED']";
    for code in ["import os\nx = os.environ['SHED']", "import os\nwith f():\n    x = os.environ['SHED']", env] {
        assert_eq!(rules_of_text(&format!("{code}\n\n{WELL}")), ["environment-read"], "{code}");
    }
}

#[test]
fn a_declared_secret_is_never_in_the_environment() {
    let rules = |name: &str| {
        let header = format!("# /// script\n# [tool.hostler]\n# secrets = [\"{name}\"]\n# ///\n");
        rules_of_text(&format!("{header}import os\nx = os.getenv('SHED', '')\n\n{WELL}"))
    };
    assert_eq!(rules("SHED"), ["environment-read"]);
    assert_eq!(rules("BARN"), [] as [&str; 0]);
}

/// The findings of a configuration with one tool, `one`: line, rule, message.
fn of_settings(text: &str) -> Vec<(usize, &'static str, String)> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("tools")).unwrap();
    std::fs::write(folder.path().join("tools/one.py"), WELL).unwrap();
    std::fs::write(folder.path().join("hostler.toml"), text).unwrap();
    let wanted = ConfigOptions { config: Some(folder.path().join("hostler.toml")), ..ConfigOptions::default() };
    let config = Config::load(&wanted, folder.path()).unwrap();
    let surroundings = surroundings(config.clone(), |_, _| None);
    let mut report = check(&config.tools.value, &[], &surroundings);
    report.configuration(&config, &surroundings.interpreters, |_, _| None);
    let line = |file: &super::FileReport, finding: &Finding| {
        finding.range.as_ref().map_or(0, |range| file.text.line_of(range.start))
    };
    report.findings().map(|(file, one)| (line(file, one), one.rule.name, one.message.clone())).collect()
}

#[test]
fn configured_programs_that_do_not_exist_are_reported_with_their_lines() {
    for (line, rule) in [
        ("uv = \"/nowhere/uv\"", "absent-program"),
        ("python = \"/nowhere/python\"", "absent-program"),
        ("python = \"3.12\"", "python-absent"),
    ] {
        let found = of_settings(&format!("[environment]\n{line}\n"));
        assert!(found.len() == 1 && (found[0].0, found[0].1) == (2, rule), "{found:?}");
    }
    for line in ["uv = \"/bin/sh\"", "python = \"/bin/sh\"", "python = \"3.11.4\"", "python = \"pypy\""] {
        assert_eq!(of_settings(&format!("[environment]\n{line}\n")), [], "{line}");
    }
}

#[test]
fn settings_of_one_tool_must_not_contradict_each_other() {
    let places = |text: &str| of_settings(text).into_iter().map(|(line, rule, _)| (line, rule)).collect::<Vec<_>>();
    assert_eq!(places("[tool]\nconcurrency = 4\n[tool.one]\nprotocol = \"bare\"\n"), [(2, "settings")]);
    assert_eq!(places("[tool.one]\nconcurrency = 4\nprotocol = \"v1\"\n"), []);
    assert_eq!(places("[tool.one]\nmax_workers = 2\nmin_workers = 3\n"), [(3, "unused-settings")]);
    assert_eq!(places("[tool]\nmin_workers = 2\n"), [(2, "unused-settings")]);
    assert_eq!(places("[tool.one]\nmax_workers = 3\nmin_workers = 3\n"), []);
}

#[test]
fn roots_of_built_in_tools_must_be_folders() {
    let with = |on: &str| {
        of_settings(&format!("[builtin]\nenable = [\"{on}\"]\nroots = [\".\", \"gone\", \"hostler.toml\"]\n"))
    };
    let found = with("glob");
    assert!(found.iter().all(|(line, rule, _)| (*line, *rule) == (3, "absent-root")), "{found:?}");
    assert!(found.len() == 2 && found[0].2.contains("/gone") && found[1].2.contains("hostler.toml"), "{found:?}");
    assert_eq!(with("fetch_url"), [], "it uses no roots");
}
