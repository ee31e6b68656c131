//! What workers tell the loop, made into events and passed on to callers.

use std::path::Path;

use serde_json::value::RawValue;

use super::actor::{Actor, Held};
use super::desk;
use super::event::{CallId, Event, WorkerId};
use super::perform::PING;
use crate::outcome::Fault;
use crate::protocol::{HostMethod, Incoming};
use crate::worker::{self, LogLine, News};

impl Actor {
    pub(super) fn news(&mut self, worker: WorkerId, news: News) {
        match news {
            News::Frame(Incoming::Reply { id, .. }) if id == PING.0 => self.step(Event::Pong(worker)),
            News::Frame(Incoming::Reply { id, answer }) => {
                let cancelled = worker::is_cancelled(&answer);
                let answer = |tool: &str, file: &Path| answer.map_err(|error| worker::error_fault(tool, file, &error));
                self.answered(worker, CallId(id), cancelled, answer);
            }
            News::Oversized { id: Some(id), bytes } => {
                self.answered(worker, CallId(id), false, |tool, _: &Path| Err(worker::oversized_fault(tool, bytes)));
            }
            News::Oversized { id: None, bytes } => tracing::warn!(bytes, "dropped an overlong line of a worker"),
            News::Frame(Incoming::Output(note)) => {
                let call = self.named(worker, note.id);
                self.printed(call, &note.stream, &note.text);
            }
            News::Stderr(text) => self.printed(self.machine.running(worker), "stderr", &text),
            News::Frame(Incoming::Progress(mut note)) => {
                let call = self.named(worker, note.id);
                if let Some(open) = call.and_then(|call| self.calls.get(&call)) {
                    open.progress(&mut note);
                }
            }
            News::Log(line) => {
                let call = self.logging(worker, &line).and_then(|call| self.calls.get(&call));
                desk::log(call, self.scrub.as_deref(), &self.file, line);
            }
            News::Frame(Incoming::Ask { id, call, method, params }) => {
                let call = self.named(worker, call);
                self.ask(worker, call, id, method, params);
            }
            News::Frame(Incoming::UnknownRequest { id, method }) => {
                if let Some(Held::Live(handle)) = self.workers.get(&worker) {
                    handle.writer.reply(&id, Err(&desk::unknown(&method)));
                }
            }
            // Heard where the worker was started.
            News::Frame(Incoming::Described(_)) => {}
            News::Frame(Incoming::Unknown(method)) => tracing::debug!(method, "unknown notification of a worker"),
            News::Died(death) => {
                let held = self.workers.remove(&worker);
                let (pid, why) = held.as_ref().map_or((None, None), |held| (held.pid(), held.why()));
                tracing::info!(file = %self.file.display(), pid, exit = %death.exit, why, "worker gone");
                self.tally.exited(pid.unwrap_or_default(), death.exit.to_string(), why);
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
        // A tool that writes frames of its own may name a call of another worker.
        if !self.machine.holds(worker, call) {
            // Whoever writes a worker looks for this when a call runs out of time.
            tracing::info!(file = %self.file.display(), id = call.0, "a worker answered a call that it was not given");
            return;
        }
        if let Some(open) = self.calls.get_mut(&call) {
            open.answer = Some(answer(&open.job.tool, &self.file));
        }
        self.step(Event::Answered { worker, call, cancelled });
        // The next call in the worker's line begins now.
        if let Some(open) = self.machine.running(worker).and_then(|call| self.calls.get_mut(&call)) {
            open.begins();
        }
    }

    /// The call that a worker names, if it is one that it runs. Without a name it is the one that runs, if it is alone.
    fn named(&self, worker: WorkerId, id: Option<u64>) -> Option<CallId> {
        match id.map(CallId) {
            Some(call) => self.machine.has_begun(worker, call).then_some(call),
            None => self.machine.running(worker).filter(|_| self.knows_whose()),
        }
    }

    /// Whether what a worker says without a name is its only call's. One that runs several names the call where there is one:
    /// what has no name comes from a thread of nobody's, or of a call that has ended.
    fn knows_whose(&self) -> bool {
        self.machine.rules().concurrency == 1
    }

    /// The call that a log line names by the id that callers know, likewise. Other loggers may mean something else by that
    /// word, which does no harm where only one call runs.
    fn logging(&self, worker: WorkerId, line: &LogLine) -> Option<CallId> {
        let running = || self.machine.running(worker).filter(|_| self.knows_whose());
        let Some(name) = line.fields.get("call").and_then(|name| name.as_str()) else { return running() };
        let is_meant = |call: &CallId| self.calls.get(call).is_some_and(|open| open.job.call_id == name);
        self.machine.begun(worker).find(is_meant).or_else(running)
    }

    fn printed(&mut self, call: Option<CallId>, stream: &str, text: &str) {
        if let Some(open) = call.and_then(|call| self.calls.get_mut(&call)) {
            open.print(stream, text);
        } else {
            let text = self.scrub.as_ref().map_or(text.into(), |scrub| scrub.text(text));
            tracing::debug!(file = %self.file.display(), text = text.trim_end(), "output outside of a call");
        }
    }

    /// A question from inside a running call, answered in a task that ends with the call.
    fn ask(
        &mut self,
        worker: WorkerId,
        call: Option<CallId>,
        id: Box<RawValue>,
        method: HostMethod,
        params: Box<RawValue>,
    ) {
        let Some(Held::Live(handle)) = self.workers.get(&worker) else { return };
        let writer = handle.writer.clone();
        let asking = call.and_then(|call| self.calls.get_mut(&call));
        match asking.and_then(|open| Some((open.job.host.clone()?, open))) {
            Some((host, open)) => {
                let left = open.job.timeout.saturating_sub(open.run_time().unwrap_or_default());
                let ask = worker::Ask { method, params, left };
                // Of those that were answered nobody wants to hear any more.
                while open.questions.try_join_next().is_some() {}
                open.questions.spawn(async move {
                    let answer = host.answer(ask).await;
                    writer.reply(&id, answer.as_deref());
                });
            }
            None => writer.reply(&id, Err(&desk::refusal())),
        }
    }
}
