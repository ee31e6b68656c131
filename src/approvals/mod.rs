//! Approvals by a person who is not the calling client's user: calls wait here until somebody answers, in a terminal or a program. The
//! first answer counts, whoever gives it, and the other questions are withdrawn.

mod desk;
mod remembered;
mod shown;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use self::desk::Desk;

pub use self::desk::{Answer, Asked, Extent};
pub use self::remembered::{Kept, Remembered};
pub use self::shown::visible;

/// A call that waits, for reports.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WaitingCall {
    /// The id of the approval.
    pub approval: String,
    /// The id of the call.
    pub call_id: String,
    /// The full name of the tool.
    pub tool: String,
    /// The version of the tool's file.
    pub version: String,
    /// The arguments as the tool gets them: JSON on one line, without invisible characters.
    pub arguments: String,
    /// The arguments with which the tool was approved last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_before: Option<String>,
    /// Why a person has to approve it.
    pub reason: String,
    /// The session, as other reports number it.
    pub session: u64,
    /// The client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The configuration file whose rules ask; empty without one.
    pub project: String,
    /// How long it has waited, in milliseconds.
    pub waited_ms: u64,
}

/// The calls of a process that wait for a person.
#[derive(Debug)]
pub struct Approvals {
    began: Instant,
    /// Locked only to add, to settle or to copy.
    state: Mutex<State>,
    /// Whether somebody can answer.
    has_channel: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    desk: Desk,
    askers: HashMap<String, oneshot::Sender<Answer>>,
}

impl Default for Approvals {
    fn default() -> Self {
        Self { began: Instant::now(), state: Mutex::default(), has_channel: AtomicBool::new(false) }
    }
}

impl Approvals {
    /// From now on somebody can answer.
    pub fn open_channel(&self) {
        self.has_channel.store(true, Ordering::Relaxed);
    }

    /// Whether somebody can answer.
    pub fn has_channel(&self) -> bool {
        self.has_channel.load(Ordering::Relaxed)
    }

    /// Whether a call was allowed for its session.
    pub fn is_allowed(&self, asked: &Asked) -> bool {
        self.state.lock().desk.is_allowed(asked)
    }

    /// The client's user has approved it.
    pub fn approved(&self, asked: &Asked) {
        self.state.lock().desk.approved(asked);
    }

    /// Asks. The question is withdrawn when what this returns is dropped.
    pub fn ask(self: &Arc<Self>, asked: Asked) -> Result<Question, String> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|_| "the system gives no random bytes".to_owned())?;
        let id = data_encoding::HEXLOWER.encode(&random);
        let mut state = self.state.lock();
        state.desk.ask(id.clone(), asked, self.began.elapsed()).map_err(|full| full.to_string())?;
        let (sender, answer) = oneshot::channel();
        state.askers.insert(id.clone(), sender);
        Ok(Question { approvals: Arc::clone(self), id, answer })
    }

    /// Answers a question. Returns the ids of the calls that this settles; `None` if it waits no more.
    pub fn answer(&self, id: &str, answer: &Answer) -> Option<Vec<String>> {
        let mut state = self.state.lock();
        let State { desk, askers } = &mut *state;
        let calls: HashMap<String, String> =
            desk.waiting().map(|(id, item, _)| (id.clone(), item.asked.call.clone())).collect();
        let settled = desk.answer(id, answer)?;
        for (place, id) in settled.iter().enumerate() {
            // Only the first is written down.
            let of_this = if place == 0 { answer.clone() } else { Answer::Allow(Extent::Once) };
            if let Some(asker) = askers.remove(id) {
                let _ = asker.send(of_this);
            }
        }
        Some(settled.iter().filter_map(|id| calls.get(id).cloned()).collect())
    }

    /// The calls that wait, those that have waited longest first.
    pub fn list(&self) -> Vec<WaitingCall> {
        let now = self.began.elapsed();
        let state = self.state.lock();
        let mut waiting: Vec<(Duration, WaitingCall)> = state
            .desk
            .waiting()
            .map(|(id, item, last)| {
                let asked = &item.asked;
                let waited = now.saturating_sub(item.since);
                let call = WaitingCall {
                    approval: id.clone(),
                    call_id: asked.call.clone(),
                    tool: asked.tool.clone(),
                    version: asked.version.clone(),
                    arguments: asked.arguments.to_string(),
                    approved_before: last.map(ToString::to_string),
                    reason: asked.why.clone(),
                    session: asked.session,
                    client: asked.client.clone(),
                    project: asked.project.clone(),
                    waited_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
                };
                (item.since, call)
            })
            .collect();
        waiting.sort_by_key(|(since, _)| *since);
        waiting.into_iter().map(|(_, call)| call).collect()
    }
}

/// A question that waits for its answer.
pub struct Question {
    approvals: Arc<Approvals>,
    id: String,
    answer: oneshot::Receiver<Answer>,
}

impl Question {
    /// The answer.
    pub async fn answer(&mut self) -> Answer {
        match (&mut self.answer).await {
            Ok(answer) => answer,
            // It is not settled by anything else.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        let mut state = self.approvals.state.lock();
        state.desk.withdraw(&self.id);
        state.askers.remove(&self.id);
    }
}
