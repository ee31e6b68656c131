//! What `rounds` decides is done here: senders of answers, handles of calls without an open request, signed states.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::MutexGuard;
use rmcp::ErrorData;
use rmcp::model::{RequestId, RequestStateCodec};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::call::CallReply;
use super::message;
use super::open_requests::Running;
use super::rounds::{Continuation, Effect, Event, Refusal, Responses, Rounds, State};
use super::session::{McpSession, Refused};
use super::task_questions::TaskQuestions;
use crate::call::{Asking, CallHandle, ClientError, Hearing};
use crate::outcome::Outcome;
use crate::pool::Listener;
use crate::telemetry::spawn;

/// How long further questions of a call are waited for: those of several threads go together.
const GATHER: Duration = Duration::from_millis(20);

/// The calls of a session that have asked, and what waits for them.
pub(super) struct RoundTrips {
    rounds: Rounds,
    /// Its key is the session's own, so that no other session can use its states. `None` without randomness.
    codec: Option<RequestStateCodec>,
    /// What waits for an answer, by call and number.
    askers: HashMap<(String, u32), oneshot::Sender<Value>>,
    /// Calls while no request is open.
    handles: HashMap<String, CallHandle>,
    /// Where calls ask once they are tasks.
    tasks: HashMap<String, Arc<TaskQuestions>>,
}

impl RoundTrips {
    pub fn new() -> Self {
        let mut key = [0; 32];
        let codec = getrandom::fill(&mut key).ok().and_then(|()| RequestStateCodec::try_new(key).ok());
        Self {
            rounds: Rounds::new(Instant::now()),
            codec,
            askers: HashMap::new(),
            handles: HashMap::new(),
            tasks: HashMap::new(),
        }
    }

    fn step(&mut self, event: Event<'_>) -> Vec<Effect> {
        self.rounds.step(Instant::now(), event)
    }

    /// The call may become a task, which asks there.
    pub fn will_become_task(&mut self, call: &str, questions: Arc<TaskQuestions>) {
        self.tasks.insert(call.to_owned(), questions);
    }

    /// The call has ended.
    pub fn ended(&mut self, outcome: &Arc<Outcome>) {
        if !self.tasks.is_empty() {
            self.tasks.remove(&outcome.call_id);
        }
        if !self.rounds.is_empty() {
            // No effect follows.
            let _ = self.step(Event::Ended(outcome));
            self.handles.remove(&outcome.call_id);
        }
    }
}

/// Who causes an event, and what its effects need of them.
enum Cause {
    /// Neither a request nor a question.
    Other,
    /// A question of a call, and what waits for its answer.
    Question { call: String, asker: oneshot::Sender<Value> },
    /// A request that continues a call.
    Request(CallReply),
}

/// What is left to do once the session's state is as an event has made it, and unlocked: it may end calls or answer requests, which
/// are events again.
enum Deed {
    Gather(String),
    Deliver(oneshot::Sender<Value>, Value),
    Require(RequestId, Arc<Value>),
    Release(CallHandle),
    Listen(Hearing, CallReply),
    Answer(CallReply, Arc<Outcome>),
    Task(CallReply, String),
    Move(Arc<TaskQuestions>, String, Value, oneshot::Sender<Value>),
}

/// A question whose answer is waited for. Dropping it withdraws the question.
pub(super) struct OpenQuestion {
    session: Weak<McpSession>,
    call: String,
    number: u32,
    answer: oneshot::Receiver<Value>,
}

impl OpenQuestion {
    pub async fn answer(mut self) -> Option<Value> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let Some(session) = self.session.upgrade() else { return };
        let mut trips = session.round_trips().lock();
        trips.askers.remove(&(self.call.clone(), self.number));
        let _ = trips.step(Event::Withdrawn { call: &self.call, number: self.number });
    }
}

