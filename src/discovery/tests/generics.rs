use serde_json::{Value, json};

use super::input;

const IMPORTS: &str = "from dataclasses import dataclass\nfrom typing import Generic, NamedTuple, TypedDict, TypeVar\n\
                       from pydantic import BaseModel\nT = TypeVar('T')\nK = TypeVar('K')\nclass User(BaseModel):\n    name: str\n";

/// The whole input schema of `def f(x: HINT)` below these classes.
fn schema(classes: &str, hint: &str) -> Value {
    input(&format!("{IMPORTS}{classes}def f(x: {hint}): ...\n"))
}

/// The schema of a property of a definition.
fn property(whole: &Value, definition: &str, name: &str) -> Value {
    whole["$defs"][definition]["properties"][name].clone()
}

#[test]
fn type_parameters_stand_for_the_arguments_of_their_class() {
    for class in [
        "class Box(BaseModel, Generic[T]):\n    item: list[T]\n",
        "class Box[T](BaseModel):\n    item: list[T]\n",
        "@dataclass\nclass Box(Generic[T]):\n    item: list[T]\n",
        "class Box(TypedDict, Generic[T]):\n    item: list[T]\n",
        "class Base(BaseModel, Generic[K]):\n    item: list[K]\nclass Box(Base[T], Generic[T]): ...\n",
        "class Base[U](BaseModel):\n    item: list[U]\nclass Box[T](Base[T]): ...\n",
        "class Base(BaseModel, Generic[K]):\n    item: K\nclass Box(Base[list[T]]): ...\n",
    ] {
        let whole = schema(class, "Box[int]");
        assert_eq!(whole["properties"]["x"], json!({"$ref": "#/$defs/Box_int_"}), "{class}");
        assert_eq!(
            property(&whole, "Box_int_", "item"),
            json!({"type": "array", "items": {"type": "integer"}}),
            "{class}"
        );
        let whole = schema(&format!("{class}class Users(Box[User]): ...\n"), "'Users'");
        let users = json!({"type": "array", "items": {"$ref": "#/$defs/User"}});
        // What only looks like a dataclass has no field of its own, and inherits them all.
        assert_eq!(property(&whole, "Users", "item"), users, "{class}");
    }
}

#[test]
fn several_parameters_keep_their_order() {
    let pair = "class Pair(BaseModel, Generic[K, T]):\n    key: K\n    value: T\nclass Turned(Pair[T, K], Generic[K, T]): ...\n";
    let whole = schema(pair, "Turned[int, str]");
    assert_eq!(property(&whole, "Turned_int_str_", "key"), json!({"type": "string"}));
    assert_eq!(property(&whole, "Turned_int_str_", "value"), json!({"type": "integer"}));
}

#[test]
fn a_generic_class_may_contain_itself() {
    let node = "class Node[T](BaseModel):\n    value: T\n    next: 'Node[T] | None' = None\n    other: 'Node[str] | None' = None\n";
    let whole = schema(node, "Node[int]");
    assert_eq!(property(&whole, "Node_int_", "next")["anyOf"][0], json!({"$ref": "#/$defs/Node_int_"}));
    assert_eq!(property(&whole, "Node_str_", "next")["anyOf"][0], json!({"$ref": "#/$defs/Node_str_"}));
    let growing = "class Node[T](BaseModel):\n    value: T\n    next: 'Node[list[T]] | None' = None\n";
    let whole = schema(growing, "Node[int]");
    assert!(whole["$defs"].as_object().unwrap().len() < 100, "it ends");
}

#[test]
fn what_a_type_parameter_stands_for_may_be_unknown() {
    for (class, hint) in [
        ("class Box(BaseModel, Generic[T]):\n    item: T\n", "Box"),
        ("class Box[U](BaseModel):\n    item: U\n", "Box"),
        ("class Box(BaseModel, Generic[T]):\n    item: T\nclass Sub(Box): ...\n", "Sub"),
        ("class Box(BaseModel, Generic[T]):\n    item: T\n", "Box[int, str]"),
        ("class Box[*Ts](BaseModel):\n    item: tuple[*Ts]\n", "Box[int]"),
    ] {
        let whole = schema(class, hint);
        let key = hint.split('[').next().unwrap_or_default();
        let item = property(&whole, key, "item");
        assert!(item == json!({}) || item == json!({"type": "array"}), "{class}{hint}: {whole}");
    }
}
