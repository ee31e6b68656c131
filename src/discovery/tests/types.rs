use serde_json::json;

use super::{file, hint, input, properties};

#[test]
fn bounds_come_in_several_spellings() {
    let before = "from typing import Annotated, Optional\nfrom annotated_types import Ge, Gt, Le, Lt, Interval, Len, MinLen, MultipleOf\n\
                  from pydantic import Field, Json, StringConstraints, conint, constr, conlist, PositiveInt\nfrom decimal import Decimal\nLEAST = 2\n";
    for (text, expected) in [
        ("Annotated[int, Ge(1), Lt(9)]", json!({"type": "integer", "minimum": 1, "exclusiveMaximum": 9})),
        ("Annotated[int, Interval(ge=0, le=8)]", json!({"type": "integer", "minimum": 0, "maximum": 8})),
        ("Annotated[float, MultipleOf(0.5)]", json!({"type": "number", "multipleOf": 0.5})),
        ("Annotated[str, Len(1, 3)]", json!({"type": "string", "minLength": 1, "maxLength": 3})),
        ("Annotated[list, MinLen(1)]", json!({"type": "array", "minItems": 1})),
        ("Annotated[dict, Field(max_length=1)]", json!({"type": "object", "maxProperties": 1})),
        ("Annotated[str, StringConstraints(pattern='^a$')]", json!({"type": "string", "pattern": "^a$"})),
        (
            "Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=3, pattern='^a$')]",
            json!({"type": "string", "minLength": 1}),
        ),
        ("Annotated[str, StringConstraints(to_lower=False, max_length=3)]", json!({"type": "string", "maxLength": 3})),
        (
            "Annotated[str, StringConstraints(strip_whitespace=True), Field(max_length=3, pattern='^a')]",
            json!({"type": "string"}),
        ),
        ("constr(strip_whitespace=True, max_length=3)", json!({"type": "string"})),
        ("Json[list[int]]", json!({"type": "string", "contentMediaType": "application/json"})),
        ("Annotated[str, Field(pattern='(?P<a')]", json!({"type": "string"})),
        ("Annotated[int, Field(multiple_of=0)]", json!({"type": "integer"})),
        ("Annotated[int, Field(ge=LEAST)]", json!({"type": "integer", "minimum": 2})),
        ("Annotated[bytes, Field(max_length=3)]", json!({"type": "string", "contentEncoding": "base64"})),
        (
            "Annotated[Optional[int], Gt(3)]",
            json!({"anyOf": [{"type": "integer", "exclusiveMinimum": 3}, {"type": "null"}]}),
        ),
        ("Annotated[Decimal, Ge(3)]", json!({"anyOf": [{"type": "string"}, {"type": "number", "minimum": 3}]})),
        ("Annotated[int | str, Ge(3)]", json!({"anyOf": [{"type": "integer"}, {"type": "string"}]})),
        ("conint(ge=1)", json!({"type": "integer", "minimum": 1})),
        ("conlist(int, max_length=2)", json!({"type": "array", "items": {"type": "integer"}, "maxItems": 2})),
        ("PositiveInt", json!({"type": "integer", "exclusiveMinimum": 0})),
    ] {
        assert_eq!(hint(before, text), expected, "{text}");
    }
}

#[test]
fn tuples_may_be_open_and_keys_restricted() {
    let before = "from typing import Literal, Unpack\nfrom enum import Enum, IntEnum\nclass Word(Enum):\n    A = 'a'\n\
                  class Level(IntEnum):\n    A = 1\nKeys = Literal['a', 'b']\n";
    let open =
        json!({"type": "array", "prefixItems": [{"type": "integer"}], "minItems": 1, "items": {"type": "string"}});
    assert_eq!(hint(before, "tuple[int, *tuple[str, ...]]"), open);
    assert_eq!(hint(before, "tuple[int, Unpack[tuple[str, ...]]]"), open);
    let either = json!({"anyOf": [{"type": "integer"}, {"type": "string"}]});
    let middle = json!({"type": "array", "minItems": 1, "items": either});
    assert_eq!(hint(before, "tuple[*tuple[int, ...], str]"), middle);
    assert_eq!(hint(before, "tuple[*tuple[int, ...], *tuple[str, ...]]"), json!({"type": "array"}));
    assert_eq!(hint(before, "tuple[()]"), json!({"type": "array", "minItems": 0, "maxItems": 0}));
    let words = json!({"type": "string", "enum": ["a", "b"]});
    assert_eq!(hint(before, "dict[Keys, object]"), json!({"type": "object", "propertyNames": words}));
    assert_eq!(
        hint(before, "dict[Word, object]"),
        json!({"type": "object", "propertyNames": {"$ref": "#/$defs/Word"}})
    );
    assert_eq!(hint(before, "dict[Level, object]"), json!({"type": "object"}));
    assert_eq!(hint(before, "Literal[Keys, 'c']"), json!({"type": "string", "enum": ["a", "b", "c"]}));
}

