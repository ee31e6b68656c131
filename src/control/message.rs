//! Messages of the control face, as its own clients write and read them: JSON-RPC 2.0, a message a line.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::protocol::ProgressNote;
use crate::registry::Filter;

/// The list of tools: [`ListParams`], answered by a [`crate::registry::Listing`].
pub const LIST: &str = "tools.list";
/// A tool: [`ToolParams`], answered by the tool with its schemas and its policy.
pub const SHOW: &str = "tools.show";
/// A call to its end: [`RunParams`], answered by an [`crate::Outcome`].
pub const RUN: &str = "calls.run";
/// What happens during that call: [`Event`].
pub const EVENT: &str = "calls.event";
/// A question to the person behind the client: [`Question`], answered by an [`crate::call::Elicited`].
pub const ELICIT: &str = "client.elicit";

/// Parameters of [`LIST`].
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListParams {
    /// What to list; everything by default.
    #[serde(default)]
    pub filter: Filter,
}

/// A tool, by either of its names.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolParams {
    /// The tool's name.
    pub tool: String,
}

/// Parameters of [`RUN`].
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunParams {
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// Whether there is a person who answers [`ELICIT`].
    #[serde(default)]
    pub can_ask: bool,
    /// For a day, all calls with this key are one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Parameters of [`EVENT`], as a [`crate::pool::Listener`] receives them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A preparation.
    Note {
        /// For people.
        text: String,
    },
    /// It is over.
    GoesOn,
    /// Progress of the tool.
    Progress(ProgressNote),
    /// Output of the tool.
    Output {
        /// `stdout` or `stderr`.
        stream: String,
        /// The text.
        text: String,
    },
}

/// Parameters of [`ELICIT`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Question {
    /// The id of the call that asks.
    #[serde(default)]
    pub call: String,
    /// The tool that was called.
    pub tool: String,
    /// What the person reads.
    pub message: String,
    /// The form, as a JSON Schema.
    pub schema: Value,
}

/// A request or a notification.
#[derive(Debug, Serialize)]
pub struct Message<'a, P> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    params: P,
}

/// A line of either side. What is missing depends on what it is.
#[derive(Debug, Deserialize)]
pub struct Line<'a> {
    /// The id of a request or a response.
    pub id: Option<u64>,
    /// The method of a request or a notification.
    pub method: Option<String>,
    /// Its parameters.
    #[serde(borrow)]
    pub params: Option<&'a RawValue>,
    /// The result of a response.
    #[serde(borrow)]
    pub result: Option<&'a RawValue>,
    /// The error of a response.
    pub error: Option<Refusal>,
}

/// The error of a response.
#[derive(Debug, Serialize, Deserialize)]
pub struct Refusal {
    /// As in JSON-RPC.
    pub code: i32,
    /// For people.
    pub message: String,
    /// For programs: `code`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// A request as a line.
pub fn request(id: u64, method: &str, params: impl Serialize) -> Vec<u8> {
    line(&Message { jsonrpc: "2.0", id: Some(id), method, params })
}

/// A notification as a line.
pub fn notification(method: &str, params: impl Serialize) -> Vec<u8> {
    line(&Message { jsonrpc: "2.0", id: None, method, params })
}

/// A response as a line.
pub fn response(id: impl Serialize, result: Result<&impl Serialize, &Refusal>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Response<'a, I, R> {
        jsonrpc: &'static str,
        id: I,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a R>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a Refusal>,
    }
    line(&Response { jsonrpc: "2.0", id, result: result.ok(), error: result.err() })
}

fn line(message: &impl Serialize) -> Vec<u8> {
    // Maps with string keys and numbers cannot fail.
    let mut bytes = serde_json::to_vec(message).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_line_is_read_back() {
        let asked = request(1, SHOW, ToolParams { tool: "a".to_owned() });
        let read: Line<'_> = serde_json::from_slice(&asked).unwrap();
        assert_eq!(read.method.as_deref(), Some(SHOW));
        let refused =
            response(1, Err::<&ToolParams, _>(&Refusal { code: -32000, message: "no".to_owned(), data: None }));
        let read: Line<'_> = serde_json::from_slice(&refused).unwrap();
        assert_eq!(read.error.unwrap().message, "no");
    }
}
