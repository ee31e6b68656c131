//! hostler as a library: tools in Rust beside those in folders, through the same pipeline.
#![expect(clippy::unwrap_used, reason = "it is a test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use hostler::builtin::{About, Builtin, Call};
use hostler::{
    CallContext, CallEvent, CallRequest, Cancelled, Canceller, Code, Fault, Hostler, Layer, LayerFuture, Metadata,
    Next, Outcome, Settled,
};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, Semaphore};

/// Until what must happen counts as never happening; no test waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the tools of a test tell it, and are told.
struct Shared {
    began: Semaphore,
    go_on: Notify,
    running: AtomicUsize,
    most: AtomicUsize,
    stopped: AtomicBool,
    heard: Notify,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            began: Semaphore::new(0),
            go_on: Notify::new(),
            running: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            heard: Notify::new(),
        }
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Wish {
    /// How often.
    times: usize,
}

struct Ring;

impl Builtin for Ring {
    type Params = Wish;
    type Answer = String;

    fn about(&self) -> About {
        About::new("ring", "Ring the bell.\n\nAs often as wished.")
    }

    async fn call(&self, wish: Wish, _: Call) -> Result<String, Fault> {
        Ok("ding".repeat(wish.times))
    }
}

struct Panics;

impl Builtin for Panics {
    type Params = Map<String, Value>;
    type Answer = Value;

    fn about(&self) -> About {
        About::new("panics", "Break.")
    }

    async fn call(&self, wish: Self::Params, call: Call) -> Result<Value, Fault> {
        if wish.contains_key("thread") {
            return call.blocking(|_| panic!("on a thread")).await;
        }
        panic!("as it must")
    }
}

/// Waits until it is told to go on.
struct Waits(Arc<Shared>);

impl Builtin for Waits {
    type Params = Map<String, Value>;
    type Answer = usize;

    fn about(&self) -> About {
        About::new("waits", "Wait.")
    }

    async fn call(&self, _: Self::Params, _: Call) -> Result<usize, Fault> {
        let now = self.0.running.fetch_add(1, SeqCst) + 1;
        self.0.most.fetch_max(now, SeqCst);
        let go_on = self.0.go_on.notified();
        self.0.began.add_permits(1);
        go_on.await;
        self.0.running.fetch_sub(1, SeqCst);
        Ok(now)
    }
}

/// Goes round on a thread until nobody waits for it.
struct GoesRound(Arc<Shared>);

impl Builtin for GoesRound {
    type Params = Map<String, Value>;
    type Answer = Value;

    fn about(&self) -> About {
        About::new("goes_round", "Go round.").timeout(Duration::from_millis(50))
    }

    async fn call(&self, _: Self::Params, call: Call) -> Result<Value, Fault> {
        let shared = Arc::clone(&self.0);
        call.blocking(move |stop| {
            shared.began.add_permits(1);
            let begun = std::time::Instant::now();
            while !stop.is_set() {
                std::thread::yield_now();
                if begun.elapsed() > 2 * PATIENCE {
                    return Ok(Value::Null);
                }
            }
            shared.stopped.store(true, SeqCst);
            shared.heard.notify_one();
            Ok(Value::Null)
        })
        .await
    }
}

/// Calls whatever it is told to. Has a name, so that there can be two.
struct Asks(&'static str);

impl Builtin for Asks {
    type Params = Map<String, Value>;
    type Answer = Value;

    fn about(&self) -> About {
        About::new(self.0, "Ask another tool.")
    }

    async fn call(&self, wish: Self::Params, call: Call) -> Result<Value, Fault> {
        call.tool(wish["tool"].as_str().unwrap_or_default(), wish["arguments"].clone()).await
    }
}

fn open(settings: &str) -> (Hostler, Arc<Shared>) {
    open_with(settings, Vec::new())
}

fn open_with(settings: &str, layers: Vec<Arc<dyn Layer>>) -> (Hostler, Arc<Shared>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hostler.toml");
    std::fs::write(&file, settings).unwrap();
    let shared = Arc::new(Shared::default());
    let builder = Hostler::builder().config(file).tools("/nowhere").directory("/");
    let builder = builder.builtin(Ring).builtin(Panics).builtin(Asks("asks")).builtin(Asks("passes_on"));
    let builder = builder.builtin(Waits(Arc::clone(&shared))).builtin(GoesRound(Arc::clone(&shared)));
    let builder = layers.into_iter().fold(builder, hostler::HostlerBuilder::layer);
    (builder.open().unwrap(), shared)
}

async fn call(app: &Hostler, tool: &str, arguments: Value) -> Outcome {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    Arc::unwrap_or_clone(app.call(CallRequest::new(tool, arguments)).await)
}

/// What never comes fails, and does not hang.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.unwrap()
}

