//! What `rounds` decides is done here: senders of answers, handles of calls without an open request, signed states.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::RequestStateCodec;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::call::CallReply;
use super::message;
use super::open_requests::Running;
use super::rounds::{Continuation, Effect, Event, Refusal, Responses, Rounds};
use super::session::{McpSession, Refused};
use crate::call::{Asking, CallHandle, ClientError};
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
}

impl RoundTrips {
    pub fn new() -> Self {
        let mut key = [0; 32];
        let codec = getrandom::fill(&mut key).ok().and_then(|()| RequestStateCodec::try_new(key).ok());
        Self { rounds: Rounds::new(Instant::now()), codec, askers: HashMap::new(), handles: HashMap::new() }
    }

    fn step(&mut self, event: Event<'_>) -> Vec<Effect> {
        self.rounds.step(Instant::now(), event)
    }

    /// The call has ended.
    pub fn ended(&mut self, outcome: &Arc<Outcome>) {
        if !self.rounds.is_empty() {
            // No effect follows.
            let _ = self.step(Event::Ended(outcome));
            self.handles.remove(&outcome.call_id);
        }
    }
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
        let effects = {
            let mut trips = self.round_trips().lock();
            if given.is_none() && trips.rounds.is_empty() || handle.has_ended() {
                return;
            }
            trips.step(Event::Begun { call: handle.id(), given })
        };
        let _ = self.perform(effects, None);
    }

    /// Asks the client in its next answer.
    pub fn asks(self: &Arc<Self>, asking: Asking, request: Value) -> Result<OpenQuestion, ClientError> {
        let (call, (sender, answer)) = (asking.call_id.clone(), oneshot::channel());
        let (effects, number) = {
            let mut trips = self.round_trips().lock();
            let is_open = self.open_requests().lock().has_call(&call);
            let effects = trips.step(Event::Asked { asking, request, is_open });
            let numbered = effects.iter().find_map(|effect| match effect {
                Effect::Numbered(number) => Some(*number),
                _ => None,
            });
            if let Some(number) = numbered {
                trips.askers.insert((call.clone(), number), sender);
            }
            (effects, numbered.unwrap_or_default())
        };
        let question = OpenQuestion { session: Arc::downgrade(self), call, number, answer };
        match self.perform(effects, None) {
            Ok(()) => Ok(question),
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
        let effects = {
            let mut trips = self.round_trips().lock();
            let state = trips.codec.as_ref().and_then(|codec| codec.open_json(state).ok());
            match state {
                Some(state) => trips.step(Event::Continued { state, request, responses }),
                None => vec![Effect::Refuse(Refusal::InvalidState)],
            }
        };
        self.perform(effects, Some(reply)).map_err(|refusal| refused(&refusal))
    }

    /// Performs effects in their order, for a request that waits if there is one. Its refusal is returned.
    fn perform(self: &Arc<Self>, effects: Vec<Effect>, mut reply: Option<CallReply>) -> Result<(), Refusal> {
        let mut result = Ok(());
        for effect in effects {
            match effect {
                Effect::Numbered(_) => {}
                Effect::Gather(call) => self.gather(call),
                Effect::Deliver { call, number, answer } => {
                    let asker = self.round_trips().lock().askers.remove(&(call, number));
                    asker.map(|asker| asker.send(answer));
                }
                Effect::Require { call, state, questions } => {
                    let mut trips = self.round_trips().lock();
                    let Some(state) = trips.codec.as_ref().and_then(|codec| codec.seal_json(&state).ok()) else {
                        continue;
                    };
                    let result =
                        json!({"resultType": "input_required", "inputRequests": questions, "requestState": state});
                    for (id, handle) in self.open_requests().lock().take_of(&call) {
                        match trips.handles.get(&call) {
                            Some(_) => handle.release(),
                            None => drop(trips.handles.insert(call.clone(), handle)),
                        }
                        self.reply(&id, &message::result(&id, &result));
                    }
                }
                Effect::Resume(call) => result = self.resume(&call, reply.take()),
                Effect::Answer(outcome) => {
                    if let Some(reply) = &reply {
                        self.answer(&reply.id, reply.number, &outcome, reply.rules, &reply.shape);
                    }
                }
                Effect::Refuse(refusal) => result = Err(refusal),
            }
        }
        result
    }

    /// Lets a request wait for a call.
    fn resume(&self, call: &str, reply: Option<CallReply>) -> Result<(), Refusal> {
        let Some(reply) = reply else { return Ok(()) };
        let own = self.round_trips().lock().handles.remove(call);
        // A repeated request: the first one is still open.
        let handle = own.or_else(|| self.open_requests().lock().join(call)).ok_or(Refusal::HasEnded)?;
        let (id, number) = (reply.id.clone(), reply.number);
        let listener: Arc<dyn Listener> = Arc::new(reply);
        handle.listen(&listener);
        self.open_requests().lock().set(&id, number, Running::Call(handle));
        Ok(())
    }

    fn gather(self: &Arc<Self>, call: String) {
        let session = Arc::downgrade(self);
        spawn(async move {
            tokio::time::sleep(GATHER).await;
            if let Some(session) = session.upgrade() {
                let effects = session.round_trips().lock().step(Event::Gathered { call: &call });
                let _ = session.perform(effects, None);
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
