use super::super::{Kind, ToolFile};
use super::{broken, file, file_at, names};

fn assert_warnings(file: &ToolFile, expected: &[(usize, &str, &str)]) {
    assert_eq!(file.warnings.len(), expected.len(), "{:?}", file.warnings);
    for (warning, (line, rule, words)) in file.warnings.iter().zip(expected) {
        assert_eq!((warning.line, &*warning.rule), (*line, *rule));
        assert!(warning.reason.to_string().contains(words), "{}", warning.reason);
    }
}

#[test]
fn public_functions_are_those_without_an_underscore() {
    let found = file(
        r#"
"""Not the docstring's
second line."""
import os
from os.path import join
def search(): ...
def _hidden(): ...
class Thing:
    def method(self): ...
def join_all(): ...
async def fetch(): ...
def gone(): ...
del gone
def replaced(): ...
from elsewhere import replaced
def wrapped(): ...
wrapped = cached(wrapped)
later = lambda: 1
if sys.version_info >= (3, 11):
    def compatible(a): ...
else:
    def compatible(b): ...
try:
    import orjson
except ImportError:
    def dumps(): ...
if TYPE_CHECKING:
    def imagined(): ...
if __name__ == "__main__":
    pack = main()
    from elsewhere import search
    def main(): ...
from typing import overload
@overload
def over(x: int): ...
@overload
def over(x: str): ...
def over(x): ...
def search(again): ...
"#,
    );
    assert_eq!(names(&found), ["join_all", "fetch", "wrapped", "compatible", "dumps", "over", "search"]);
    assert!(found.functions[3].input_schema.read()["properties"].get("b").is_some());
    assert!(found.functions[6].input_schema.read()["properties"].get("again").is_some());
    assert_eq!(found.description.as_deref(), Some("Not the docstring's second line."));
}

#[test]
fn a_literal_all_decides_what_is_public() {
    let found = file(
        "__all__ = ['a', '_b']\n__all__ += ('gone',)\n__all__.append('c')\n__all__.extend(['Klass'])\n\
         def a(): ...\ndef _b(): ...\ndef c(): ...\ndef d(): ...\nclass Klass: ...\n",
    );
    assert_eq!(names(&found), ["a", "_b", "c"]);
    assert_warnings(&found, &[(2, "exports", "`gone`"), (4, "exports", "`Klass`")]);
    let computed = file("__all__ = [f.__name__ for f in tools]\ndef a(): ...\n");
    assert_eq!(names(&computed), ["a"]);
    assert_warnings(&computed, &[(1, "exports", "computed")]);
}

#[test]
fn unusable_declarations_are_warned_about() {
    let found = file("def f(*values: int): ...\ndef größe(): ...\npack = name()\n");
    assert_eq!(names(&found), ["f"]);
    assert_warnings(&found, &[(1, "star-args", "*values"), (2, "name", "`größe`"), (3, "exports", "`pack`")]);
    assert_warnings(&file("x = 1\n"), &[(1, "no-tools", "no public functions")]);
    for (source, line, names) in [
        (
            "from google.adk.agents import Agent\nfrom google.adk.tools import look\na = Agent(tools=[look])\n",
            3,
            "google.adk.tools",
        ),
        (
            "from agno.agent import Agent\nfrom agno.tools.x import X\nt = X(1)\na = Agent(tools=[t, X(2)])\n",
            4,
            "agno.tools.x",
        ),
        ("from agno.agent import Agent\nfrom .other import look\nif 1:\n    a = Agent(tools=[look])\n", 4, ".other"),
        ("import fastmcp\nfrom fastmcp import FastMCP\nmcp = FastMCP.from_openapi({})\n", 3, "FastMCP.from_openapi"),
        ("from fastmcp.server import create_proxy\nmcp = create_proxy('u')\n", 2, "create_proxy"),
    ] {
        let found = file(source);
        let [warning] = &found.warnings[..] else { panic!("{source}\n{:?}", found.warnings) };
        assert_eq!((warning.rule.as_ref(), warning.line), ("no-tools", line), "{source}");
        assert!(warning.reason.what.contains(&format!("`{names}`")), "{}", warning.reason.what);
    }
}

