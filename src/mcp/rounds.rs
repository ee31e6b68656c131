//! Calls that ask their client, from 2026-07-28 on: what is asked of whom, and which request continues which call. A question
//! ends the open request with `input_required`, the call stays in its worker, and the client's next request carries the answers
//! and the `requestState` that names the call.
//!
//! Pure: the time is passed in, and `round_trips` performs the effects.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::call::Asking;
use crate::outcome::Outcome;

/// How long the outcome of a call that asked is kept for a repeated request, how many of them, and up to which size.
const KEEP: Duration = Duration::from_mins(5);
const KEPT: usize = 16;
const MAX_KEPT: usize = 1 << 20;

/// The answers of a client, by key.
pub(super) type Responses = BTreeMap<String, Value>;

/// The calls of one session that have asked.
pub(super) struct Rounds {
    began: Instant,
    of_call: HashMap<String, Round>,
}

#[derive(Default)]
struct Round {
    tool: String,
    arguments: Option<Arc<RawValue>>,
    /// Without an answer, by key.
    questions: BTreeMap<String, Question>,
    /// Answers that came before their questions.
    given: Responses,
    asked: u32,
    limit: Duration,
    /// Whether the open requests are about to be answered.
    is_gathering: bool,
    ended: Option<(Instant, Kept)>,
}

struct Question {
    /// Its number among the questions of the call.
    number: u32,
    request: Value,
}

/// What is left of a call that has ended.
#[derive(Clone)]
enum Kept {
    Outcome(Arc<Outcome>),
    /// It was too large.
    Nothing,
}

/// The content of a `requestState`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    call: String,
    /// The newest question that it answers.
    asked: u32,
    /// When it expires, in milliseconds of the session.
    until: u128,
}

/// What a request that continues a call says besides its state.
pub(super) struct Continuation {
    /// The tool's full name, or the given one if the tool is not there any more.
    pub tool: String,
    /// The arguments as its worker gets them, or as they were given if it would not get them.
    pub arguments: Value,
}

