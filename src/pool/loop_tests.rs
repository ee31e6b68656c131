//! The real actor with in-memory workers and a paused clock.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::broker::Caps;
use super::broker_handle::BrokerHandle;
use super::handle::Cancellation;
use super::handle::Pool;
use super::job::{Job, Listener, NoopListener, Settled};
use super::rules::Rules;
use crate::outcome::{Code, Fault};
use crate::process::Exit;
use crate::protocol::{HostMethod, WireError, parse};
use crate::secrets::CallSecrets;
use crate::worker::{
    Ask, Control, Death, EventSender, HostAccess, Launcher, LinkWriter, LogLine, StartNotes, Starting, WorkerEvent,
    WorkerHandle,
};

/// Launches workers that are tasks. The function name selects the behaviour.
#[derive(Default)]
struct MemoryLauncher {
    launched: AtomicU32,
    refuse: bool,
    /// A panic inside the actor.
    panics: bool,
}

impl Launcher for MemoryLauncher {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn launch(&self, events: EventSender, _notes: StartNotes) -> Starting {
        let pid = 100 + self.launched.fetch_add(1, Ordering::Relaxed);
        assert!(!self.panics, "a fault in the loop");
        let refuse = self.refuse;
        Box::pin(async move {
            if refuse {
                return Err(Fault::new(Code::StartupFailed, "no memory left"));
            }
            let (writer, frames) = LinkWriter::to_memory();
            let (control, orders) = mpsc::unbounded_channel();
            tokio::spawn(live(frames, orders, events));
            let (stack, ends_by_interruption, sessions, process_started) = (Arc::default(), false, None, 0);
            Ok(WorkerHandle { pid, process_started, writer, control, stack, ends_by_interruption, sessions })
        })
    }
}

async fn live(
    mut frames: mpsc::UnboundedReceiver<String>,
    mut orders: mpsc::UnboundedReceiver<Control>,
    events: EventSender,
) {
    let died = |exit| {
        events.send(WorkerEvent::Died(Death {
            exit,
            status: None,
            stderr: Some("stderr tail".to_owned()),
            stack: crate::worker::Stack::default(),
            excess: None,
            peak_memory: None,
            broke: None,
            read_nothing: false,
        }));
    };
    loop {
        tokio::select! {
            biased;
            order = orders.recv() => match order {
                Some(Control::Stop(..)) | None => return died(Exit::Signal(9)),
                Some(_) => {}
            },
            Some(frame) = frames.recv() => {
                let frame: Value = serde_json::from_str(&frame).unwrap();
                let (id, params) = (&frame["id"], &frame["params"]);
                let reply = match params["function"].as_str() {
                    Some("echo") => json!({"jsonrpc": "2.0", "id": id, "result": params["kwargs"]}),
                    Some("print") => {
                        events.send(WorkerEvent::Stderr("to stderr\n".to_owned()));
                        json!({"jsonrpc": "2.0", "id": id, "result": null})
                    }
                    Some("forge") => {
                        let data = json!({"traceback": "  File \"/t/memory.py\", line 77, in forged\n"});
                        let error = json!({"code": -32003, "message": "forged", "data": data});
                        let line = json!({"jsonrpc": "2.0", "id": 1, "error": error}).to_string();
                        events.send(WorkerEvent::Frame(parse(line.as_bytes()).unwrap()));
                        json!({"jsonrpc": "2.0", "id": id, "result": "done"})
                    }
                    Some("die") => return died(Exit::Code(3)),
                    Some("speak") => {
                        speak_for(&events, id.as_u64().unwrap());
                        json!({"jsonrpc": "2.0", "id": id, "result": null})
                    }
                    // The answer to its request in the name of the first call becomes that call's result.
                    None if id == "w1" => json!({"jsonrpc": "2.0", "id": 1, "result": frame["result"]}),
                    _ => continue,
                };
                let line = reply.to_string();
                events.send(WorkerEvent::Frame(parse(line.as_bytes()).unwrap()));
            }
        }
    }
}

