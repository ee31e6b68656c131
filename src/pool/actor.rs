//! The actor of a pool: the only task that touches the pool's calls and workers.
//!
//! Input becomes events here and in `listen`; `perform` carries out the machine's effects.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};

use super::alarm::Alarm;
use super::asking::HeldAnswer;
use super::broker::PoolId;
use super::broker_handle::BrokerHandle;
use super::event::{CallId, CallSpec, Event, WorkerId};
use super::job::{CapturedOutput, Job, SessionId, Settled};
use super::machine::Machine;
use super::open_call;
use super::open_call::OpenCall;
use super::perform::PING;
use super::rules::Rules;
use super::status::{PoolStatus, Tally};
use crate::outcome::{Code, Fault};
use crate::process::resident;
use crate::protocol::{Incoming, wire_code};
use crate::secrets::{LiveSecrets, Redactor};
use crate::worker::{self, Backpressure, Control, Death, Launcher, LogLine, StartNote, WorkerEvent, WorkerHandle};

/// A message to the actor.
pub(super) enum Message {
    Submit(CallId, Box<Job>, oneshot::Sender<Settled>),
    Cancel(CallId),
    Started(WorkerId, Result<WorkerHandle, Fault>),
    Note(StartNote),
    WorkerEvent(WorkerId, WorkerEvent),
    /// An event for the machine alone.
    Event(Event),
    /// The answer to a question that a worker's call asked the client.
    ClientAnswered(WorkerId, CallId, HeldAnswer),
    /// A call that this call waits for asks its client.
    InnerAsks(CallId, u32),
    /// That call has its answer.
    InnerGoesOn(CallId, u32),
    /// No call of a session follows.
    SessionEnded(SessionId),
    Status(oneshot::Sender<PoolStatus>),
    Close,
    End,
}

/// A worker as the actor holds it.
pub(super) enum WorkerProcess {
    Starting(tokio::task::AbortHandle),
    Live(WorkerHandle),
    /// Told to stop, and why. Its order channel stays open so that a harsher order can follow.
    Leaving(u32, &'static str, mpsc::UnboundedSender<Control>),
}

pub(super) struct Actor {
    pub(super) machine: Machine,
    pub(super) file: PathBuf,
    pub(super) launcher: Arc<dyn Launcher>,
    pub(super) sender: mpsc::UnboundedSender<Message>,
    /// The events of workers that are not processed yet.
    pub(super) flow: Arc<Backpressure>,
    id: PoolId,
    pub(super) shared: Arc<BrokerHandle>,
    pub(super) tally: Tally,
    /// Why the machine is about to stop a worker.
    pub(super) why_stop: Option<&'static str>,
    /// The exit of the last worker that died by itself.
    pub(super) death_fault: Option<Fault>,
    pub(super) calls: HashMap<CallId, OpenCall>,
    pub(super) workers: HashMap<WorkerId, WorkerProcess>,
    /// Why a worker exited, until the machine's verdicts about it have been carried out.
    pub(super) faults: HashMap<WorkerId, Fault>,
    /// Why the last start failed.
    pub(super) start_fault: Option<Fault>,
    /// Deaths being reported, each with the number of calls that ran beside the failed one.
    pub(super) deaths: HashMap<WorkerId, (Death, usize)>,
    /// Events caused by effects.
    pub(super) follow_up: VecDeque<Event>,
    pub(super) done: bool,
    /// Output of workers outside calls, as far as it may be the beginning of a secret.
    loose: HashMap<WorkerId, CapturedOutput>,
    /// The secrets of the workspaces whose calls came last, the latest first: a worker may print them after its answer.
    live: Vec<Arc<LiveSecrets>>,
    has_started: watch::Sender<bool>,
    /// A request for the workers' memory.
    weighs: bool,
}

/// How often the workers' memory is measured, if it matters.
const LOOK: std::time::Duration = std::time::Duration::from_secs(1);

/// How many workspaces' secrets are kept for what workers print between calls.
const WORKSPACES: usize = 8;

impl Drop for Actor {
    fn drop(&mut self) {
        self.shared.leave(self.id);
    }
}

impl Actor {
    pub fn new(
        rules: &Rules,
        file: PathBuf,
        launcher: Arc<dyn Launcher>,
        shared: Arc<BrokerHandle>,
        sender: mpsc::UnboundedSender<Message>,
        has_started: watch::Sender<bool>,
    ) -> Self {
        let id = shared.join(sender.clone());
        let weighs = rules.max_rss.is_some();
        Self {
            machine: Machine::new(id, rules),
            file,
            launcher,
            sender,
            flow: Arc::default(),
            id,
            shared,
            tally: Tally::default(),
            why_stop: None,
            death_fault: None,
            calls: HashMap::new(),
            workers: HashMap::new(),
            faults: HashMap::new(),
            start_fault: None,
            deaths: HashMap::new(),
            follow_up: VecDeque::new(),
            done: false,
            loose: HashMap::new(),
            live: Vec::new(),
            has_started,
            weighs,
        }
    }

