use std::path::PathBuf;
use std::sync::Arc;

use super::*;
use crate::config::origin::{Origin, Place};
use crate::environment::failure::reason;
use crate::environment::in_force::quiet;
use crate::environment::settings::EnvironmentSettings;
use crate::pep723::Metadata;

const FETCHING: &str = "error: Request failed after 3 retries in 9.1s\n  cause: Failed to download \
                        `https://github.com/astral-sh/python-build-standalone/x.tar.gz`\n  cause: error sending request for url\n";
const NONE: &str =
    "error: No interpreter found for Python 3.77 in virtual environments, managed installations, or search path\n";
const BROKEN: &str = "error: Failed to inspect Python interpreter from search path at `/shims/python3.9`\n  cause: Querying Python \
                      at `/shims/python3.9` failed with exit status exit status: 127\n";

fn said(value: &str) -> Setting<String> {
    let place = Place { file: Arc::new(PathBuf::from("/p/hostler.toml")), line: 2 };
    Setting { value: value.to_owned(), origin: Origin::File(place) }
}

fn told(requires: &str, stderr: &str, python: Option<&str>, variables: &[(&str, &str)]) -> String {
    let file = PathBuf::from("a.py");
    let header = if requires.is_empty() { String::new() } else { format!("requires-python = \"{requires}\"\n") };
    let header = Metadata::from_toml(&header, 2, &Arc::new(file.clone())).unwrap();
    let settings = quiet(&[]);
    let set = variables.iter().map(|(name, value)| ((*name).to_owned(), said(value)));
    let env = settings.env.into_iter().chain(set).collect();
    let settings = EnvironmentSettings { python: python.map(said), env, ..EnvironmentSettings::default() };
    let reason = reason(stderr);
    let pythons = [(3, 9), (3, 11)];
    let trouble = Trouble {
        file: &file,
        is_locked: false,
        header: Some(&header),
        settings: &settings,
        pythons: &pythons,
        reason: &reason,
        stderr,
    };
    trouble.told().unwrap_or_else(|| "nothing".to_owned())
}

#[test]
fn a_python_that_is_not_there_is_told_with_the_ways_to_one() {
    let told = [
        told("==3.10", FETCHING, None, &[]),
        told(">=3.12", FETCHING, None, &[]),
        told("", FETCHING, None, &[]),
        told(">=3.12", &FETCHING.replace('`', ""), None, &[]),
        told("==3.10.*", BROKEN, None, &[]),
        told("==3.10.*", BROKEN, None, &[("UV_OFFLINE", "1")]),
        told("==3.10.*", NONE, None, &[("UV_PYTHON_DOWNLOADS", "never")]),
        told("==3.7.*", BROKEN, None, &[]),
        told(">=3.11,<3.11.0", NONE, None, &[]),
        told(">=4.0", NONE, None, &[]),
        told(">=3.10", NONE, Some("3.30"), &[]),
        told(">=3.10", FETCHING, Some("3.10"), &[]),
        told(">=3.10", "error: No interpreter found at path `/nowhere/python`\n", Some("/nowhere/python"), &[]),
        told(">=3.10", "error: Failed to download `rich==14`\n", None, &[]),
    ];
    insta::assert_snapshot!(told.join("\n"));
}
