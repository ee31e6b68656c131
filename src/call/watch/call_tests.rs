//! What is seen of calls: events, lists, metrics.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{AllMetrics, CallFilter, CallState, EventFilter, EventKind, Subscription, Watch};
use crate::builtin::{About, Builtin, Builtins, Call};
use crate::call::tests::service_with;
use crate::call::{CallContext, CallRequest, CallService, Caller, Layer, LayerFuture, Next, Session};
use crate::outcome::{Cancelled, Canceller, Code, Fault, Metadata, Outcome};
use crate::pool::Settled;
use crate::protocol::ProgressNote;
use crate::secrets::KnownSecret;

/// Prints, reports progress, and then answers, fails or waits.
struct Speak;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct SpeakParams {
    text: String,
    then: Option<String>,
}

impl Builtin for Speak {
    type Params = SpeakParams;
    type Answer = String;

    fn about(&self) -> About {
        About::new("speak", "Speak.")
    }

    async fn call(&self, params: SpeakParams, call: Call) -> Result<String, Fault> {
        call.listener.output("stdout", &params.text);
        call.listener.progress(&ProgressNote { id: None, progress: 1.0, total: Some(2.0), message: None });
        match params.then.as_deref() {
            Some("fail") => Err(Fault::new(Code::ToolError, format!("it failed: {}", params.text))),
            Some("echo") => Ok(params.text),
            Some(_) => std::future::pending().await,
            None => Ok(params.text.len().to_string()),
        }
    }
}

/// Forbids calls with the tag `forbidden`, and those with the tag `often`.
struct Forbids;

impl Layer for Forbids {
    fn call<'a>(&'a self, call: &'a CallContext, next: Next<'a>) -> LayerFuture<'a> {
        let code = match call.caller().tags.first().map(String::as_str) {
            Some("forbidden") => Code::PermissionDenied,
            Some("often") => Code::RateLimited,
            _ => return next.run(),
        };
        let ended = Err(Fault::new(code, "it is forbidden"));
        Box::pin(async { Settled { ended, metadata: Metadata::default() } })
    }
}

/// Lets calls with the tag `secret` know one, as the executor of a tool that declares secrets does.
struct Knows;

impl Layer for Knows {
    fn call<'a>(&'a self, call: &'a CallContext, next: Next<'a>) -> LayerFuture<'a> {
        if call.caller().tags.iter().any(|tag| tag == "secret") {
            call.running.live.add(&[KnownSecret::new("KEY", "hunter2-hunter2")]);
        }
        next.run()
    }
}

struct Place {
    service: Arc<CallService>,
    session: Session,
    _folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let (folder, mut tools) = (tempfile::tempdir().unwrap(), Builtins::default());
        tools.register(Speak).unwrap();
        let service = service_with(folder.path(), "", tools, vec![Arc::new(Forbids), Arc::new(Knows)]);
        Self { session: Session::open(Arc::clone(&service)), service, _folder: folder }
    }

    fn watch(&self) -> &Arc<Watch> {
        &self.service.watch
    }

    fn request(arguments: &Value, tags: &[&str]) -> CallRequest {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        let caller = Caller { client: Some("test 1".to_owned()), tags, ..Caller::default() };
        let arguments: Map<String, Value> = arguments.as_object().unwrap().clone();
        CallRequest { caller: Arc::new(caller), ..CallRequest::new("speak", arguments) }
    }

    async fn call(&self, arguments: Value, tags: &[&str]) -> Arc<Outcome> {
        self.session.call(Self::request(&arguments, tags)).await
    }
}