    pub async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Message>) {
        let mut alarm = Alarm::new();
        let epoch = self.shared.epoch;
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.done {
            tokio::select! {
                Some(message) = inbox.recv() => self.take(message),
                _ = looks.tick(), if self.weighs || self.shared.limits_memory() => self.weigh(),
                () = alarm.rings() => {
                    alarm.disarm();
                    self.step(Event::Timer);
                }
            }
            alarm.arm(self.machine.next_timer().map(|at| epoch + at));
        }
    }

    /// Calls of this workspace come.
    fn serves(&mut self, live: &Arc<LiveSecrets>) {
        if self.live.first().is_none_or(|first| !Arc::ptr_eq(first, live)) {
            self.live.retain(|known| !Arc::ptr_eq(known, live));
            self.live.insert(0, Arc::clone(live));
            self.live.truncate(WORKSPACES);
        }
    }

    /// Measures the workers' memory.
    fn weigh(&mut self) {
        let live = self.workers.iter().filter_map(|(worker, held)| Some((*worker, held.pid()?)));
        let weights: Vec<_> = live.filter_map(|(worker, pid)| Some((worker, resident(pid)?))).collect();
        for (worker, held) in weights {
            self.step(Event::Measured { worker, held });
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Submit(call, job, reply) => {
                let cold = !self.workers.values().any(|held| matches!(held, WorkerProcess::Live(_)));
                let spec = CallSpec {
                    call,
                    session: job.caller.session,
                    timeout: job.timeout,
                    repeatable: job.repeatable,
                    nested: job.nested,
                    begins_at_once: job.begins_at_once,
                };
                self.serves(&job.live);
                self.calls.insert(call, OpenCall::new(job, reply, cold));
                self.step(Event::Submit(spec));
                self.note_of_asking(Some(call));
            }
            Message::Cancel(call) => self.step(Event::Cancel(call)),
            Message::SessionEnded(session) => self.session_ended(session),
            Message::Started(worker, outcome) => self.started(worker, outcome),
            Message::Note(note) => {
                if let Some(observer) = self.shared.observer() {
                    observer.starting(&self.file, &note.0);
                }
                self.note(&note);
            }
            Message::WorkerEvent(worker, events) => {
                self.events(worker, events);
                self.flow.took();
            }
            Message::Event(event) => self.step(event),
            Message::ClientAnswered(worker, call, answer) => self.client_answered(worker, call, answer),
            Message::InnerAsks(call, attempt) if self.is_attempt(call, attempt) => self.asks(call, true),
            Message::InnerGoesOn(call, attempt) if self.is_attempt(call, attempt) => self.goes_on(call, None),
            // Of an attempt whose worker died.
            Message::InnerAsks(..) | Message::InnerGoesOn(..) => {}
            // The requester may be gone.
            Message::Status(reply) => drop(reply.send(self.status())),
            Message::Close => self.step(Event::Close),
            Message::End => self.step(Event::End),
        }
    }

    pub(super) fn step(&mut self, event: Event) {
        self.follow_up.push_back(event);
        while let Some(event) = self.follow_up.pop_front() {
            let now = self.shared.epoch.elapsed();
            let (effects, wakeups) = {
                let mut broker = self.shared.broker.lock();
                (self.machine.step(now, event, &mut broker), broker.take_wakeups())
            };
            for effect in effects {
                self.perform(effect);
            }
            self.shared.deliver(wakeups);
        }
    }

    pub(super) fn now(&self) -> std::time::Duration {
        self.shared.epoch.elapsed()
    }

