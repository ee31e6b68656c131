//! The loop of a pool. It owns the pool's calls and workers; nobody else touches them.
//!
//! What reaches it becomes events here and in `listen`; what the machine answers is done in `perform`.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use super::alarm::Alarm;
use super::commons::PoolId;
use super::desk::Open;
use super::event::{CallId, Event, Wish, WorkerId};
use super::job::{Job, Settled};
use super::machine::Machine;
use super::rules::Rules;
use super::shared::Shared;
use super::tally::{PoolStatus, Tally};
use crate::outcome::{Code, Fault, Scrub};
use crate::process::resident;
use crate::worker::{Control, Death, Flow, Launcher, News, StartNote, WorkerHandle};

/// What reaches the loop.
pub(super) enum Message {
    Submit(CallId, Box<Job>, oneshot::Sender<Settled>),
    Cancel(CallId),
    Started(WorkerId, Result<WorkerHandle, Fault>),
    Note(StartNote),
    News(WorkerId, News),
    /// Something that concerns the machine alone.
    Heard(Event),
    Status(oneshot::Sender<PoolStatus>),
    Close,
    End,
}

/// A worker as the loop holds it.
pub(super) enum Held {
    Starting(tokio::task::AbortHandle),
    Live(WorkerHandle),
    /// Told to go, and why. Its orders are kept, so that a harsher one can follow.
    Leaving(u32, &'static str, mpsc::UnboundedSender<Control>),
}

pub(super) struct Actor {
    pub(super) machine: Machine,
    pub(super) file: PathBuf,
    pub(super) launcher: Arc<dyn Launcher>,
    pub(super) sender: mpsc::UnboundedSender<Message>,
    /// How much of what workers say is not looked at yet.
    pub(super) flow: Arc<Flow>,
    id: PoolId,
    shared: Arc<Shared>,
    pub(super) tally: Tally,
    /// Why the machine is about to stop a worker.
    pub(super) why_stop: Option<&'static str>,
    /// Why the last worker died that did so by itself.
    pub(super) death_fault: Option<Fault>,
    pub(super) calls: HashMap<CallId, Open>,
    pub(super) workers: HashMap<WorkerId, Held>,
    /// Why a worker is gone, until the machine's verdicts about it have been performed.
    pub(super) faults: HashMap<WorkerId, Fault>,
    /// Why the last start failed.
    pub(super) start_fault: Option<Fault>,
    /// Deaths that are being told, and how many calls beside one were under way.
    pub(super) deaths: HashMap<WorkerId, (Death, usize)>,
    /// Events that came out of performing effects.
    pub(super) follow_up: VecDeque<Event>,
    pub(super) done: bool,
    /// Of the last call that had secrets.
    pub(super) scrub: Option<Arc<Scrub>>,
    has_started: watch::Sender<bool>,
    /// Somebody wants to know what the workers hold.
    weighs: bool,
}

/// How often the workers' memory is looked at, where it matters.
const LOOK: std::time::Duration = std::time::Duration::from_secs(1);

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
        shared: Arc<Shared>,
        sender: mpsc::UnboundedSender<Message>,
        has_started: watch::Sender<bool>,
    ) -> Self {
        let id = shared.join(sender.clone());
        let weighs = rules.max_rss.is_some() || shared.commons.lock().caps().memory.is_some();
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
            scrub: None,
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
                _ = looks.tick(), if self.weighs => self.weigh(),
                () = alarm.rings() => {
                    alarm.disarm();
                    self.step(Event::Timer);
                }
            }
            alarm.arm(self.machine.next_timer().map(|at| epoch + at));
        }
    }

    /// Looks at what the workers hold.
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
                let cold = !self.workers.values().any(|held| matches!(held, Held::Live(_)));
                let wish = Wish { call, timeout: job.timeout, repeatable: job.repeatable, nested: job.nested };
                self.scrub = job.scrub.clone().or_else(|| self.scrub.take());
                self.calls.insert(call, Open::new(job, reply, cold));
                self.step(Event::Submit(wish));
            }
            Message::Cancel(call) => self.step(Event::Cancel(call)),
            Message::Started(worker, outcome) => self.started(worker, outcome),
            Message::Note(note) => self.note(&note),
            Message::News(worker, news) => {
                self.news(worker, news);
                self.flow.took();
            }
            Message::Heard(event) => self.step(event),
            // Who asked may have gone.
            Message::Status(reply) => drop(reply.send(self.status())),
            Message::Close => self.step(Event::Close),
            Message::End => self.step(Event::End),
        }
    }

    pub(super) fn step(&mut self, event: Event) {
        self.follow_up.push_back(event);
        while let Some(event) = self.follow_up.pop_front() {
            let now = self.shared.epoch.elapsed();
            let (effects, pokes) = {
                let mut commons = self.shared.commons.lock();
                (self.machine.step(now, event, &mut commons), commons.take_pokes())
            };
            for effect in effects {
                self.perform(effect);
            }
            self.shared.deliver(pokes);
        }
    }

    pub(super) fn now(&self) -> std::time::Duration {
        self.shared.epoch.elapsed()
    }

    fn started(&mut self, worker: WorkerId, outcome: Result<WorkerHandle, Fault>) {
        if !matches!(self.workers.get(&worker), Some(Held::Starting(_))) {
            return;
        }
        match outcome {
            Ok(handle) => {
                tracing::info!(file = %self.file.display(), pid = handle.pid, "worker ready");
                self.workers.insert(worker, Held::Live(handle));
                self.has_started.send_replace(true);
                let ready = StartNote(format!("{} is ready", self.launcher.name()));
                self.note(&ready);
                for call in self.machine.waiting() {
                    if let Some(open) = self.calls.get_mut(&call) {
                        open.started();
                    }
                }
                self.step(Event::Ready(worker));
            }
            Err(fault) => {
                tracing::info!(file = %self.file.display(), %fault, "worker not started");
                self.workers.remove(&worker);
                // What uv or the network lacks, somebody may mend at any moment.
                let by_itself = fault.code == Code::StartupFailed;
                self.start_fault = Some(fault.clone());
                self.faults.insert(worker, fault);
                self.step(Event::StartFailed { worker, by_itself });
                self.faults.remove(&worker);
            }
        }
    }

    fn note(&self, note: &StartNote) {
        for call in self.machine.waiting() {
            if let Some(open) = self.calls.get(&call) {
                open.job.listener.note(&note.0);
            }
        }
    }
}
