//! The same outcome in the dress that some hosts expect: whether the tool ran, and what it gave, in one object.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{Code, Fault};

/// What a call came to.
#[derive(Serialize)]
struct Worn<'a> {
    tool_success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<Code>,
}

/// A result in its envelope. An operation that failed is still a result: the tool ran.
pub fn in_envelope(result: &RawValue) -> Box<RawValue> {
    written(&Worn { tool_success: true, result: Some(result), error: None, error_code: None })
}

/// A fault in its envelope.
pub fn fault_in_envelope(fault: &Fault) -> Box<RawValue> {
    written(&Worn { tool_success: false, result: None, error: Some(&fault.message), error_code: Some(fault.code) })
}

fn written(worn: &Worn<'_>) -> Box<RawValue> {
    // Texts and JSON that is JSON already can always be written.
    to_raw_value(worn).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The output schema of a tool that answers in envelopes. `promised` is that of its structured results, in which what is no
/// object stands under `result`.
pub fn envelope_schema(promised: Option<&str>) -> String {
    let result = promised.map_or_else(|| "{}".to_owned(), inner);
    format!(
        "{{\"type\":\"object\",\"properties\":{{\
         \"tool_success\":{{\"type\":\"boolean\",\"description\":\"Whether the tool ran. False where it crashed, took too long or was \
         not allowed.\"}},\
         \"result\":{result},\
         \"error\":{{\"type\":\"string\",\"description\":\"What happened and what to do, where tool_success is false.\"}},\
         \"error_code\":{{\"type\":\"string\",\"description\":\"The same for programs.\"}}\
         }},\"required\":[\"tool_success\"]}}"
    )
}

/// The schema of a result as it stands in an envelope: not wrapped. Whether an object with the one field `result` is a wrapped
/// value or is the value cannot be told, so it may be either. What the schema defines goes along.
fn inner(promised: &str) -> String {
    let Ok(mut schema) = serde_json::from_str::<serde_json::Value>(promised) else { return "{}".to_owned() };
    let definitions = schema.get("$defs").cloned();
    let properties = schema.get("properties").and_then(serde_json::Value::as_object);
    let wrapped = properties.filter(|all| all.len() == 1).and_then(|all| all.get("result")).cloned();
    match (wrapped, definitions) {
        // References are from the root, which is another one here: nothing is promised rather than something wrong.
        (_, Some(_)) => "{}".to_owned(),
        (Some(value), None) => serde_json::json!({"anyOf": [value, schema.take()]}).to_string(),
        (None, None) => promised.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(raw: &RawValue) -> Value {
        serde_json::from_str(raw.get()).unwrap()
    }

    #[test]
    fn the_shape_is_the_same_whatever_happens() {
        let result = RawValue::from_string("{\"exit_code\":127}".to_owned()).unwrap();
        assert_eq!(read(&in_envelope(&result)), json!({"tool_success": true, "result": {"exit_code": 127}}));
        let null = RawValue::from_string("null".to_owned()).unwrap();
        assert_eq!(read(&in_envelope(&null)), json!({"tool_success": true, "result": null}));
        for code in [Code::ToolCrashed, Code::ToolTimeout, Code::InvalidOutput, Code::InvalidParams, Code::ToolNotFound]
        {
            let fault = Fault::new(code, "oh no");
            let expected = json!({"tool_success": false, "error": "oh no", "error_code": code.word()});
            assert_eq!(read(&fault_in_envelope(&fault)), expected);
        }
    }

    #[test]
    fn what_is_advertised_is_what_comes() {
        let fits = |promised: Option<Value>, raw: &str| {
            let promised = promised.map(|schema| schema.to_string());
            let schema: Value = serde_json::from_str(&envelope_schema(promised.as_deref())).unwrap();
            let result = RawValue::from_string(raw.to_owned()).unwrap();
            jsonschema::is_valid(&schema, &read(&in_envelope(&result)))
        };
        let object = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
        assert!(fits(Some(object.clone()), "{\"a\":1}") && !fits(Some(object), "{\"a\":\"x\"}"));
        let list = json!({"type": "object", "properties": {"result": {"type": "array"}}, "required": ["result"]});
        assert!(fits(Some(list.clone()), "[1]") && !fits(Some(list), "7"));
        assert!(fits(None, "7"));
        let referring = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {}}});
        assert!(fits(Some(referring), "{\"a\":1}"));
        let schema: Value = serde_json::from_str(&envelope_schema(None)).unwrap();
        assert!(jsonschema::is_valid(&schema, &read(&fault_in_envelope(&Fault::new(Code::Busy, "x")))));
    }
}
