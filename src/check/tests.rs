//! The planted mistakes of `tests/check`, and what must not be taken for one.

mod functions;
mod imports;
mod settings;
mod variables;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use imports::report_of;

use super::{Interpreters, Report, Surroundings, check};
use crate::config::{Config, ConfigOptions};
use crate::discovery::{Status, read_file};

fn checked(folder: &Path) -> Report {
    let wanted = ConfigOptions { tools: vec![folder.to_owned()], ..ConfigOptions::default() };
    let config = Config::load(&wanted, folder).unwrap();
    let interpreters = Interpreters(BTreeSet::from([(3, 9), (3, 11)]));
    check(
        &[folder.to_owned()],
        &[],
        &Surroundings { config, interpreters, installed: |_, _| None, built_in: Vec::new(), known: None },
    )
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

fn of_text(text: &str) -> Vec<&'static str> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("one.py"), text).unwrap();
    rules_of(folder.path()).into_iter().map(|(_, rule)| rule).collect()
}

const WELL: &str = "def well(number: int) -> int:\n    \"\"\"Give it back.\"\"\"\n    return number\n";

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
fn a_file_that_no_walker_could_stand_is_told_and_does_no_harm() {
    let deep = format!("x = {}{}\n{WELL}", "[".repeat(9_000), "]".repeat(9_000));
    of_text(&deep);
    assert_eq!(of_text(&format!("x = {}\n", "[".repeat(20_000))), ["name"]);
}

#[test]
fn check_and_list_report_a_syntax_error_alike() {
    let report = checked(Path::new("tests/check/tools"));
    let mut told = 0;
    for (file, finding) in report.findings().filter(|(_, finding)| finding.rule.name == "syntax") {
        let line = finding.range.as_ref().map(|range| file.text.line_of(range.start));
        let reason = format!("{}; {}", finding.message, finding.fix);
        assert_eq!(read_file(&file.path).status, Status::Broken { line, reason }, "{}", file.path.display());
        told += 1;
    }
    assert!(told >= 3);
}
