//! Schemas in which a file mentions what its neighbours define.

use serde_json::Value;

use super::folders::folder;
use crate::discovery::{ToolFile, scan};

const MODELS: &str = "\
from __future__ import annotations
import enum
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple, TypedDict
from pydantic import BaseModel, Field

class Unit(enum.StrEnum):
    METRIC = 'metric'
    IMPERIAL = 'imperial'

Kind = Literal['road', 'rail']
Tree = dict[str, 'Tree']
LIMIT = 10
TEXT = 'a text'
REGION = Field(description='where', min_length=2)
COUNT = Field(default=LIMIT, ge=1, description='how many')
Name = Annotated[str, Field(max_length=40)]

class Place(BaseModel):
    '''A place.'''
    name: Name
    unit: Unit = Unit.METRIC
    kind: Kind | None = None
    inside: list['Place'] = []

class Options(TypedDict, total=False):
    limit: int
    unit: Unit

@dataclass
class Base:
    a: int

@dataclass
class Shape(Base):
    '''A shape.'''
    places: list[Place]
    size: int = LIMIT
    tags: list[str] = field(default_factory=list)

class Pair(NamedTuple):
    left: Shape
    right: Kind
";

const HEAD: &str = "from typing import Annotated\nfrom dataclasses import dataclass\nfrom pydantic import BaseModel\n";

/// Parameters and a result, by what they mention.
const SIGNATURES: [&str; 12] = [
    "a: Unit = Unit.IMPERIAL, b: Unit = Unit.METRIC.value",
    "a: Kind, b: 'Kind' = 'rail', c: Annotated[Kind, 'which'] = 'road'",
    "a: Tree",
    "a: int = LIMIT, b: str = TEXT",
    "a: str = REGION, b: int = COUNT, c: Annotated[str, REGION] = 'ab'",
    "a: Name, b: list[Name]",
    "a: Place, b: Place | None = None, c: 'list[Place]' = []",
    "a: Options, **more: int",
    "a: Shape, b: dict[Unit, Shape]",
    "a: Pair, b: tuple[Unit, Kind]",
    "a: Wide, b: Long",
    "a: Own",
];

/// Classes of the file itself that inherit from others or hold them.
const OWN: &str = "\
class Wide(Place):
    width: int = LIMIT

    def area(self) -> int:
        return Wide(width=1).width

@dataclass
class Long(Shape):
    length: float = 1.0

class Own(BaseModel):
    unit: Unit
    at: Place
";

fn schemas(file: &ToolFile) -> (Value, Value) {
    let function = &file.functions[0];
    let output = function.output_schema.as_ref().map(|schema| Value::Object(schema.read()));
    (Value::Object(function.input_schema.read()), output.unwrap_or_default())
}

/// The file `tools.py` among these.
fn tools(files: &[(&str, &str)]) -> ToolFile {
    let folder = folder(files);
    let found = scan(&[folder.path().to_owned()]);
    found.files.into_iter().find(|file| file.path.ends_with("tools.py")).expect("tools.py is a tool file")
}

const NAMES: &str = "Unit, Kind, Tree, LIMIT, TEXT, REGION, COUNT, Name, Place, Options, Shape, Pair";

#[test]
fn what_a_neighbour_defines_means_what_it_means_in_the_file() {
    let dotted = |text: &str| {
        let is_name = |word: &str| NAMES.split(", ").any(|name| name == word);
        let words = text.split_inclusive(|c: char| !c.is_alphanumeric());
        let dotted = words.map(|word| {
            let bare = word.trim_end_matches(|c: char| !c.is_alphanumeric());
            if is_name(bare) { format!("models.{word}") } else { word.to_owned() }
        });
        dotted.collect::<String>()
    };
    for signature in SIGNATURES {
        let function = format!("def f({signature}) -> list[Shape]: ...\n");
        let whole = format!("{MODELS}\n{HEAD}{OWN}\n{function}");
        let alone = tools(&[("tools.py", &whole)]);
        assert!(alone.open.is_empty(), "{signature}: {:?}", alone.open);
        let star = format!("{HEAD}from models import *\n{OWN}{function}");
        let named = format!("{HEAD}from models import {NAMES}\n{OWN}{function}");
        let through = format!("{HEAD}from pack import {NAMES}\n{OWN}{function}");
        let relative = format!("{HEAD}from .models import {NAMES}\n{OWN}{function}");
        let module = format!("{HEAD}import models\n{}{}", dotted(OWN), dotted(&function));
        let everything = format!("from .deep.models import {NAMES}\n");
        for files in [
            vec![("tools.py", star.as_str()), ("models.py", MODELS)],
            vec![("tools.py", named.as_str()), ("models.py", MODELS)],
            vec![("tools.py", relative.as_str()), ("models.py", MODELS), ("__init__.py", "")],
            vec![("tools.py", module.as_str()), ("models.py", MODELS)],
            vec![
                ("tools.py", through.as_str()),
                ("pack/__init__.py", "from .some import *\n"),
                ("pack/some.py", everything.as_str()),
                ("pack/deep/models.py", MODELS),
            ],
        ] {
            let linked = tools(&files);
            assert!(linked.open.is_empty(), "{signature}: {:?} in {}", linked.open, files[0].1);
            assert_eq!(schemas(&linked), schemas(&alone), "{signature} in {}", files[0].1);
        }
    }
}