/// Something that happens to the calls of a session.
pub(super) enum Event<'a> {
    /// A request has begun or joined a call: answers may have come with it, and questions may be open already.
    Begun { call: &'a str, given: Option<Responses> },
    /// A call asks. `is_open` says whether it answers an open request.
    Asked { asking: Asking, request: Value, is_open: bool },
    /// A question needs no answer any more.
    Withdrawn { call: &'a str, number: u32 },
    /// A call goes on without its requests.
    Detached { call: &'a str },
    /// The questions of several threads had time to come together.
    Gathered { call: &'a str },
    /// A request continues a call. Its state was signed by this session.
    Continued { state: State, request: &'a Continuation, responses: Responses },
    /// A call has its outcome.
    Ended(&'a Arc<Outcome>),
}

/// What is to be done.
#[derive(Debug)]
pub(super) enum Effect {
    /// Report [`Event::Gathered`] after a pause: the questions of several threads go together.
    Gather(String),
    /// The question has this number.
    Numbered(u32),
    /// Pass an answer on to the call.
    Deliver { call: String, number: u32, answer: Value },
    /// Answer the open requests of the call with its open questions.
    Require { call: String, state: State, questions: Map<String, Value> },
    /// The question waits elsewhere from now on.
    Move { call: String, number: u32, key: String, request: Value },
    /// The request waits for the call.
    Resume(String),
    /// The request gets this outcome.
    Answer(Arc<Outcome>),
    /// The request or the question is refused.
    Refuse(Refusal),
}

/// Why a request or a question is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The state is not one of this session, has expired, or belongs to another tool or other arguments.
    InvalidState,
    /// The state is ours, and its call is not there any more.
    HasEnded,
    /// Another open question of the call has the key.
    KeyInUse(String),
}

impl Rounds {
    /// A session that begins now.
    pub fn new(now: Instant) -> Self {
        Self { began: now, of_call: HashMap::new() }
    }

    /// Whether no call has asked: then no call that goes by concerns it.
    pub fn is_empty(&self) -> bool {
        self.of_call.is_empty()
    }

    fn has(&self, call: &str) -> bool {
        self.of_call.contains_key(call)
    }

    /// Does what follows from an event.
    #[must_use]
    pub fn step(&mut self, now: Instant, event: Event<'_>) -> Vec<Effect> {
        match event {
            Event::Begun { call, given } => self.begun(call, given),
            Event::Asked { asking, request, is_open } => self.asked(asking, request, is_open),
            Event::Withdrawn { call, number } => {
                if let Some(round) = self.of_call.get_mut(call) {
                    round.questions.retain(|_, question| question.number != number);
                }
                Vec::new()
            }
            Event::Detached { call } => self.detached(call),
            Event::Gathered { call } => self.gathered(now, call).into_iter().collect(),
            Event::Continued { state, request, responses } => match self.continued(now, &state, request, responses) {
                Ok(effects) => effects,
                Err(refusal) => vec![Effect::Refuse(refusal)],
            },
            Event::Ended(outcome) => {
                self.ended(now, outcome);
                Vec::new()
            }
        }
    }

    fn begun(&mut self, call: &str, given: Option<Responses>) -> Vec<Effect> {
        let mut effects = Vec::new();
        if let Some(given) = given {
            let round = self.of_call.entry(call.to_owned()).or_default();
            let (open, ahead) = given.into_iter().partition(|(key, _)| round.questions.contains_key(key));
            effects = round.answer(call, open, u32::MAX);
            round.given.extend::<Responses>(ahead);
        }
        effects.extend(self.of_call.get_mut(call).and_then(|round| round.gather(call)));
        effects
    }

    fn asked(&mut self, asking: Asking, request: Value, is_open: bool) -> Vec<Effect> {
        let Asking { call_id, tool, arguments, key, limit } = asking;
        // The call may have ended just now.
        if !is_open && !self.has(&call_id) {
            return vec![Effect::Refuse(Refusal::HasEnded)];
        }
        let round = self.of_call.entry(call_id.clone()).or_default();
        if round.ended.is_some() {
            return vec![Effect::Refuse(Refusal::HasEnded)];
        }
        round.asked += 1;
        let number = round.asked;
        let key = key.unwrap_or_else(|| format!("question_{number}"));
        if let Some(answer) = round.given.remove(&key) {
            return vec![Effect::Numbered(number), Effect::Deliver { call: call_id, number, answer }];
        }
        if round.questions.contains_key(&key) {
            return vec![Effect::Refuse(Refusal::KeyInUse(key))];
        }
        (round.tool, round.arguments, round.limit) = (tool, arguments, round.limit.max(limit));
        round.questions.insert(key, Question { number, request });
        std::iter::once(Effect::Numbered(number)).chain(round.gather(&call_id)).collect()
    }

    fn detached(&mut self, call: &str) -> Vec<Effect> {
        // The round stays: a request that is repeated still names its call.
        let questions = self.of_call.get_mut(call).map(|round| std::mem::take(&mut round.questions));
        let moved = |(key, Question { number, request })| Effect::Move { call: call.to_owned(), number, key, request };
        questions.into_iter().flatten().map(moved).collect()
    }

    fn gathered(&mut self, now: Instant, call: &str) -> Option<Effect> {
        let session = now.duration_since(self.began);
        let round = self.of_call.get_mut(call)?;
        round.is_gathering = false;
        if round.questions.is_empty() {
            return None;
        }
        let until = (session + round.limit + KEEP).as_millis();
        let state = State { call: call.to_owned(), asked: round.asked, until };
        let questions = round.questions.iter().map(|(key, question)| (key.clone(), question.request.clone()));
        Some(Effect::Require { call: call.to_owned(), state, questions: questions.collect() })
    }

    fn continued(
        &mut self,
        now: Instant,
        state: &State,
        request: &Continuation,
        responses: Responses,
    ) -> Result<Vec<Effect>, Refusal> {
        let State { call, asked, until } = state;
        if now.duration_since(self.began).as_millis() >= *until {
            return Err(Refusal::InvalidState);
        }
        let round = self.of_call.get_mut(call).ok_or(Refusal::HasEnded)?;
        if !request.is_of(round) {
            return Err(Refusal::InvalidState);
        }
        match &round.ended {
            Some((_, Kept::Outcome(outcome))) => return Ok(vec![Effect::Answer(Arc::clone(outcome))]),
            Some((_, Kept::Nothing)) => return Err(Refusal::HasEnded),
            None => {}
        }
        let mut effects = vec![Effect::Resume(call.clone())];
        effects.extend(round.answer(call, responses, *asked));
        effects.extend(round.gather(call));
        Ok(effects)
    }

    /// Nothing waits any more, and a repeated request gets the outcome.
    fn ended(&mut self, now: Instant, outcome: &Arc<Outcome>) {
        let size = outcome.ended.as_ref().map_or(0, |result| result.get().len());
        match self.of_call.get_mut(&outcome.call_id) {
            Some(round) if round.asked > 0 => {
                let kept = if size <= MAX_KEPT { Kept::Outcome(Arc::clone(outcome)) } else { Kept::Nothing };
                round.questions.clear();
                round.ended = Some((now, kept));
            }
            Some(_) => drop(self.of_call.remove(&outcome.call_id)),
            None => {}
        }
        self.forget(now);
    }

    fn forget(&mut self, now: Instant) {
        let is_kept = |at: Instant| now.duration_since(at) < KEEP;
        self.of_call.retain(|_, round| round.ended.as_ref().is_none_or(|(at, _)| is_kept(*at)));
        let ended = self.of_call.iter().filter_map(|(call, round)| Some((round.ended.as_ref()?.0, call.clone())));
        let mut ended: Vec<_> = ended.collect();
        if ended.len() > KEPT {
            ended.sort_unstable();
            for (_, call) in &ended[..ended.len() - KEPT] {
                self.of_call.remove(call);
            }
        }
    }
}

impl Round {
    /// Passes answers on. Keys without a question are ignored, and so are questions that are newer than the state: a
    /// repeated request must not answer what was not asked yet.
    fn answer(&mut self, call: &str, responses: Responses, newest: u32) -> Vec<Effect> {
        let mut effects = Vec::new();
        for (key, answer) in responses {
            if let Some(number) = self.questions.get(&key).map(|question| question.number).filter(|own| *own <= newest)
            {
                self.questions.remove(&key);
                effects.push(Effect::Deliver { call: call.to_owned(), number, answer });
            }
        }
        effects
    }

    fn gather(&mut self, call: &str) -> Option<Effect> {
        let begins = !self.questions.is_empty() && !self.is_gathering;
        self.is_gathering |= begins;
        begins.then(|| Effect::Gather(call.to_owned()))
    }
}

impl Continuation {
    fn is_of(&self, round: &Round) -> bool {
        let asked = round.arguments.as_deref().map(|raw| serde_json::from_str::<Value>(raw.get()).unwrap_or_default());
        round.tool.replace('.', "_") == self.tool.replace('.', "_") && asked.is_none_or(|asked| asked == self.arguments)
    }
}

#[cfg(test)]
#[path = "rounds_tests.rs"]
mod tests;
