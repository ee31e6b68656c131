//! The loop that performs what the machine says. It owns the pool's calls and workers; nobody else touches them.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, Sleep, sleep_until};

use super::desk::Open;
use super::event::{CallId, Effect, Event, Manner, Verdict, WorkerId};
use super::job::{Job, Settled};
use super::machine::Machine;
use crate::outcome::{Code, Fault};
use crate::process::Grace;
use crate::protocol::{Incoming, cancel_frame, reply_frame, shutdown_frame};
use crate::worker::{
    self, Control, Death, Launcher, News, NewsSender, StartNote, StartNotes, WorkerHandle, died_fault, timeout_fault,
};

/// What reaches the loop.
pub(super) enum Message {
    Submit(CallId, Box<Job>, oneshot::Sender<Settled>),
    Cancel(CallId),
    Started(WorkerId, Result<WorkerHandle, Fault>),
    Note(StartNote),
    News(WorkerId, News),
    Close,
    End,
}

/// A worker as the loop holds it.
enum Held {
    Starting(tokio::task::AbortHandle),
    Live(WorkerHandle),
    /// Told to go. Its orders are kept, so that a harsher one can follow.
    Leaving(mpsc::UnboundedSender<Control>),
}

pub(super) struct Actor {
    machine: Machine,
    file: PathBuf,
    launcher: Arc<dyn Launcher>,
    sender: mpsc::UnboundedSender<Message>,
    epoch: Instant,
    calls: HashMap<CallId, Open>,
    workers: HashMap<WorkerId, Held>,
    /// Why a worker is gone, until the machine's verdicts about it have been performed.
    faults: HashMap<WorkerId, Fault>,
    deaths: HashMap<WorkerId, Death>,
    /// Events that came out of performing effects.
    follow_up: VecDeque<Event>,
    done: bool,
}

impl Actor {
    pub fn new(
        machine: Machine,
        file: PathBuf,
        launcher: Arc<dyn Launcher>,
        sender: mpsc::UnboundedSender<Message>,
    ) -> Self {
        Self {
            machine,
            file,
            launcher,
            sender,
            epoch: Instant::now(),
            calls: HashMap::new(),
            workers: HashMap::new(),
            faults: HashMap::new(),
            deaths: HashMap::new(),
            follow_up: VecDeque::new(),
            done: false,
        }
    }