/// Waits until so many calls have ended.
async fn ended(app: &Hostler, count: u64) {
    while app.counts().ended < count {
        tokio::task::yield_now().await;
    }
}

fn value(outcome: Outcome) -> Value {
    serde_json::from_str(outcome.ended.unwrap().get()).unwrap()
}

#[tokio::test]
async fn a_tool_in_rust_is_called_like_any_other() {
    let (app, _) = open("");
    let ring = app.tools().into_iter().find(|tool| tool.name == "ring").unwrap();
    assert_eq!(ring.description.as_deref(), Some("Ring the bell.\n\nAs often as wished."));
    let expected = json!({"type": "integer", "minimum": 0, "description": "How often."});
    assert_eq!(ring.input_schema["properties"]["times"], expected);
    assert_eq!(value(call(&app, "ring", json!({"times": 2})).await), "dingding");
    let wrong = call(&app, "ring", json!({"time": 2})).await.ended.unwrap_err();
    assert_eq!(wrong.code, Code::InvalidParams);
    assert!(wrong.message.contains("unknown argument `time`, did you mean `times`?"), "{wrong}");
    let near = call(&app, "rings", json!({})).await.ended.unwrap_err();
    assert!(near.code == Code::ToolNotFound && near.message.contains("did you mean ring?"), "{near}");
}

#[tokio::test]
async fn one_that_panics_ends_nobody_else() {
    let (app, shared) = open("");
    let app = Arc::new(app);
    let waiting = tokio::spawn({
        let app = Arc::clone(&app);
        async move { call(&app, "waits", json!({})).await }
    });
    shared.began.acquire().await.unwrap().forget();
    for arguments in [json!({}), json!({"thread": true})] {
        let fault = call(&app, "panics", arguments).await.ended.unwrap_err();
        assert_eq!(fault.code, Code::SystemError);
        assert!(fault.message.contains("panics failed inside hostler") && fault.message.contains("report"), "{fault}");
    }
    assert_eq!(value(call(&app, "ring", json!({"times": 1})).await), "ding");
    shared.go_on.notify_waiters();
    assert_eq!(value(waiting.await.unwrap()), 1);
}

#[tokio::test]
async fn work_on_a_thread_hears_that_its_time_is_over() {
    let (app, shared) = open("");
    let fault = call(&app, "goes_round", json!({})).await.ended.unwrap_err();
    assert_eq!(fault.code, Code::ToolTimeout);
    assert!(
        fault.message.contains("did not end within 50ms")
            && fault.message.contains("`timeout` under [tool.goes_round]"),
        "{fault}"
    );
    tokio::time::timeout(PATIENCE, shared.heard.notified()).await.expect("it hears of it");
    assert!(shared.stopped.load(SeqCst));
}

#[tokio::test]
async fn work_on_a_thread_hears_that_nobody_waits() {
    let (app, shared) = open("[tool.goes_round]\ntimeout = \"1h\"\n");
    let app = Arc::new(app);
    let task = tokio::spawn({
        let app = Arc::clone(&app);
        async move { call(&app, "goes_round", json!({})).await }
    });
    shared.began.acquire().await.unwrap().forget();
    task.abort();
    let _ = task.await;
    tokio::time::timeout(PATIENCE, shared.heard.notified()).await.expect("it hears of it");
    assert!(shared.stopped.load(SeqCst));
}

