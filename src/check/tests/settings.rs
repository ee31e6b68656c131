//! What is told of `hostler.toml`.

use std::collections::BTreeSet;

use super::super::{Interpreters, Surroundings, check};
use super::WELL;
use crate::config::{Config, ConfigOptions};

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
    let wanted = ConfigOptions { config: Some(folder.path().join("hostler.toml")), ..ConfigOptions::default() };
    let config = Config::load(&wanted, folder.path()).unwrap();
    let interpreters = Interpreters(BTreeSet::from([(3, 9), (3, 11)]));
    let mut report = check(
        &config.tools.value,
        &[],
        &Surroundings {
            config: config.clone(),
            interpreters: interpreters.clone(),
            installed: |_, _| None,
            built_in: Vec::new(),
            known: None,
        },
    );
    report.programs(&config, &interpreters);
    report.roots(&config);
    let line = |file: &super::super::FileReport, finding: &super::super::Finding| {
        finding.range.as_ref().map_or(0, |range| file.text.line_of(range.start))
    };
    let told = |(file, finding): (&super::super::FileReport, &super::super::Finding)| {
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
fn more_at_once_than_a_bare_worker_can_is_told() {
    let told = of_settings("[tool]\nconcurrency = 4\n[tool.one]\nprotocol = \"bare\"\n");
    let text = "`concurrency = 4` keeps one from being started: `bare` is one call at a time";
    assert_eq!(told, [(2, "settings", text.to_owned())]);
    assert_eq!(of_settings("[tool.one]\nconcurrency = 4\nprotocol = \"v1\"\n"), []);
    assert_eq!(of_settings("[tool]\nconcurrency = 4\n[tool.one]\nconcurrency = 1\nprotocol = \"bare\"\n"), []);
}

#[test]
fn roots_of_built_in_tools_that_are_no_folders_are_told() {
    let with = |on: &str| {
        of_settings(&format!("[builtin]\nenable = [\"{on}\"]\nroots = [\".\", \"gone\", \"hostler.toml\"]\n"))
    };
    let told = with("glob");
    let ends: Vec<_> = told.iter().map(|(line, rule, text)| (*line, *rule, text.rsplit_once('/').unwrap().1)).collect();
    let file = "hostler.toml is a file, not a folder";
    assert_eq!(ends, [(3, "absent-root", "gone does not exist"), (3, "absent-root", file)]);
    assert_eq!(with("fetch_url"), [], "nobody reaches there");
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