#[test]
fn types_that_contain_themselves_are_referred_to() {
    let before = "from __future__ import annotations\nfrom typing import TypeAlias\ntype Json = dict[str, Json] | list[Json] | str\n\
                  Old: TypeAlias = 'list[Old] | int'\nLoop = list[Other]\nOther = dict[str, Loop]\nSelf = int | Self\n";
    let schema = input(&format!("{before}def f(x: Json, y: Old, z: Loop, w: Self): ..."));
    assert_eq!(schema["properties"]["x"], json!({"$ref": "#/$defs/Json"}));
    assert_eq!(
        schema["$defs"]["Json"],
        json!({"anyOf": [
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/Json"}},
            {"type": "array", "items": {"$ref": "#/$defs/Json"}},
            {"type": "string"},
        ]})
    );
    assert_eq!(schema["properties"]["y"], json!({"$ref": "#/$defs/Old"}));
    assert_eq!(schema["$defs"]["Loop"]["items"]["additionalProperties"], json!({"$ref": "#/$defs/Loop"}));
    assert_eq!(schema["properties"]["w"], json!({}));
    // Each doubles the one before it: what is read is counted, also where it was read already.
    let doubled: Vec<String> = (1..60).map(|n| format!("A{n} = tuple[A{0}, A{0}]\n", n - 1)).collect();
    let doubled = doubled.concat();
    let schema = input(&format!("A0 = int\n{doubled}def f(x: A59, y: A59): ..."));
    assert!(schema.to_string().len() < 2_000_000);
}

#[test]
fn arguments_may_come_from_a_typed_dictionary_or_be_described_by_a_default() {
    let before = "from typing import TypedDict, NotRequired, Unpack\nfrom pydantic import Field\n\
                  class Options(TypedDict):\n    depth: int\n    mode: NotRequired[str]\n";
    let schema = input(&format!("{before}def f(x: int, **options: Unpack[Options]): ..."));
    assert_eq!(schema["required"], json!(["x", "depth"]));
    assert_eq!(schema["properties"]["mode"], json!({"type": "string"}));
    assert_eq!((&schema["additionalProperties"], schema.get("$defs")), (&json!(false), None));
    let schema =
        input(&format!("{before}def f(y: str = Field(max_length=2), x: int = Field(5, ge=1, description='n')): ..."));
    assert_eq!(schema["required"], json!(["y"]));
    assert_eq!(schema["properties"]["x"], json!({"type": "integer", "minimum": 1, "description": "n", "default": 5}));
    let choices = "from pydantic import AliasChoices, AliasPath\nfrom dataclasses import dataclass\n\
                   @dataclass\nclass D:\n    a: int = Field(alias='x')\n    b: int = Field(validation_alias=AliasChoices('y', 'z'))\n";
    let schema =
        input(&format!("{before}{choices}def f(n: int = Field(validation_alias=AliasChoices('m', 'k'))): ..."));
    assert_eq!((&schema["properties"], &schema["required"]), (&json!({"m": {"type": "integer"}}), &json!(["m"])));
    let several = input(&format!("{before}{choices}def f(d: D): ..."))["$defs"]["D"].clone();
    assert_eq!((&several["required"], several.get("additionalProperties")), (&json!(["x"]), None));
    let noted = choices.replace("a: int = Field(alias='x')", "a: Annotated[int, Field(default=5, alias='x')]");
    let noted = format!("from typing import Annotated\n{before}{noted}def f(d: D): ...");
    assert_eq!(input(&noted)["$defs"]["D"]["required"], json!(["x"]), "Python has no default");
    let path = choices.replace("AliasChoices('y', 'z')", "AliasPath('y', 0)");
    assert_eq!(input(&format!("{before}{path}def f(d: D): ..."))["$defs"]["D"], json!({"type": "object"}));
}