#[test]
fn the_pack_is_the_files_word_then_the_headers_then_its_name() {
    let header = "# /// script\n# [tool.hostler]\n# pack = \"from_header\"\n# ///\n";
    assert_eq!(file(&format!("{header}pack = 'from_file'\n")).pack, "from_file");
    assert_eq!(file(header).pack, "from_header");
    assert_eq!(file("pack: str = 'annotated'\n").pack, "annotated");
    assert_eq!(file("").pack, "brave");
    assert_eq!(file_at("my-tool.py", "").pack, "my_tool");
    assert_eq!(file_at("01-basics.py", "").pack, "tool_01_basics");
    assert_eq!(file_at("my tool (2).py", "").pack, "my_tool__2");
    assert!(broken(&file_at("my tööl.py", "")).contains("`pack = \"my_t__l\"`"));
    let reason = broken(&file("\npack = 'a b'\n"));
    assert!(reason.starts_with("line 2: `a b`") && reason.contains("`pack = \"a_b\"`"), "{reason}");
    assert_eq!(broken(&file_at("my tool.py", "pack = 'fine'")), "ready");
}

#[test]
fn a_broken_file_still_lists_its_functions() {
    let header = "# /// script\n# dependencies = [\"httpx\"]\n# ///\n";
    let syntax = file(&format!("{header}def good(a: int): ...\n\ndef bad(:\n    pass\n\ndef after(): ...\n"));
    assert!(broken(&syntax).starts_with("line 6: not valid Python: `(` is never closed"), "{}", broken(&syntax));
    assert_eq!(syntax.kind, Kind::Python);
    assert_eq!(syntax.header.as_ref().unwrap().dependencies, ["httpx"]);
    assert!(names(&syntax).contains(&"good"));

    let unclosed = file("# /// script\n# dependencies = []\n\ndef search(): ...\n");
    assert!(broken(&unclosed).starts_with("line 3: the header that begins"), "{}", broken(&unclosed));
    assert_eq!((unclosed.kind, names(&unclosed)), (Kind::Python, vec!["search"]));

    assert_eq!(file("def f(): ...").kind, Kind::Internal);
}

#[test]
fn a_syntax_error_names_its_line() {
    for (text, line, words) in [
        ("x = = 1\n", 1, ""),
        ("x = f(1 2)\n", 1, ""),
        ("x = 1)\n", 1, ""),
        ("import os\nx = \u{A0}1\n", 2, ""),
        ("def f():\n    print 'x'\n", 2, ""),
        ("def f():\n<<<<<<< HEAD\n    return 1\n=======\n    return 2\n>>>>>>> other\n", 2, ""),
        ("x = print(\n    [1,\n\ndef g():\n    return (2)\n", 2, "`[` is never closed"),
        ("def g():\n    return (1 + (2)\n\ndef h():\n    return f(1)\n", 2, "`(` is never closed"),
        ("x = {'a': [1, 2}\n", 1, "`[` is never closed"),
        ("x = [1, 2\ny = 3\n", 1, "`[` is never closed"),
        ("x = (\n", 1, "`(` is never closed"),
        ("x = 1\0", 1, "a NUL byte"),
        ("def f(): ...\n# \0\n'\0'\n", 2, "a NUL byte"),
    ] {
        let reason = broken(&file(text));
        assert!(reason.starts_with(&format!("line {line}: not valid Python: {words}")), "{text}: {reason}");
    }
}

#[test]
fn unreadable_texts_break_a_file_and_nothing_else() {
    assert!(broken(&file(&"(".repeat(100_000))).starts_with("line 1: "));
    assert!(broken(&super::read_bytes(std::path::Path::new("x.py"), b"x = '\xff'")).starts_with("line 1: "));
    assert_eq!(broken(&file("\u{feff}def f(): ...\r\n")), "ready");
}

