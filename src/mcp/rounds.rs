//! Calls that ask their client, from 2026-07-28 on. A question ends the open request with `input_required`, the call stays
//! in its worker, and the client's next request carries the answers and the `requestState` that names the call.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{RequestStateCodec, SealOptions};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::call::CallReply;
use super::message;
use super::open_requests::Running;
use super::session::{McpSession, Refused};
use crate::call::{Asking, CallHandle, ClientError};
use crate::outcome::Outcome;
use crate::pool::Listener;
use crate::telemetry::spawn;

/// How long further questions of a call are waited for: those of several threads go together.
const GATHER: Duration = Duration::from_millis(20);
/// How long the outcome of a call that asked is kept for a repeated request, how many of them, and up to which size.
const KEEP: Duration = Duration::from_mins(5);
const KEPT: usize = 16;
const MAX_KEPT: usize = 1 << 20;

/// The calls of one session that have asked.
pub(super) struct Rounds {
    /// Its key is the session's own, so that no other session can use its states. `None` without randomness.
    codec: Option<RequestStateCodec>,
    of_call: HashMap<String, Round>,
}

#[derive(Default)]
struct Round {
    tool: String,
    arguments: Option<Box<RawValue>>,
    /// Without an answer, by key.
    questions: BTreeMap<String, Question>,
    /// Answers that came before their questions.
    given: BTreeMap<String, Value>,
    asked: u32,
    limit: Duration,
    /// Whether the open requests are about to be answered.
    is_gathering: bool,
    /// The call, while no request is open.
    handle: Option<CallHandle>,
    ended: Option<(Instant, Kept)>,
}

/// What is left of a call that has ended.
#[derive(Clone)]
enum Kept {
    Outcome(Arc<Outcome>),
    /// It was too large.
    Nothing,
}

struct Question {
    /// Its number among the questions of the call.
    number: u32,
    request: Value,
    answer: oneshot::Sender<Value>,
}

/// The content of a `requestState`.
#[derive(Serialize, Deserialize)]
struct State {
    call: String,
    /// The newest question that it answers.
    asked: u32,
}

/// The answers of a client, by key.
pub(super) type Responses = BTreeMap<String, Value>;

impl Rounds {
    pub fn new() -> Self {
        let mut key = [0; 32];
        let codec = getrandom::fill(&mut key).ok().and_then(|()| RequestStateCodec::try_new(key).ok());
        Self { codec, of_call: HashMap::new() }
    }

    /// The call has ended: nothing waits any more, and a repeated request gets the outcome.
    pub fn ended(&mut self, outcome: &Arc<Outcome>) {
        if self.of_call.is_empty() {
            return;
        }
        let size = outcome.ended.as_ref().map_or(0, |result| result.get().len());
        match self.of_call.get_mut(&outcome.call_id) {
            Some(round) if round.asked > 0 => {
                let kept = if size <= MAX_KEPT { Kept::Outcome(Arc::clone(outcome)) } else { Kept::Nothing };
                round.questions.clear();
                (round.handle, round.ended) = (None, Some((Instant::now(), kept)));
            }
            Some(_) => drop(self.of_call.remove(&outcome.call_id)),
            None => {}
        }
        self.forget();
    }

    fn forget(&mut self) {
        self.of_call.retain(|_, round| round.ended.as_ref().is_none_or(|(at, _)| at.elapsed() < KEEP));
        let ended = self.of_call.iter().filter_map(|(call, round)| Some((round.ended.as_ref()?.0, call.clone())));
        let mut ended: Vec<_> = ended.collect();
        if ended.len() > KEPT {
            ended.sort_unstable();
            for (_, call) in &ended[..ended.len() - KEPT] {
                self.of_call.remove(call);
            }
        }
    }

    /// The call that a request continues, if the state is ours, has not expired and belongs to this tool and these
    /// arguments.
    fn continued(&mut self, state: &str, request: &Continuation) -> Result<(State, &mut Round), Refused> {
        let codec = self.codec.as_ref().ok_or_else(invalid_state)?;
        let state: State = codec.open_json(state).map_err(|_| invalid_state())?;
        let round = self.of_call.get_mut(&state.call).ok_or_else(has_ended)?;
        if request.is_of(round) { Ok((state, round)) } else { Err(invalid_state()) }
    }
}

impl Round {
    /// Passes answers on. Keys without a question are ignored, and so are questions that are newer than the state: a
    /// repeated request must not answer what was not asked yet.
    fn answer(&mut self, responses: Responses, newest: u32) {
        for (key, value) in responses {
            if self.questions.get(&key).is_some_and(|question| question.number <= newest)
                && let Some(question) = self.questions.remove(&key)
            {
                let _ = question.answer.send(value);
            }
        }
    }

    /// Questions of calls that have stopped waiting are withdrawn.
    fn open_questions(&mut self) -> &BTreeMap<String, Question> {
        self.questions.retain(|_, question| !question.answer.is_closed());
        &self.questions
    }
}

/// What a request that continues a call says besides its state.
pub(super) struct Continuation {
    /// The tool's full name, or the given one if the tool is not there any more.
    pub tool: String,
    /// The arguments as its worker gets them, or as they were given if it would not get them.
    pub arguments: Value,
}

impl Continuation {
    fn is_of(&self, round: &Round) -> bool {
        let asked = round.arguments.as_deref().map(|raw| serde_json::from_str::<Value>(raw.get()).unwrap_or_default());
        round.tool.replace('.', "_") == self.tool.replace('.', "_") && asked.is_none_or(|asked| asked == self.arguments)
    }
}

