use serde_json::{Value, json};

use super::{file, hint, input, properties};

#[test]
fn enumerations_are_their_values() {
    let before = r#"
import enum
from enum import Enum, IntEnum, StrEnum, auto
class Colour(Enum):
    """What it looks like."""
    RED = "red"
    BLUE = "blue"
    ALSO_RED = "red"
    _hidden = 3
    def shade(self): ...
class Level(IntEnum):
    LOW = 1
    HIGH = auto()
class Word(StrEnum):
    YES = auto()
class Mixed(str, Enum):
    A = compute()
class Open(Enum):
    A = 1
    @classmethod
    def _missing_(cls, value): ...
class Bits(enum.Flag):
    A = 1
class Old(str, Enum): pass
class Young(Old):
    X = "x"
"#;
    let schema = input(&format!(
        "{before}\ndef f(a: Colour, b: Level = Level.HIGH, c: Word = Word.YES, d: str = Colour.RED.value, e: Mixed = Mixed.A): ..."
    ));
    assert_eq!(
        schema["$defs"],
        json!({
            "Colour": {"type": "string", "enum": ["red", "blue"], "description": "What it looks like."},
            "Level": {"type": "integer", "enum": [1, 2]},
            "Word": {"type": "string", "enum": ["yes"]},
            "Mixed": {"type": "string"},
        })
    );
    assert_eq!(schema["properties"]["a"], json!({"$ref": "#/$defs/Colour"}));
    assert_eq!(schema["properties"]["b"], json!({"$ref": "#/$defs/Level", "default": 2}));
    assert_eq!(schema["properties"]["c"]["default"], json!("yes"));
    assert_eq!(schema["properties"]["d"]["default"], json!("red"));
    assert_eq!(schema["properties"]["e"].get("default"), None);
    let definition = |name: &str| input(&format!("{before}\ndef f(x: {name}): ..."))["$defs"][name].clone();
    assert_eq!(definition("Open"), json!({}));
    assert_eq!(definition("Bits"), json!({"type": "integer"}));
    assert_eq!(definition("Young"), json!({"type": "string", "enum": ["x"]}));
    assert_eq!(
        hint(&format!("{before}\nfrom typing import Literal"), "Literal[Colour.RED]"),
        json!({"type": "string", "enum": ["red"]})
    );
}

#[test]
fn dataclasses_are_objects_with_their_fields() {
    let schema = input(
        r#"
from __future__ import annotations
import dataclasses
from dataclasses import dataclass, field, KW_ONLY
from typing import ClassVar
@dataclass
class Base:
    id: int
@dataclass(frozen=True)
class Node(Base):
    """One node.

    Attributes:
        label: What it is called.
    """
    label: str
    _: KW_ONLY
    kind: ClassVar[str] = "node"
    children: list[Node] = field(default_factory=list)
    weight: float = 1.0
    """How much it counts."""
    seen: bool = dataclasses.field(default=False)
    parent: Node | None = None
    cache: dict = field(init=False)
    made: int = field(default_factory=make)
def f(node: Node): ...
"#,
    );
    assert_eq!(
        schema["$defs"]["Node"],
        json!({
            "type": "object",
            "properties": {
                "id": {"type": "integer"},
                "label": {"type": "string", "description": "What it is called."},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}, "default": []},
                "weight": {"type": "number", "description": "How much it counts.", "default": 1.0},
                "seen": {"type": "boolean", "default": false},
                "parent": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}], "default": null},
                "made": {"type": "integer"},
            },
            "required": ["id", "label"],
            "additionalProperties": false,
            "description": "One node.",
        })
    );
}

#[test]
fn typed_dictionaries_and_named_tuples_are_objects_too() {
    let schema = input(
        r"
from typing import TypedDict, NotRequired, Required, NamedTuple
class Base(TypedDict):
    a: int
class Options(Base, total=False):
    b: str
    c: Required[str]
class Rest(TypedDict):
    d: NotRequired[int]
    e: 'NotRequired[int]'
class Point(NamedTuple):
    x: int
    y: int = 0
def f(options: Options, rest: Rest, point: Point): ...
",
    );
    let options = &schema["$defs"]["Options"];
    assert_eq!(options["required"], json!(["a", "c"]));
    assert_eq!(options["additionalProperties"], json!(false));
    assert_eq!(
        schema["$defs"]["Rest"],
        json!({"type": "object", "properties": {"d": {"type": "integer"}, "e": {"type": "integer"}}, "additionalProperties": false})
    );
    let (object, array) = (&schema["$defs"]["Point"]["anyOf"][0], &schema["$defs"]["Point"]["anyOf"][1]);
    assert_eq!((&object["required"], &object["additionalProperties"]), (&json!(["x"]), &json!(false)));
    assert_eq!((&array["minItems"], &array["maxItems"]), (&json!(1), &json!(2)));
}

