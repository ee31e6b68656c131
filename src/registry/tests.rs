//! The catalogue against folders that change.

use std::path::Path;
use std::sync::Arc;

use super::{NotFound, Registry};
use crate::config::{Config, Wanted};

const TOOL: &str = "def hello(name: str) -> str:\n    \"\"\"Say hello.\"\"\"\n    return name\n";

fn open(folder: &Path) -> Registry {
    let wanted = Wanted { tools: vec![folder.to_owned()], ..Wanted::default() };
    Registry::open(Arc::new(Config::load(&wanted, folder).unwrap()))
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

#[test]
fn both_names_find_a_tool_and_a_wrong_one_is_answered_with_near_ones() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "greet.py", TOOL);
    let registry = open(folder.path());
    assert_eq!(registry.find("greet.hello").unwrap().name, "greet.hello");
    assert_eq!(registry.find("greet_hello").unwrap().name, "greet.hello");
    assert_eq!(registry.find("greet.helo").unwrap_err(), NotFound::Unknown(vec!["greet.hello".to_owned()]));
    assert_eq!(registry.find("hello").unwrap_err(), NotFound::Unknown(vec!["greet.hello".to_owned()]));
}

#[test]
fn changed_new_and_removed_files_are_seen_at_the_next_call() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "greet.py", TOOL);
    let registry = open(folder.path());
    let old = registry.find("greet.hello").unwrap().entry.version;
    write(folder.path(), "greet.py", &TOOL.replace("name\n", "name + '!'\n"));
    let new = registry.find("greet.hello").unwrap().entry.version;
    assert_ne!(old, new);
    write(folder.path(), "later.py", TOOL);
    assert!(registry.find("later.hello").is_ok());
    std::fs::remove_file(folder.path().join("greet.py")).unwrap();
    assert!(registry.find("greet.hello").is_err());
}

#[test]
fn a_neighbour_that_is_imported_is_part_of_the_version() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "greet.py", &format!("import words\n{TOOL}"));
    write(folder.path(), "words.py", "HELLO = 'hello'\n");
    let registry = open(folder.path());
    assert_eq!(registry.catalogue().files.len(), 1, "a helper is no tool file");
    let old = registry.find("greet.hello").unwrap().entry.version;
    write(folder.path(), "words.py", "HELLO = 'good day'\n");
    assert_ne!(registry.find("greet.hello").unwrap().entry.version, old);
}

#[test]
fn a_broken_file_says_why_and_heals_when_it_is_mended() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "greet.py", "# /// script\n# dependencies = []\ndef hello(): ...\n");
    let registry = open(folder.path());
    let reason = match registry.find("greet.hello") {
        Ok(tool) => tool.entry.broken().unwrap(),
        Err(NotFound::Broken(_, reason)) => reason,
        Err(NotFound::Unknown(_)) => panic!("the pack is there"),
    };
    assert!(reason.starts_with("line 1: "), "{reason}");
    write(folder.path(), "greet.py", TOOL);
    assert!(registry.find("greet.hello").unwrap().entry.broken().is_none());
}

#[test]
fn nothing_changed_means_nothing_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "greet.py", TOOL);
    let registry = open(folder.path());
    let before = registry.catalogue();
    assert!(!registry.refresh_if_changed());
    registry.find("greet.hello").unwrap();
    assert!(Arc::ptr_eq(&before, &registry.catalogue()));
}

#[test]
fn a_function_lost_in_a_broken_file_is_told_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "greet.py", "# /// script\n# dependencies = []\n# ///\ndef kept(): ...\ndef hello(:\n");
    write(folder.path(), "greet_well.py", TOOL);
    let registry = open(folder.path());
    for name in ["greet.lost", "greet_lost"] {
        assert!(matches!(registry.find(name).unwrap_err(), NotFound::Broken(..)), "{name}");
    }
    assert!(matches!(registry.find("greet_well_lost").unwrap_err(), NotFound::Unknown(_)), "that pack is whole");
}