fn events(subscription: &Subscription) -> Vec<Value> {
    let batch = subscription.take().unwrap_or_default();
    batch.events.iter().map(|event| serde_json::from_str(event.get()).unwrap()).collect()
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_call_is_heard_from_its_start_to_its_end() {
    let place = Place::new();
    let heard = place.watch().subscribe(EventFilter { tag: Some("t".to_owned()), ..EventFilter::default() });
    let results = place.watch().subscribe(EventFilter {
        kinds: Some(vec![EventKind::ToolResult, EventKind::ToolCallCompleted]),
        ..EventFilter::default()
    });
    let text = "ä".repeat(20_000);
    let outcome = place.call(json!({"text": text}), &["other", "t"]).await;
    place.call(json!({"text": "unheard"}), &["other"]).await;
    let heard = events(&heard);
    assert_eq!(
        names(&heard),
        ["tool_call_started", "tool_output", "tool_output", "tool_progress", "tool_call_completed"]
    );
    for event in &heard {
        let Value::Object(event) = event else { panic!("{event}") };
        assert_eq!(event["call_id"], outcome.call_id);
        assert_eq!(event["tool_name"], "speak");
        assert_eq!(event["session"], place.session.id().0);
        assert_eq!(event["tags"], json!(["other", "t"]));
        assert_eq!((&event["trace_id"], &event["span_id"]), (&json!(outcome.call_id), &json!(outcome.call_id[..16])));
        assert!(event["time_ms"].as_u64().unwrap() > 1_700_000_000_000);
    }
    assert!(heard[0]["arguments"].as_str().unwrap().starts_with("{\"text\":\"ä"), "long arguments are cut");
    let said: String = heard[1..3].iter().map(|event| event["text"].as_str().unwrap()).collect();
    assert_eq!((said, &heard[1]["chunk"], &heard[2]["chunk"]), (text, &json!(0), &json!(1)));
    assert_eq!((&heard[3]["progress"], &heard[3]["total"]), (&json!(1.0), &json!(2.0)));
    assert_eq!((&heard[4]["success"], heard[4]["latency_ms"].is_f64()), (&json!(true), true));
    let results = events(&results);
    assert_eq!(names(&results), ["tool_call_completed", "tool_result", "tool_call_completed", "tool_result"]);
    assert_eq!((&results[1]["result"], &results[3]["result"]), (&json!("40000"), &json!("7")));
}

#[tokio::test]
async fn a_call_without_a_result_is_heard_as_failed_or_as_blocked() {
    let place = Place::new();
    let heard = place.watch().subscribe(EventFilter::default());
    place.call(json!({"text": "x", "then": "fail"}), &[]).await;
    place.call(json!({"text": "x"}), &["forbidden"]).await;
    place.call(json!({"text": "x"}), &["often"]).await;
    place.call(json!({"text": 1}), &[]).await;
    place.session.call(CallRequest::new("no.such", Map::new())).await;
    let heard = events(&heard);
    let started = ["tool_call_started", "tool_output", "tool_progress"];
    let ends = ["tool_call_failed", "tool_call_blocked", "tool_call_blocked", "tool_call_failed", "tool_call_failed"];
    assert_eq!(names(&heard), [&started[..], &ends[..]].concat());
    let codes: Vec<&Value> = heard[3..].iter().map(|event| &event["error"]["code"]).collect();
    assert_eq!(codes, ["TOOL_ERROR", "PERMISSION_DENIED", "RATE_LIMITED", "INVALID_PARAMS", "TOOL_NOT_FOUND"]);
    assert_eq!(heard[0]["arguments"], json!({"text": "x", "then": "fail"}));
    let calls = |state| place.watch().calls(&CallFilter { states: Some(vec![state]), ..CallFilter::default() });
    let denied: Vec<Code> = calls(CallState::Denied).iter().map(|call| call.error.as_ref().unwrap().code).collect();
    assert_eq!(denied, [Code::RateLimited, Code::PermissionDenied]);
    let calls = calls(CallState::Error);
    let tools: Vec<(&str, Option<&str>)> =
        calls.iter().map(|call| (call.tool.as_str(), call.arguments.as_deref())).collect();
    let failed = Some(r#"{"text":"x","then":"fail"}"#);
    // Those of the other calls never went to a tool.
    assert_eq!(tools, [("no.such", None), ("speak", None), ("speak", failed)]);
}

#[tokio::test]
async fn running_and_ended_calls_are_listed_waited_for_and_cancelled() {
    let place = Place::new();
    let watch = place.watch();
    place.call(json!({"text": "first"}), &["t"]).await;
    let heard = watch.subscribe(EventFilter::default());
    let handle = place.session.start(Place::request(&json!({"text": "x", "then": "wait"}), &["t"]));
    let of_tag = CallFilter { tag: Some("t".to_owned()), ..CallFilter::default() };
    assert_eq!(watch.call(handle.id()).unwrap().state, CallState::Queued);
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(watch.call(handle.id()).unwrap().state, CallState::Running);
    let metrics = watch.metrics().await;
    assert_eq!((metrics[0].active, metrics[0].queued), (1, 0));
    let states = |watch: &Watch| watch.calls(&of_tag).iter().map(|call| call.state).collect::<Vec<_>>();
    assert_eq!(states(watch), [CallState::Running, CallState::Complete]);
    assert_eq!(watch.calls(&CallFilter { limit: Some(1), ..CallFilter::default() }).len(), 1);
    let (observer, id) = (watch.handle(handle.id()).unwrap(), handle.id().to_owned());
    // An observer does not keep others from cancelling.
    let outcome = tokio::spawn(async move { observer.outcome().await });
    assert!(watch.cancel(&id, Cancelled::because(Canceller::Caller, "enough")));
    assert_eq!(outcome.await.unwrap().ended.as_ref().unwrap_err().code, Code::Cancelled);
    assert_eq!(states(watch), [CallState::Cancelled, CallState::Complete]);
    assert!(watch.handle(&id).is_none() && !watch.cancel(&id, Cancelled::by(Canceller::Caller)));
    let ended = watch.call(&id).unwrap();
    assert_eq!((ended.client.as_deref(), ended.error.unwrap().code), (Some("test 1"), Code::Cancelled));
    assert_eq!(names(&events(&heard)).last(), Some(&"tool_call_failed"));
}

#[tokio::test]
async fn an_observer_does_not_keep_a_call_that_its_caller_cancels() {
    let place = Place::new();
    let handle = place.session.start(Place::request(&json!({"text": "x", "then": "wait"}), &[]));
    let observer = place.watch().handle(handle.id()).unwrap();
    observer.cancel(Cancelled::by(Canceller::Other));
    tokio::task::yield_now().await;
    assert!(place.watch().handle(handle.id()).is_some(), "it has nothing to cancel");
    handle.cancel(Cancelled::by(Canceller::Client));
    let ended = tokio::time::timeout(Duration::from_secs(10), observer.outcome()).await.unwrap();
    assert_eq!(ended.metadata.cancelled, Some(Cancelled::by(Canceller::Client)));
}

#[tokio::test]
async fn no_secret_of_a_call_is_in_what_is_seen_of_it() {
    let place = Place::new();
    let kinds = [EventKind::ToolResult, EventKind::ToolCallStarted, EventKind::ToolCallFailed, EventKind::ToolOutput];
    let heard = place.watch().subscribe(EventFilter { kinds: Some(kinds.into()), ..EventFilter::default() });
    for then in ["echo", "fail"] {
        place.call(json!({"text": "my hunter2-hunter2", "then": then}), &["secret"]).await;
    }
    let heard = events(&heard);
    assert_eq!(heard.len(), 6);
    let seen = json!([heard, place.watch().calls(&CallFilter::default())]).to_string();
    assert_eq!((seen.matches("hunter").count(), seen.matches("my [secret KEY]").count()), (0, 8), "{seen}");
}

#[tokio::test]
async fn sessions_are_heard_to_begin_and_to_end() {
    let place = Place::new();
    let heard = place.watch().subscribe(EventFilter::default());
    let other = Session::open(Arc::clone(&place.service));
    let number = other.id().0;
    drop(other);
    let heard = events(&heard);
    assert_eq!(names(&heard), ["session_begun", "session_ended"]);
    assert!(heard.iter().all(|event| event["session"] == number), "{heard:?}");
}

#[tokio::test]
async fn what_is_kept_of_ended_calls_is_bounded() {
    let place = Place::new();
    let (large, tag) = ("x".repeat(100_000), "t".repeat(100_000));
    for _ in 0..10 {
        place.call(json!({"text": large, "then": "fail"}), &[&tag, &tag]).await;
    }
    let kept = serde_json::to_string(&place.watch().calls(&CallFilter::default())).unwrap();
    assert!(kept.len() < 10 * 5_000, "{}", kept.len());
    for _ in 0..1000 {
        place.session.call(CallRequest::new(large.clone(), Map::new())).await;
    }
    let kept = place.watch().calls(&CallFilter::default());
    assert_eq!((kept.len(), kept.iter().all(|call| call.tool.len() == 200)), (1000, true));
}

#[tokio::test]
async fn every_tool_is_counted_also_the_never_called() {
    let place = Place::new();
    let watch = place.watch();
    let none = watch.all_metrics().await;
    assert_eq!(none.tools.iter().map(|tool| (tool.tool.as_str(), tool.executions)).collect::<Vec<_>>(), [("speak", 0)]);
    for then in [Value::Null, Value::Null, json!("fail")] {
        place.call(json!({"text": "x", "then": then}), &[]).await;
    }
    place.call(json!({"text": 1}), &[]).await;
    place.session.call(CallRequest::new("no\"such\\\n", Map::new())).await;
    let all = watch.all_metrics().await;
    let AllMetrics { total_executions, successful_executions, failed_executions, average_execution_time, .. } = all;
    assert_eq!((total_executions, successful_executions, failed_executions), (5, 2, 3));
    assert!(average_execution_time > 0.0);
    let value = serde_json::to_value(&all).unwrap();
    assert_eq!(
        (&value["totalExecutions"], &value["activeTools"], &value["queuedTools"]),
        (&json!(5), &json!(0), &json!(0))
    );
    let speak = all.tools.iter().find(|tool| tool.tool == "speak").unwrap();
    assert_eq!(json!(speak.failures), json!({"TOOL_ERROR": 1, "INVALID_PARAMS": 1}));
    assert_eq!(speak.times.count, 3, "what never began has no time");
    let read: AllMetrics = serde_json::from_value(value).unwrap();
    assert_eq!(read.tools.len(), all.tools.len());
}