#[test]
fn required_arguments_are_known_where_another_file_describes_them() {
    let files = [
        ("tools.py", "from fields import REGION, LIMIT\ndef f(region: str = REGION, limit: int = LIMIT): ...\n"),
        ("fields.py", "from pydantic import Field\nREGION = Field(..., description='where')\nLIMIT = Field(5, ge=1)\n"),
    ];
    let schema = tools(&files).functions[0].input_schema.read();
    assert_eq!(schema["required"], serde_json::json!(["region"]));
    assert_eq!(schema["properties"]["region"]["description"], "where");
    assert_eq!(schema["properties"]["limit"]["default"], 5);
}

#[test]
fn definitions_of_one_name_in_two_files_are_kept_apart() {
    let own = "from dataclasses import dataclass\nimport one, two\n@dataclass\nclass Item:\n    own: int\n\
               def f(a: Item, b: one.Item, c: two.Item, d: list[one.Item]): ...\n";
    let one = "from dataclasses import dataclass\n@dataclass\nclass Item:\n    first: int\n";
    let two = "from dataclasses import dataclass\n@dataclass\nclass Item:\n    second: int\n";
    let schema = tools(&[("tools.py", own), ("one.py", one), ("two.py", two)]).functions[0].input_schema.read();
    let field = |name: &str| {
        let pointer = schema["properties"][name]["$ref"].as_str().unwrap().strip_prefix("#/").unwrap().to_owned();
        let mut parts = pointer.split('/');
        let definition = &schema[parts.next().unwrap()][parts.next().unwrap()];
        definition["properties"].as_object().unwrap().keys().next().unwrap().clone()
    };
    assert_eq!([field("a"), field("b"), field("c")], ["own", "first", "second"]);
    assert_eq!(schema["properties"]["d"]["items"], schema["properties"]["b"]);
}

#[test]
fn names_that_no_file_resolves_are_open_by_the_file_that_has_them() {
    let own = "from models import Place\nfrom elsewhere import Foreign\ndef f(a: Place, b: Foreign): ...\n";
    let models = "from pydantic import BaseModel\nfrom geometry import Point\nclass Place(BaseModel):\n    at: Point\n";
    let file = tools(&[("tools.py", own), ("models.py", models)]);
    let open: Vec<&String> = file.open.values().flatten().collect();
    assert_eq!(open, ["Foreign", "beside:models.py:Point"]);
}

#[test]
fn a_helper_whose_tools_are_taken_knows_its_own_neighbours() {
    let server = format!("{}import shop\n", super::several::SERVER);
    let shop = "from server import mcp\nfrom stock import Item, SIZE\n@mcp.tool()\ndef buy(item: Item, size: int = SIZE): ...\n";
    let stock = "from pydantic import BaseModel\nfrom far import Far\nSIZE = 3\nclass Item(BaseModel):\n    name: str\n    far: Far\n";
    let folder = folder(&[("server.py", &server), ("shop.py", shop), ("stock.py", stock)]);
    let found = scan(&[folder.path().to_owned()]);
    let [file] = &*found.files else { panic!("{:?}", found.files) };
    let schema = file.functions[0].input_schema.read();
    assert_eq!(schema["properties"]["size"]["default"], 3);
    assert_eq!(schema["$defs"]["Item"]["required"], serde_json::json!(["name", "far"]));
    let open: Vec<&String> = file.open.values().flatten().collect();
    assert_eq!(open, ["beside:stock.py:Far"]);
}

#[test]
fn circles_of_imports_and_files_that_cannot_be_read_end() {
    for (models, more) in [
        ("from more import *\n", "from models import *\n"),
        ("from more import Thing\n", "from models import Thing\n"),
        ("from .models import Thing\n", ""),
        ("def (\n", "\0"),
        ("Thing = Thing\n", ""),
        ("from aside import Thing\n", ""),
    ] {
        let own = "from models import Thing\nimport more\ndef f(a: Thing): ...\n";
        let file = tools(&[("tools.py", own), ("models.py", models), ("more.py", more)]);
        assert_eq!(file.functions[0].input_schema.read()["properties"]["a"], serde_json::json!({}), "{models}");
    }
}

