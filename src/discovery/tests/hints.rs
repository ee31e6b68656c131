use serde_json::json;

use super::{function, hint, input, properties};

#[test]
fn a_whole_function_becomes_a_schema() {
    let function = function(
        r#"
async def search(query: str, /, count: int = 10, *, safe: bool = True, site: str = None, **more: int) -> list[dict]:
    """Search the
    web.

    With care.

    Args:
        query: What to look for.
        count (int, optional): How many results,
            at most 20.
        more: Anything else.

    Returns:
        Results.
    """
"#,
    );
    assert_eq!(
        serde_json::Value::Object(function.input_schema.read()),
        json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for."},
                "count": {"type": "integer", "description": "How many results, at most 20.", "default": 10},
                "safe": {"type": "boolean", "default": true},
                "site": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
            },
            "required": ["query"],
            "additionalProperties": {"type": "integer"},
        })
    );
    assert_eq!(function.summary.as_deref(), Some("Search the web."));
    assert_eq!(function.description.as_deref(), Some("Search the\nweb.\n\nWith care."));
    assert!(function.is_async);
    assert_eq!(function.line, 2);
}

#[test]
fn plain_types_are_what_json_calls_them() {
    let cases = [
        ("str", json!({"type": "string"})),
        ("int", json!({"type": "integer"})),
        ("float", json!({"type": "number"})),
        ("bool", json!({"type": "boolean"})),
        ("None", json!({"type": "null"})),
        ("bytes", json!({"type": "string", "contentEncoding": "base64"})),
        ("list", json!({"type": "array"})),
        ("list[int]", json!({"type": "array", "items": {"type": "integer"}})),
        ("list[Any]", json!({"type": "array"})),
        ("set[str]", json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}})),
        ("dict", json!({"type": "object"})),
        ("dict[str, float]", json!({"type": "object", "additionalProperties": {"type": "number"}})),
        ("tuple[int, ...]", json!({"type": "array", "items": {"type": "integer"}})),
        (
            "tuple[int, str]",
            json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2}),
        ),
        ("int | None", json!({"anyOf": [{"type": "integer"}, {"type": "null"}]})),
        ("int | str | int", json!({"anyOf": [{"type": "integer"}, {"type": "string"}]})),
        ("int | Any", json!({})),
        ("'list[int]'", json!({"type": "array", "items": {"type": "integer"}})),
        ("list['int | None']", json!({"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}})),
        ("object", json!({})),
        ("whatever.Thing", json!({})),
        ("'not a (hint'", json!({})),
        ("f(3)", json!({})),
        ("list[int, str]", json!({})),
    ];
    for (text, expected) in cases {
        assert_eq!(hint("from typing import Any", text), expected, "{text}");
    }
}

#[test]
fn imports_are_followed_under_any_name() {
    let before = "import typing, datetime as dt, pathlib\nimport typing as t\nimport collections.abc\nfrom uuid import UUID as U\n\
                  from decimal import Decimal\nif typing.TYPE_CHECKING:\n    from typing import Optional as Maybe\n\
                  try:\n    from typing import Literal\nexcept ImportError:\n    from typing_extensions import Literal\n";
    let cases = [
        ("typing.Optional[int]", json!({"anyOf": [{"type": "integer"}, {"type": "null"}]})),
        ("'Maybe[int]'", json!({"anyOf": [{"type": "integer"}, {"type": "null"}]})),
        ("t.Union[int, str, None]", json!({"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]})),
        (
            "t.List[t.Dict[str, int]]",
            json!({"type": "array", "items": {"type": "object", "additionalProperties": {"type": "integer"}}}),
        ),
        ("collections.abc.Sequence[str]", json!({"type": "array", "items": {"type": "string"}})),
        ("dt.datetime", json!({"type": "string", "format": "date-time"})),
        ("dt.date", json!({"type": "string", "format": "date"})),
        ("dt.timedelta", json!({"anyOf": [{"type": "string", "format": "duration"}, {"type": "number"}]})),
        ("pathlib.Path", json!({"type": "string", "format": "path"})),
        ("U", json!({"type": "string", "format": "uuid"})),
        ("Decimal", json!({"anyOf": [{"type": "string"}, {"type": "number"}]})),
        ("Literal['a', 'b']", json!({"type": "string", "enum": ["a", "b"]})),
        ("Literal[1, -2]", json!({"type": "integer", "enum": [1, -2]})),
        ("Literal['a', 1, True, None]", json!({"enum": ["a", 1, true, null]})),
        ("Literal['a', Literal['b']]", json!({"type": "string", "enum": ["a", "b"]})),
        ("Literal[b'x']", json!({})),
        ("t.Annotated[int, 'how many']", json!({"type": "integer", "description": "how many"})),
        ("Optional[int]", json!({})),
    ];
    for (text, expected) in cases {
        assert_eq!(hint(before, text), expected, "{text}");
    }
}

#[test]
fn a_name_of_the_file_is_not_the_builtin() {
    assert_eq!(hint("from mine import str", "str"), json!({}));
    assert_eq!(hint("class int: pass", "int"), json!({}));
    assert_eq!(
        hint("from typing import *", "Optional[int]"),
        json!({"anyOf": [{"type": "integer"}, {"type": "null"}]})
    );
}

#[test]
fn aliases_given_once_are_followed() {
    let before = "from typing import NewType\nVector = list[float]\nUserId = NewType('UserId', int)\ntype Name = str\n\
                  if 1:\n    Either = int\nelse:\n    Either = str\nA = B\nB = A\nword = 'int'\n";
    assert_eq!(hint(before, "Vector"), json!({"type": "array", "items": {"type": "number"}}));
    assert_eq!(hint(before, "UserId"), json!({"type": "integer"}));
    assert_eq!(hint(before, "Name"), json!({"type": "string"}));
    for unknown in ["Either", "A", "word"] {
        assert_eq!(hint(before, unknown), json!({}), "{unknown}");
    }
}

#[test]
fn literal_defaults_are_shown_and_computed_ones_are_not() {
    let found = properties(
        "",
        "a='x', b=-1.5, c=[1, 'two'], d={'k': (1, 2)}, e=None, f=compute(), g=1e999, h=18446744073709551616, i=b'x', \
         j=-9223372036854775808, k={**a}, l=f'{a}', m: int = None, n: int | None = None, o: 'list[int]' = ()",
    );
    let defaults: serde_json::Map<_, _> =
        found.iter().filter_map(|(name, schema)| Some((name.clone(), schema.get("default")?.clone()))).collect();
    assert_eq!(
        serde_json::Value::Object(defaults),
        json!({"a": "x", "b": -1.5, "c": [1, "two"], "d": {"k": [1, 2]}, "e": null, "j": i64::MIN,
               "m": null, "n": null, "o": []})
    );
    assert_eq!(found["e"], json!({"default": null}));
    let doubled: Vec<String> = (1..14).map(|n| format!("N{n} = N{0} + N{0}\n", n - 1)).collect();
    let doubled = properties(&format!("N0 = 1\n{}", doubled.concat()), "a=N4, b=N13");
    assert_eq!((&doubled["a"]["default"], doubled["b"].get("default")), (&json!(16), None), "a thousand steps");
    assert_eq!(found["m"], found["n"]);
    let computed = properties(
        "",
        "a=2 * 30 + 1, b=1 << 20, c=7 // 2, d=1 / 4, e='a' + 'b', f=2 ** 10 - 1, g=-7 // 2, h=1 / 0, i=2 ** 99, j='a' * 3, \
         k=1.5 * 2, l={1, 2}, m=dict(), n=frozenset(), o=list([1]), p=1 << 63, q=1 << -1, r='a' % 1, s=18446744073709551615 - 1",
    );
    let shown: serde_json::Map<_, _> =
        computed.iter().filter_map(|(name, schema)| Some((name.clone(), schema.get("default")?.clone()))).collect();
    assert_eq!(
        serde_json::Value::Object(shown),
        json!({"a": 61, "b": 1 << 20, "c": 3, "d": 0.25, "e": "ab", "f": 1023, "k": 3.0, "l": [1, 2], "m": {}, "n": []})
    );
    assert_eq!(input("def f(a=g(), *, b=1): ...").get("required"), None);
}

#[test]
fn further_arguments_are_refused_unless_the_function_takes_them() {
    assert_eq!(input("def f(): ...")["additionalProperties"], json!(false));
    assert_eq!(input("def f(**rest): ...")["additionalProperties"], json!(true));
    assert_eq!(input("from typing import Any\ndef f(**rest: Any): ...")["additionalProperties"], json!(true));
}

#[test]
fn very_deep_hints_and_defaults_are_cut() {
    let union = vec!["int"; 1_000].join(" | ");
    assert_eq!(hint("", &union), json!({"type": "integer"}));
    let nested = format!("{}int{}", "list[".repeat(900), "]".repeat(900));
    assert_eq!(hint("", &nested)["type"], json!("array"));
    let default = format!("x={}{}", "[".repeat(900), "]".repeat(900));
    assert_eq!(properties("", &default)["x"], json!({}));
}