#[test]
fn models_are_read_only_where_their_form_is_certain() {
    let before = r#"
from typing import Annotated
from pydantic import BaseModel, Field, ConfigDict, model_validator
class Query(BaseModel):
    model_config = ConfigDict(extra="forbid")
    text: str = Field(..., description="What to look for.", min_length=1)
    count: int = Field(10, ge=1, le=20)
    tags: list[str] = Field(default_factory=list, alias="labels")
    noted: Annotated[int, Field(default=3, le=5)]
    _private: int = 0
class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)
    some_name: int
class Early(BaseModel):
    x: int
    @model_validator(mode="before")
    @classmethod
    def any_form(cls, data): ...
class Foreign(Elsewhere):
    x: int
"#;
    let schema = input(&format!("{before}\ndef f(q: Query, camel: Camel, early: Early, foreign: Foreign): ..."));
    assert_eq!(
        schema["$defs"],
        json!({
            "Query": {
                "type": "object",
                "properties": {
                    "text": {"type": "string", "minLength": 1, "description": "What to look for."},
                    "count": {"type": "integer", "minimum": 1, "maximum": 20, "default": 10},
                    "labels": {"type": "array", "items": {"type": "string"}, "default": []},
                    "noted": {"type": "integer", "maximum": 5, "default": 3},
                },
                "required": ["text"],
                "additionalProperties": false,
            },
            "Camel": {"type": "object"},
        })
    );
    assert_eq!(schema["properties"]["early"], json!({}));
    assert_eq!(schema["properties"]["foreign"], json!({}));
    let field = "from typing import Annotated\nfrom pydantic import Field";
    assert_eq!(
        hint(field, "Annotated[int, Field(ge=0, description='n')]"),
        json!({"type": "integer", "minimum": 0, "description": "n"})
    );
}

#[test]
fn plain_and_circular_classes_are_unknown() {
    let before = "class Plain:\n    def __init__(self, x: int): ...\nclass A(B): ...\nclass B(A): ...\n";
    let found = properties(before, "plain: Plain, a: A, b: list[B]");
    assert_eq!(found["plain"], json!({}));
    assert_eq!(found["a"], json!({}));
    assert_eq!(found["b"], json!({"type": "array"}));
}

#[test]
fn custom_forms_of_root_models_and_annotations_are_left_open() {
    let before = "from typing import Annotated\nfrom pydantic import BaseModel, BeforeValidator, RootModel, field_validator\n\
        class Km:\n    def __get_pydantic_core_schema__(self, source, handler): ...\n\
        class A(RootModel[list[int]]):\n    @field_validator('root', mode='before')\n    def read(cls, value): ...\n\
        class B(RootModel[Annotated[list[int], BeforeValidator(str)]]): ...\n\
        class C(BaseModel):\n    length: Annotated[int, Km()]\n";
    for name in ["A", "B"] {
        let source = format!("{before}def f(x: {name}): ...");
        assert_eq!(input(&source)["$defs"][name], serde_json::json!({}), "{name}");
    }
    let source = format!("{before}def f(x: C): ...");
    assert_eq!(input(&source)["$defs"]["C"]["properties"]["length"], serde_json::json!({}));
    assert_eq!(hint(before, "Annotated[int, Km()]"), serde_json::json!({}));
}

#[test]
fn a_class_that_is_not_served_is_named() {
    let text = "from abc import ABC, abstractmethod\nclass Base(ABC):\n    @abstractmethod\n    def run(self): ...\nclass One(Base):\n    \
                def run(self): ...\n";
    let found = file(text);
    assert_eq!((found.warnings[0].rule.as_ref(), found.warnings[0].line), ("no-tools", 5), "not the abstract one");
}

