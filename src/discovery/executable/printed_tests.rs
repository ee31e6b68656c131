use std::time::Duration;

use serde_json::json;

use super::*;
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
    for key in ["input_schema", "inputSchema", "parameters", "parametersJsonSchema", "args", "schema"] {
        assert_eq!(schemas(&json!({key: input})).0, input, "{key}");
    }
    assert_eq!(schemas(&json!({"type": "object"})).0, json!({"type": "object"}), "a tool without arguments");
    assert_eq!(schemas(&json!({"name": "x"})).0, json!({"type": "object"}), "nothing is said about arguments");
}

#[test]
fn what_providers_of_models_put_around_a_tool_is_taken_off() {
    let input = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    let function = json!({"name": "add-up", "description": "Adds.", "parameters": input, "strict": true});
    let of_openai = json!({"type": "function", "function": function});
    assert_eq!(schemas(&of_openai).0, input);
    for several in [json!([of_openai]), json!({"tools": [of_openai]}), json!({"functionDeclarations": [function]})] {
        let found = read(several.to_string().as_bytes(), "tool").unwrap().functions;
        assert_eq!((found[0].name.as_str(), found[0].summary.as_deref()), ("add_up", Some("Adds.")), "{several}");
        assert_eq!(Value::Object(found[0].input_schema.read()), input, "{several}");
    }
    let named = json!({"name": "x", "tools": ["hammer"], "parameters": input});
    assert_eq!(schemas(&named).0, input, "a tool may say what it likes of itself");
}

#[test]
fn a_schema_alone_is_that_of_the_arguments() {
    let bare = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Add", "description": "Adds.", "type": "object",
        "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    let found = read(bare.to_string().as_bytes(), "add").unwrap().functions;
    assert_eq!((found[0].name.as_str(), found[0].summary.as_deref()), ("add", Some("Adds.")));
    let expected = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    assert_eq!(Value::Object(found[0].input_schema.read()), expected);
}

#[test]
fn the_result_schema_allows_an_error() {
    let wanted = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let failed = json!({"type": "object", "required": ["error"], "properties": {"error": {}}});
    let expected = json!({"type": "object", "anyOf": [wanted, failed]});
    for returns in [json!({"type": "object", "properties": {"n": {"type": "integer"}}}), json!({"n": {"type": "int"}})]
    {
        assert_eq!(schemas(&json!({"returns": returns})).1.unwrap(), expected);
    }
    assert_eq!(schemas(&json!({"output_schema": wanted})).1.unwrap(), expected);
    let text = json!({"type": "object", "required": ["result"], "properties": {"result": {"type": "string"}}});
    let list = schemas(&json!({"returns": {"type": "string"}})).1.unwrap();
    assert_eq!(list["anyOf"], json!([text, failed]));
}

#[test]
fn declarations_are_kept() {
    let printed = json!({
        "version": "1.2.0", "tags": ["web"], "category": "network", "risk_level": "medium", "timeout_seconds": 5,
        "allowed_modes": ["NORMAL", "alert"], "requires_approval": true, "rate_limit_per_hour": 60, "effects": "pure",
        "requires_sandbox": null, "icon": "icon.svg",
    });
    let printed = read(printed.to_string().as_bytes(), "tool").unwrap();
    assert_eq!(printed.remarks, []);
    let declared = printed.functions[0].declared.as_deref().unwrap();
    assert_eq!(declared.timeout, Some(Setting::declared(Duration::from_secs(5))));
    assert_eq!(declared.effects, Some(Setting::declared(Effects::Pure)));
    assert_eq!(declared.icon, Some(Setting::declared("icon.svg".to_owned())));
    let policy = json!({
        "version": "1.2.0", "tags": ["web"], "category": "network", "risk_level": "medium",
        "allowed_modes": ["normal", "alert"], "requires_approval": true, "rate_limit_per_hour": 60,
    });
    assert_eq!(Value::Object(declared.policy.as_json()), policy);
    assert_eq!(read(b"{\"description\": \"x\"}", "tool").unwrap().functions[0].declared, None);
}