impl McpSession {
    /// A request has begun or joined a call.
    pub fn begun(self: &Arc<Self>, handle: &CallHandle, given: Option<Responses>) {
        let mut trips = self.round_trips().lock();
        if given.is_none() && trips.rounds.is_empty() || handle.has_ended() {
            return;
        }
        let effects = trips.step(Event::Begun { call: handle.id(), given });
        let _ = self.perform(trips, effects, Cause::Other);
    }

    /// Asks the client in its next answer.
    pub fn asks(self: &Arc<Self>, asking: Asking, request: Value) -> Result<OpenQuestion, ClientError> {
        let (call, (asker, answer)) = (asking.call_id.clone(), oneshot::channel());
        let mut trips = self.round_trips().lock();
        let is_open = self.open_requests().lock().has_call(&call);
        let effects = trips.step(Event::Asked { asking, request, is_open });
        match self.perform(trips, effects, Cause::Question { call: call.clone(), asker }) {
            Ok(number) => Ok(OpenQuestion { session: Arc::downgrade(self), call, number, answer }),
            Err(Refusal::KeyInUse(key)) => {
                let text =
                    format!("another question of this call has the key {key:?} and is still open; use another key");
                Err(ClientError::Failed(text))
            }
            Err(_) => Err(ClientError::Failed("the call has ended".to_owned())),
        }
    }

    /// A request that continues a call: its answers are passed on, and the call's outcome or its next question answers it.
    pub fn continue_call(
        self: &Arc<Self>,
        request: &Continuation,
        state: &str,
        responses: Responses,
        reply: CallReply,
    ) -> Result<(), Refused> {
        let mut trips = self.round_trips().lock();
        let state = trips.codec.as_ref().and_then(|codec| codec.open_json(state).ok());
        let effects = match state {
            Some(state) => trips.step(Event::Continued { state, request, responses }),
            None => vec![Effect::Refuse(Refusal::InvalidState)],
        };
        self.perform(trips, effects, Cause::Request(reply)).map(drop).map_err(|refusal| refused(&refusal))
    }

    /// Performs the effects of an event, in their order and before the next event. Returns the number of a question.
    fn perform(
        self: &Arc<Self>,
        mut trips: MutexGuard<'_, RoundTrips>,
        effects: Vec<Effect>,
        cause: Cause,
    ) -> Result<u32, Refusal> {
        let (mut question, mut reply) = match cause {
            Cause::Other => (None, None),
            Cause::Question { call, asker } => (Some((call, asker)), None),
            Cause::Request(reply) => (None, Some(reply)),
        };
        let (mut number, mut deeds) = (0, Vec::new());
        for effect in effects {
            match effect {
                Effect::Numbered(given) => {
                    number = given;
                    if let Some((call, asker)) = question.take() {
                        trips.askers.insert((call, number), asker);
                    }
                }
                Effect::Gather(call) => deeds.push(Deed::Gather(call)),
                Effect::Deliver { call, number, answer } => {
                    deeds.extend(trips.askers.remove(&(call, number)).map(|asker| Deed::Deliver(asker, answer)));
                }
                Effect::Require { call, state, questions } => {
                    deeds.extend(self.require(&mut trips, &call, &state, &questions));
                }
                Effect::Resume(call) => {
                    deeds.extend(reply.take().map(|reply| self.resume(&mut trips, &call, reply)).transpose()?);
                }
                Effect::Move { call, number, key, request } => {
                    let moved = trips.tasks.get(&call).cloned().zip(trips.askers.remove(&(call, number)));
                    deeds.extend(moved.map(|(task, asker)| Deed::Move(task, key, request, asker)));
                }
                Effect::Answer(outcome) => deeds.extend(reply.take().map(|reply| Deed::Answer(reply, outcome))),
                Effect::Refuse(refusal) => return Err(refusal),
            }
        }
        drop(trips);
        for deed in deeds {
            self.does(deed);
        }
        Ok(number)
    }