    fn started(&mut self, worker: WorkerId, outcome: Result<WorkerHandle, Fault>) {
        if !matches!(self.workers.get(&worker), Some(WorkerProcess::Starting(_))) {
            return;
        }
        match outcome {
            Ok(handle) => {
                if let Some(barrier) = self.shared.barrier.get() {
                    handle.writer.write_behind(barrier);
                }
                tracing::info!(file = %self.file.display(), pid = handle.pid, "worker ready");
                if let Some(observer) = self.shared.observer() {
                    observer.started(&self.file, handle.pid);
                }
                self.workers.insert(worker, WorkerProcess::Live(handle));
                self.has_started.send_replace(true);
                let ready = StartNote(format!("{} is ready", self.launcher.name()));
                self.note(&ready);
                for call in self.machine.waiting() {
                    if let Some(open) = self.calls.get_mut(&call) {
                        open.goes_on();
                        open.started();
                    }
                }
                self.step(Event::Ready(worker));
            }
            Err(fault) => {
                tracing::info!(target: "tool", file = %self.file.display(), %fault, "worker not started");
                if let Some(observer) = self.shared.observer() {
                    observer.failed(&self.file, fault.code);
                }
                self.workers.remove(&worker);
                // The cause may lie outside the file (uv, the network), so it may be gone at any moment.
                let by_itself = fault.code == Code::StartupFailed;
                self.start_fault = Some(fault.clone());
                self.faults.insert(worker, fault);
                self.step(Event::StartFailed { worker, by_itself });
                self.faults.remove(&worker);
            }
        }
    }

    /// Tells the callers of queued calls why they wait.
    fn note(&mut self, note: &StartNote) {
        for call in self.machine.waiting() {
            if let Some(open) = self.calls.get_mut(&call) {
                open.note(&note.0);
            }
        }
    }
}

impl Actor {
    pub(super) fn events(&mut self, worker: WorkerId, events: WorkerEvent) {
        match events {
            WorkerEvent::Frame(Incoming::Reply { id, .. }) if id == PING.0 => self.step(Event::Pong(worker)),
            WorkerEvent::Frame(Incoming::Reply { id, answer: Err(error) })
                if error.code == wire_code::NOT_BEGUN && self.machine.is_recalled(worker, CallId(id)) =>
            {
                if let Some(open) = self.calls.get_mut(&CallId(id)) {
                    open.returned();
                }
                if let Some(WorkerProcess::Live(handle)) = self.workers.get(&worker) {
                    handle.writer.calls().record_return(id);
                }
                self.step(Event::Returned { worker, call: CallId(id) });
            }
            WorkerEvent::Frame(Incoming::Reply { id, answer }) => {
                let cancelled = worker::is_cancelled(&answer);
                let answer = |tool: &str, file: &Path| answer.map_err(|error| worker::error_fault(tool, file, &error));
                self.answered(worker, CallId(id), cancelled, answer);
            }
            WorkerEvent::Oversized { id: Some(id), bytes } => {
                self.answered(worker, CallId(id), false, |tool, _: &Path| Err(worker::oversized_fault(tool, bytes)));
            }
            WorkerEvent::Oversized { id: None, bytes } => {
                tracing::warn!(bytes, "dropped an overlong line from a worker");
            }
            WorkerEvent::Frame(Incoming::Output(note)) => {
                let call = self.named(worker, note.id);
                self.printed(worker, call, &note.stream, &note.text);
            }
            // A worker for several calls may have written it for one that has ended.
            WorkerEvent::Stderr(text) => {
                let call = self.machine.running(worker).filter(|_| self.knows_whose());
                self.printed(worker, call, "stderr", &text);
            }
            WorkerEvent::Frame(Incoming::Progress(mut note)) => {
                let call = self.named(worker, note.id);
                if let Some(open) = call.and_then(|call| self.calls.get(&call)) {
                    open.progress(&mut note);
                }
            }
            WorkerEvent::Frame(Incoming::Dropped(note)) => {
                let call = self.named(worker, note.id);
                if let Some(open) = call.and_then(|call| self.calls.get_mut(&call)) {
                    open.dropped(note.fields);
                }
            }
            WorkerEvent::Log(line) => {
                let call = self.logging(worker, &line).and_then(|call| self.calls.get(&call));
                open_call::log(call, &self.live, &self.file, line);
            }
            WorkerEvent::Frame(Incoming::Ask { id, call, method, params }) => {
                let call = self.named(worker, call);
                self.ask(worker, call, id, method, params);
            }
            WorkerEvent::Frame(Incoming::UnknownRequest { id, method }) => {
                if let Some(WorkerProcess::Live(handle)) = self.workers.get(&worker) {
                    handle.writer.reply(&id, Err(&open_call::unknown(&method)));
                }
            }
            // Handled where the worker was started.
            WorkerEvent::Frame(Incoming::Described(_)) => {}
            WorkerEvent::Frame(Incoming::Unknown(method)) => {
                tracing::debug!(method, "unknown notification from a worker");
            }
            WorkerEvent::Died(death) => {
                let mut loose = self.loose.remove(&worker).unwrap_or_default();
                for (_, text) in loose.held(self.latest().as_deref()) {
                    self.log_loose(&text);
                }
                let held = self.workers.remove(&worker);
                let (pid, why) = held.as_ref().map_or((None, None), |held| (held.pid(), held.why()));
                tracing::info!(file = %self.file.display(), pid, exit = %death.exit, why, "worker exited");
                let how = death.exit.to_string();
                if let Some(observer) = self.shared.observer() {
                    observer.exited(&self.file, pid, &how, why);
                }
                self.tally.exited(pid.unwrap_or_default(), how, why);
                if why.is_none() && self.machine.begun(worker).next().is_none() {
                    self.death_fault = Some(worker::idle_death_fault(&death));
                }
                let of_a_limit = death.excess.is_some();
                let begun = self.machine.begun(worker).count();
                self.deaths.insert(worker, (death, begun.saturating_sub(1)));
                self.step(Event::Died { worker, of_a_limit });
                self.deaths.remove(&worker);
            }
        }
    }

