//! Carries out the machine's effects: starts, messages and stops workers, answers callers.

use std::sync::Arc;

use super::actor::{Actor, Message, WorkerProcess};
use super::admission::Full;
use super::event::{CallId, Effect, Event, StopMode, Verdict, WorkerId};
use super::job::SessionId;
use super::open_call::{self, OpenCall};
use crate::outcome::{Cancelled, Canceller, Code, Fault};
use crate::process::Grace;
use crate::worker::{self, Control, EventSender, StartNotes, died_fault, held_up_fault, timeout_fault};

/// The request id of a ping; calls are numbered from 1.
pub(super) const PING: CallId = CallId(worker::PING_ID);

impl Actor {
    /// What workers keep for a session ends with it.
    pub(super) fn session_ended(&mut self, session: SessionId) {
        let session = session.for_tools();
        for worker in self.workers.values_mut() {
            if let WorkerProcess::Live(handle) = worker
                && handle.sessions.as_mut().is_some_and(|served| served.remove(&session))
            {
                handle.writer.session_ended(session);
            }
        }
    }

    pub(super) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Start(worker) => self.start(worker),
            Effect::Send { worker, call } => self.send(worker, call),
            Effect::Withdraw { worker, call } => {
                if let Some(WorkerProcess::Live(handle)) = self.workers.get(&worker) {
                    handle.writer.cancel(call.0);
                }
            }
            Effect::Recall { worker, call } => {
                if let Some(WorkerProcess::Live(handle)) = self.workers.get(&worker) {
                    handle.writer.recall(call.0);
                }
            }
            Effect::Resume(call) => self.resume(call),
            Effect::Interrupt { worker, call } => {
                if let Some(WorkerProcess::Live(handle)) = self.workers.get(&worker) {
                    let control = handle.control.clone();
                    if handle.ends_by_interruption {
                        self.follow_up.push_back(Event::Ends(worker));
                    }
                    handle.writer.cancel_then(call.0, move || {
                        let _ = control.send(Control::Interrupt);
                    });
                }
            }
            Effect::Nudge(worker) => {
                if let Some(WorkerProcess::Live(handle)) = self.workers.get(&worker) {
                    let _ = handle.control.send(Control::Interrupt);
                }
            }
            Effect::TakeStack { worker, call } => {
                if let Some(WorkerProcess::Live(handle)) = self.workers.get(&worker) {
                    handle.stack.lock().clear();
                    let call = (self.machine.rules().concurrency > 1).then_some(call.0);
                    let _ = handle.control.send(Control::TakeStack { call });
                }
            }
            Effect::Ping(worker) => {
                if let Some(WorkerProcess::Live(handle)) = self.workers.get(&worker) {
                    handle.writer.ping();
                }
            }
            Effect::Stop { worker, mode } => self.stop(worker, mode),
            Effect::Finish { call, verdict } => self.finish(call, verdict),
            Effect::Tell(decision) => self.tell(decision),
            Effect::Empty => self.done = true,
        }
    }

    fn start(&mut self, worker: WorkerId) {
        let (events, notes) = (self.event_sender(worker), self.note_sender());
        let starting = self.launcher.launch(events, notes);
        let sender = self.sender.clone();
        let task = tokio::spawn(async move {
            let outcome = starting.await;
            let _ = sender.send(Message::Started(worker, outcome));
        });
        self.workers.insert(worker, WorkerProcess::Starting(task.abort_handle()));
    }

    fn event_sender(&self, worker: WorkerId) -> EventSender {
        let sender = self.sender.clone();
        let send = move |events| {
            let _ = sender.send(Message::WorkerEvent(worker, events));
        };
        EventSender::new(send, Arc::clone(&self.flow))
    }

    fn note_sender(&self) -> StartNotes {
        let sender = self.sender.clone();
        Arc::new(move |note| {
            let _ = sender.send(Message::Note(note));
        })
    }

    fn send(&mut self, worker: WorkerId, call: CallId) {
        let first = self.machine.has_begun(worker, call);
        let (Some(WorkerProcess::Live(handle)), Some(open)) =
            (self.workers.get_mut(&worker), self.calls.get_mut(&call))
        else {
            return;
        };
        if let Some(served) = &mut handle.sessions {
            served.insert(open.job.caller.session.for_tools());
        }
        tracing::debug!(call = open.job.call_id, tool = open.job.tool, pid = handle.pid, "call sent to a worker");
        if let Err(fault) = open.sent_to((handle.pid, handle.process_started), first) {
            // As if the worker had said so: it is free for the next one.
            open.answer = Some(Err(fault));
            self.follow_up.push_back(Event::Answered { worker, call, cancelled: false });
            return;
        }
        open.goes_on();
        let is_idle = self.machine.running(worker) == Some(call);
        handle.writer.call(&open.frame(call), is_idle);
    }

    fn stop(&mut self, worker: WorkerId, mode: StopMode) {
        let grace = match mode {
            StopMode::Retire => Grace::RETIRE,
            StopMode::Kill => Grace::NONE,
        };
        match self.workers.remove(&worker) {
            Some(WorkerProcess::Starting(task)) => {
                task.abort();
                self.why_stop = None;
                self.follow_up.push_back(Event::StartFailed { worker, by_itself: false });
            }
            Some(WorkerProcess::Live(handle)) => {
                let _ = handle.control.send(Control::Stop(grace, Some(handle.writer)));
                let why = self.why_stop.take().unwrap_or("hostler is shutting down");
                self.workers.insert(worker, WorkerProcess::Leaving(handle.pid, why, handle.control));
            }
            Some(WorkerProcess::Leaving(pid, why, control)) => {
                let _ = control.send(Control::Stop(grace, None));
                self.workers.insert(worker, WorkerProcess::Leaving(pid, why, control));
            }
            None => {}
        }
    }

    /// The stack of an overdue call: from its answer if it obeyed the interruption, otherwise as its worker printed it.
    fn place_of(&self, worker: WorkerId, open: &OpenCall) -> worker::Stack {
        let known = open.answer.as_ref().and_then(|answer| answer.as_ref().err()?.details.traceback.as_deref());
        if let Some(text) = known {
            return worker::Stack::of_traceback(text);
        }
        let Some(WorkerProcess::Live(handle)) = self.workers.get(&worker) else { return worker::Stack::default() };
        let stack = handle.stack.lock();
        if self.machine.rules().concurrency > 1 { stack.running(&self.file, &open.job.function) } else { stack.clone() }
    }

    fn finish(&mut self, call: CallId, verdict: Verdict) {
        let Some(mut open) = self.calls.remove(&call) else { return };
        let tool = &open.job.tool;
        let ended = match verdict {
            Verdict::Answered(_) => open.answer.take().unwrap_or_else(|| Err(lost(tool))),
            Verdict::Died(worker) => {
                let known = self.deaths.get(&worker);
                let known = known.map(|(death, beside)| died_fault(tool, &self.file, death, *beside));
                let mut fault = known.unwrap_or_else(|| lost(tool));
                fault.details.stderr = open.last_words().or(fault.details.stderr);
                self.death_fault = Some(fault.clone());
                Err(fault)
            }
            Verdict::StartFailed(worker) => Err(self.faults.get(&worker).cloned().unwrap_or_else(|| lost(tool))),
            Verdict::StillFailing { times, retry_after } => {
                Err(open_call::still_failing(self.start_fault.as_ref(), tool, times, retry_after))
            }
            Verdict::TimedOut { worker, stopped } => {
                let stack = self.place_of(worker, &open);
                Err(timeout_fault(tool, &self.file, open.job.timeout, &stack, stopped))
            }
            Verdict::HeldUp => Err(held_up_fault(tool)),
            Verdict::Cancelled => Err(open
                .job
                .cancellation
                .why()
                .map_or_else(|| Cancelled::by(Canceller::Caller).fault(tool), |why| why.fault(tool))),
            Verdict::Broken { times, retry_after } => {
                Err(open_call::broken_down(self.death_fault.as_ref(), tool, times, retry_after))
            }
            Verdict::Busy { waiting, overall, retry_after } => {
                Err(open_call::busy(tool, Full { waiting, overall }, retry_after))
            }
            Verdict::ShuttingDown => Err(open_call::closed(tool)),
        };
        self.tally.ended(open.run_time(), ended.is_err());
        open.settle(ended);
    }
}

/// The fault for a missing answer, which is a bug of hostler.
fn lost(tool: &str) -> Fault {
    Fault::new(Code::SystemError, format!("hostler lost the answer of {tool}; please report this bug"))
}