#[test]
fn the_annotations_of_mcp_are_effects_and_hints() {
    let printed = |more: Value| {
        let mut tool = json!({"name": "a", "parameters": {}, "annotations": {"readOnlyHint": true, "openWorldHint": false, "title": "A"}});
        tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let printed = read(tool.to_string().as_bytes(), "tool").unwrap();
        let function = &printed.functions[0];
        let effects = function.declared.as_ref().and_then(|layer| layer.effects.as_ref()).map(|effects| effects.value);
        (effects, function.hints.clone().map(|hints| (hints.title, hints.is_open_world)))
    };
    assert_eq!(printed(json!({})), (Some(Effects::Pure), Some((Some("A".to_owned()), Some(false)))));
    assert_eq!(printed(json!({"title": "B", "annotations": null})), (None, Some((Some("B".to_owned()), None))));
    assert_eq!(printed(json!({"effects": "once"})).0, Some(Effects::Once), "what it declares for hostler counts");
}

#[test]
fn unusable_output_is_reported() {
    for (printed, words) in [
        ("", "prints nothing"),
        ("\n<html>\n<p>", "begins with `<html>` and is not JSON: expected value at line 2 column 1"),
        ("7", "neither an object nor a list"),
        ("[]", "an empty list"),
        ("[{}]", "item 1"),
        (r#"[{"name": "a"}, {"name": "a"}]"#, "two tools called `a`"),
        (r#"{"input_schema": {"type": "objekt"}}"#, "is not a JSON Schema"),
        (r#"{"input_schema": []}"#, "is not an object"),
        (r#"{"parameters": {"a": 3}}"#, "`a`"),
        (r#"{"parameters": {"a": {"required": "yes"}}}"#, "`required` of `a`: expected a boolean"),
        (r#"{"error": "unknown option --schema"}"#, "describes no tool, but has `error`"),
        (r#"{"foo": 1, "bar": [2]}"#, "describes no tool, but has `foo`, `bar`"),
        (r#"{"protocol": "v2"}"#, "unknown `protocol` \"v2\""),
        (r#"[{"name": "a", "protocol": "v1"}, {"name": "b", "protocol": "bare"}]"#, "two protocols"),
    ] {
        let reason = read(printed.as_bytes(), "tool").map_or_else(Some, |found| found.unknown).unwrap().to_string();
        assert!(reason.contains(words), "{printed}: {reason}");
    }
    let several = read(br#"[{"name": "a-b", "description": "A"}, {"name": "c"}]"#, "tool").unwrap().functions;
    assert_eq!(several.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["a_b", "c"]);
}

#[test]
fn unknown_declarations_are_reported_and_taken_strictly() {
    for (key, value, taken, expected) in [
        ("requires_approval", json!("yes"), json!(true), "taken as true"),
        ("requires_sandbox", json!(0), json!(true), "expected a boolean"),
        ("risk_level", json!("extreme"), json!("high"), "`low`, `medium`"),
        ("risk_level", json!("Low"), json!("low"), ""),
        ("allowed_modes", json!(["plan", "ALERT"]), json!([]), "taken as []"),
        ("allowed_modes", json!("normal"), json!([]), "taken as []"),
        ("rate_limit_per_hour", json!("often"), json!(null), "is ignored"),
        ("icon", json!("/etc/icon.png"), json!(null), "`icon` is ignored"),
        ("timeout", json!("soon"), json!(null), "a number of seconds"),
        ("timeout_seconds", json!(0), json!(null), "a number of seconds"),
        ("tags", json!("web"), json!(null), "expected a sequence"),
        ("version", json!(["1".repeat(99)]), json!(null), "expected a string"),
        ("effects", json!("none"), json!(null), "`pure`, `idempotent`"),
    ] {
        let printed = read(json!({key: value}).to_string().as_bytes(), "tool").unwrap();
        let declared = serde_json::to_value(&printed.functions[0].declared).unwrap();
        assert_eq!(declared.get(key).cloned().unwrap_or_default(), taken, "{key}: {value}");
        assert!(expected.is_empty() || printed.remarks[0].to_string().contains(expected), "{:?}", printed.remarks);
        assert_eq!(printed.remarks.len(), usize::from(!expected.is_empty()), "{:?}", printed.remarks);
    }
    let several = read(br#"[{"name": "a-b", "tags": 1}, {"name": "c"}]"#, "tool").unwrap();
    assert!(several.remarks.len() == 1 && several.remarks[0].what.starts_with("`a_b`: `tags` is ignored: "));
}

#[test]
fn settings_of_one_tool_hold_for_all_tools_of_its_file() {
    let tools = [json!({"protocol": "v1", "secrets": ["A"]}), json!({"secrets": ["B", "A"]}), json!({})];
    let tools = tools.map(|tool| tool.as_object().cloned().unwrap());
    let found = Printed::with_settings_of(&tools).declared;
    assert_eq!(found.protocol, Some(Setting::declared(Protocol::V1)));
    assert_eq!(found.secrets, Some(Setting::declared(vec!["A".to_owned(), "B".to_owned()])));
    assert_eq!(Printed::with_settings_of(&tools[2..]).declared, ToolLayer::default());
}

#[test]
fn parameters_may_stand_alone() {
    let printed = json!({"path": {"type": "str", "required": true}, "depth": {"type": "int"}});
    let expected = json!({"type": "object", "additionalProperties": false, "required": ["path"], "properties": {
        "path": {"type": "string"}, "depth": {"type": "integer"}
    }});
    assert_eq!(schemas(&printed), (expected, None));
}

#[test]
fn what_is_not_understood_is_unknown_and_the_rest_holds() {
    for (printed, words) in [
        (
            json!({"name": "x", "signature": {"a": "int"}, "requires_approval": true}),
            "no schema of the arguments, but `signature`",
        ),
        (json!({"parameters": ["a", "b"], "requires_approval": true}), "`parameters` is not an object"),
        (json!({"input_schema": {"type": "objekt"}, "requires_approval": true}), "not a JSON Schema"),
        (json!({"returns": 5, "requires_approval": true}), "`returns`"),
        (json!([{"name": "a", "requires_approval": true}, {"name": "b", "grammar": {"x": 1}}]), "`b`: "),
        (json!({"protocol": "v9", "requires_approval": true}), "`protocol`"),
        (json!([{"name": "a", "requires_approval": true}, {"name": "not ok!"}]), "item 2"),
        (json!([{"name": "a"}, {"name": "a", "requires_approval": true}]), "two tools called `a`"),
        (json!([{"name": "a", "requires_approval": true}, 7]), "item 2"),
    ] {
        let found = read(printed.to_string().as_bytes(), "tool").unwrap();
        assert!(found.unknown.unwrap().what.contains(words), "{printed}");
        assert_eq!(Value::Object(found.functions[0].input_schema.read()), json!({"type": "object"}), "{printed}");
        let policy = &found.functions[0].declared.as_ref().unwrap().policy;
        assert_eq!(policy.requires_approval.as_ref().map(|set| set.value), Some(true), "{printed}");
    }
    assert!(read(br#"{"name": "x", "version": "2", "returns": {"n": "int"}}"#, "tool").unwrap().unknown.is_none());
}

#[test]
fn what_is_declared_around_tools_holds_for_them() {
    let function = json!({"name": "a", "parameters": {"type": "OBJECT", "properties": {"x": {"type": "STRING", "enum": ["TYPE"]}}}});
    for (printed, is_listed) in [
        (json!({"type": "function", "requires_approval": true, "risk_level": "high", "function": function}), false),
        (json!({"requires_approval": true, "risk_level": "high", "description": "All.", "tools": [function]}), true),
        (json!([{"type": "function", "requires_approval": true, "risk_level": "high", "function": function}]), true),
    ] {
        let found = read(printed.to_string().as_bytes(), "tool").unwrap();
        assert_eq!(found.functions[0].name, if is_listed { "a" } else { "tool" }, "{printed}");
        assert_eq!((found.functions[0].description.as_deref(), &found.unknown), (None, &None), "{printed}");
        let policy = &found.functions[0].declared.as_ref().unwrap().policy;
        assert_eq!(policy.requires_approval.as_ref().map(|set| set.value), Some(true), "{printed}");
        assert_eq!(policy.risk_level.as_ref().map(|set| set.value), Some(Risk::High), "{printed}");
        let expected = json!({"type": "object", "properties": {"x": {"type": "string", "enum": ["TYPE"]}}});
        assert_eq!(Value::Object(found.functions[0].input_schema.read()), expected, "{printed}");
    }
}

#[test]
fn settings_of_all_that_are_not_understood_are_remarked() {
    let found =
        read(br#"{"secrets": "KEY", "output": "markdown", "input_option": "execute", "keywords": ["a"]}"#, "tool")
            .unwrap();
    let said: Vec<&str> = found.remarks.iter().map(|remark| remark.what.as_str()).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert_eq!(found.declared, ToolLayer::default());
    assert_eq!(found.unknown, None);
}
