//! What the headers of a request must say since 2026-07-28: the same as its body, so that what stands between client and server
//! may decide by them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::HeaderMap;
use serde_json::{Map, Value};

use super::frame::{Frame, Params};

/// The revision of the protocol.
pub const REVISION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
const PARAM: &str = "mcp-param-";
/// The member of an argument's schema that names its header.
const ANNOTATION: &str = "x-mcp-header";
/// Around a value that cannot be a header as it is.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// The value of a header that may be there once.
fn only<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, String> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            value.to_str().map(|value| Some(value.trim())).map_err(|_| format!("`{name}` is no text"))
        }
        _ => Err(format!("`{name}` is there twice")),
    }
}

fn decoded(name: &str, value: &str) -> Result<String, String> {
    let Some(inner) = value.strip_prefix(ENCODED.0).and_then(|rest| rest.strip_suffix(ENCODED.1)) else {
        return Ok(value.to_owned());
    };
    let bytes = BASE64_STANDARD.decode(inner).ok();
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(|| format!("`{name}` is not valid Base64"))
}

/// Compares a header with what the body says.
fn compare(headers: &HeaderMap, name: &str, expected: Option<&str>) -> Result<(), String> {
    let value = only(headers, name)?.map(|value| decoded(name, value)).transpose()?;
    match (value, expected) {
        (None, None) => Ok(()),
        (Some(value), Some(expected)) if value == expected => Ok(()),
        (Some(value), Some(expected)) => Err(format!("`{name}` is {value:?}, the body says {expected:?}")),
        (None, Some(expected)) => Err(format!("`{name}` is missing, the body says {expected:?}")),
        (Some(value), None) => Err(format!("`{name}` is {value:?}, the body says nothing of it")),
    }
}

/// Whether the headers of a request say what its body does. `schema` is that of the arguments of a tool.
pub fn agree<'s>(
    headers: &HeaderMap,
    frame: &Frame<'_>,
    known: &Params<'_>,
    schema: impl FnOnce(&str) -> Option<&'s Map<String, Value>>,
) -> Result<(), String> {
    if let Some(revision) = &known.meta.revision {
        compare(headers, REVISION, Some(revision))?;
    }
    compare(headers, METHOD, frame.method.as_deref())?;
    let name = match frame.method.as_deref() {
        Some("tools/call" | "prompts/get") => known.name.as_deref(),
        Some("resources/read") => known.uri.as_deref(),
        Some("tasks/get" | "tasks/update" | "tasks/cancel") => known.task.as_deref(),
        _ => return Ok(()),
    };
    compare(headers, NAME, name)?;
    let schema = name.filter(|_| frame.method.as_deref() == Some("tools/call")).and_then(schema);
    // Arguments may be long, and hardly a tool names one.
    let Some(schema) = schema.filter(|schema| names_headers(schema)) else { return Ok(()) };
    let arguments = known.arguments.and_then(|text| serde_json::from_str(text.get()).ok()).unwrap_or_default();
    annotated(headers, schema, &arguments)
}

/// Whether an argument has a header of its own.
fn names_headers(schema: &Map<String, Value>) -> bool {
    let mut properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties
        .any(|(_, property)| property.get(ANNOTATION).is_some() || property.as_object().is_some_and(names_headers))
}

/// The arguments that have a header of their own, objects within included.
fn annotated(headers: &HeaderMap, schema: &Map<String, Value>, arguments: &Value) -> Result<(), String> {
    for (key, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let value = arguments.get(key).unwrap_or(&Value::Null);
        if let Some(suffix) = property.get(ANNOTATION).and_then(Value::as_str) {
            let text = match value {
                Value::String(text) => Some(text.clone()),
                Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
                _ => None,
            };
            compare(headers, &format!("{PARAM}{}", suffix.to_ascii_lowercase()), text.as_deref())?;
        }
        if let Some(within) = property.as_object().filter(|within| within.contains_key("properties")) {
            annotated(headers, within, value)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(names: &[(&str, &str)], body: &Value, schema: &Value) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        for (name, value) in names {
            headers.append(hyper::header::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        let text = body.to_string();
        let frame: Frame<'_> = serde_json::from_str(&text).unwrap();
        agree(&headers, &frame, &frame.known().unwrap(), |_| schema.as_object())
    }

    #[test]
    fn headers_say_what_the_body_does() {
        let call = json!({"method": "tools/call", "params": {"name": "größe", "arguments": {"region": "eu", "deep": {"n": 3}}}});
        let schema = json!({"properties": {"region": {"x-mcp-header": "Region"}, "deep": {"properties": {"n": {"x-mcp-header": "N"}}}}});
        let method = ("Mcp-Method", "tools/call");
        let name = ("mcp-name", "=?base64?Z3LDtsOfZQ==?=");
        let (region, n) = (("Mcp-Param-Region", "=?base64?ZXU=?="), ("mcp-param-n", "3"));
        assert_eq!(check(&[method, name, region, n], &call, &schema), Ok(()));
        let wrong: [&[(&str, &str)]; 8] = [
            &[name, region, n],
            &[("Mcp-Method", "TOOLS/CALL"), name, region, n],
            &[method, region, n],
            &[method, ("mcp-name", "other"), region, n],
            &[method, ("mcp-name", "=?base64?Z3LDtsOfZQ?="), region, n],
            &[method, name, n],
            &[method, name, ("Mcp-Param-Region", "us"), n],
            &[method, method, name, region, n],
        ];
        for headers in wrong {
            assert!(check(headers, &call, &schema).is_err(), "{headers:?}");
        }
        let none = json!({"method": "tools/call", "params": {"name": "größe"}});
        assert!(check(&[method, name, region], &none, &schema).is_err(), "of an argument that is not there");
        assert_eq!(check(&[("mcp-method", "tools/list")], &json!({"method": "tools/list"}), &schema), Ok(()));
    }
}