    pub async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Message>) {
        let mut alarm = Alarm::new();
        while !self.done {
            tokio::select! {
                Some(message) = inbox.recv() => self.take(message),
                () = alarm.rings() => {
                    alarm.disarm();
                    self.step(Event::Timer);
                }
            }
            alarm.arm(self.machine.next_timer().map(|at| self.epoch + at));
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Submit(call, job, reply) => {
                let cold = !self.workers.values().any(|held| matches!(held, Held::Live(_)));
                let timeout = job.timeout;
                self.calls.insert(call, Open::new(job, reply, cold));
                self.step(Event::Submit { call, timeout });
            }
            Message::Cancel(call) => self.step(Event::Cancel(call)),
            Message::Started(worker, outcome) => self.started(worker, outcome),
            Message::Note(note) => self.note(&note),
            Message::News(worker, news) => self.news(worker, news),
            Message::Close => self.step(Event::Close),
            Message::End => self.step(Event::End),
        }
    }

    fn step(&mut self, event: Event) {
        self.follow_up.push_back(event);
        while let Some(event) = self.follow_up.pop_front() {
            let now = self.epoch.elapsed();
            for effect in self.machine.step(now, event) {
                self.perform(effect);
            }
        }
    }

    fn started(&mut self, worker: WorkerId, outcome: Result<WorkerHandle, Fault>) {
        if !matches!(self.workers.get(&worker), Some(Held::Starting(_))) {
            return;
        }
        match outcome {
            Ok(handle) => {
                tracing::info!(file = %self.file.display(), pid = handle.pid, "worker ready");
                self.workers.insert(worker, Held::Live(handle));
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
                self.faults.insert(worker, fault);
                self.step(Event::StartFailed(worker));
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

    fn news(&mut self, worker: WorkerId, news: News) {
        match news {
            News::Frame(Incoming::Reply { id, answer }) => {
                let call = CallId(id);
                let cancelled = worker::is_cancelled(&answer);
                if let Some(open) = self.calls.get_mut(&call) {
                    open.answer = Some(answer.map_err(|error| worker::error_fault(&open.job.tool, &error)));
                }
                self.answered(worker, call, cancelled);
            }
            News::Oversized { id: Some(id), bytes } => {
                let call = CallId(id);
                if let Some(open) = self.calls.get_mut(&call) {
                    open.answer = Some(Err(worker::oversized_fault(&open.job.tool, bytes)));
                }
                self.answered(worker, call, false);
            }
            News::Oversized { id: None, bytes } => tracing::warn!(bytes, "dropped an overlong line of a worker"),
            News::Frame(Incoming::Output(note)) => {
                let call = note.id.map(CallId).or_else(|| self.machine.running(worker));
                self.printed(call, &note.stream, &note.text);
            }
            News::Stderr(text) => self.printed(self.machine.running(worker), "stderr", &text),
            News::Frame(Incoming::Progress(note)) => {
                let call = note.id.map(CallId).or_else(|| self.machine.running(worker));
                if let Some(open) = call.and_then(|call| self.calls.get(&call)) {
                    open.job.listener.progress(&note);
                }
            }
            News::Log(line) => {
                let running = self.machine.running(worker).and_then(|call| self.calls.get(&call));
                super::desk::log(running, &self.file, &line);
            }
            News::Frame(Incoming::Ask { id, method, params }) => self.ask(worker, id, worker::Ask { method, params }),
            News::Frame(Incoming::Unknown(method)) => tracing::debug!(method, "unknown notification of a worker"),
            News::Died(death) => {
                tracing::info!(file = %self.file.display(), exit = %death.exit, "worker gone");
                self.workers.remove(&worker);
                self.deaths.insert(worker, death);
                self.step(Event::Died(worker));
                self.deaths.remove(&worker);
            }
        }
    }

    fn answered(&mut self, worker: WorkerId, call: CallId, cancelled: bool) {
        self.step(Event::Answered { worker, call, cancelled });
        // The next call in the worker's line begins now.
        if let Some(open) = self.machine.running(worker).and_then(|call| self.calls.get_mut(&call)) {
            open.begins();
        }
    }

    fn printed(&mut self, call: Option<CallId>, stream: &str, text: &str) {
        if let Some(open) = call.and_then(|call| self.calls.get_mut(&call)) {
            open.print(stream, text);
        } else {
            tracing::debug!(file = %self.file.display(), text = text.trim_end(), "output outside of a call");
        }
    }

    /// A question from inside the running call, answered in a task that ends with the call.
    fn ask(&mut self, worker: WorkerId, id: Box<serde_json::value::RawValue>, ask: worker::Ask) {
        let Some(Held::Live(handle)) = self.workers.get(&worker) else { return };
        let writer = handle.writer.clone();
        let running = self.machine.running(worker).and_then(|call| self.calls.get_mut(&call));
        match running.and_then(|open| Some((open.job.host.clone()?, open))) {
            Some((host, open)) => {
                open.questions.spawn(async move {
                    let answer = host.answer(ask).await;
                    writer.send(reply_frame(&id, answer.as_deref()));
                });
            }
            None => writer.send(reply_frame(&id, Err(&super::desk::refusal()))),
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Start(worker) => self.start(worker),
            Effect::Send { worker, call } => self.send(worker, call),
            Effect::Withdraw { worker, call } => {
                if let Some(Held::Live(handle)) = self.workers.get(&worker) {
                    handle.writer.send(cancel_frame(call.0));
                }
            }
            Effect::Interrupt { worker, call } => {
                if let Some(Held::Live(handle)) = self.workers.get(&worker) {
                    let control = handle.control.clone();
                    handle.writer.send_then(cancel_frame(call.0), move || {
                        let _ = control.send(Control::Interrupt);
                    });
                }
            }
            Effect::Nudge(worker) => {
                if let Some(Held::Live(handle)) = self.workers.get(&worker) {
                    let _ = handle.control.send(Control::Interrupt);
                }
            }
            Effect::TakeStack(worker) => {
                if let Some(Held::Live(handle)) = self.workers.get(&worker) {
                    handle.stack.lock().clear();
                    let _ = handle.control.send(Control::TakeStack);
                }
            }
            Effect::Stop { worker, manner } => self.stop(worker, manner),
            Effect::Finish { call, verdict } => self.finish(call, verdict),
            Effect::Empty => self.done = true,
        }
    }

    fn start(&mut self, worker: WorkerId) {
        tracing::debug!(file = %self.file.display(), "starting a worker: a call waits and none is there");
        let (news, notes) = (self.news_sender(worker), self.note_sender());
        let starting = self.launcher.launch(news, notes);
        let sender = self.sender.clone();
        let task = tokio::spawn(async move {
            let outcome = starting.await;
            let _ = sender.send(Message::Started(worker, outcome));
        });
        self.workers.insert(worker, Held::Starting(task.abort_handle()));
    }

    fn news_sender(&self, worker: WorkerId) -> NewsSender {
        let sender = self.sender.clone();
        Arc::new(move |news| {
            let _ = sender.send(Message::News(worker, news));
        })
    }

    fn note_sender(&self) -> StartNotes {
        let sender = self.sender.clone();
        Arc::new(move |note| {
            let _ = sender.send(Message::Note(note));
        })
    }

    fn send(&mut self, worker: WorkerId, call: CallId) {
        let first = self.machine.running(worker) == Some(call);
        let (Some(Held::Live(handle)), Some(open)) = (self.workers.get(&worker), self.calls.get_mut(&call)) else {
            return;
        };
        open.sent_to(handle.pid, first);
        handle.writer.send(open.frame(call));
    }

    fn stop(&mut self, worker: WorkerId, manner: Manner) {
        let grace = match manner {
            Manner::Retire => Grace::RETIRE,
            Manner::Kill => Grace::NONE,
        };
        match self.workers.remove(&worker) {
            Some(Held::Starting(task)) => {
                task.abort();
                self.follow_up.push_back(Event::StartFailed(worker));
            }
            Some(Held::Live(handle)) => {
                if manner == Manner::Retire {
                    handle.writer.send(shutdown_frame());
                }
                let _ = handle.control.send(Control::Stop(grace));
                self.workers.insert(worker, Held::Leaving(handle.control));
            }
            Some(Held::Leaving(control)) => {
                let _ = control.send(Control::Stop(grace));
                self.workers.insert(worker, Held::Leaving(control));
            }
            None => {}
        }
    }

    fn finish(&mut self, call: CallId, verdict: Verdict) {
        let Some(mut open) = self.calls.remove(&call) else { return };
        let tool = &open.job.tool;
        let ended = match verdict {
            Verdict::Answered(_) => open.answer.take().unwrap_or_else(|| Err(lost(tool))),
            Verdict::Died(worker) => {
                Err(self.deaths.get(&worker).map_or_else(|| lost(tool), |death| died_fault(tool, death)))
            }
            Verdict::StartFailed(worker) => Err(self.faults.get(&worker).cloned().unwrap_or_else(|| lost(tool))),
            Verdict::TimedOut { worker, stopped } => {
                let stack = match self.workers.get(&worker) {
                    Some(Held::Live(handle)) => handle.stack.lock().clone(),
                    _ => worker::Stack::default(),
                };
                Err(timeout_fault(tool, &self.file, open.job.timeout, &stack, stopped))
            }
            Verdict::Cancelled => Err(Fault::new(Code::Cancelled, format!("the call of {tool} was cancelled"))),
            Verdict::Busy { waiting, retry_after } => Err(super::desk::busy(tool, waiting, retry_after)),
            Verdict::ShuttingDown => Err(super::desk::closed(tool)),
        };
        open.settle(ended);
    }
}

/// A call whose answer is nowhere: a fault of ours, told as one instead of a silence.
fn lost(tool: &str) -> Fault {
    Fault::new(Code::SystemError, format!("hostler lost the answer of {tool}; please report this"))
}

/// One timer for the whole pool. It is only ever moved to an earlier time; ringing early is harmless and cheaper than
/// being set anew with every call.
struct Alarm {
    sleep: Pin<Box<Sleep>>,
    armed: Option<Instant>,
}

impl Alarm {
    fn new() -> Self {
        Self { sleep: Box::pin(sleep_until(Instant::now())), armed: None }
    }

    fn arm(&mut self, at: Option<Instant>) {
        let Some(at) = at else { return };
        if self.armed.is_none_or(|armed| at < armed) {
            self.sleep.as_mut().reset(at);
            self.armed = Some(at);
        }
    }

    fn disarm(&mut self) {
        self.armed = None;
    }

    async fn rings(&mut self) {
        match self.armed {
            Some(_) => self.sleep.as_mut().await,
            None => std::future::pending().await,
        }
    }
}