#[test]
fn a_class_may_be_called_in_any_language() {
    let schema = input("from enum import Enum\nclass Größe(Enum):\n    S = 's'\ndef f(a: Größe): ...");
    assert_eq!(schema["properties"]["a"], json!({"$ref": "#/$defs/Gr_u00f6_u00dfe"}));
    assert!(jsonschema::draft202012::new(&schema).is_ok());
}

#[test]
fn a_duplicate_name_is_required_once() {
    // No Python, but its schema is looked at all the same.
    assert_eq!(file("def f(a, b, a): ...").functions[0].input_schema.read()["required"], json!(["a", "b"]));
}

#[test]
fn fields_with_several_names_have_the_first() {
    let before = r#"
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field
class Choices(BaseModel, extra="forbid"):
    name: str = Field(validation_alias=AliasChoices("fullName", AliasPath("person", "name"), "name"))
    age: int
class Ignored(BaseModel):
    model_config = ConfigDict(validate_by_alias=False, validate_by_name=True)
    first_name: int = Field(alias="firstName")
class Path(BaseModel):
    name: str = Field(validation_alias=AliasPath("person", "name"))
"#;
    let definition = |name: &str| input(&format!("{before}\ndef f(x: {name}): ..."))["$defs"][name].clone();
    let choices = definition("Choices");
    assert_eq!(choices["properties"], json!({"fullName": {"type": "string"}, "age": {"type": "integer"}}));
    assert_eq!(
        (&choices["required"], choices.get("additionalProperties")),
        (&json!(["age"]), None),
        "another may be given"
    );
    let ignored = definition("Ignored");
    assert_eq!(
        (&ignored["required"], ignored["properties"].get("first_name")),
        (&json!(["first_name"]), Some(&json!({"type": "integer"})))
    );
    assert_eq!(definition("Path").get("properties"), None, "it is no name");
}

#[test]
fn models_are_configured_in_many_ways() {
    let before = r#"
from pydantic import BaseModel, ConfigDict, Field, RootModel, BeforeValidator, field_validator
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass
from typing import Annotated
CONFIG = ConfigDict(extra="forbid")
class Named(BaseModel):
    model_config = CONFIG
    x: int
class Keyword(BaseModel, extra="forbid"):
    x: int
class Old(BaseModel):
    class Config:
        extra = "forbid"
    x: int
class Camel(BaseModel):
    model_config = {"alias_generator": to_camel}
    first_name: int
    other: Annotated[int, Field(alias="o")] = 1
class Numbers(RootModel[list[int]]): pass
class Early(BaseModel):
    x: int
    y: int
    @field_validator("x", mode="before")
    def any_form(cls, value): ...
@dataclass
class Checked:
    x: Annotated[int, BeforeValidator(len)]
    y: bytes
"#;
    let definition = |name: &str| input(&format!("{before}\ndef f(x: {name}): ..."))["$defs"][name].clone();
    for closed in ["Named", "Keyword", "Old"] {
        assert_eq!(definition(closed)["additionalProperties"], json!(false), "{closed}");
    }
    assert_eq!(definition("Camel")["required"], json!(["firstName"]));
    assert_eq!(definition("Camel")["properties"]["o"], json!({"type": "integer", "default": 1}));
    assert_eq!(definition("Numbers"), json!({"type": "array", "items": {"type": "integer"}}));
    assert_eq!(definition("Early")["properties"], json!({"x": {}, "y": {"type": "integer"}}));
    assert_eq!(definition("Checked")["properties"], json!({"x": {}, "y": {"type": "string", "format": "binary"}}));
    assert_eq!(definition("Checked").get("additionalProperties"), None);
}

#[test]
fn a_model_of_itself_is_left_open() {
    let before = "from pydantic import RootModel\nclass A(RootModel['B']): pass\nclass B(RootModel['A | int']): pass\n\
                  class C(RootModel[list['C']]): pass\n";
    let schema = input(&format!("{before}def f(a: A, c: C): ..."));
    assert_eq!(schema["$defs"]["A"], json!({}));
    assert_eq!(schema["$defs"]["C"], json!({"type": "array", "items": {"$ref": "#/$defs/C"}}));
}

