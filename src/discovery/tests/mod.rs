mod cache;
mod cache_files;
mod classes;
mod collisions;
mod commands;
mod declared;
mod exported;
mod files;
mod folders;
mod foreign_classes;
mod frameworks;
mod generics;
mod given;
mod hints;
mod linked;
mod live;
mod several;
mod made;
mod offers;
mod programs;
mod provided;
mod reached;
mod results;
mod roles;
mod servers;
mod sizes;
mod types;

use std::path::Path;

use serde_json::{Map, Value};

use super::{Function, Status, ToolFile, read_bytes};

fn file(source: &str) -> ToolFile {
    file_at("brave.py", source)
}

fn file_at(path: &str, source: &str) -> ToolFile {
    read_bytes(Path::new(path), source.as_bytes())
}

fn function(source: &str) -> Function {
    let file = file(source);
    assert_eq!(file.status, Status::Ready);
    file.functions.into_iter().next().expect("a public function")
}

fn names(file: &ToolFile) -> Vec<&str> {
    file.functions.iter().map(|function| function.name.as_str()).collect()
}

/// The whole input schema of a file's only function.
fn input(source: &str) -> Value {
    Value::Object(function(source).input_schema.read())
}

/// The schema of each parameter of a function with these parameters, after these lines.
fn properties(before: &str, parameters: &str) -> Map<String, Value> {
    let schema = function(&format!("{before}\ndef f({parameters}): ...\n")).input_schema.read();
    schema["properties"].as_object().unwrap().clone()
}

/// The schema of one hint.
fn hint(before: &str, hint: &str) -> Value {
    properties(before, &format!("x: {hint}"))["x"].clone()
}

fn broken(file: &ToolFile) -> String {
    match &file.status {
        Status::Ready => "ready".to_owned(),
        Status::Broken { line: Some(line), reason } => format!("line {line}: {reason}"),
        Status::Broken { line: None, reason } | Status::Missing { reason } | Status::SchemaUnknown { reason } => {
            reason.to_string()
        }
        Status::Unasked => "unasked".to_owned(),
        Status::NotAsked { .. } => "not asked".to_owned(),
    }
}