#[test]
fn a_name_is_looked_up_in_few_files() {
    let stars = |next: usize| format!("from s{next} import *\n").repeat(20);
    let files: Vec<(String, String)> = (0..30).map(|number| (format!("s{number}.py"), stars(number + 1))).collect();
    let own = ("tools.py", "from s0 import *\ndef f(a: Thing): ...\n");
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).chain([own]).collect();
    // Looked up everywhere, this would not end.
    assert_eq!(tools(&files).functions[0].input_schema.read()["properties"]["a"], serde_json::json!({}));
}

#[test]
fn a_file_has_the_neighbours_that_it_imports_and_no_others() {
    let header = "# /// script\n# dependencies = ['stock']\n# ///\n";
    let uses = "from stock import Item\ndef f(a: Item): ...\n";
    let item = "from dataclasses import dataclass\n@dataclass\nclass Item:\n    a: int\n";
    let package = format!("{header}{uses}");
    let file = tools(&[("tools.py", &package), ("other.py", uses), ("stock.py", item)]);
    assert_eq!(file.functions[0].input_schema.read()["properties"]["a"], serde_json::json!({}));
    let alone = tools(&[("tools.py", uses)]);
    assert_eq!(alone.functions[0].input_schema.read()["properties"]["a"], serde_json::json!({}));
}

#[test]
fn what_a_function_is_served_as_does_not_depend_on_neighbours() {
    let tool = "from server import mcp\n@mcp.prompt()\ndef f(a: int = LIMIT): ...\nfrom models import LIMIT\n";
    let server = format!("{}@mcp.tool()\ndef g(): ...\n", super::several::SERVER);
    let folder = folder(&[("tools.py", tool), ("server.py", &server), ("models.py", "LIMIT = 3\n")]);
    let found = scan(&[folder.path().to_owned()]);
    let mut functions = found.files.iter().flat_map(|file| &file.functions);
    let f = functions.find(|function| function.name == "f").expect("it is served");
    assert_eq!(f.role, super::file(tool).functions[0].role);
    assert_eq!(f.input_schema.read()["properties"]["a"]["default"], 3);
}

#[test]
fn the_last_of_several_meanings_counts() {
    for (files, wanted) in [
        (
            vec![
                ("one.py", "LIMIT = 1\n"),
                ("two.py", "LIMIT = 2\n"),
                ("tools.py", "from one import *\nfrom two import *\n"),
            ],
            2,
        ),
        (
            vec![
                ("one.py", "LIMIT = 1\n"),
                ("one/__init__.py", "LIMIT = 2\n"),
                ("tools.py", "from one import LIMIT\n"),
            ],
            2,
        ),
    ] {
        let files: Vec<(&str, String)> = files
            .into_iter()
            .map(|(name, text)| {
                (name, if name == "tools.py" { format!("{text}def f(a: int = LIMIT): ...\n") } else { text.to_owned() })
            })
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        assert_eq!(tools(&files).functions[0].input_schema.read()["properties"]["a"]["default"], wanted, "{files:?}");
    }
}

