//! Names that only a live type could tell about, and what is made of it when it did.

use std::path::Path;

use serde_json::{Value, json};

use crate::discovery::{Live, ToolFile, read_bytes_with};

const IMPORTS: &str = "from typing import Any\nfrom shapes import Color, Spot\nimport shapes as s\n";
const TOLD: &str = r##"{
    "given": {
        "names": {"Spot": {"$ref": "#/$defs/Spot"}, "s.Kind": {"enum": [1, 2]}},
        "defs": {
            "Spot": {"type": "object", "properties": {"color": {"$ref": "#/$defs/Color"}}, "required": ["color"]},
            "Color": {"type": "string", "enum": ["red"]}
        }
    },
    "returned": {
        "names": {"Spot": {"$ref": "#/$defs/Spot"}},
        "defs": {"Spot": {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}}
    }
}"##;

fn read(source: &str, told: &str) -> ToolFile {
    read_bytes_with(Path::new("brave.py"), format!("{IMPORTS}{source}").as_bytes(), Live::read(told))
}

fn open(source: &str) -> Value {
    json!(read(source, "").open)
}

fn input(source: &str, told: &str) -> Value {
    Value::Object(read(source, told).functions[0].input_schema.read())
}

#[test]
fn what_reading_cannot_follow_is_open_by_its_name_and_side() {
    assert_eq!(
        open("def f(a: Spot, b: 's.Kind') -> list[Spot]: ..."),
        json!({"given": ["Spot", "s.Kind"], "returned": ["Spot"]})
    );
    assert_eq!(open("class Near(Spot): ...\ndef f(a: Near): ..."), json!({"given": ["Near"]}));
    assert_eq!(
        open("from pydantic import BaseModel\nclass M(BaseModel):\n    a: Spot\ndef f(a: M): ..."),
        json!({"validated": ["Spot"]})
    );
    assert_eq!(open("Kind = make()\ndef f(a: Kind): ..."), json!({"given": ["Kind"]}));
}

#[test]
fn what_is_known_or_means_anything_is_not_open() {
    assert_eq!(open("class Own: ...\ndef f(a: int, b: Any, c: object, d: list[str], e: Own): ..."), json!({}));
}

#[test]
fn what_is_told_stands_where_the_name_stood_with_all_that_it_needs() {
    let source = "def f(a: list[Spot] = (), b: s.Kind | None = None):\n    \"\"\"F.\n\n    Args:\n        a: Where.\n    \"\"\"\n";
    let schema = input(source, TOLD);
    assert_eq!(
        schema["properties"]["a"],
        json!({"type": "array", "items": {"$ref": "#/$defs/Spot"}, "description": "Where.", "default": []})
    );
    assert_eq!(schema["properties"]["b"]["anyOf"], json!([{"enum": [1, 2]}, {"type": "null"}]));
    assert_eq!(schema["$defs"]["Color"], json!({"type": "string", "enum": ["red"]}));
    let file = read("def f() -> Spot: ...", TOLD);
    let output = file.functions[0].output_schema.as_ref().unwrap().read();
    assert_eq!(Value::Object(output)["properties"], json!({"color": {"type": "string"}}), "a result has its own form");
    assert!(read(source, TOLD).open.is_empty(), "nothing is left open");
}

#[test]
fn a_class_of_the_file_keeps_its_name() {
    let schema =
        input("from enum import Enum\nclass Color(Enum):\n    BLUE = 'blue'\ndef f(a: Spot, b: Color): ...", TOLD);
    assert_eq!(schema["$defs"]["Color"]["enum"], json!(["blue"]));
    assert_eq!(schema["$defs"]["Color-imported"]["enum"], json!(["red"]));
    assert_eq!(schema["$defs"]["Spot"]["properties"]["color"], json!({"$ref": "#/$defs/Color-imported"}));
}

#[test]
fn what_makes_no_sound_schema_is_not_believed() {
    let bare = input("def f(a: Spot): ...", "");
    for told in [
        "[]",
        "{\"given\": 1}",
        r##"{"given": {"names": {"Spot": {"$ref": "#/$defs/Gone"}}}}"##,
        r#"{"given": {"names": {"Spot": {"type": "stone"}}}}"#,
        r#"{"given": {"names": {"Spot": {"type": "string", "pattern": "["}}}}"#,
        r#"{"given": {"names": {"Spot": {"type": "string"}}}, "taken": {}}"#,
    ] {
        assert_eq!(input("def f(a: Spot): ...", told), bare, "{told}");
    }
}
