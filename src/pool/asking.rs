//! Requests of calls to hostler, and what they wait for: another tool, or the client.

use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::actor::{Actor, Message, WorkerProcess};
use super::event::{CallId, Event, WorkerId};
use super::open_call;
use crate::outcome::Code;
use crate::protocol::{HostMethod, WireError, wire_code};
use crate::worker::{Ask, OpenRequest, Waits};

/// An answer of the client on its way to the call that asked.
pub(super) struct HeldAnswer {
    request: OpenRequest,
    answer: Result<Box<RawValue>, WireError>,
}

impl HeldAnswer {
    fn deliver(self) {
        self.request.reply(self.answer.as_deref());
    }
}

impl Actor {
    /// A tool's request during a call, answered in a task that ends with the call.
    pub(super) fn ask(
        &mut self,
        worker: WorkerId,
        call: Option<CallId>,
        id: Box<RawValue>,
        method: HostMethod,
        params: Box<RawValue>,
    ) {
        let Some(WorkerProcess::Live(handle)) = self.workers.get(&worker) else { return };
        let Some(request) = handle.writer.accept(id, &params) else { return };
        let asking = call.and_then(|call| Some((call, self.calls.get(&call)?.job.host.clone()?)));
        let Some((call, host)) = asking else { return request.reply(Err(&open_call::of_no_call())) };
        // What the client does not offer is refused without a wait.
        let waits_for_client = host.waits_for_client(method);
        if waits_for_client {
            self.asks(call, false);
            if !self.machine.is_parked(call) {
                self.goes_on(call, None);
                let is_ending = !self.machine.may_ask(call);
                let refusal = if is_ending { open_call::of_no_call() } else { self.too_many_ask() };
                return request.reply(Err(&refusal));
            }
        }
        let sender = self.sender.clone();
        let Some(open) = self.calls.get_mut(&call) else { return };
        let waits: Arc<dyn Waits> = Arc::new(Outer { sender: sender.clone(), call, attempt: open.attempt() });
        let left = open.job.timeout.saturating_sub(open.run_time().unwrap_or_default());
        let arguments = Some(open.arguments());
        let ask = Ask { method, params, left, arguments, waits: Some(waits) };
        // Drop the tasks of requests that have ended.
        while open.questions.try_join_next().is_some() {}
        open.questions.spawn(async move {
            let held = HeldAnswer { answer: host.answer(ask).await, request };
            if waits_for_client {
                let _ = sender.send(Message::ClientAnswered(worker, call, held));
            } else {
                held.deliver();
            }
        });
    }

    /// Whether a call is still run as it was when one asked for it.
    pub(super) fn is_attempt(&self, call: CallId, attempt: u32) -> bool {
        self.calls.get(&call).is_some_and(|open| open.attempt() == attempt)
    }

    /// A call asks its client, or waits for one that does.
    pub(super) fn asks(&mut self, call: CallId, is_outer: bool) {
        let Some(open) = self.calls.get_mut(&call) else { return };
        open.unanswered += 1;
        if open.unanswered > 1 {
            return;
        }
        self.step(Event::Park { call, is_outer });
        if self.machine.is_parked(call)
            && let Some(open) = self.calls.get_mut(&call)
        {
            open.parks();
            // An answer that waited for a run permit, when the call asked again, waits no longer: the call is parked as it was.
            std::mem::take(&mut open.answers).into_iter().for_each(HeldAnswer::deliver);
            self.note_of_asking(None);
        }
    }

    pub(super) fn client_answered(&mut self, worker: WorkerId, call: CallId, answer: HeldAnswer) {
        // A repeated call runs in another worker and asks again.
        if self.machine.has_begun(worker, call) {
            self.goes_on(call, Some(answer));
        }
    }

    /// One question of a call is answered. With the last one the call goes on, once it has a run permit.
    pub(super) fn goes_on(&mut self, call: CallId, answer: Option<HeldAnswer>) {
        let Some(open) = self.calls.get_mut(&call) else { return };
        open.unanswered = open.unanswered.saturating_sub(1);
        open.answers.extend(answer);
        if open.unanswered == 0 {
            self.step(Event::Unpark(call));
        }
        let is_held = self.calls.get(&call).is_some_and(|open| open.unanswered == 0) && self.machine.is_parked(call);
        if !is_held {
            self.resume(call);
        }
    }

    /// Delivers the answers that a call waits for.
    pub(super) fn resume(&mut self, call: CallId) {
        let is_parked = self.machine.is_parked(call);
        let Some(open) = self.calls.get_mut(&call) else { return };
        if !is_parked {
            open.unparks();
        }
        std::mem::take(&mut open.answers).into_iter().for_each(HeldAnswer::deliver);
    }

    /// Callers whose calls wait for nothing but other callers' users read so: that of a new call, or all.
    pub(super) fn note_of_asking(&mut self, new: Option<CallId>) {
        if !self.machine.is_asking() {
            return;
        }
        let text = format!("{}: all workers wait for users to answer other calls", self.launcher.name());
        for call in self.machine.waiting().filter(|call| new.is_none_or(|new| new == *call)) {
            if let Some(open) = self.calls.get_mut(&call) {
                open.note(&text);
            }
        }
    }

    fn too_many_ask(&self) -> WireError {
        let most = self.shared.broker.lock().caps().parked();
        let message = format!(
            "{most} calls already wait for their users, which is the limit (a quarter of `max_workers`); try again later, or \
             raise `max_workers` under [limits] in hostler.toml"
        );
        let data = Some(serde_json::json!({"code": Code::Busy.word()}));
        WireError { code: wire_code::HOST_REFUSED, message, data }
    }
}

/// A call that waits for an inner call.
struct Outer {
    sender: mpsc::UnboundedSender<Message>,
    call: CallId,
    /// A later attempt waits for other calls.
    attempt: u32,
}

impl Waits for Outer {
    fn inner_asks(&self) {
        let _ = self.sender.send(Message::InnerAsks(self.call, self.attempt));
    }

    fn inner_goes_on(&self) {
        let _ = self.sender.send(Message::InnerGoesOn(self.call, self.attempt));
    }
}
