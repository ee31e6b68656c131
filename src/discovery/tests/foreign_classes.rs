//! Classes of attrs and msgspec.

use serde_json::{Value, json};

use super::{file, function};

/// The definition of `C`, as an argument.
fn taken(class: &str) -> Value {
    let schema = function(&format!("{class}def f(c: C): ...\n")).input_schema.read();
    schema.get("$defs").map_or(schema["properties"]["c"].clone(), |defs| defs["C"].clone())
}

const ATTRS: &str = "import attr, attrs\nfrom attrs import define, field\n";
const MSGSPEC: &str = "import msgspec\nfrom typing import Annotated\n";

#[test]
fn annotations_are_fields_of_attrs() {
    let expected = json!({
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "hidden": {"type": "string"},
            "other": {"type": "boolean", "default": false},
            "list": {"type": "array", "items": {"type": "integer"}},
            "made": {},
        },
        "required": ["a", "hidden", "made"],
        "additionalProperties": false,
    });
    let body = "class C:\n    a: int\n    _hidden: str\n    b: bool = field(default=False, alias='other')\n    \
                list: list[int] = field(factory=some)\n    made: int = field(converter=int)\n    own: int = field(init=False)\n";
    for decorator in ["@define", "@attrs.frozen", "@attr.s(auto_attribs=True)", "@attrs.define(kw_only=True)"] {
        assert_eq!(taken(&format!("{ATTRS}{decorator}\n{body}")), expected, "{decorator}");
    }
    for unknown in ["@attr.s\nclass C:\n    a: int\n", "@define\nclass C:\n    a: int\n    b = field()\n"] {
        assert_eq!(taken(&format!("{ATTRS}{unknown}")), json!({}), "{unknown}");
    }
    let result = file(&format!("{ATTRS}@define\nclass C:\n    _a: int = 1\ndef f() -> C: ...\n"));
    let schema = result.functions[0].output_schema.as_ref().unwrap().read();
    assert_eq!((&schema["required"], &schema["properties"]), (&json!(["_a"]), &json!({"_a": {"type": "integer"}})));
}

#[test]
fn annotations_are_fields_of_structs() {
    let body = "    a: Annotated[int, msgspec.Meta(ge=1, description='A.')]\n    b: str = msgspec.field(default='q', name='bee')\n    \
                c: list[int] = msgspec.field(default_factory=list)\n";
    let properties = json!({
        "a": {"type": "integer", "minimum": 1, "description": "A."},
        "bee": {"type": "string", "default": "q"},
        "c": {"type": "array", "items": {"type": "integer"}, "default": []},
    });
    let open = taken(&format!("{MSGSPEC}class C(msgspec.Struct, kw_only=True):\n{body}"));
    assert_eq!(open, json!({"type": "object", "properties": properties, "required": ["a"]}));
    let closed = taken(&format!("{MSGSPEC}class C(msgspec.Struct, forbid_unknown_fields=True):\n{body}"));
    assert_eq!((&closed["properties"], &closed["additionalProperties"]), (&properties, &json!(false)));
    for form in ["rename='camel'", "tag=True", "array_like=True"] {
        assert_eq!(taken(&format!("{MSGSPEC}class C(msgspec.Struct, {form}):\n    a: int\n")), json!({}), "{form}");
    }
}
