//! `docs/conformance.md` against the tree: every requirement stands there once, and every test it names exists.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// How many requirements each specification has.
const COUNTS: [(&str, usize); 5] = [("000", 63), ("001", 34), ("002", 82), ("003", 68), ("004", 60)];

struct Row {
    id: String,
    state: String,
    proof: String,
}

fn rows() -> Vec<Row> {
    let text = std::fs::read_to_string("docs/conformance.md").unwrap_or_default();
    let cells = text.lines().filter(|line| line.starts_with("| 00")).map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        assert_eq!(cells.len(), 4, "a row has four cells: {line}");
        Row { id: cells[0].to_owned(), state: cells[2].to_owned(), proof: cells[3].to_owned() }
    });
    cells.collect()
}

/// The `path::name` references of a proof, in backticks.
fn references(proof: &str) -> Vec<(String, String)> {
    let quoted = proof.split('`').skip(1).step_by(2);
    quoted.filter_map(|text| text.split_once("::")).map(|(path, name)| (path.to_owned(), name.to_owned())).collect()
}

#[test]
fn every_requirement_is_listed_exactly_once() {
    let mut seen = BTreeSet::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows() {
        assert!(seen.insert(row.id.clone()), "{} stands there twice", row.id);
        *counts.entry(row.id[..3].to_owned()).or_default() += 1;
    }
    for (specification, count) in COUNTS {
        assert_eq!(counts.get(specification), Some(&count), "requirements of {specification}");
    }
}

#[test]
fn every_row_says_held_with_a_test_or_why_not() {
    for Row { id, state, proof } in rows() {
        match state.as_str() {
            "held" | "part" => assert!(!references(&proof).is_empty(), "{id} is {state} and names no test"),
            "later" | "n/a" => assert!(proof.len() > 10, "{id} is {state} and does not say why"),
            _ => panic!("{id}: `{state}` is none of held, part, later, n/a"),
        }
    }
}

#[test]
fn every_test_that_is_named_exists() {
    for Row { id, proof, .. } in rows() {
        for (path, name) in references(&proof) {
            let text = std::fs::read_to_string(Path::new(&path)).unwrap_or_default();
            let exists = text.contains(&format!("fn {name}(")) || text.contains(&format!("def {name}("));
            assert!(exists, "{id} names {path}::{name}, which does not exist");
        }
    }
}
