//! Any bytes at all: reading a tool file never panics, and every schema it makes is one, with nothing missing under `$defs`.

#![no_main]

use std::path::Path;

use hostler::bench::read_bytes;
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};

fuzz_target!(|bytes: &[u8]| {
    let file = read_bytes(Path::new("fuzzed.py"), bytes);
    for function in &file.functions {
        check(&function.input_schema.read());
        if let Some(promised) = &function.output_schema {
            let promised = promised.read();
            assert_eq!(promised.get("type"), Some(&Value::from("object")));
            check(&promised);
        }
    }
});

fn check(schema: &Map<String, Value>) {
    let value = Value::Object(schema.clone());
    assert!(jsonschema::draft202012::meta::is_valid(&value), "no schema: {value}");
    let definitions = schema.get("$defs").and_then(Value::as_object);
    references(&value, &mut |pointer| {
        let name = pointer.strip_prefix("#/$defs/").expect("a pointer into $defs");
        assert!(definitions.is_some_and(|all| all.contains_key(name)), "{name} is not defined");
    });
    assert!(jsonschema::draft202012::new(&value).is_ok(), "does not compile: {value}");
}

fn references(value: &Value, found: &mut impl FnMut(&str)) {
    match value {
        Value::Object(all) => {
            // A property may be called `$ref` too; then it is no text.
            if let Some(pointer) = all.get("$ref").and_then(Value::as_str) {
                found(pointer);
            }
            // What an author wrote as a default or a choice is no schema.
            for (_, inner) in all.iter().filter(|(key, _)| !matches!(key.as_str(), "default" | "enum")) {
                references(inner, found);
            }
        }
        Value::Array(all) => all.iter().for_each(|inner| references(inner, found)),
        _ => {}
    }
}
