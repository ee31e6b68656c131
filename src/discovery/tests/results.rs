use serde_json::{Value, json};

use super::function;

/// The output schema of a function with this return annotation, after these lines.
fn output(before: &str, hint: &str) -> Option<Value> {
    let function = function(&format!("{before}\ndef f() -> {hint}: ...\n"));
    function.output_schema.map(|schema| Value::Object(schema.read()))
}

fn wrapped(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"result": schema}, "required": ["result"], "x-fastmcp-wrap-result": true})
}

const BEFORE: &str = "
import typing, datetime, functools
from collections.abc import Sequence, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Optional, TypedDict, NotRequired
from pydantic import BaseModel, Field, field_serializer, model_serializer
@dataclass
class Point:
    x: float
    y: float = field(init=False, default=0.0)
class Options(TypedDict):
    a: int
    b: NotRequired[str]
class Pair(NamedTuple):
    left: int
    right: Point
class Item(BaseModel):
    name: str = Field(alias='n', min_length=1)
    hidden: int = Field(0, exclude=True)
    raw: bytes = b''
class Odd(BaseModel):
    x: int
    @model_serializer
    def write(self): ...
class Table(dict):
    pass
@dataclass
class Strange(Table):
    x: int
class Tree(BaseModel):
    children: list['Tree'] = []
";

#[test]
fn results_that_are_not_objects_are_under_result() {
    let integers = json!({"type": "array", "items": {"type": "integer"}});
    for (hint, schema) in [
        ("int", json!({"type": "integer"})),
        ("None", json!({"type": "null"})),
        ("list[int]", integers.clone()),
        ("Iterator[int]", integers.clone()),
        ("typing.AsyncIterator[int]", integers.clone()),
        ("Sequence[int]", integers),
        ("bytes", json!({"type": "string", "contentEncoding": "base64"})),
        ("datetime.datetime", json!({"type": "string"})),
        ("int | str", json!({"anyOf": [{"type": "integer"}, {"type": "string"}]})),
        ("typing.Literal['a']", json!({"type": "string", "enum": ["a"]})),
    ] {
        assert_eq!(output(BEFORE, hint), Some(wrapped(&schema)), "{hint}");
    }
}

#[test]
fn object_results_are_their_own_structured_content() {
    let point = json!({"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x", "y"]});
    assert_eq!(output(BEFORE, "Point"), Some(point.clone()));
    assert_eq!(
        output(BEFORE, "dict[str, int]"),
        Some(json!({"type": "object", "additionalProperties": {"type": "integer"}}))
    );
    assert_eq!(output(BEFORE, "Options").unwrap()["required"], json!(["a"]));
    let pair = output(BEFORE, "Pair").unwrap();
    assert_eq!(pair["properties"]["result"], json!({"$ref": "#/$defs/Pair"}));
    assert_eq!(pair["$defs"]["Pair"]["prefixItems"], json!([{"type": "integer"}, {"$ref": "#/$defs/Point"}]));
    assert_eq!(pair["$defs"]["Point"], point);
    assert_eq!(
        output(BEFORE, "Item"),
        Some(
            json!({"type": "object", "properties": {"name": {"type": "string"}, "raw": {"type": "string"}}, "required": ["name", "raw"]})
        )
    );
    let tree = output(BEFORE, "Tree").unwrap();
    assert_eq!(tree["properties"]["children"]["items"], json!({"$ref": "#/$defs/Tree"}));
    assert_eq!(tree["$defs"]["Tree"]["type"], json!("object"));
}

#[test]
fn files_in_results_have_the_schema_of_their_structured_content() {
    let before = "import hostler, PIL.Image\nfrom hostler import File\nfrom typing import Annotated, TypedDict\n\
                  class Own(TypedDict):\n    mime_type: str\n    base64: str\n";
    for (hint, needed) in [
        ("hostler.Image", vec!["mime_type"]),
        ("File", vec!["mime_type"]),
        ("PIL.Image.Image", vec!["mime_type"]),
        ("hostler.Audio", vec!["mime_type"]),
        ("hostler.Link", vec!["type", "uri", "name"]),
    ] {
        let schema = output(before, &format!("dict[str, {hint}]")).unwrap();
        assert_eq!(schema["additionalProperties"]["required"], json!(needed), "{hint}");
    }
    let content = ["hostler.Image", "hostler.Link", "list[File]", "list[str | hostler.Image | hostler.Link]"];
    for hint in ["Annotated[bytes, 'image/png']", "Own", "list[Own]"].into_iter().chain(content) {
        assert_eq!(output(before, hint), None, "{hint}");
    }
}

#[test]
fn uncertain_results_have_no_schema() {
    for hint in [
        "Elsewhere",
        "typing.Any",
        "object",
        "Optional[Point]",
        "Sequence[str]",
        "Odd",
        "Strange",
        "Table",
        "typing.Iterable[str]",
        "typing.Callable[[], int]",
        "'not a (hint'",
    ] {
        assert_eq!(output(BEFORE, hint), None, "{hint}");
    }
    let set = json!({"type": "array", "uniqueItems": true, "items": {"type": "integer"}});
    assert_eq!(output("", "set[int]"), Some(wrapped(&set)));
    assert_eq!(output("", "list[Elsewhere]"), Some(wrapped(&json!({"type": "array"}))));
    let decorated =
        |line: &str| function(&format!("import functools\nfrom mine import own\n{line}\ndef f() -> int: ...\n"));
    assert!(decorated("@functools.lru_cache(maxsize=3)").output_schema.is_some());
    assert!(decorated("@own").output_schema.is_none());
    assert!(function("from mine import own\ndef f() -> int: ...\nf = own(f)\n").output_schema.is_none());
    assert!(function("def f(): ...\n").output_schema.is_none());
}

#[test]
fn the_docstring_says_what_a_result_is() {
    let described = |docs: &str| {
        let schema =
            function(&format!("def f() -> int:\n    '''Count.\n\n    {docs}\n    '''\n")).output_schema.unwrap().read();
        schema["properties"]["result"]["description"].clone()
    };
    assert_eq!(described("Returns:\n        int: How many\n        there are."), json!("How many there are."));
    assert_eq!(described("Returns:\n        How many there are: all."), json!("How many there are: all."));
    assert_eq!(described("Returns\n    -------\n    int\n        How many."), json!("How many."));
    assert_eq!(described(":returns: How many."), json!("How many."));
}

#[test]
fn tools_of_frameworks_that_check_no_results_have_no_output_schema() {
    let has = |text: &str| function(text).output_schema.is_some();
    assert!(!has("from langchain_core.tools import tool\n@tool\ndef f() -> str: 'D.'\n"));
    assert!(!has("from google.adk.agents import Agent\ndef f() -> dict[str, str]: ...\na = Agent(tools=[f])\n"));
    assert!(!has(
        "from agno.tools import Toolkit\nclass T(Toolkit):\n    def __init__(self):\n        super().__init__(tools=[self.f])\n    def f(self) -> str: ...\n"
    ));
    assert!(has("from fastmcp import FastMCP\nmcp = FastMCP()\n@mcp.tool\ndef f() -> str: ...\n"));
    assert!(has("from langchain.chat_models import init_chat_model\ndef f() -> str: ...\n"), "no tool of a framework");
    let plain = "from langchain.chat_models import init_chat_model\nclass B:\n    def f(self) -> str: ...\nb = B()\n__all__ = ['b']\n";
    assert!(has(plain), "nor is a plain class");
}
