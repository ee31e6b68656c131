use serde_json::{Value, json};

use super::{Function, file, input};

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

#[test]
fn the_same_arguments_are_others_on_the_other_side() {
    let models = "from pydantic import Field\nfrom datetime import datetime\nclass Item(BaseModel):\n    id: int = Field(alias='ID')\n    tags: list[str] = []\n\
                  class Page(BaseModel, Generic[T]):\n    items: list[T]\n";
    let (give, take) = ("def give() -> Page[Item]: ...\n", "def take(page: Page[Item]): ...\n");
    for text in [[give, take].concat(), [take, give].concat()] {
        let found = file(&format!("{IMPORTS}{models}{text}"));
        let of = |name: &str| found.functions.iter().find(|function| function.name == name).unwrap();
        let taken = Value::Object(of("take").input_schema.read());
        assert_eq!(taken["$defs"]["Item"]["required"], json!(["ID"]), "{text}");
        assert_eq!(taken["properties"]["page"], json!({"$ref": "#/$defs/Page_Item_"}));
        let given = Value::Object(of("give").output_schema.as_ref().unwrap().read());
        assert_eq!(given["$defs"]["Item"]["required"], json!(["id", "tags"]), "{text}");
    }
}

#[test]
fn classes_that_grow_by_themselves_end_soon_and_alone() {
    for inner in ["list[T]", "tuple[T, T, T, T]", "P[T, T]", "dict[str, P[T, list[T]]]"] {
        let text = format!(
            "@dataclass\nclass P(Generic[T, K]):\n    a: T\n    b: K\n@dataclass\nclass Tree(Generic[T]):\n    value: T\n    \
             up: 'Tree[{inner}] | None' = None\n"
        );
        let found = file(&format!("{IMPORTS}{text}def f(a: Tree[int]): ...\ndef g(a: Tree[str]): ...\n"));
        for (function, kind) in found.functions.iter().zip(["integer", "string"]) {
            let schema = function.input_schema.read();
            let key = schema["properties"]["a"]["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
            assert_eq!(schema["$defs"][key]["properties"]["value"]["type"], kind, "{inner}");
            assert!(serde_json::to_string(&schema).unwrap().len() < 100_000, "{inner}");
        }
    }
    let many: Vec<String> =
        (0..200).map(|at| format!("class C{at}(BaseModel):\n    x: int\ndef f{at}(a: Box[C{at}]): ...\n")).collect();
    let found = file(&format!("{IMPORTS}class Box(BaseModel, Generic[T]):\n    item: T\n{}", many.concat()));
    let is_bound = |(at, it): (usize, &Function)| {
        it.input_schema.read()["properties"]["a"] == json!({"$ref": format!("#/$defs/Box_C{at}_")})
    };
    assert!(found.functions.iter().enumerate().all(is_bound) && found.functions.len() == 200);
}

#[test]
fn of_two_ways_to_a_base_the_first_counts() {
    let classes = "class Root(BaseModel, Generic[T]):\n    x: T\nclass A(Root[int]): ...\nclass B(Root[str]): ...\nclass Both(A, B): ...\n";
    assert_eq!(property(&schema(classes, "Both"), "Both", "x"), json!({"type": "integer"}));
    let within = "class Box(BaseModel, Generic[T]):\n    class T(BaseModel):\n        z: int\n    t: T\n";
    assert!(property(&schema(within, "Box[int]"), "Box_int_", "t")["$ref"].is_string(), "not the parameter");
}

#[test]
fn root_models_have_the_arguments_of_the_class_that_says_so() {
    let classes = "from pydantic import RootModel\nclass Base(RootModel[list[T]], Generic[T]): ...\nclass Sub(Base[list[T]], Generic[T]): ...\n\
                   class Ints(Base[int]): ...\n";
    let ints = json!({"type": "array", "items": {"type": "integer"}});
    assert_eq!(schema(classes, "Ints")["$defs"]["Ints"], ints);
    assert_eq!(schema(classes, "Sub[int]")["$defs"]["Sub_int_"], json!({"type": "array", "items": ints}));
}

#[test]
fn arguments_may_be_long_and_deep() {
    let class = "class Box(BaseModel, Generic[T]):\n    item: T\n";
    let many = (0..12).map(|at| format!("Literal[{at}]")).collect::<Vec<_>>().join(" | ");
    for hint in [many.as_str(), "dict[str, dict[str, dict[str, dict[str, list[int]]]]]"] {
        let whole = schema(&format!("from typing import Literal\n{class}"), &format!("Box[{hint}]"));
        let key = whole["properties"]["x"]["$ref"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        assert_ne!(property(&whole, &key, "item"), json!({}), "{hint}");
    }
}

#[test]
fn aliases_take_arguments_as_classes_do() {
    let number = json!({"type": "integer"});
    let pair = json!({"type": "array", "prefixItems": [number, number], "minItems": 2, "maxItems": 2});
    for (aliases, hint, expected) in [
        ("type Pair[T] = tuple[T, T]\n", "Pair[int]", pair.clone()),
        ("Pair = tuple[T, T]\n", "Pair[int]", pair.clone()),
        ("type Pair[A, B = A] = tuple[A, B]\n", "Pair[int]", pair.clone()),
        ("type Inner[T] = tuple[T, T]\ntype Pair[U] = Inner[U]\n", "'Pair[int]'", pair),
        (
            "type Pair[T] = tuple[T, T]\n",
            "list[Pair]",
            json!({"type": "array", "items": {"type": "array", "prefixItems": [{}, {}], "minItems": 2, "maxItems": 2}}),
        ),
        ("Maybe = T | None\n", "Maybe[int]", json!({"anyOf": [number, {"type": "null"}]})),
        ("type Named[T = int] = dict[str, T]\n", "Named", json!({"type": "object", "additionalProperties": number})),
        // What mentions itself is left open.
        ("type Deep[T] = dict[str, Deep[T]]\n", "Deep[int]", json!({"type": "object"})),
        ("type Deep[T] = T | list[Deep[T]]\n", "Deep[int]", json!({"anyOf": [number, {"type": "array"}]})),
        (
            "type Pair[T] = tuple[T, T]\n",
            "Pair[int, str]",
            json!({"type": "array", "prefixItems": [{}, {}], "minItems": 2, "maxItems": 2}),
        ),
    ] {
        assert_eq!(schema(aliases, hint)["properties"]["x"], expected, "{aliases}");
    }
    let lines: Vec<String> = (1..40).map(|at| format!("type A{at}[T] = tuple[A{0}[T], A{0}[T]]\n", at - 1)).collect();
    let whole = schema(&format!("type A0[T] = tuple[T, T]\n{}", lines.concat()), "A39[int]");
    assert!(whole.to_string().len() < 1_000_000, "it ends");
}

#[test]
fn type_parameters_stand_for_their_defaults() {
    for class in [
        "class Box[K, T = int](BaseModel):\n    key: K\n    item: T\n",
        "D = TypeVar('D', default=int)\n@dataclass\nclass Box(Generic[K, D]):\n    key: K\n    item: D\n",
        "class Base[T = int](BaseModel):\n    item: T\nclass Box[K](Base):\n    key: K\n",
    ] {
        let whole = schema(class, "Box[str]");
        let name = whole["properties"]["x"]["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        assert_eq!(property(&whole, name, "key"), json!({"type": "string"}), "{class}");
        assert_eq!(property(&whole, name, "item"), json!({"type": "integer"}), "{class}");
    }
    let open = schema("class Box[K, T = int](BaseModel):\n    key: K\n    item: T\n", "Box");
    let name = open["properties"]["x"]["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
    assert_eq!((property(&open, name, "key"), property(&open, name, "item")), (json!({}), json!({"type": "integer"})));
    for class in [
        "class Tree[C = 'Tree'](BaseModel):\n    name: str\n    children: list[C]\n",
        "class Tree[A = 'Tree', B = 'Tree'](BaseModel):\n    name: str\n    a: list[A]\n    b: list[B]\n",
        "class Tree[A = 'Tree[int]'](BaseModel):\n    name: str\n    a: list[A]\n",
    ] {
        let whole = schema(class, "Tree");
        assert!(whole["$defs"].as_object().unwrap().len() <= 4, "{whole}");
    }
    let page = "class Page[T = str](BaseModel):\n    items: list[T]\n";
    let whole = schema(page, "Page");
    assert_eq!(property(&whole, "Page_str_", "items")["items"], json!({"type": "string"}));
    let whole = schema(&format!("{page}class Users(Page): ...\n"), "Users");
    assert_eq!(property(&whole, "Users", "items")["items"], json!({"type": "string"}));
}

#[test]
fn a_class_with_arguments_is_itself_with_them() {
    let page = "from typing import Self\nclass Page[T](BaseModel):\n    item: T\n    next: Self | None = None\nclass Users(Page[User]): ...\n";
    for (hint, name) in [("Page[int]", "Page_int_"), ("Users", "Users"), ("Page", "Page")] {
        let whole = schema(page, hint);
        assert_eq!(property(&whole, name, "next")["anyOf"][0], json!({"$ref": format!("#/$defs/{name}")}), "{hint}");
    }
}