#[tokio::test]
async fn no_more_run_at_once_than_may() {
    let (app, shared) = open("[limits]\nmax_concurrent_calls = 2\nmax_queue = 3\n");
    let app = Arc::new(app);
    let calls: Vec<_> = (0..5)
        .map(|_| {
            let app = Arc::clone(&app);
            tokio::spawn(async move { call(&app, "waits", json!({})).await })
        })
        .collect();
    soon(shared.began.acquire_many(2)).await.unwrap().forget();
    let refused = soon(call(&app, "ring", json!({"times": 1}))).await.ended.unwrap_err();
    assert_eq!(refused.code, Code::Busy, "five are all that may run and wait: {refused}");
    soon(async {
        while calls.iter().any(|call| !call.is_finished()) {
            shared.go_on.notify_waiters();
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(shared.most.load(SeqCst), 2);
    for call in calls {
        let now = value(call.await.unwrap());
        assert!(now == 1 || now == 2, "those that waited ran: {now}");
    }
}

#[tokio::test]
async fn tools_call_others_and_never_themselves_without_end() {
    // The one that calls has the only turn: what it calls needs none.
    let (app, _) = open("[limits]\nmax_concurrent_calls = 1\n");
    let asked = json!({"tool": "ring", "arguments": {"times": 3}});
    assert_eq!(value(soon(call(&app, "asks", asked.clone())).await), "dingdingding");
    let own = json!({"tool": "asks", "arguments": asked});
    let through_another = json!({"tool": "passes_on", "arguments": own});
    for (round, way) in [(own, "asks → asks"), (through_another, "asks → passes_on → asks")] {
        let fault = soon(call(&app, "asks", round)).await.ended.unwrap_err();
        let told = format!("a cycle of calls: {way}");
        assert!(fault.code == Code::ToolError && fault.message.contains(&told), "{fault}");
    }
    let wrong = json!({"tool": "ring", "arguments": {"times": "x"}});
    let fault = call(&app, "asks", wrong).await.ended.unwrap_err();
    assert!(fault.message.contains("`times`: expected integer"), "{fault}");
}

fn request(tool: &str) -> CallRequest {
    CallRequest::new(tool, Map::new())
}

#[tokio::test]
async fn a_cancelled_call_ends_with_an_outcome_that_says_by_whom() {
    let (app, shared) = open("");
    let handle = app.start(request("waits"));
    let mut events = handle.events();
    shared.began.acquire().await.unwrap().forget();
    assert_eq!(handle.effects(), Some(hostler::Effects::Once));
    handle.cancel(Cancelled::because(Canceller::Client, "no longer needed"));
    let outcome = soon(handle.outcome()).await;
    assert_eq!(outcome.ended.as_ref().unwrap_err().code, Code::Cancelled);
    assert_eq!(outcome.metadata.cancelled, Some(Cancelled::because(Canceller::Client, "no longer needed")));
    assert_eq!(outcome.call_id, handle.id());
    assert!(matches!(soon(events.recv()).await, Some(CallEvent::Ended(ended)) if ended.call_id == handle.id()));
    let late = soon(handle.events().recv()).await;
    assert!(matches!(late, Some(CallEvent::Ended(_))), "who listens late hears the outcome: {late:?}");
    let counts = app.counts();
    assert_eq!((counts.ended, counts.cancelled, counts.failed), (1, 1, 0));
}

#[tokio::test]
async fn a_dropped_handle_detaches_and_a_dropped_call_cancels() {
    let (app, shared) = open("");
    drop(app.start(request("waits")));
    shared.began.acquire().await.unwrap().forget();
    shared.go_on.notify_waiters();
    soon(ended(&app, 1)).await;
    assert_eq!((app.counts().ended, app.counts().cancelled), (1, 0), "it went on to its end");
    let call = app.call(request("waits"));
    tokio::select! {
        _ = call => panic!("it waits"),
        permit = shared.began.acquire() => permit.unwrap().forget(),
    }
    soon(ended(&app, 2)).await;
    assert_eq!((app.counts().ended, app.counts().cancelled), (2, 1));
}

#[tokio::test]
async fn a_joined_call_runs_once_and_ends_with_its_last_listener() {
    let (app, shared) = open("");
    let keyed = |tool: &str, key: &str| {
        let mut request = request(tool);
        request.key = Some(key.to_owned());
        app.start(request)
    };
    let (one, two, other) = (keyed("waits", "k"), keyed("waits", "k"), keyed("waits", "another"));
    assert_eq!(one.id(), two.id());
    assert_ne!(one.id(), other.id());
    soon(shared.began.acquire_many(2)).await.unwrap().forget();
    one.cancel(Cancelled::by(Canceller::Caller));
    one.cancel(Cancelled::by(Canceller::Caller));
    other.cancel(Cancelled::by(Canceller::Caller));
    soon(other.outcome()).await;
    assert_eq!(app.counts().ended, 1, "the joined call still has a listener");
    two.cancel(Cancelled::by(Canceller::Caller));
    assert_eq!(soon(one.outcome()).await.call_id, soon(two.outcome()).await.call_id);
    let again = keyed("waits", "k");
    assert_ne!(again.id(), one.id(), "a key is free again once its call has ended");
    soon(shared.began.acquire()).await.unwrap().forget();
    shared.go_on.notify_waiters();
    assert!(soon(again.outcome()).await.ended.is_ok());
}

#[tokio::test]
async fn the_end_of_a_session_ends_its_calls_and_no_others() {
    let (app, shared) = open("");
    let (one, two) = (app.session(), app.session());
    let (gone, stays) = (one.start(request("waits")), two.start(request("waits")));
    soon(shared.began.acquire_many(2)).await.unwrap().forget();
    drop(one);
    let outcome = soon(gone.outcome()).await;
    assert_eq!(outcome.metadata.cancelled, Some(Cancelled::by(Canceller::SessionEnd)));
    assert_eq!(two.running(), 1);
    shared.go_on.notify_waiters();
    assert!(soon(stays.outcome()).await.ended.is_ok());
}

/// Refuses one tool and counts what it sees.
#[derive(Default)]
struct Refuses {
    tries: AtomicUsize,
    recorded: AtomicUsize,
}

impl Layer for Refuses {
    fn call<'a>(&'a self, call: &'a CallContext, next: Next<'a>) -> LayerFuture<'a> {
        self.tries.fetch_add(1, SeqCst);
        if call.tool_name() != "ring" || next.arguments().get() != "{\"times\":13}" {
            return next.run();
        }
        let fault = Fault::new(Code::PermissionDenied, format!("{} is not to ring so often", call.id()));
        Box::pin(async { Settled { ended: Err(fault), metadata: Metadata::default() } })
    }

    fn recorded(&self, _: &hostler::Caller, _: &Outcome) {
        self.recorded.fetch_add(1, SeqCst);
    }
}

#[tokio::test]
async fn a_layer_decides_before_the_tool_runs_and_hears_every_outcome_once() {
    let layer = Arc::new(Refuses::default());
    let (app, _) = open_with("", vec![Arc::clone(&layer) as Arc<dyn Layer>]);
    assert_eq!(value(call(&app, "ring", json!({"times": 1})).await), "ding");
    let refused = call(&app, "ring", json!({"times": 13})).await.ended.unwrap_err();
    assert_eq!(refused.code, Code::PermissionDenied);
    let asked = json!({"tool": "ring", "arguments": {"times": 13}});
    let within = call(&app, "asks", asked).await.ended.unwrap_err();
    assert!(within.message.contains("is not to ring so often"), "{within}");
    assert_eq!(call(&app, "no_such_tool", json!({})).await.ended.unwrap_err().code, Code::ToolNotFound);
    assert_eq!((layer.tries.load(SeqCst), layer.recorded.load(SeqCst)), (4, 5), "what is not found is only recorded");
}

#[tokio::test(start_paused = true)]
async fn a_call_over_its_limit_ends_with_a_timeout_at_that_moment() {
    let began = tokio::time::Instant::now();
    let (app, _) = open("[tool.waits]\ntimeout = \"5s\"\n");
    let fault = call(&app, "waits", json!({})).await.ended.unwrap_err();
    assert_eq!((fault.code, began.elapsed().as_secs()), (Code::ToolTimeout, 5));
    assert!(fault.message.contains("timeout"), "{fault}");
}

#[tokio::test(start_paused = true)]
async fn a_call_may_run_for_five_minutes_where_nothing_else_is_said() {
    let began = tokio::time::Instant::now();
    let (app, _) = open("");
    let fault = call(&app, "waits", json!({})).await.ended.unwrap_err();
    assert_eq!((fault.code, began.elapsed().as_secs()), (Code::ToolTimeout, 300));
}