#[test]
fn a_class_may_name_classes_within_itself() {
    let models = "import enum\nfrom typing import Self\nfrom dataclasses import dataclass\nfrom pydantic import BaseModel\n\
                  class Status(str, enum.Enum):\n    TOP = 'top'\n    OPEN = 'other'\n\
                  Any = list[Status]\n\
                  class Base(BaseModel):\n    class Status(str, enum.Enum):\n        BASE = 'base'\n    of_base: Status\n\
                  class Order(Base):\n    class Status(str, enum.Enum):\n        OPEN = 'open'\n    class Line(BaseModel):\n        sku: str\n        at: Status\n    \
                  lines: list[Line]\n    first: Status = Status.OPEN\n    status: 'Status | None' = None\n    any: Any = []\n    next: Self | None = None\n";
    let found = input(&format!("{models}def f(order: Order, line: Order.Line, top: Status): ...\n"));
    let definitions = &found["$defs"];
    let values = |pointer: &Value| {
        let key = pointer["$ref"].as_str().unwrap().strip_prefix("#/$defs/").unwrap();
        definitions[key]["enum"].clone()
    };
    let order = &definitions["Order"]["properties"];
    assert_eq!(values(&order["status"]["anyOf"][0]), json!(["open"]));
    assert_eq!(order["first"]["default"], "open");
    assert_eq!(values(&order["of_base"]), json!(["base"]), "where the field is declared");
    assert_eq!(values(&order["any"]["items"]), json!(["top", "other"]), "an alias of the file");
    assert_eq!(order["lines"]["items"], found["properties"]["line"]);
    assert_eq!(
        values(&definitions["Line"]["properties"]["at"]),
        json!(["top", "other"]),
        "classes have no scope for those within"
    );
    assert_eq!(values(&found["properties"]["top"]), json!(["top", "other"]));
    assert_eq!(order["next"]["anyOf"][0], json!({"$ref": "#/$defs/Order"}));
}

#[test]
fn a_class_within_another_that_extends_one_from_elsewhere_is_left_to_the_worker() {
    let models = "from elsewhere import Base\nfrom pydantic import BaseModel\nclass Order(BaseModel):\n    class Line(Base, BaseModel):\n        sku: str\n";
    let found = file(&format!("{models}def f(line: Order.Line): ...\n"));
    assert!(format!("{:?}", found.open).contains("\"Order.Line\""), "{:?}", found.open);
}

#[test]
fn plain_classes_are_named_with_what_they_need() {
    let calc = "class Calc:\n    def __init__(self, base: int): ...\n    def add(self, x: int): ...\n";
    let found = super::file(&format!("{calc}class Other:\n    def more(self): ...\n"));
    let said = found.warnings.iter().find(|it| it.rule == "no-tools").unwrap().reason.to_string();
    assert!(said.contains("`Calc` and `Other`") && said.contains("tools = Calc(…)"), "{said}");
    let plain = super::file("class Other:\n    def more(self): ...\n");
    let said = plain.warnings.iter().find(|it| it.rule == "no-tools").unwrap().reason.to_string();
    assert!(said.contains("`Other` are not served") && said.contains("tools = Other()"), "{said}");
}

#[test]
fn classes_that_hostler_does_not_call_are_reported() {
    let refused = |text: &str| {
        let found = super::file(text);
        let warning = found.warnings.iter().find(|it| it.rule == "class");
        warning.map_or_else(|| panic!("{found:?}"), |it| (it.line, it.reason.what.clone()))
    };
    let tool = "from autogen_core.tools import BaseTool, FunctionTool\nclass Calc(BaseTool[int, int]):\n    async def run(self, args, token): ...\n";
    for text in [tool.to_owned(), format!("{tool}def f(x: int): ...\nt = FunctionTool(f, 'd')\n")] {
        let (line, what) = refused(&text);
        assert!(
            line == 2 && what.contains("`Calc`") && what.contains("`autogen_core.tools.BaseTool`"),
            "{line}: {what}"
        );
    }
    let (line, what) = refused("class G:\n    def __call__(self, name: str): ...\ngreet = G()\n__all__ = ['greet']\n");
    assert!(line == 1 && what.contains("`greet`"), "{line}: {what}");
}