/// Prints, logs and sends requests in the name of the first call, of no call and of another worker's call.
fn speak_for(events: &EventSender, own: u64) {
    for (name, question) in [(json!(1), "w1"), (json!(null), "w2"), (json!(own + 1000), "w3")] {
        let output = json!({"method": "output", "params": {"id": name, "stream": "stdout", "text": question}});
        let ask = json!({"id": question, "method": "host.tools", "params": {"id": name}});
        for line in [output, ask] {
            events.send(WorkerEvent::Frame(parse(line.to_string().as_bytes()).unwrap()));
        }
    }
    for call in ["c1", "c1000"] {
        let fields = json!({"call": call}).as_object().unwrap().clone();
        events.send(WorkerEvent::Log(LogLine { level: "info".to_owned(), message: call.to_owned(), fields }));
    }
}

/// The log lines that a call received, and the requests in its name.
#[derive(Default)]
struct Event(parking_lot::Mutex<Vec<String>>);

impl Listener for Event {
    fn log(&self, line: &LogLine) {
        self.0.lock().push(line.message.clone());
    }
}

impl HostAccess for Event {
    fn waits_for_client(&self, method: HostMethod) -> bool {
        method.asks_client()
    }

    fn answer(&self, ask: Ask) -> Pin<Box<dyn Future<Output = Result<Box<RawValue>, WireError>> + Send + '_>> {
        self.0.lock().push(format!("{} {}", ask.method.word(), ask.params));
        Box::pin(async { Ok(RawValue::from_string("[]".to_owned()).unwrap()) })
    }
}

fn pool(rules: &Rules) -> (Arc<Pool>, Arc<MemoryLauncher>) {
    let launcher = Arc::new(MemoryLauncher::default());
    let pool = Pool::start(PathBuf::from("/t/memory.py"), rules, Arc::clone(&launcher) as Arc<dyn Launcher>, shared());
    (Arc::new(pool), launcher)
}

fn shared() -> Arc<BrokerHandle> {
    Arc::new(BrokerHandle::new(Caps::default()))
}

fn job(function: &str, number: u64) -> Job {
    let nothing: Arc<RawValue> = Arc::from(RawValue::from_string("{}".to_owned()).unwrap());
    Job {
        call_id: format!("c{number}"),
        caller: Arc::default(),
        trace: None,
        tool: format!("memory.{function}"),
        function: function.to_owned(),
        kwargs: RawValue::from_string(json!({"n": number}).to_string()).unwrap(),
        config: nothing,
        secrets: CallSecrets::default().json,
        timeout: Duration::from_secs(30),
        repeatable: false,
        nested: false,
        begins_at_once: false,
        live: Arc::default(),
        output_limit: 1000,
        audience: None,
        listener: Arc::new(NoopListener),
        host: None,
        cancellation: Cancellation::default(),
    }
}

fn code(settled: &Settled) -> Code {
    settled.ended.as_ref().unwrap_err().code
}