#[test]
fn tabs_that_python_accepts_break_no_file() {
    for body in [
        "\ta = 1\n\tb = \"\"\"\n        \"\"\"\n",
        "    a = [\n\t1]\n\n\t# comment\n\t\n    b = 2\n",
        "\tif 1:\n\t    a = 1\n\tb = 2\n",
        "    a = 1 + \\\n\t2\n    b = 2\n\t",
        "  \ta = 1\n  \tb = 2\n",
        "\x0c    a = 1\n    b = '\t'\n",
    ] {
        assert_eq!(broken(&file(&format!("def f():\n{body}"))), "ready", "{body:?}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_text_can_be_read(text in "(def|class|f|[(]x: |'''|[)]|:|\n| |    |Args:\n|\"\"\"|é|\\||\\[|\\]|,|=|@|Enum|str|\\*\\*|# /// script){0,60}") {
        let _ = file(&text);
        let _ = file(&format!("def f():\n    '''{text}'''\n"));
    }
}

/// Words of which hints and classes are made, in any order.
const HINTS: &str = "(int|str|None|list|dict|tuple|Literal|Union|Optional|Annotated|Unpack|A|B|C|D|E|X|'[ABX]'|1|'k'|Field|BeforeValidator\
                     |[(]ge=1[)]|\\[|\\]|, | \\| |[.]{3}|\\*|[(]|[)]|=){0,14}";

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn schemas_of_any_hints_are_valid(a in HINTS, b in HINTS, x in HINTS, result in HINTS, default in HINTS) {
        let text = format!(
            "from typing import *\nfrom enum import Enum\nfrom dataclasses import dataclass\nfrom pydantic import BaseModel, Field, BeforeValidator\n\
             type X = {x}\n\nB = {b}\n\n@dataclass\nclass A:\n    x: {a}\n    y: {b} = {default}\n\nclass C(BaseModel):\n    z: {x} = {default}\n\n\
             class D(TypedDict):\n    z: {b}\n\nclass E(NamedTuple):\n    z: {a}\n\ndef f(a: {a}, b: {b} = {default}, **c: {x}) -> {result}: ...\n"
        );
        for function in file(&text).functions {
            let schemas = [Some(function.input_schema), function.output_schema];
            for schema in schemas.into_iter().flatten() {
                let schema = serde_json::Value::Object(schema.read());
                assert!(jsonschema::draft202012::meta::is_valid(&schema), "{schema}");
                let validator = jsonschema::draft202012::new(&schema);
                assert!(validator.is_ok(), "{schema} of {text}");
            }
        }
    }
}

#[test]
fn deep_texts_do_not_overflow_the_stack() {
    let chains: [(&str, &str, &str); 7] = [
        ("", "-", "1"),
        ("", "not ", "1"),
        ("a", ".a", ""),
        ("1", "+1", ""),
        ("", "lambda:", "1"),
        ("", "1 if 1 else ", "1"),
        ("f", "()", ""),
    ];
    for (before, link, after) in chains {
        let chain = format!("def f(): ...\nx = {before}{}{after}\n", link.repeat(20_000));
        assert_eq!(broken(&file(&chain)), "ready", "{link}");
    }
    let blocks =
        |depth: usize| (0..depth).map(|level| " ".repeat(level) + "if 1:\n").chain([" ".repeat(depth) + "1\n"]);
    assert!(file(&blocks(90).collect::<String>()).is_ready());
    assert!(!file(&blocks(200).collect::<String>()).is_ready());
    let nested = format!("x = {}{}", "[".repeat(9_000), "]".repeat(9_000));
    assert_eq!(broken(&file(&nested)), "ready");
    let table = format!("def f(): ...\nx = [{}]\n", "[1, 2 + 3, 'a'],\n".repeat(5_000));
    assert_eq!(broken(&file(&table)), "ready");
}
