//! How mistakes in arguments and results are named: where they are, and which value is wrong.

use std::io::{self, Write};

use serde_json::Value;

/// The most characters that are shown of a value.
const SHOWN: usize = 60;

/// A JSON pointer in dotted form: `items[2].name`.
pub(super) fn place(pointer: &str) -> String {
    let mut text = String::new();
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        if step.bytes().all(|byte| byte.is_ascii_digit()) {
            text.push('[');
            text.push_str(&step);
            text.push(']');
        } else {
            push_member(&mut text, &step);
        }
    }
    text
}

fn push_member(place: &mut String, name: &str) {
    if !place.is_empty() {
        place.push('.');
    }
    place.push_str(name);
}

/// The place that a path through a schema describes: `items[].name`, `counts.*`. It has the schema's own words alone, never a
/// key that somebody sent.
pub(super) fn declared_place(path: &str) -> String {
    let mut text = String::new();
    let mut steps = path.split('/').skip(1);
    while let Some(step) = steps.next() {
        match step {
            "properties" => {
                let name = steps.next().unwrap_or_default();
                push_member(&mut text, &name.replace("~1", "/").replace("~0", "~"));
            }
            "items" | "additionalItems" | "contains" | "unevaluatedItems" => text.push_str("[]"),
            "prefixItems" => {
                let index = steps.next().unwrap_or_default();
                text.extend(["[", index, "]"]);
            }
            "additionalProperties" | "propertyNames" | "unevaluatedProperties" => push_member(&mut text, "*"),
            "patternProperties" => {
                steps.next();
                push_member(&mut text, "*");
            }
            // A branch or a reference is followed by which one.
            "anyOf" | "oneOf" | "allOf" | "$defs" | "definitions" => drop(steps.next()),
            _ => {}
        }
    }
    text
}

/// A value and its kind, shortened.
pub(super) fn described(value: &Value) -> String {
    let text = shortened(value);
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => format!("the boolean {text}"),
        Value::Number(_) => format!("the number {text}"),
        Value::String(_) => format!("the string {text}"),
        Value::Array(_) => format!("the list {text}"),
        Value::Object(_) => format!("the object {text}"),
    }
}

/// The beginning of a value as JSON. The rest, which may be long, is not written.
pub(super) fn shortened(value: &Value) -> String {
    let mut beginning = Beginning(Vec::new());
    let _ = match value {
        Value::String(text) => {
            let start: String = text.chars().take(SHOWN).collect();
            serde_json::to_writer(&mut beginning, &start)
        }
        value => serde_json::to_writer(&mut beginning, value),
    };
    let mut text = String::from_utf8_lossy(&beginning.0).into_owned();
    if let Some((end, _)) = text.char_indices().nth(SHOWN) {
        text.replace_range(end.., "…");
    }
    text
}

/// Takes bytes until there are more characters than are shown.
struct Beginning(Vec<u8>);

impl Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = (4 * SHOWN + 4).saturating_sub(self.0.len());
        if room == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let count = bytes.len().min(room);
        self.0.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_place_in_a_schema_has_no_key_that_somebody_sent() {
        for (path, expected) in [
            ("/properties/count/type", "count"),
            ("/properties/spots/anyOf/0/items/$ref/properties/name/type", "spots[].name"),
            ("/$defs/Spot/properties/x~1y/enum", "x/y"),
            ("/properties/items/prefixItems/1/minimum", "items[1]"),
            ("/properties/counts/additionalProperties/type", "counts.*"),
            ("/properties/any/patternProperties/^hunter/type", "any.*"),
            ("/additionalProperties", "*"),
            ("/required", ""),
            ("", ""),
        ] {
            assert_eq!(declared_place(path), expected, "{path}");
        }
    }

    #[test]
    fn a_value_is_shown_by_its_beginning() {
        for (value, expected) in [
            (json!("a\"b"), r#""a\"b""#.to_owned()),
            (json!([1, {"a": null}]), r#"[1,{"a":null}]"#.to_owned()),
            (json!("ä".repeat(99)), format!("\"{}…", "ä".repeat(59))),
            (json!("x".repeat(58)), format!("\"{}\"", "x".repeat(58))),
            (json!("x".repeat(59)), format!("\"{}…", "x".repeat(59))),
            (json!(["🙂".repeat(99)]), format!("[\"{}…", "🙂".repeat(58))),
        ] {
            assert_eq!(shortened(&value), expected);
        }
        let mut beginning = Beginning(Vec::new());
        assert!(serde_json::to_writer(&mut beginning, &vec![7; 1 << 20]).is_err());
        assert!(beginning.0.len() < 256, "the rest is not written");
    }
}
