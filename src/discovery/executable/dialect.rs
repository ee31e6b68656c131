//! What `--schema` prints, in either of the forms there are: one tool, or a list of them.

use serde_json::{Map, Value};

use super::declared;
use super::schema::{input_of, output_of};
use super::wishes;
use crate::config::declared_policy::Declared;
use crate::discovery::text::JsonSchema;
use crate::discovery::{Function, Wishes};
use crate::pep723::is_identifier;

/// More tools than any one program has.
const MOST: usize = 256;

/// What an executable says of itself.
#[derive(Debug, Default)]
pub(super) struct Printed {
    pub functions: Vec<Function>,
    pub wishes: Wishes,
    /// A sentence for each of its words that was not understood.
    pub remarks: Vec<String>,
}

/// The tools that an executable says it holds, or why that could not be understood. A single one goes by the file's name.
pub(super) fn read(bytes: &[u8], name: &str) -> Result<Printed, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "what `--schema` prints is not UTF-8".to_owned())?;
    if text.trim().is_empty() {
        return Err("`--schema` prints nothing".to_owned());
    }
    let value: Value = serde_json::from_str(text).map_err(|error| {
        format!("what `--schema` prints begins with `{}` and is not JSON: {error}", beginning(text))
    })?;
    match value {
        Value::Object(tool) => {
            let mut printed = Printed { wishes: wishes::of(std::slice::from_ref(&tool))?, ..Printed::default() };
            printed.remarks = printed.add(&tool, name.to_owned())?;
            Ok(printed)
        }
        Value::Array(tools) if tools.is_empty() => Err("`--schema` prints a list without a tool".to_owned()),
        Value::Array(tools) if tools.len() > MOST => Err(format!("`--schema` prints more than {MOST} tools")),
        Value::Array(tools) => several(tools),
        _ => Err("`--schema` prints JSON that is neither an object nor a list of objects".to_owned()),
    }
}

/// The first words of a text, on one line.
fn beginning(text: &str) -> String {
    const MOST: usize = 60;
    let line: String =
        text.trim_start().lines().next().unwrap_or_default().chars().filter(|one| !one.is_control()).collect();
    let short: String = line.chars().take(MOST).collect();
    if short.len() < line.len() { short + "…" } else { short }
}

fn several(tools: Vec<Value>) -> Result<Printed, String> {
    let (mut found, mut said) = (Printed::default(), Vec::new());
    for (place, tool) in (1..).zip(tools) {
        let Value::Object(tool) = tool else {
            return Err(format!("item {place} of what `--schema` prints is no object"));
        };
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default().replace('-', "_");
        if !is_identifier(&name) {
            return Err(format!("item {place} of what `--schema` prints has no `name` that a tool can have"));
        }
        if found.functions.iter().any(|other| other.name == name) {
            return Err(format!("`--schema` prints two tools called `{name}`"));
        }
        let remarks = found.add(&tool, name.clone())?;
        found.remarks.extend(remarks.into_iter().map(|remark| format!("of `{name}`, {remark}")));
        said.push(tool);
    }
    found.wishes = wishes::of(&said)?;
    Ok(found)
}

impl Printed {
    /// Adds a tool, and gives what of it was not understood.
    fn add(&mut self, tool: &Map<String, Value>, name: String) -> Result<Vec<String>, String> {
        let (declared, remarks) = declared::of(tool);
        self.functions.push(function(tool, name, declared)?);
        Ok(remarks)
    }
}

fn function(tool: &Map<String, Value>, name: String, declared: Option<Box<Declared>>) -> Result<Function, String> {
    let description = tool.get("description").and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let input = input_of(tool).map_err(|reason| format!("of `{name}`, {reason}"))?;
    let output = output_of(tool).map_err(|reason| format!("of `{name}`, {reason}"))?;
    Ok(Function {
        summary: description.map(first_paragraph),
        description: description.map(str::to_owned),
        input_schema: JsonSchema::of(&input),
        output_schema: output.as_ref().map(JsonSchema::of),
        is_async: false,
        line: 0,
        declared,
        name,
    })
}