    fn answered(
        &mut self,
        worker: WorkerId,
        call: CallId,
        cancelled: bool,
        answer: impl FnOnce(&str, &Path) -> Result<Box<RawValue>, Fault>,
    ) {
        // A tool that writes its own frames may name a call of another worker.
        if !self.machine.holds(worker, call) {
            // Authors of workers look for this line when a call times out.
            tracing::info!(file = %self.file.display(), id = call.0, "a worker answered a call that it does not hold");
            return;
        }
        if let Some(WorkerProcess::Live(handle)) = self.workers.get(&worker) {
            handle.writer.calls().record_answer(call.0);
        }
        if let Some(open) = self.calls.get_mut(&call) {
            open.answer = Some(answer(&open.job.tool, &self.file));
        }
        self.step(Event::Answered { worker, call, cancelled });
        // The worker begins its next call.
        if let Some(open) = self.machine.running(worker).and_then(|call| self.calls.get_mut(&call)) {
            open.begins();
        }
    }

    /// The call that a worker's message names, if the worker runs it. A message without a name belongs to the only
    /// running call.
    pub(super) fn named(&self, worker: WorkerId, id: Option<u64>) -> Option<CallId> {
        match id.map(CallId) {
            Some(call) => self.machine.has_begun(worker, call).then_some(call),
            None => self.machine.running(worker).filter(|_| self.knows_whose()),
        }
    }

    /// Whether an unnamed message belongs to the only running call. A worker for several calls names the call if there
    /// is one; its unnamed messages come from other threads or ended calls.
    fn knows_whose(&self) -> bool {
        self.machine.rules().concurrency == 1
    }

    /// The call that a log line names by its public id. Other loggers may use the field `call` differently, which is
    /// harmless while only one call runs.
    fn logging(&self, worker: WorkerId, line: &LogLine) -> Option<CallId> {
        let running = || self.machine.running(worker).filter(|_| self.knows_whose());
        let Some(name) = line.fields.get("call").and_then(|name| name.as_str()) else { return running() };
        let is_meant = |call: &CallId| self.calls.get(call).is_some_and(|open| open.job.call_id == name);
        self.machine.begun(worker).find(is_meant).or_else(running)
    }

    fn printed(&mut self, worker: WorkerId, call: Option<CallId>, stream: &str, text: &str) {
        if let Some(open) = call.and_then(|call| self.calls.get_mut(&call)) {
            open.print(stream, text);
        } else {
            let text = match self.latest().as_deref() {
                // A secret may come in pieces.
                Some(redactor) => self.loose.entry(worker).or_default().clean(Some(redactor), stream, text),
                None => text.into(),
            };
            self.log_loose(&text);
        }
    }

    /// What finds the secrets of the workspace whose call came last.
    fn latest(&self) -> Option<Arc<Redactor>> {
        self.live.first().and_then(|live| live.redactor())
    }

    fn log_loose(&self, text: &str) {
        let text = open_call::without_secrets(&self.live, text);
        if !text.is_empty() {
            tracing::info!(target: "tool", file = %self.file.display(), text = text.trim_end(), "output outside a call");
        }
    }
}
