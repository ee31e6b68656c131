//! Files whose schemas would exceed the budget.

use serde_json::{Map, Value, json};

use super::file;

/// How many values stand in a schema.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(count).sum::<usize>() + 1,
        Value::Object(members) => members.values().map(count).sum::<usize>() + 1,
        _ => 1,
    }
}

/// Lines in which each name is made of the one before it.
fn chain(line: impl Fn(String, String) -> String) -> String {
    (1..=30).map(|n| line(format!("A{n}"), format!("A{}", n - 1))).collect()
}

fn many(functions: usize, parameters: &str) -> String {
    let functions: Vec<String> = (0..functions).map(|n| format!("def f{n}({parameters}): ...\n")).collect();
    functions.concat()
}

#[test]
fn no_file_exceeds_its_budget() {
    let literal: Vec<String> = (0..2000).map(|n| n.to_string()).collect();
    let text = "x".repeat(10_000);
    for (what, first, line) in [
        ("numbers", "int".to_owned(), "dict[str, tuple[PAST, PAST, PAST]]"),
        ("a long literal", format!("Literal[{}]", literal.join(",")), "tuple[PAST, PAST, PAST]"),
        ("a long text", format!("Annotated[int, Field(description='{text}')]"), "tuple[PAST, PAST, PAST]"),
        ("literals of literals", "Literal[1, 2]".to_owned(), &format!("Literal[{}]", "PAST,".repeat(40))),
    ] {
        let lines = chain(|name, past| format!("{name} = {}\n", line.replace("PAST", &past)));
        let functions = many(300, "x: A30, y: A12, z: A5");
        let source = format!("from typing import *\nfrom pydantic import Field\nA0 = {first}\n{lines}{functions}");
        let found = file(&source).functions;
        let sizes = found.iter().map(|function| count(&Value::Object(function.input_schema.read())));
        let sizes: Vec<usize> = sizes.collect();
        assert!(sizes.iter().all(|size| *size < 50_000), "{what}: {:?}", sizes.iter().max());
        assert!(sizes.iter().sum::<usize>() < 600_000, "{what}: {}", sizes.iter().sum::<usize>());
        let bytes: usize = found.iter().map(|function| json!(function.input_schema.read()).to_string().len()).sum();
        assert!(bytes < 60_000_000, "{what}: {bytes} bytes");
    }
}

#[test]
fn classes_that_every_function_mentions_stay_within_the_budget() {
    let classes = chain(|name, past| format!("class {name}(TypedDict):\n    a: {past}\n    b: list[{past}]\n"));
    let classes = format!("{classes}{}", classes.replace('A', "B").replace("B0", "A30"));
    let functions = many(3000, "x: B30");
    let found = file(&format!("from typing import TypedDict\nA0 = int\n{classes}{functions}")).functions;
    assert_eq!(found[0].input_schema.read()["$defs"].as_object().map(Map::len), Some(60));
    let sizes = found.iter().map(|function| count(&Value::Object(function.input_schema.read())));
    assert!(sizes.sum::<usize>() < 600_000);
    for function in [&found[0], &found[2999]] {
        assert!(jsonschema::draft202012::new(&json!(function.input_schema.read())).is_ok());
    }
}