    fn does(self: &Arc<Self>, deed: Deed) {
        match deed {
            Deed::Gather(call) => self.gather(call),
            Deed::Deliver(asker, answer) => drop(asker.send(answer)),
            Deed::Require(id, result) => self.reply(&id, &message::result(&id, &result)),
            Deed::Release(handle) => handle.release(),
            Deed::Listen(hearing, reply) => {
                let listener: Arc<dyn Listener> = Arc::new(reply);
                hearing.listen(&listener);
            }
            Deed::Task(reply, call) => {
                let is_open = self.open_requests().lock().remove(&reply.id, reply.number);
                if is_open {
                    self.reply_task(&reply.id, &call);
                }
            }
            Deed::Move(task, key, request, asker) => drop(task.add(&key, request, asker)),
            Deed::Answer(reply, outcome) => self.answer(&reply.id, reply.number, &outcome, reply.rules, &reply.shape),
        }
    }

    /// The open requests of a call end with its questions. One of their handles is kept.
    fn require(&self, trips: &mut RoundTrips, call: &str, state: &State, questions: &Map<String, Value>) -> Vec<Deed> {
        let Some(state) = trips.codec.as_ref().and_then(|codec| codec.seal_json(state).ok()) else { return Vec::new() };
        let result =
            Arc::new(json!({"resultType": "input_required", "inputRequests": questions, "requestState": state}));
        let mut deeds = Vec::new();
        for (id, handle) in self.open_requests().lock().take_of(call) {
            match trips.handles.get(call) {
                Some(_) => deeds.push(Deed::Release(handle)),
                None => drop(trips.handles.insert(call.to_owned(), handle)),
            }
            deeds.push(Deed::Require(id, Arc::clone(&result)));
        }
        deeds
    }

    /// Lets a request wait for a call.
    fn resume(&self, trips: &mut RoundTrips, call: &str, reply: CallReply) -> Result<Deed, Refusal> {
        let mut open = self.open_requests().lock();
        // A repeated request: the first one is still open.
        let Some(handle) = trips.handles.remove(call).or_else(|| open.join(call)) else {
            // The answer with its id is lost.
            let is_task = self.service().seen(call).is_some_and(|call| call.background);
            return if is_task { Ok(Deed::Task(reply, call.to_owned())) } else { Err(Refusal::HasEnded) };
        };
        let hearing = handle.hearing();
        open.set(&reply.id, reply.number, Running::Call(handle));
        Ok(Deed::Listen(hearing, reply))
    }

    /// Open questions of a call that becomes a task wait to be asked for from now on.
    pub fn move_questions(self: &Arc<Self>, call: &str) {
        let mut trips = self.round_trips().lock();
        let effects = trips.step(Event::Detached { call });
        let _ = self.perform(trips, effects, Cause::Other);
        self.round_trips().lock().tasks.remove(call);
    }

    fn gather(self: &Arc<Self>, call: String) {
        let session = Arc::downgrade(self);
        spawn(async move {
            tokio::time::sleep(GATHER).await;
            if let Some(session) = session.upgrade() {
                let mut trips = session.round_trips().lock();
                let effects = trips.step(Event::Gathered { call: &call });
                let _ = session.perform(trips, effects, Cause::Other);
            }
        });
    }
}

/// The error for answers that are no objects, as every answer of a client is.
pub(super) fn check(responses: &Responses) -> Result<(), Refused> {
    match responses.iter().find(|(_, value)| !value.is_object()) {
        Some((key, _)) => {
            Err(ErrorData::invalid_params(format!("inputResponses.{key} must be an object, the client's result"), None))
        }
        None => Ok(()),
    }
}

/// One sentence for every reason of an invalid state, so that a forger learns nothing.
fn refused(refusal: &Refusal) -> Refused {
    let text = match refusal {
        Refusal::InvalidState | Refusal::KeyInUse(_) => {
            "requestState is not valid: it was changed, has expired, belongs to another tool or other arguments, or hostler was \
             restarted since; call the tool again without requestState"
        }
        Refusal::HasEnded => {
            "the call of this requestState has ended, and its outcome is not kept any more; call the tool again without \
             requestState if it may run twice"
        }
    };
    ErrorData::invalid_params(text, None)
}
