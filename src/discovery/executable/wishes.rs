//! What an executable asks for in what `--schema` prints: to be kept as a worker, and secrets. Its tools are one file, so what
//! one of them says holds for all.

use serde_json::{Map, Value};

use crate::config::tool::Protocol;
use crate::discovery::Wishes;

/// What these tools of one file ask for.
pub(super) fn of(tools: &[Map<String, Value>]) -> Result<Wishes, String> {
    let mut wishes = Wishes::default();
    for tool in tools {
        if let Some(value) = tool.get("protocol").filter(|value| !value.is_null()) {
            let protocol = value.as_str().and_then(Protocol::of).ok_or_else(|| {
                format!("`protocol` is {value}, and this hostler speaks \"v1\" and \"bare\"; write one of them, or leave it out")
            })?;
            if wishes.protocol.replace(protocol).is_some_and(|other| other != protocol) {
                return Err("what `--schema` prints names two protocols, and a file speaks one".to_owned());
            }
        }
        if let Some(value) = tool.get("secrets").filter(|value| !value.is_null()) {
            let names: Option<Vec<String>> =
                value.as_array().and_then(|all| all.iter().map(|name| Some(name.as_str()?.to_owned())).collect());
            let wanted = wishes.secrets.get_or_insert_default();
            for name in names.ok_or_else(|| "`secrets` is no list of names".to_owned())? {
                if !wanted.contains(&name) {
                    wanted.push(name);
                }
            }
        }
    }
    Ok(wishes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_one_tool_of_a_file_asks_for_is_asked_for_all() {
        let tools = [json!({"protocol": "v1", "secrets": ["A"]}), json!({"secrets": ["B", "A"]}), json!({})];
        let tools = tools.map(|tool| tool.as_object().cloned().unwrap());
        let found = of(&tools).unwrap();
        assert_eq!(found.protocol, Some(Protocol::V1));
        assert_eq!(found.secrets, Some(vec!["A".to_owned(), "B".to_owned()]));
        assert_eq!(of(&tools[2..]).unwrap(), Wishes::default());
    }
}