/// On one line.
fn first_paragraph(text: &str) -> String {
    let paragraph = text.split("\n\n").next().unwrap_or(text);
    paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::config::declared_policy::{Mode, Risk};
    use crate::config::tool::Effects;

    fn schemas(printed: &Value) -> (Value, Option<Value>) {
        let found = read(printed.to_string().as_bytes(), "tool").unwrap().functions;
        let output = found[0].output_schema.as_ref().map(|schema| Value::Object(schema.read()));
        (Value::Object(found[0].input_schema.read()), output)
    }

    #[test]
    fn a_map_of_parameters_becomes_a_schema() {
        let printed = json!({"name": "bash", "description": "Run.\n\nMore.", "parameters": {
            "command": {"type": "string", "description": "What to run", "required": true},
            "times": {"type": "int", "default": 1},
            "odd": {"type": "whatever", "description": "kept"}
        }});
        let expected = json!({"type": "object", "additionalProperties": false, "required": ["command"], "properties": {
            "command": {"type": "string", "description": "What to run"},
            "times": {"type": "integer", "default": 1},
            "odd": {"description": "kept"}
        }});
        assert_eq!(schemas(&printed), (expected, None));
        let found = read(printed.to_string().as_bytes(), "file_name").unwrap().functions;
        assert_eq!((found[0].name.as_str(), found[0].summary.as_deref()), ("file_name", Some("Run.")));
    }

    #[test]
    fn a_schema_is_taken_as_it_is() {
        let input = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
        for key in ["input_schema", "inputSchema", "parameters"] {
            assert_eq!(schemas(&json!({key: input})).0, input, "{key}");
        }
        assert_eq!(schemas(&json!({"name": "x"})).0, json!({"type": "object"}), "nothing is said about arguments");
    }

    #[test]
    fn what_it_returns_is_promised_or_that_it_failed() {
        let wanted = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let failed = json!({"type": "object", "required": ["error"], "properties": {"error": {}}});
        let expected = json!({"type": "object", "anyOf": [wanted, failed]});
        for returns in
            [json!({"type": "object", "properties": {"n": {"type": "integer"}}}), json!({"n": {"type": "int"}})]
        {
            assert_eq!(schemas(&json!({"returns": returns})).1.unwrap(), expected);
        }
        assert_eq!(schemas(&json!({"output_schema": wanted})).1.unwrap(), expected);
        let text = json!({"type": "object", "required": ["result"], "properties": {"result": {"type": "string"}}});
        let list = schemas(&json!({"returns": {"type": "string"}})).1.unwrap();
        assert_eq!(list["anyOf"], json!([text, failed]));
    }

    #[test]
    fn what_it_says_of_itself_is_kept() {
        let printed = json!({
            "version": "1.2.0", "tags": ["web"], "category": "network", "risk_level": "medium", "timeout_seconds": 5,
            "allowed_modes": ["NORMAL", "alert"], "requires_approval": true, "rate_limit_per_hour": 60, "effects": "pure",
            "requires_sandbox": null,
        });
        let printed = read(printed.to_string().as_bytes(), "tool").unwrap();
        assert_eq!(printed.remarks, [""; 0]);
        let declared = printed.functions[0].declared.as_deref().unwrap();
        let expected = Declared {
            timeout: Some(Duration::from_secs(5)),
            effects: Some(Effects::Pure),
            version: Some("1.2.0".to_owned()),
            tags: Some(vec!["web".to_owned()]),
            category: Some("network".to_owned()),
            risk_level: Some(Risk::Medium),
            allowed_modes: Some(vec![Mode::Normal, Mode::Alert]),
            requires_approval: Some(true),
            requires_sandbox: None,
            rate_limit_per_hour: Some(60),
        };
        assert_eq!(*declared, expected);
        assert_eq!(read(b"{\"description\": \"x\"}", "tool").unwrap().functions[0].declared, None);
    }

    #[test]
    fn what_cannot_be_understood_is_told() {
        for (printed, words) in [
            ("", "prints nothing"),
            ("\n<html>\n<p>", "prints begins with `<html>` and is not JSON: expected value at line 2 column 1"),
            ("7", "neither an object nor a list"),
            ("[]", "without a tool"),
            ("[{}]", "item 1"),
            (r#"[{"name": "a"}, {"name": "a"}]"#, "two tools called `a`"),
            (r#"{"input_schema": {"type": "objekt"}}"#, "is no JSON Schema"),
            (r#"{"input_schema": []}"#, "is no object"),
            (r#"{"parameters": {"a": 3}}"#, "`a`"),
            (r#"{"parameters": {"a": {"required": "yes"}}}"#, "`required` of `a` is \"yes\"; write true or false"),
            (r#"{"protocol": "v2"}"#, "\"v2\", and this hostler speaks"),
            (r#"[{"name": "a", "protocol": "v1"}, {"name": "b", "protocol": "bare"}]"#, "two protocols"),
            (r#"{"secrets": "KEY"}"#, "`secrets` is no list of names"),
        ] {
            let reason = read(printed.as_bytes(), "tool").unwrap_err();
            assert!(reason.contains(words), "{printed}: {reason}");
        }
        let several = read(br#"[{"name": "a-b", "description": "A"}, {"name": "c"}]"#, "tool").unwrap().functions;
        assert_eq!(several.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["a_b", "c"]);
    }

    #[test]
    fn what_of_it_nobody_understands_is_told_and_restricts_all_the_same() {
        for (key, value, taken, words) in [
            (
                "requires_approval",
                json!("yes"),
                json!(true),
                "`requires_approval` is \"yes\", which is taken for true; write true or false",
            ),
            ("requires_sandbox", json!(0), json!(true), "is 0, which is taken for true"),
            (
                "risk_level",
                json!("extreme"),
                json!("high"),
                "is \"extreme\", which is taken for \"high\"; write \"low\", \"medium\" or",
            ),
            ("risk_level", json!("Low"), json!("low"), ""),
            (
                "allowed_modes",
                json!(["plan", "ALERT"]),
                json!(["alert"]),
                "is [\"plan\",\"ALERT\"], which is taken for alert; write a list of \"normal\",",
            ),
            ("allowed_modes", json!("normal"), json!([]), "is \"normal\", which is taken for none"),
            (
                "rate_limit_per_hour",
                json!("often"),
                json!(null),
                "is \"often\", which is left out; write a whole number",
            ),
            (
                "timeout",
                json!("soon"),
                json!(null),
                "`timeout` is \"soon\", which is left out; write a number of seconds",
            ),
            ("timeout_seconds", json!(0), json!(null), "`timeout_seconds` is 0, which is left out"),
            ("tags", json!("web"), json!(null), "`tags` is \"web\", which is left out; write a list of texts"),
            ("version", json!(["1".repeat(99)]), json!(null), "1…, which is left out; write a text"),
            ("effects", json!("none"), json!(null), "write \"pure\", \"idempotent\" or \"once\""),
        ] {
            let printed = read(json!({key: value}).to_string().as_bytes(), "tool").unwrap();
            let declared = serde_json::to_value(&printed.functions[0].declared).unwrap();
            assert_eq!(declared.get(key).cloned().unwrap_or_default(), taken, "{key}: {value}");
            assert!(printed.remarks.join("\n").contains(words), "{:?}", printed.remarks);
            assert_eq!(printed.remarks.len(), usize::from(!words.is_empty()), "{:?}", printed.remarks);
        }
        let several = read(br#"[{"name": "a-b", "tags": 1}, {"name": "c"}]"#, "tool").unwrap();
        assert_eq!(several.remarks, ["of `a_b`, `tags` is 1, which is left out; write a list of texts"]);
    }
}
