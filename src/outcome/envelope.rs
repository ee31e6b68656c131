//! The outcome as an object with `tool_success`, for hosts that expect that form.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::{Code, Fault};

/// The outcome of a call.
#[derive(Serialize)]
struct Envelope<'a> {
    tool_success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<Code>,
}

/// A result in its envelope. A reported failure of the operation is still a result: the tool ran.
pub fn in_envelope(result: &RawValue) -> Box<RawValue> {
    written(&Envelope { tool_success: true, result: Some(result), error: None, error_code: None })
}

/// A fault in its envelope.
pub fn fault_in_envelope(fault: &Fault) -> Box<RawValue> {
    written(&Envelope { tool_success: false, result: None, error: Some(&fault.message), error_code: Some(fault.code) })
}

fn written(envelope: &Envelope<'_>) -> Box<RawValue> {
    // Serializing strings and existing JSON cannot fail.
    to_raw_value(envelope).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Says in an output schema that the structured content wraps the result in `result`. FastMCP's clients unwrap it only then.
const WRAPPED: &str = "x-fastmcp-wrap-result";

/// The output schema of results that are not objects: structured content is one, so it wraps them.
pub fn wrapped_schema(result: &Value) -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), json!({ "result": result }));
    schema.insert("required".to_owned(), json!(["result"]));
    schema.insert(WRAPPED.to_owned(), true.into());
    schema
}

/// The output schema of a tool that answers in envelopes. `promised` is the schema of its structured results, which
/// wraps non-objects in `result`.
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

/// The schema of a result inside an envelope, unwrapped.
fn inner(promised: &str) -> String {
    let Ok(schema) = serde_json::from_str::<Map<String, Value>>(promised) else { return "{}".to_owned() };
    // References start at the root, which differs here: an open schema is better than a wrong one.
    if schema.contains_key("$defs") {
        return "{}".to_owned();
    }
    let wrapped = schema.get("properties").and_then(|all| all.get("result")).filter(|_| schema.contains_key(WRAPPED));
    wrapped.map_or_else(|| promised.to_owned(), Value::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(raw: &RawValue) -> Value {
        serde_json::from_str(raw.get()).unwrap()
    }

    #[test]
    fn every_outcome_has_the_same_shape() {
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
    fn the_advertised_schema_matches_the_results() {
        let fits = |promised: Option<Value>, raw: &str| {
            let promised = promised.map(|schema| schema.to_string());
            let schema: Value = serde_json::from_str(&envelope_schema(promised.as_deref())).unwrap();
            let result = RawValue::from_string(raw.to_owned()).unwrap();
            jsonschema::is_valid(&schema, &read(&in_envelope(&result)))
        };
        let object = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
        assert!(fits(Some(object.clone()), "{\"a\":1}") && !fits(Some(object), "{\"a\":\"x\"}"));
        let list = Value::Object(wrapped_schema(&json!({"type": "array"})));
        assert!(fits(Some(list.clone()), "[1]") && !fits(Some(list), "7"));
        let own = json!({"type": "object", "properties": {"result": {"type": "array"}}, "required": ["result"]});
        assert!(fits(Some(own.clone()), "{\"result\":[1]}") && !fits(Some(own), "[1]"), "not wrapped");
        assert!(fits(None, "7"));
        let referring = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {}}});
        assert!(fits(Some(referring), "{\"a\":1}"));
        let schema: Value = serde_json::from_str(&envelope_schema(None)).unwrap();
        assert!(jsonschema::is_valid(&schema, &read(&fault_in_envelope(&Fault::new(Code::Busy, "x")))));
    }
}