impl McpSession {
    /// A request has begun or joined a call: answers may have come with it, and questions may be open already.
    pub fn begun(self: &Arc<Self>, handle: &CallHandle, given: Option<Responses>) {
        let mut rounds = self.rounds().lock();
        if given.is_none() && rounds.of_call.is_empty() || handle.has_ended() {
            return;
        }
        let call = handle.id();
        if let Some(given) = given {
            let round = rounds.of_call.entry(call.to_owned()).or_default();
            let (open, ahead) = given.into_iter().partition(|(key, _)| round.questions.contains_key(key));
            round.answer(open, u32::MAX);
            round.given.extend::<Responses>(ahead);
        }
        if let Some(round) = rounds.of_call.get_mut(call)
            && !round.open_questions().is_empty()
        {
            self.gather(call.to_owned(), round);
        }
    }

    /// Asks the client in its next answer.
    pub fn asks(self: &Arc<Self>, asking: Asking, request: Value) -> Result<oneshot::Receiver<Value>, ClientError> {
        let Asking { call_id, tool, arguments, key, limit } = asking;
        let (sender, answer) = oneshot::channel();
        let mut rounds = self.rounds().lock();
        // The call may have ended just now.
        if !rounds.of_call.contains_key(&call_id) && !self.open_requests().lock().has_call(&call_id) {
            return Err(ClientError::Failed("the call has ended".to_owned()));
        }
        let round = rounds.of_call.entry(call_id.clone()).or_default();
        if round.ended.is_some() {
            return Err(ClientError::Failed("the call has ended".to_owned()));
        }
        round.asked += 1;
        let key = key.unwrap_or_else(|| format!("question_{}", round.asked));
        if let Some(given) = round.given.remove(&key) {
            let _ = sender.send(given);
            return Ok(answer);
        }
        if round.open_questions().contains_key(&key) {
            let text = format!("another question of this call has the key {key:?} and is still open; use another key");
            return Err(ClientError::Failed(text));
        }
        (round.tool, round.arguments, round.limit) = (tool, arguments, round.limit.max(limit));
        round.questions.insert(key, Question { number: round.asked, request, answer: sender });
        self.gather(call_id, round);
        Ok(answer)
    }

    fn gather(self: &Arc<Self>, call: String, round: &mut Round) {
        if std::mem::replace(&mut round.is_gathering, true) {
            return;
        }
        let session = Arc::downgrade(self);
        spawn(async move {
            tokio::time::sleep(GATHER).await;
            if let Some(session) = session.upgrade() {
                session.require_input(&call);
            }
        });
    }

    /// Answers the open requests of a call with its open questions.
    fn require_input(&self, call: &str) {
        let mut rounds = self.rounds().lock();
        let Rounds { codec, of_call } = &mut *rounds;
        let (Some(codec), Some(round)) = (codec, of_call.get_mut(call)) else { return };
        round.is_gathering = false;
        if round.open_questions().is_empty() {
            return;
        }
        let state = State { call: call.to_owned(), asked: round.asked };
        let Ok(state) = codec.seal_json_with(&state, &SealOptions::new().ttl(round.limit + KEEP)) else { return };
        let questions = round.questions.iter().map(|(key, question)| (key.clone(), question.request.clone()));
        let questions: Map<String, Value> = questions.collect();
        let result = json!({"resultType": "input_required", "inputRequests": questions, "requestState": state});
        let open = self.open_requests().lock().take_of(call);
        for (id, handle) in open {
            match &round.handle {
                Some(_) => handle.release(),
                None => round.handle = Some(handle),
            }
            self.reply(&id, &message::result(&id, &result));
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
        let (id, number) = (reply.id.clone(), reply.number);
        let (State { call, asked }, handle) = {
            let mut rounds = self.rounds().lock();
            let (state, round) = rounds.continued(state, request)?;
            if let Some((_, kept)) = round.ended.clone() {
                drop(rounds);
                let Kept::Outcome(outcome) = kept else { return Err(has_ended()) };
                self.answer(&id, number, &outcome, reply.rules, &reply.shape);
                return Ok(());
            }
            (state, round.handle.take())
        };
        // A repeated request: the first one is still open.
        let handle = handle.or_else(|| self.open_requests().lock().join(&call)).ok_or_else(has_ended)?;
        let listener: Arc<dyn Listener> = Arc::new(reply);
        handle.listen(&listener);
        self.open_requests().lock().set(&id, number, Running::Call(handle));
        let mut rounds = self.rounds().lock();
        if let Some(round) = rounds.of_call.get_mut(&call) {
            round.answer(responses, asked);
            if !round.open_questions().is_empty() {
                self.gather(call, round);
            }
        }
        Ok(())
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

/// The state is ours, and its call is not there any more.
fn has_ended() -> Refused {
    ErrorData::invalid_params(
        "the call of this requestState has ended, and its outcome is not kept any more; call the tool again without \
         requestState if it may run twice",
        None,
    )
}

/// One sentence for every reason, so that a forger learns nothing.
fn invalid_state() -> Refused {
    ErrorData::invalid_params(
        "requestState is not valid: it was changed, has expired, belongs to another tool or other arguments, or hostler was \
         restarted since; call the tool again without requestState",
        None,
    )
}
