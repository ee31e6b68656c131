//! Names that only live types can describe, and the schemas with their descriptions.

use std::path::Path;

use serde_json::{Value, json};

use crate::discovery::python::{Known, Live};
use crate::discovery::{ToolFile, read_bytes_with};

const IMPORTS: &str = "from typing import Any\nfrom shapes import Color, Spot\nimport shapes as s\n";
const DESCRIPTION: &str = r##"{
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

fn read(source: &str, description: &str) -> ToolFile {
    read_bytes_with(
        Path::new("brave.py"),
        format!("{IMPORTS}{source}").as_bytes(),
        Known { live: Live::read(description), ..Known::default() },
    )
}

fn open(source: &str) -> Value {
    json!(read(source, "").open)
}

fn input(source: &str, description: &str) -> Value {
    Value::Object(read(source, description).functions[0].input_schema.read())
}

#[test]
fn unresolved_names_are_open_by_side() {
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
fn unknown_arguments_of_generic_classes_are_open() {
    let model = "from pydantic import BaseModel\nfrom typing import Generic, TypeVar\nfrom shop import Item, Shelf\nT = TypeVar('T')\n\
                 class Own(BaseModel): ...\nclass Box(BaseModel, Generic[T]):\n    item: T\n    inner: 'Box[T] | None' = None\n\
                 class Sub(Shelf, BaseModel, Generic[T]):\n    item: T\n";
    let opened = |signature: &str| open(&format!("{model}def f{signature}: ..."));
    let unknown = opened("(a: Box[Item], b: list['Box[dict[str, Own] | Item]']) -> Box[Item]");
    assert_eq!(unknown, json!({"validated": ["Item"], "dumped": ["Item"]}));
    assert_eq!(opened("(a: Box[int], b: list['Box[dict[str, Own]]']) -> Box[Own]"), json!({}));
    for unknown in ["Box[T]", "Box[print()]", "Box[1]", "Box"] {
        assert_eq!(opened(&format!("(a: {unknown})")), json!({}), "{unknown}");
    }
    let described =
        r##"{"validated": {"names": {"Item": {"$ref": "#/$defs/Item"}}, "defs": {"Item": {"type": "string"}}}}"##;
    let schema = input(&format!("{model}def f(a: Box[Item]): ..."), described);
    assert_eq!(schema["properties"]["a"], json!({"$ref": "#/$defs/Box_Item_"}));
    assert_eq!(schema["$defs"]["Box_Item_"]["properties"]["item"], json!({"$ref": "#/$defs/Item"}));
    assert_eq!(schema["$defs"]["Item"], json!({"type": "string"}));
    assert_eq!(opened("(a: Sub[int])"), json!({"given": ["Sub[int]"]}), "only the worker knows its ancestors");
}

#[test]
fn known_names_and_any_are_not_open() {
    assert_eq!(open("class Own: ...\ndef f(a: int, b: Any, c: object, d: list[str], e: Own): ..."), json!({}));
}

#[test]
fn described_schemas_replace_names_with_their_definitions() {
    let source = "def f(a: list[Spot] = (), b: s.Kind | None = None):\n    \"\"\"F.\n\n    Args:\n        a: Where.\n    \"\"\"\n";
    let schema = input(source, DESCRIPTION);
    assert_eq!(
        schema["properties"]["a"],
        json!({"type": "array", "items": {"$ref": "#/$defs/Spot"}, "description": "Where.", "default": []})
    );
    assert_eq!(schema["properties"]["b"]["anyOf"], json!([{"enum": [1, 2]}, {"type": "null"}]));
    assert_eq!(schema["$defs"]["Color"], json!({"type": "string", "enum": ["red"]}));
    let file = read("def f() -> Spot: ...", DESCRIPTION);
    let output = file.functions[0].output_schema.as_ref().unwrap().read();
    assert_eq!(Value::Object(output)["properties"], json!({"color": {"type": "string"}}), "a result has its own form");
    assert!(read(source, DESCRIPTION).open.is_empty(), "nothing is left open");
}

#[test]
fn a_class_of_the_file_keeps_its_name() {
    let schema = input(
        "from enum import Enum\nclass Color(Enum):\n    BLUE = 'blue'\ndef f(a: Spot, b: Color): ...",
        DESCRIPTION,
    );
    assert_eq!(schema["$defs"]["Color"]["enum"], json!(["blue"]));
    assert_eq!(schema["$defs"]["Color-imported"]["enum"], json!(["red"]));
    assert_eq!(schema["$defs"]["Spot"]["properties"]["color"], json!({"$ref": "#/$defs/Color-imported"}));
}

#[test]
fn invalid_descriptions_are_ignored() {
    let bare = input("def f(a: Spot): ...", "");
    for description in [
        "[]",
        "{\"given\": 1}",
        r##"{"given": {"names": {"Spot": {"$ref": "#/$defs/Gone"}}}}"##,
        r#"{"given": {"names": {"Spot": {"type": "stone"}}}}"#,
        r#"{"given": {"names": {"Spot": {"type": "string", "pattern": "["}}}}"#,
        r#"{"given": {"names": {"Spot": {"type": "string"}}}, "taken": {}}"#,
    ] {
        assert_eq!(input("def f(a: Spot): ...", description), bare, "{description}");
    }
}