#[test]
fn parameters_that_are_given_are_hidden_by_aliases_of_neighbours() {
    let server = format!(
        "{}from deps import Ctx, Quoted\n@mcp.tool()\ndef f(a: int, c: Ctx, q: Quoted = None): ...\n",
        super::several::SERVER
    );
    let deps = "from typing import Optional\nfrom mcp.server.fastmcp import Context\nCtx = Context\nQuoted = Optional['Context']\n";
    let schema = tools(&[("tools.py", &server), ("deps.py", deps)]).functions[0].input_schema.read();
    assert_eq!(schema["properties"].as_object().unwrap().keys().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn every_reading_of_a_file_is_the_same() {
    for signature in SIGNATURES {
        let text = format!("{HEAD}from models import *\n{OWN}def f({signature}) -> list[Shape]: ...\n");
        let folder = folder(&[("tools.py", &text), ("models.py", MODELS)]);
        let found = scan(&[folder.path().to_owned()]);
        let scanned = found.files.into_iter().find(|file| file.path.ends_with("tools.py")).unwrap();
        let mut single = crate::discovery::read_tool(&scanned.path);
        crate::discovery::look_beside(&mut single);
        assert_eq!(single.functions, scanned.functions, "{signature}");
        assert_eq!(scanned.described_by("{}").as_ref(), Some(&scanned.functions), "{signature}");
    }
}

/// Neighbours that Python may bind in several ways: what is not certain is open.
#[test]
fn what_is_bound_in_several_places_is_open() {
    let one = "from dataclasses import dataclass\n@dataclass\nclass Place:\n    x: int\n";
    let two = "from dataclasses import dataclass\n@dataclass\nclass Place:\n    y: str\n";
    let uses = "def f(a: Place): ...\n";
    for (before, models) in [
        ("try:\n    from one import Place\nexcept ImportError:\n    from two import Place\n", ""),
        ("import sys\nif sys.platform == 'linux':\n    from one import Place\nelse:\n    from two import Place\n", ""),
        ("from one import Place\nfrom two import *\n", ""),
        ("from models import Place\n", "from one import Place\nfrom two import *\n"),
        ("from models import Place\n", "try:\n    from one import Place\nexcept ImportError:\n    class Place: ...\n"),
        (
            "from models import Place\n",
            "if 1:\n    class Place:\n        x: int\nelse:\n    class Place:\n        y: int\n",
        ),
        ("from models import *\n", "__all__ = ['other']\nfrom one import Place\n"),
        ("from models import *\n", "from one import Place as _Place\n"),
    ] {
        let own = format!("{before}{uses}");
        let file = tools(&[("tools.py", &own), ("one.py", one), ("two.py", two), ("models.py", models)]);
        let schema = file.functions[0].input_schema.read()["properties"]["a"].clone();
        assert_eq!(schema, serde_json::json!({}), "{before}{models}");
    }
}

#[test]
fn a_package_may_bind_the_name_of_its_module() {
    for (init, wanted) in [
        ("from .settings import settings\n", Value::Null),
        ("from .v2 import settings\n", Value::Null),
        ("settings = object()\n", Value::Null),
        ("from . import settings\n", 10.into()),
        ("import app.settings\n", 10.into()),
        ("", 10.into()),
    ] {
        let file = tools(&[
            ("tools.py", "from app import settings\ndef f(a: int = settings.LIMIT): ...\n"),
            ("app/__init__.py", init),
            ("app/settings.py", "LIMIT = 10\nclass S:\n    LIMIT = 50\nsettings = S()\n"),
            ("app/v2/settings.py", "LIMIT = 20\n"),
        ]);
        let default = file.functions[0].input_schema.read()["properties"]["a"].get("default").cloned();
        assert_eq!(default.unwrap_or_default(), wanted, "{init}");
    }
}

#[test]
fn a_module_beside_another_one_of_a_package_is_not_imported_by_its_bare_name() {
    let file = tools(&[
        ("tools.py", "from pkg.models import Item\ndef f(a: Item): ...\n"),
        ("pkg/__init__.py", ""),
        (
            "pkg/models.py",
            "from pydantic import BaseModel\nfrom wire import Url\nclass Item(BaseModel):\n    url: Url\n",
        ),
        ("pkg/wire.py", "from dataclasses import dataclass\n@dataclass\nclass Url:\n    host: str\n"),
    ]);
    let item = &file.functions[0].input_schema.read()["$defs"]["Item"];
    assert_eq!(item["properties"]["url"], serde_json::json!({}));
}

#[test]
fn fields_of_computed_options_and_assigned_validators_are_open() {
    let models = "from pydantic import BaseModel, Field, field_validator\nOPTIONS = {}\nFIELD = Field(**OPTIONS)\n\
                  class Item(BaseModel):\n    a: int\n    b: int = FIELD\n    _a = field_validator('a', mode='before')(len)\n";
    let own = "from models import Item, FIELD\ndef f(item: Item, a: int = FIELD): ...\n";
    let schema = tools(&[("tools.py", own), ("models.py", models)]).functions[0].input_schema.read();
    assert_eq!(schema["required"], serde_json::json!(["item"]));
    let item = &schema["$defs"]["Item"];
    assert_eq!((&item["required"], &item["properties"]["a"]), (&serde_json::json!(["a"]), &serde_json::json!({})));
}

#[test]
fn what_frameworks_give_may_come_from_a_neighbour_with_a_stand_in() {
    const STAND_IN: &str = "try:\n    from fastmcp import Context\nexcept ImportError:\n    class Context: ...\n";
    let server = "from fastmcp import FastMCP\nfrom _context import Context\nmcp = FastMCP('x')\n@mcp.tool()\ndef find(q: str, ctx: Context): ...\n";
    let folder = folder(&[("_context.py", STAND_IN), ("server.py", server)]);
    let found = scan(&[folder.path().to_owned()]);
    let schema = found.files[0].functions[0].input_schema.read();
    assert_eq!(schema["properties"].as_object().unwrap().keys().collect::<Vec<_>>(), ["q"]);
}
