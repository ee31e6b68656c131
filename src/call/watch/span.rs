//! An ended call as a span, named and described as OpenTelemetry's conventions for tools and MCP say. Nothing in it is an argument
//! or a part of a result.

use std::borrow::Cow;
use std::time::Duration;

use super::event::CallError;
use super::watched::MAX_NAME;
use crate::call::handle::RunningCall;
use crate::outcome::{Code, Details, Fault, Metadata, Outcome};
use crate::protocol::TraceContext;
use crate::telemetry::{Span, Value, unix_time};

impl RunningCall {
    /// Queues its span, if its trace is recorded.
    pub(super) fn export(&self, tool: &str, outcome: &Outcome, error: Option<&CallError>) {
        let (Some(spans), Some(own)) = (&self.watched.spans, &self.trace) else { return };
        if !own.is_sampled() {
            return;
        }
        let ended = nanoseconds(unix_time());
        // The name of an unknown tool is the client's.
        let tool = self.watched.meter().map(|_| tool);
        let target = tool.map(|tool| format!(" {tool}")).unwrap_or_default();
        let status = error.zip(outcome.ended.as_ref().err()).map(|(error, fault)| self.status(error, fault));
        let outer = self.caller.trace.as_ref();
        spans.add(&Span {
            trace: own.trace_id(),
            id: own.span_id(),
            parent: outer.map(TraceContext::span_id),
            state: own.tracestate(),
            name: &format!("{}{target}", self.method.unwrap_or("execute_tool")),
            is_server: self.is_served,
            began: ended.saturating_sub(nanoseconds(outcome.latency)),
            ended,
            attributes: &self.attributes(tool, outcome, error),
            error: status.as_deref(),
        });
    }

    /// What the span says of a fault: the message, unless hostler worded it, which repeats what was sent. Then the code and the
    /// place.
    fn status<'e>(&self, error: &'e CallError, fault: &Fault) -> Cow<'e, str> {
        let Details { places, exception, .. } = &*fault.details;
        let repeats = matches!(error.code, Code::InvalidParams | Code::InvalidOutput | Code::PermissionDenied)
            || !self.watched.has_own_words()
            // A tool that another one called has failed.
            || exception.as_ref().is_some_and(|exception| exception == "hostler.ToolError");
        if !repeats {
            return Cow::Borrowed(&error.message);
        }
        let places: Vec<&str> = places.iter().map(String::as_str).filter(|place| !place.is_empty()).collect();
        let code = error.code.word();
        if places.is_empty() { Cow::Borrowed(code) } else { format!("{code}: {}", places.join(", ")).into() }
    }

    fn attributes<'a>(
        &'a self,
        tool: Option<&'a str>,
        outcome: &Outcome,
        error: Option<&'a CallError>,
    ) -> Vec<(&'static str, Value<'a>)> {
        let text = Value::String;
        let mut attributes = Vec::with_capacity(14);
        if let Some(method) = self.method {
            attributes.push(("mcp.method.name", text(method)));
        }
        if self.method.is_none_or(|method| method == "tools/call") {
            attributes.push(("gen_ai.operation.name", text("execute_tool")));
            attributes.extend(tool.map(|tool| ("gen_ai.tool.name", text(tool))));
            attributes.push(("gen_ai.tool.call.id", text(&self.id)));
        }
        if let Some(error) = error {
            attributes.push(("error.type", text(error.code.word())));
        }
        attributes.push(("hostler.session", Value::Int(self.watched.session().cast_signed())));
        if let Some(client) = &self.caller.client {
            attributes.push(("hostler.client", text(&client[..client.floor_char_boundary(MAX_NAME)])));
        }
        let Metadata { cold, queue_ms, start_ms, run_ms, worker, attempt, stale, .. } = &outcome.metadata;
        attributes.push(("hostler.cold_start", Value::Bool(*cold)));
        attributes.push(("hostler.queue_ms", Value::Double(*queue_ms)));
        attributes.push(("hostler.run_ms", Value::Double(*run_ms)));
        if *cold {
            attributes.push(("hostler.start_ms", Value::Double(*start_ms)));
        }
        if let Some(worker) = worker {
            attributes.push(("hostler.worker.pid", Value::Int((*worker).into())));
        }
        if *attempt > 1 {
            attributes.push(("hostler.attempt", Value::Int((*attempt).into())));
        }
        if stale.is_some() {
            attributes.push(("hostler.stale", Value::Bool(true)));
        }
        attributes
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
