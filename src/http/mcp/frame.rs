//! Messages of MCP as far as a transport reads them: what they are, and whose.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::protocol::TraceContext;

/// Where a notification names the subscription that it belongs to.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A message of either side.
#[derive(Deserialize)]
pub struct Frame<'a> {
    #[serde(borrow, default)]
    pub id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

/// The members of parameters by which messages are carried.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Params<'a> {
    /// The request that is cancelled.
    #[serde(rename = "requestId", borrow)]
    pub request: Option<&'a RawValue>,
    /// The request that makes progress.
    #[serde(rename = "progressToken", borrow)]
    pub token: Option<&'a RawValue>,
    /// What is called, read or got.
    #[serde(borrow)]
    pub name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub uri: Option<Cow<'a, str>>,
    #[serde(rename = "taskId", borrow)]
    pub task: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub arguments: Option<&'a RawValue>,
    #[serde(rename = "_meta", borrow)]
    pub meta: Meta<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Meta<'a> {
    #[serde(rename = "progressToken", borrow)]
    pub token: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/subscriptionId", borrow)]
    pub subscription: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", borrow)]
    pub revision: Option<Cow<'a, str>>,
}

/// The number of an error.
#[derive(Deserialize)]
struct Failure {
    code: i32,
}

impl<'a> Frame<'a> {
    /// The members of its parameters. What cannot be read must not be carried: the other side might read it otherwise.
    pub fn known(&self) -> Result<Params<'a>, String> {
        match self.params.map(RawValue::get) {
            None => Ok(Params::default()),
            Some(params) if params.starts_with('{') => serde_json::from_str(params).map_err(|error| error.to_string()),
            Some(_) => Err("the parameters are no object".to_owned()),
        }
    }

    /// The number of its error.
    pub fn code(&self) -> Option<i32> {
        serde_json::from_str::<Failure>(self.error?.get()).ok().map(|failure| failure.code)
    }

    /// The notification, on a line.
    pub fn line(&self) -> String {
        self.line_with("", self.params.map(RawValue::get))
    }

    /// The request, on a line, with a number for its id and for the token of its progress: clients choose theirs alike. It is in
    /// the span of the HTTP request that carried it, if it names none itself.
    pub fn numbered(&self, number: u64, token: Option<&RawValue>, trace: Option<&TraceContext>) -> String {
        let mut params = self.params.map(|params| spliced(params.get(), token, &number.to_string()));
        if let Some(trace) = trace
            && let Some(traced) = traced(params.as_deref().unwrap_or("{}"), trace)
        {
            params = Some(traced.into());
        }
        self.line_with(&format!(r#""id":{number},"#), params.as_deref())
    }

    fn line_with(&self, id: &str, params: Option<&str>) -> String {
        let method = serde_json::to_string(self.method.as_deref().unwrap_or_default()).unwrap_or_default();
        let params = params.map(|params| format!(r#","params":{}"#, on_one_line(params))).unwrap_or_default();
        format!("{{\"jsonrpc\":\"2.0\",{id}\"method\":{method}{params}}}\n")
    }

    /// The response with another id.
    pub fn response(&self, id: &RawValue) -> String {
        let (id, result) = (id.get(), self.result.or(self.error).map_or("null", RawValue::get));
        let member = if self.error.is_some() { "error" } else { "result" };
        format!(r#"{{"jsonrpc":"2.0","id":{id},"{member}":{result}}}"#)
    }
}

/// A text in which a part of it, which was borrowed from it, is another one.
pub fn spliced<'t>(text: &'t str, part: Option<&RawValue>, instead: &str) -> Cow<'t, str> {
    let place = part.and_then(|part| {
        let start = (part.get().as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
        let end = start + part.get().len();
        Some((text.get(..start)?, text.get(end..)?))
    });
    place.map_or(text.into(), |(before, after)| format!("{before}{instead}{after}").into())
}

/// Parameters with a trace context in their metadata. `None` if they have one.
fn traced(params: &str, trace: &TraceContext) -> Option<String> {
    #[derive(Deserialize)]
    struct OfMeta<'a> {
        #[serde(rename = "_meta", borrow, default)]
        meta: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct OfTrace<'a> {
        #[serde(borrow, default)]
        traceparent: Option<&'a RawValue>,
    }
    let meta = serde_json::from_str::<OfMeta<'_>>(params).ok()?.meta;
    let known = meta.map_or(Ok(OfTrace { traceparent: None }), |meta| serde_json::from_str(meta.get()));
    if known.ok()?.traceparent.is_some() {
        return None;
    }
    let state = trace.tracestate().map(|state| format!(r#","tracestate":{}"#, json!(state)));
    let members = format!(r#""traceparent":"{}"{}"#, trace.traceparent(), state.unwrap_or_default());
    match meta {
        Some(meta) => Some(spliced(params, Some(meta), &with_members(meta.get(), &members)?).into_owned()),
        None => with_members(params, &format!(r#""_meta":{{{members}}}"#)),
    }
}

/// The text of an object with these members before its own.
fn with_members(object: &str, members: &str) -> Option<String> {
    let rest = object.trim_start().strip_prefix('{')?.trim_start();
    let comma = if rest.starts_with('}') { "" } else { "," };
    Some(format!("{{{members}{comma}{rest}"))
}

/// JSON without line ends, which stand between values only.
pub fn on_one_line(json: &str) -> Cow<'_, str> {
    if json.contains(['\n', '\r']) { json.replace(['\n', '\r'], " ").into() } else { json.into() }
}

/// The notification of a subscription, with another id of it.
pub fn of_subscription(line: &str, id: &RawValue) -> Option<String> {
    let mut message: Value = serde_json::from_str(line).ok()?;
    let named = message.pointer_mut("/params/_meta")?.get_mut(SUBSCRIPTION)?;
    *named = serde_json::from_str(id.get()).ok()?;
    Some(message.to_string())
}

/// The cancellation of a request.
pub fn cancellation(number: u64) -> String {
    let reason = "the client closed the stream of the request";
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{number},\"reason\":\"{reason}\"}}}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(text: &str) -> Frame<'_> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_request_gets_another_id_and_keeps_its_parameters() {
        let text =
            "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/call\",\"params\":{\n \"n\": 18446744073709551616}}";
        let line = frame(text).numbered(7, None, None);
        assert_eq!(
            line,
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{  \"n\": 18446744073709551616}}\n"
        );
        assert_eq!(frame(&line).response(frame(text).id.unwrap()), r#"{"jsonrpc":"2.0","id":"a","result":null}"#);
        let refused = frame(r#"{"id":7,"error":{"code":-32601,"message":"no"}}"#);
        assert_eq!(refused.code(), Some(-32601));
        let id = RawValue::from_string("9".to_owned()).unwrap();
        assert_eq!(refused.response(&id), r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32601,"message":"no"}}"#);
    }

    #[test]
    fn the_token_of_progress_is_a_number_too() {
        let text = r#"{"id":1,"method":"x","params":{"a":"\"t\"","_meta":{"k":0,"progressToken":"t"},"b":"t"}}"#;
        let frame = frame(text);
        let line = frame.numbered(42, frame.known().unwrap().meta.token, None);
        assert!(line.contains(r#""params":{"a":"\"t\"","_meta":{"k":0,"progressToken":42},"b":"t"}"#), "{line}");
    }

    #[test]
    fn a_request_without_a_trace_is_in_that_of_its_headers() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let (own, state) = (format!(r#""traceparent":"{parent}""#), r#""tracestate":"a=1""#);
        let with_state = TraceContext::read(parent, Some("a=1")).unwrap();
        let trace = TraceContext::read(parent, None).unwrap();
        let line = |params: &str, trace: &TraceContext| {
            let text = format!(r#"{{"id":1,"method":"x"{params}}}"#);
            frame(&text).numbered(1, None, Some(trace)).split_once(r#""params":"#).unwrap().1.trim_end().to_owned()
        };
        assert_eq!(line("", &trace), format!(r#"{{"_meta":{{{own}}}}}}}"#));
        assert_eq!(line(r#","params":{}"#, &with_state), format!(r#"{{"_meta":{{{own},{state}}}}}}}"#));
        assert_eq!(line(r#","params":{ "a":1}"#, &trace), format!(r#"{{"_meta":{{{own}}},"a":1}}}}"#));
        let meta = |meta: &str| format!(r#","params":{{"a":1,"_meta":{meta},"b":2}}"#);
        assert_eq!(line(&meta("{}"), &trace), format!(r#"{{"a":1,"_meta":{{{own}}},"b":2}}}}"#));
        assert_eq!(line(&meta(r#"{"k":{}}"#), &trace), format!(r#"{{"a":1,"_meta":{{{own},"k":{{}}}},"b":2}}}}"#));
        for whole in [r#"{"traceparent":"other"}"#, r#"{"traceparent":7}"#] {
            assert_eq!(line(&meta(whole), &trace), format!(r#"{{"a":1,"_meta":{whole},"b":2}}}}"#), "its own wins");
        }
    }

    #[test]
    fn a_subscription_is_named_as_its_client_knows_it() {
        let line = r#"{"jsonrpc":"2.0","method":"x","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":3}}}"#;
        assert_eq!(frame(line).known().unwrap().meta.subscription.unwrap().get(), "3");
        let id = RawValue::from_string("\"mine\"".to_owned()).unwrap();
        assert_eq!(of_subscription(line, &id).unwrap(), line.replace(":3}", ":\"mine\"}"));
        assert_eq!(of_subscription(r#"{"method":"x","params":{}}"#, &id), None);
    }
}