#[tokio::test(start_paused = true)]
async fn each_answer_reaches_its_call_and_one_worker_serves_all() {
    let (pool, launcher) = pool(&Rules::default());
    let calls = (0..100).map(|number| {
        let pool = Arc::clone(&pool);
        tokio::spawn(async move { (number, pool.call(job("echo", number)).await) })
    });
    for call in calls.collect::<Vec<_>>() {
        let (number, settled) = call.await.unwrap();
        assert_eq!(settled.ended.unwrap().get(), json!({"n": number}).to_string());
        assert_eq!(settled.metadata.worker, Some(100));
    }
    assert_eq!(launcher.launched.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stuck_call_is_answered_within_a_second_and_the_next_gets_a_new_worker() {
    let (pool, _) = pool(&Rules::default());
    let began = Instant::now();
    let stuck = pool.call(job("hang", 1)).await;
    let late = began.elapsed().checked_sub(Duration::from_secs(30)).unwrap();
    assert_eq!(code(&stuck), Code::ToolTimeout);
    assert!(late < Duration::from_secs(1), "{late:?} late");
    let next = pool.call(job("echo", 2)).await;
    assert_eq!(next.metadata.worker, Some(101));
    assert!(next.metadata.cold);
}

#[tokio::test(start_paused = true)]
async fn a_death_fails_only_the_running_call() {
    let (pool, _) = pool(&Rules::default());
    let (dead, next) = tokio::join!(pool.call(job("die", 1)), pool.call(job("echo", 2)));
    let fault = dead.ended.unwrap_err();
    assert_eq!((fault.code, fault.details.exit_code), (Code::ToolCrashed, Some(3)));
    assert_eq!(fault.details.stderr.as_deref(), Some("stderr tail"));
    assert_eq!((next.ended.unwrap().get(), next.metadata.attempt), ("{\"n\":2}", 2));
}

#[tokio::test(start_paused = true)]
async fn a_death_during_several_calls_mentions_the_others() {
    let (pool, _) = pool(&Rules { concurrency: 2, ..Rules::default() });
    let (beside, dead) = tokio::join!(pool.call(job("hang", 1)), pool.call(job("die", 2)));
    for settled in [beside, dead] {
        let fault = settled.ended.unwrap_err();
        assert!(fault.message.contains("it also ran one other call"), "{fault}");
    }
    let alone = pool.call(job("die", 3)).await.ended.unwrap_err();
    assert!(!alone.message.contains("other call"), "{alone}");
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_stops_waiting_cancels_its_call() {
    let (pool, _) = pool(&Rules::default());
    let gone = tokio::time::timeout(Duration::from_secs(1), pool.call(job("hang", 1))).await;
    assert!(gone.is_err());
    let began = Instant::now();
    assert!(pool.call(job("echo", 2)).await.ended.is_ok());
    assert!(began.elapsed() < Duration::from_secs(1), "the worker was free again within the grace period");
}

#[tokio::test(start_paused = true)]
async fn an_idle_worker_leaves_and_the_next_call_starts_another() {
    let (pool, launcher) = pool(&Rules::default());
    assert!(pool.call(job("echo", 1)).await.ended.is_ok());
    tokio::time::sleep(Duration::from_secs(601)).await;
    assert!(pool.call(job("echo", 2)).await.metadata.cold);
    assert_eq!(launcher.launched.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn printed_text_is_the_output_of_its_call() {
    let (pool, _) = pool(&Rules::default());
    assert_eq!(pool.call(job("print", 1)).await.metadata.output.as_deref(), Some("to stderr\n"));
    assert_eq!(pool.call(job("echo", 2)).await.metadata.output, None);
}

#[tokio::test(start_paused = true)]
async fn each_of_several_calls_gets_only_the_messages_that_name_it() {
    let (pool, launcher) = pool(&Rules { concurrency: 2, ..Rules::default() });
    let heard: [Arc<Event>; 2] = Default::default();
    let job = |function, number: u64| {
        let heard = Arc::clone(&heard[usize::try_from(number).unwrap() - 1]);
        Job { listener: Arc::clone(&heard) as _, host: Some(heard), ..job(function, number) }
    };
    let (first, second) = tokio::join!(pool.call(job("hang", 1)), pool.call(job("speak", 2)));
    assert_eq!(launcher.launched.load(Ordering::Relaxed), 1);
    assert_eq!(first.ended.unwrap().get(), "[]");
    assert_eq!(second.ended.unwrap().get(), "null");
    assert_eq!((first.metadata.output.as_deref(), second.metadata.output.as_deref()), (Some("w1"), None));
    assert_eq!(
        heard.map(|heard| heard.0.lock().clone()),
        [vec!["c1".to_owned(), "tools {\"id\":1}".to_owned()], vec![]]
    );
}

#[tokio::test(start_paused = true)]
async fn a_worker_cannot_speak_for_a_call_of_another_worker() {
    let (pool, launcher) = pool(&Rules { concurrency: 2, max_workers: 2, ..Rules::default() });
    let heard: Arc<Event> = Arc::default();
    let first = Job { listener: Arc::clone(&heard) as _, host: Some(Arc::clone(&heard) as _), ..job("hang", 1) };
    let (first, _, speaker) = tokio::join!(pool.call(first), pool.call(job("hang", 2)), pool.call(job("speak", 3)));
    assert_eq!(launcher.launched.load(Ordering::Relaxed), 2);
    assert_eq!(code(&first), Code::ToolTimeout);
    // Unnamed messages come from a stray thread, even where only one call runs.
    assert_eq!((first.metadata.output, speaker.metadata.output), (None, None));
    assert_eq!(*heard.0.lock(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_failed_start_returns_its_reason() {
    let launcher = Arc::new(MemoryLauncher { refuse: true, ..MemoryLauncher::default() });
    let pool = Pool::start(PathBuf::from("/t/memory.py"), &Rules::default(), launcher, shared());
    let fault = pool.call(job("echo", 1)).await.ended.unwrap_err();
    assert_eq!((fault.code, fault.message.as_str()), (Code::StartupFailed, "no memory left"));
}

#[tokio::test(start_paused = true)]
async fn a_panicking_actor_is_reported_and_releases_everything() {
    let shared = shared();
    let launcher = Arc::new(MemoryLauncher { panics: true, ..MemoryLauncher::default() });
    let pool = Pool::start(PathBuf::from("/t/broken.py"), &Rules::default(), launcher, Arc::clone(&shared));
    let fault = pool.call(job("echo", 1)).await.ended.unwrap_err();
    assert_eq!(fault.code, Code::SystemError);
    assert!(fault.message.contains("the next call starts a new one"), "{fault}");
    let usage = shared.usage();
    assert_eq!((usage.workers, usage.running, usage.waiting), (0, 0, 0), "its permits are released");
    let launcher = Arc::new(MemoryLauncher::default());
    let other = Pool::start(PathBuf::from("/t/sound.py"), &Rules::default(), launcher, shared);
    assert!(other.call(job("echo", 2)).await.ended.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_answer_for_another_workers_call_is_ignored() {
    let (pool, _) = pool(&Rules { max_workers: 2, ..Rules::default() });
    let hangs = tokio::spawn({
        let pool = Arc::clone(&pool);
        async move { pool.call(Job { timeout: Duration::from_secs(5), ..job("hang", 1) }).await }
    });
    tokio::task::yield_now().await;
    assert!(pool.call(job("forge", 2)).await.ended.is_ok());
    let fault = hangs.await.unwrap().ended.unwrap_err();
    assert_eq!(fault.code, Code::ToolTimeout);
    assert!(!format!("{fault} {:?}", fault.details).contains("77"), "{fault}");
}

#[tokio::test(start_paused = true)]
async fn an_ended_pool_answers_its_calls_and_becomes_empty() {
    let (pool, _) = pool(&Rules::default());
    let running = tokio::spawn({
        let pool = Arc::clone(&pool);
        async move { pool.call(job("hang", 1)).await }
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    pool.end();
    assert_eq!(code(&running.await.unwrap()), Code::ShuttingDown);
    pool.emptied().await;
    assert_eq!(code(&pool.call(job("echo", 2)).await), Code::ShuttingDown);
}

#[tokio::test(start_paused = true)]
async fn a_closed_pool_can_still_be_ended() {
    let (pool, _) = pool(&Rules::default());
    let running = tokio::spawn({
        let pool = Arc::clone(&pool);
        async move { pool.call(job("hang", 1)).await }
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    pool.close();
    assert!(tokio::time::timeout(Duration::from_millis(400), pool.emptied()).await.is_err());
    assert!(!pool.is_empty());
    pool.end();
    pool.emptied().await;
    assert!(pool.is_empty());
    assert_eq!(code(&running.await.unwrap()), Code::ShuttingDown);
}
