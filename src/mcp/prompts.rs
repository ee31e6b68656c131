//! `prompts/…` and `completion/complete`: functions that a person chooses, and the values of their arguments.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{ContentBlock, Prompt, PromptArgument, PromptMessage, RequestId, Role};
use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::{completions, converted};
use super::blocks::taken_apart;
use super::call::{CallParams, Shape};
use super::lifecycle::Rules;
use super::message;
use super::resources::{Cacheable, ListParams, failed, icons, page, too_long};
use super::session::McpSession;
use crate::discovery::{Presented, Role as Served};
use crate::outcome::{Code, Fault, Outcome};
use crate::registry::{RoleKind, Tool};

/// The parameters of `completion/complete`.
#[derive(Deserialize)]
pub(super) struct CompleteParams {
    #[serde(rename = "ref")]
    reference: Reference,
    argument: Argument,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Reference {
    #[serde(rename = "ref/prompt")]
    Prompt { name: String },
    #[serde(rename = "ref/resource")]
    Resource { uri: String },
}

#[derive(Deserialize)]
struct Argument {
    name: String,
    value: String,
}

impl McpSession {
    /// Answers `prompts/list`.
    pub(super) fn list_prompts(&self, id: &RequestId, rules: Rules, params: &ListParams) -> Result<(), ErrorData> {
        let catalogue = self.catalogue_for(RoleKind::Prompt);
        let mut prompts: Vec<Prompt> = catalogue.ready_prompts().map(|prompt| described(prompt)).collect();
        prompts.sort_by(|left, right| left.name.cmp(&right.name));
        let listed = page("prompts", &prompts, params, self.service().config().mcp.max_result.0)?;
        self.reply(id, &message::result(id, Cacheable::new(rules, listed)));
        Ok(())
    }

    /// Answers `prompts/get`: its function is called.
    pub(super) fn get_prompt(self: &Arc<Self>, id: &RequestId, params: CallParams) -> Result<(), ErrorData> {
        self.rules(&params.meta)?;
        let prompt = self.find_prompt(&params.name)?;
        let arguments = params.arguments.unwrap_or_default();
        // Numbers and the like are taken too, although MCP has strings alone. Some clients write `null` for what they leave out.
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let given = arguments.iter().filter(|(_, value)| !value.is_null());
        let given = given.map(|(name, value)| (name.as_str(), text(value)));
        let arguments = Some(converted(prompt.input_schema(), given));
        let description = prompt.function().summary.clone();
        let params = CallParams { name: prompt.name.clone(), arguments, ..params };
        self.call(id, params, Shape::Prompt { description })
    }

    fn find_prompt(&self, name: &str) -> Result<Arc<Tool>, ErrorData> {
        let found = self.service().registry.pick(|catalogue| {
            let found = catalogue.ready_prompts().find(|prompt| prompt.prompt_name() == name)?;
            Some((Arc::clone(found), ()))
        });
        found.map(|(prompt, ())| prompt).ok_or_else(|| {
            let what = format!("there is no prompt {name}; list them with prompts/list");
            ErrorData::invalid_params(what, Some(json!({ "name": name })))
        })
    }