#[test]
fn constants_of_the_file_are_defaults() {
    let found = properties(
        "LIMIT = 10\nNAMES = ['a']\nfor EACH in range(3): pass\nTWICE = 1\nTWICE = 2\n",
        "a=LIMIT, b=NAMES, c=EACH, d=TWICE",
    );
    assert_eq!(found["a"]["default"], json!(10));
    let size = properties("SIZE = (1, 'x')\nDEEP = (1, [2])\n", "a=SIZE, b=DEEP");
    assert_eq!((&size["a"]["default"], size["b"].get("default")), (&json!([1, "x"]), None));
    assert!(["b", "c", "d"].iter().all(|name| found[*name].get("default").is_none()));
}

#[test]
fn a_deep_alias_is_the_same_in_every_order_of_functions() {
    let aliases: Vec<String> = (1..=60).map(|n| format!("A{n} = list[A{}]\n", n - 1)).collect();
    let trees: Vec<String> = (1..=40).map(|n| format!("type T{n} = list[T{}]\n", n - 1)).collect();
    let lines = format!("A0 = int\n{}type T0 = list[int | T40]\n{}", aliases.concat(), trees.concat());
    let functions = ["def f(x: A30): ...\n", "def g(x: A18): ...\n", "def h(x: T9): ...\n", "def i(x: T30): ...\n"];
    let schemas = |functions: &[&str]| {
        let found = file(&(lines.clone() + &functions.concat())).functions;
        let mut schemas: Vec<_> = found.iter().map(|each| (each.name.clone(), each.input_schema.read())).collect();
        schemas.sort_by(|left, right| left.0.cmp(&right.0));
        schemas
    };
    let mut reversed = functions;
    reversed.reverse();
    let found = schemas(&functions);
    assert_eq!(found, schemas(&reversed));
    assert!(serde_json::to_string(&found[1].1).unwrap().contains("integer"), "{:?}", found[1]);
}

#[test]
fn an_explicit_alias_may_be_made_by_a_call() {
    let before = "from typing import NewType, TypeAlias\nCount: TypeAlias = NewType('Count', int)";
    assert_eq!(hint(before, "Count"), json!({"type": "integer"}));
}

#[test]
fn fields_may_say_more_for_readers() {
    let found = input(
        "from pydantic import BaseModel, Field\nfrom typing import Annotated\n\
         class M(BaseModel):\n    x: int = Field(5, title='The X', examples=[1], deprecated=True, \
         json_schema_extra={'x-unit': 'cm', 'minimum': 9, 'default': 1})\n\
         def f(m: M, y: Annotated[int, Field(examples=[2], deprecated='use x')] = 1, z: list[Annotated[str, Field(title='Z')]] = Field([], title='All')): ...\n",
    );
    let says =
        json!({"type": "integer", "default": 5, "title": "The X", "examples": [1], "deprecated": true, "x-unit": "cm"});
    assert_eq!(found["$defs"]["M"]["properties"]["x"], says);
    assert_eq!(found["properties"]["y"], json!({"type": "integer", "default": 1, "examples": [2], "deprecated": true}));
    let list = json!({"type": "array", "items": {"type": "string", "title": "Z"}, "default": [], "title": "All"});
    assert_eq!(found["properties"]["z"], list);
}

#[test]
fn a_model_says_more_to_readers() {
    let models = "from pydantic import BaseModel, ConfigDict, Field\nclass Base(BaseModel):\n    model_config = ConfigDict(title='Base', \
                  json_schema_extra={'examples': [{'a': 1}], 'x-a': 2, 'minProperties': 3})\nclass Own(Base):\n    \
                  a: int = Field(1, json_schema_extra={'example': 5})\n    class Config:\n        title = 'Own one'\n";
    let whole = super::input(&format!("{models}def f(x: Own): ...\n"));
    let own = &whole["$defs"]["Own"];
    assert_eq!((&own["title"], &own["examples"], &own["x-a"]), (&json!("Own one"), &json!([{"a": 1}]), &json!(2)));
    assert_eq!(own.get("minProperties"), None, "pydantic checks nothing of it");
    assert_eq!(own["properties"]["a"]["example"], json!(5));
}