    /// Answers `completion/complete`.
    pub(super) fn complete(&self, id: &RequestId, rules: Rules, params: &CompleteParams) -> Result<(), ErrorData> {
        let function = match &params.reference {
            Reference::Prompt { name } => self.find_prompt(name)?,
            Reference::Resource { uri } => {
                let found = self.service().registry.pick(|catalogue| {
                    let found = catalogue.ready_resources().find(|one| one.uri() == Some(uri))?;
                    Some((Arc::clone(found), ()))
                });
                found.map(|(resource, ())| resource).ok_or_else(|| {
                    let what = format!("there is no resource template {uri}; list them with resources/templates/list");
                    ErrorData::invalid_params(what, Some(json!({ "uri": uri })))
                })?
            }
        };
        let Argument { name, value } = &params.argument;
        let (values, total) = completions(function.input_schema(), name, value);
        let has_more = values.len() < total;
        let completion = json!({"values": values, "total": total, "hasMore": has_more});
        let result_type = (rules == Rules::Modern).then_some("complete");
        let mut result = json!({ "completion": completion });
        if let (Some(kind), Some(result)) = (result_type, result.as_object_mut()) {
            result.insert("resultType".to_owned(), kind.into());
        }
        self.reply(id, &message::result(id, result));
        Ok(())
    }
}

fn described(tool: &Tool) -> Prompt {
    let schema = tool.input_schema();
    let required = |name: &str| {
        schema.get("required").and_then(Value::as_array).is_some_and(|all| all.iter().any(|one| one == name))
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let arguments = properties.into_iter().flatten().map(|(name, property)| {
        let mut argument = PromptArgument::new(name.clone()).with_required(required(name));
        argument.description = property.get("description").and_then(Value::as_str).map(str::to_owned);
        argument
    });
    let arguments: Vec<PromptArgument> = arguments.collect();
    let mut prompt =
        Prompt::new(tool.prompt_name(), tool.description(), Some(arguments).filter(|arguments| !arguments.is_empty()));
    if let Served::Prompt(Presented { title, .. }) = &tool.function().role {
        prompt.title.clone_from(title);
    }
    prompt.icons = icons(tool);
    prompt
}

/// The line that answers `prompts/get`.
pub(super) fn answer(
    id: &RequestId,
    outcome: &Outcome,
    rules: Rules,
    description: Option<&str>,
    most: usize,
) -> Vec<u8> {
    let made = outcome.ended.as_ref().map_err(Clone::clone).and_then(|raw| {
        let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
        messages(&outcome.call_id, &value).map(|messages| (value, messages)).map_err(|what| {
            let text = format!("the result of {} is no prompt: {what}; {FORMS}", outcome.tool);
            Fault::new(Code::InvalidOutput, text)
        })
    });
    let (value, messages) = match made {
        Ok(made) => made,
        Err(fault) => return message::error(id, &failed(&fault, rules, None)),
    };
    let own = value.get("description").and_then(Value::as_str).filter(|_| value.get("messages").is_some());
    let mut result = json!({ "messages": messages });
    if let Some(result) = result.as_object_mut() {
        result.extend(own.or(description).map(|text| ("description".to_owned(), text.into())));
        result.extend((rules == Rules::Modern).then(|| ("resultType".to_owned(), "complete".into())));
    }
    let line = message::result(id, result);
    if line.len() <= most { line } else { message::error(id, &too_long(&outcome.tool, line.len(), most)) }
}

const FORMS: &str = "return text, an image or another file, or a list of them and of messages, \
    {\"role\": \"user\" or \"assistant\", \"content\": …}";

/// The messages of a prompt's result.
fn messages(call_id: &str, value: &Value) -> Result<Vec<PromptMessage>, String> {
    let mut made = Vec::new();
    match value {
        Value::Object(object) if object.contains_key("messages") => return messages(call_id, &object["messages"]),
        Value::Array(items) => items.iter().try_for_each(|item| add_message(&mut made, call_id, item))?,
        one => add_message(&mut made, call_id, one)?,
    }
    Ok(made)
}

/// One message; several if its content is a list.
fn add_message(made: &mut Vec<PromptMessage>, call_id: &str, value: &Value) -> Result<(), String> {
    let (role, contents) = match (value.get("role"), value.get("content")) {
        (Some(role), Some(Value::Array(items))) => (role_of(role)?, items.iter().collect()),
        (Some(role), Some(content)) => (role_of(role)?, vec![content]),
        _ => (Role::User, vec![value]),
    };
    for content in contents {
        let block = block_of(call_id, content, made.len())?;
        made.push(PromptMessage::new(role.clone(), block));
    }
    Ok(())
}

fn role_of(role: &Value) -> Result<Role, String> {
    match role.as_str() {
        Some("user") => Ok(Role::User),
        Some("assistant") => Ok(Role::Assistant),
        _ => Err(format!("expected the role \"user\" or \"assistant\", got {role}")),
    }
}

/// `place` is that of its message, by which a file without a name is addressed.
fn block_of(call_id: &str, value: &Value, place: usize) -> Result<ContentBlock, String> {
    if let Some(text) = value.as_str() {
        return Ok(ContentBlock::text(text));
    }
    let apart = taken_apart(call_id, &value.to_string(), place).filter(|apart| apart.is_all);
    let block = apart.and_then(|apart| apart.blocks.into_iter().next());
    // As MCP writes a text.
    let text = || value.get("text").and_then(Value::as_str).filter(|_| value["type"] == "text").map(ContentBlock::text);
    block.or_else(text).ok_or_else(|| {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::Array(_) => "a list within a list",
            _ => "an object that is neither a message nor a file",
        };
        format!("expected text, got {kind}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(value: &Value) -> Result<Value, String> {
        messages("c-1", value).map(|messages| json!(messages))
    }

    #[test]
    fn what_a_function_returns_becomes_messages() {
        let text = |role: &str, text: &str| json!({"role": role, "content": {"type": "text", "text": text}});
        let file = json!({"mime_type": "image/png", "base64": "iVBO"});
        let image = json!({"role": "user", "content": {"type": "image", "data": "iVBO", "mimeType": "image/png"}});
        for (value, expected) in [
            (json!("Review this."), json!([text("user", "Review this.")])),
            (json!(["a", {"role": "assistant", "content": "b"}]), json!([text("user", "a"), text("assistant", "b")])),
            (file.clone(), json!([image])),
            (json!({"role": "user", "content": ["see", file]}), json!([text("user", "see"), image])),
            (json!({"description": "d", "messages": ["a"]}), json!([text("user", "a")])),
            (json!({"role": "user", "content": {"type": "text", "text": "t"}}), json!([text("user", "t")])),
            (json!([]), json!([])),
        ] {
            assert_eq!(made(&value), Ok(expected), "{value}");
        }
    }

    #[test]
    fn each_file_has_an_address_of_its_own() {
        let file = json!({"mime_type": "application/pdf", "base64": "JVBERg=="});
        let made = made(&json!([file, "text", {"role": "assistant", "content": [file, file]}])).unwrap();
        let addresses = [0, 2, 3].map(|at: usize| made[at]["content"]["resource"]["uri"].as_str().unwrap().to_owned());
        assert_eq!(addresses, [0, 2, 3].map(|place| format!("hostler://calls/c-1/{place}")));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for value in [
            json!(null),
            json!(7),
            json!({"a": 1}),
            json!([["a"]]),
            json!({"role": "system", "content": "x"}),
            json!({"messages": 7}),
        ] {
            assert!(made(&value).is_err(), "{value}");
        }
    }
}
