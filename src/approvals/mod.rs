//! Approval by a person who is not the user of the calling client: calls wait here until they are answered, in a terminal or by a
//! program. The first answer counts, and the other questions are withdrawn.

mod pending;
mod remembered;
mod shown;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use self::pending::{Full, PendingApprovals};

pub use self::pending::{Answer, ApprovalRequest, ApprovalScope};
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
    /// The session, as other reports number it. Missing where several clients share one: `session` is no decision there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<u64>,
    /// The client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The configuration file whose rules ask; empty without one.
    pub project: String,
    /// The folder that paths in the arguments begin at.
    #[serde(default)]
    pub folder: String,
    /// How long it has waited, in milliseconds.
    pub waited_ms: u64,
}

/// Why a call cannot wait for approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// Too many wait.
    #[error(transparent)]
    Full(#[from] Full),
    /// The system gives no random bytes for an id.
    #[error("the system gives no random bytes")]
    NoRandom,
}

/// Why an answer changes nothing.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// The call waits no more, or never did.
    #[error("no call waits for this approval")]
    NotWaiting,
    /// Its session is of several clients, or of none.
    #[error("the session of this call is not one client's")]
    NoSession,
    /// The approval could not be saved.
    #[error("the approval cannot be saved: {0}")]
    NotSaved(#[from] io::Error),
}

/// The calls of a process that wait for a person, and what a person has allowed.
#[derive(Debug)]
pub struct Approvals {
    began: Instant,
    /// Locked only to add, to settle or to copy.
    state: Mutex<State>,
    /// Whether answers can be given.
    has_channel: AtomicBool,
    remembered: Remembered,
}

#[derive(Debug, Default)]
struct State {
    pending: PendingApprovals,
    askers: HashMap<String, oneshot::Sender<Answer>>,
}

impl Approvals {
    /// Those of a process, with what was allowed for good.
    pub fn new(remembered: Remembered) -> Arc<Self> {
        let (began, has_channel) = (Instant::now(), AtomicBool::new(false));
        Arc::new(Self { began, state: Mutex::default(), has_channel, remembered })
    }

    /// From now on answers can be given.
    pub fn open_channel(&self) {
        self.has_channel.store(true, Ordering::Relaxed);
    }

    /// Whether answers can be given.
    pub fn has_channel(&self) -> bool {
        self.has_channel.load(Ordering::Relaxed)
    }

    /// Whether a call was allowed, for its session or for good. Blocks for a moment.
    pub fn is_allowed(&self, request: &ApprovalRequest) -> bool {
        self.state.lock().pending.is_allowed(request) || self.remembered.allows(request)
    }

    /// What was allowed for a session ends with it.
    pub fn session_ended(&self, session: u64) {
        self.state.lock().pending.session_ended(session);
    }

    /// Records that the client's user has approved a call.
    pub fn record_approved(&self, request: &ApprovalRequest) {
        self.state.lock().pending.record_approved(request);
    }

    /// Adds a call that waits. It is withdrawn when what this returns is dropped.
    pub fn ask(self: &Arc<Self>, request: ApprovalRequest) -> Result<PendingAnswer, AskError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|_| AskError::NoRandom)?;
        let id = data_encoding::HEXLOWER.encode(&random);
        let mut state = self.state.lock();
        state.pending.add(id.clone(), request, self.began.elapsed())?;
        let (sender, answer) = oneshot::channel();
        state.askers.insert(id.clone(), sender);
        Ok(PendingAnswer { approvals: Arc::clone(self), id, answer })
    }

    /// Answers for a call that waits. What is allowed for good is saved first: a call that comes then is allowed or settled. Returns the
    /// ids of the calls that this settles, that of the question first. Blocks.
    pub fn answer(&self, id: &str, answer: &Answer) -> Result<Vec<String>, AnswerError> {
        let request = self.state.lock().pending.get(id).cloned().ok_or(AnswerError::NotWaiting)?;
        let saved = match answer {
            Answer::Allow(ApprovalScope::Session) if request.number.is_none() => return Err(AnswerError::NoSession),
            Answer::Allow(scope @ (ApprovalScope::Arguments | ApprovalScope::Tool)) => {
                self.remembered.keep(&request, *scope == ApprovalScope::Arguments)?
            }
            _ => None,
        };
        self.settle(id, answer).ok_or_else(|| {
            // Nothing was decided after all.
            if let Some(saved) = saved {
                let _ = self.remembered.forget(|kept| kept.id() == saved);
            }
            AnswerError::NotWaiting
        })
    }

    fn settle(&self, id: &str, answer: &Answer) -> Option<Vec<String>> {
        let mut state = self.state.lock();
        let settled = state.pending.answer(id, answer)?;
        let calls = settled.into_iter().map(|(id, request)| {
            if let Some(asker) = state.askers.remove(&id) {
                let _ = asker.send(answer.clone());
            }
            request.call
        });
        Some(calls.collect())
    }

    /// The calls that wait, those that have waited longest first.
    pub fn list(&self) -> Vec<WaitingCall> {
        let now = self.began.elapsed();
        let state = self.state.lock();
        let mut waiting: Vec<(Duration, WaitingCall)> = state
            .pending
            .waiting()
            .map(|(id, pending, last)| {
                let request = &pending.request;
                let waited = now.saturating_sub(pending.since);
                let call = WaitingCall {
                    approval: id.clone(),
                    call_id: request.call.clone(),
                    tool: request.tool.clone(),
                    version: request.version.clone(),
                    arguments: request.arguments.to_string(),
                    approved_before: last.map(ToString::to_string),
                    reason: request.reason.clone(),
                    session: request.number,
                    client: request.client.clone(),
                    project: request.project.clone(),
                    folder: request.folder.clone(),
                    waited_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
                };
                (pending.since, call)
            })
            .collect();
        drop(state);
        waiting.sort_by_key(|(since, _)| *since);
        waiting.into_iter().map(|(_, call)| call).collect()
    }
}

/// A call that waits for its answer.
pub struct PendingAnswer {
    approvals: Arc<Approvals>,
    id: String,
    answer: oneshot::Receiver<Answer>,
}

impl PendingAnswer {
    /// The answer.
    pub async fn wait(&mut self) -> Answer {
        match (&mut self.answer).await {
            Ok(answer) => answer,
            // Nothing else settles it.
            Err(_) => std::future::pending().await,
        }
    }

    /// Stops waiting. Returns the answer if it was given before.
    pub fn withdraw(&mut self) -> Option<Answer> {
        let mut state = self.approvals.state.lock();
        state.pending.withdraw(&self.id);
        state.askers.remove(&self.id);
        drop(state);
        self.answer.try_recv().ok()
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        self.withdraw();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(digest: &str) -> ApprovalRequest {
        ApprovalRequest {
            call: digest.into(),
            tool: "a.b".into(),
            version: "1".into(),
            identity: "a.b 1".into(),
            arguments: digest.into(),
            digest: digest.into(),
            is_secret: false,
            reason: String::new(),
            session: 1,
            number: Some(1),
            client: None,
            project: String::new(),
            folder: String::new(),
        }
    }

    fn only(approvals: &Approvals) -> String {
        let [one] = &approvals.list()[..] else { panic!("one waits") };
        one.approval.clone()
    }

    #[tokio::test]
    async fn what_is_allowed_for_good_is_saved_before_it_is_settled() {
        let folder = tempfile::tempdir().unwrap();
        let approvals = Approvals::new(Remembered::in_folder(folder.path().to_owned()));
        let mut asked = approvals.ask(request("x")).unwrap();
        let arguments = Answer::Allow(ApprovalScope::Arguments);
        assert_eq!(approvals.answer(&only(&approvals), &arguments).unwrap(), ["x"]);
        assert!(approvals.is_allowed(&request("x")) && !approvals.is_allowed(&request("y")));
        assert_eq!(asked.wait().await, arguments);
        assert!(matches!(approvals.answer("x", &arguments), Err(AnswerError::NotWaiting)));
    }

    #[test]
    fn an_answer_that_cannot_count_leaves_the_call_waiting() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let approvals = Approvals::new(Remembered::in_folder(folder.path().join("file")));
        let _asked = approvals.ask(ApprovalRequest { number: None, ..request("x") }).unwrap();
        let id = only(&approvals);
        let allow = |scope| approvals.answer(&id, &Answer::Allow(scope));
        assert!(matches!(allow(ApprovalScope::Tool), Err(AnswerError::NotSaved(_))));
        assert!(matches!(allow(ApprovalScope::Session), Err(AnswerError::NoSession)));
        assert_eq!(only(&approvals), id);
        assert!(allow(ApprovalScope::Once).is_ok());
    }

    #[test]
    fn the_answer_that_was_given_before_it_is_withdrawn_counts() {
        let folder = tempfile::tempdir().unwrap();
        let approvals = Approvals::new(Remembered::in_folder(folder.path().to_owned()));
        let (mut first, mut second) = (approvals.ask(request("x")).unwrap(), approvals.ask(request("y")).unwrap());
        let id = approvals.list()[0].approval.clone();
        approvals.answer(&id, &Answer::Deny(None)).unwrap();
        assert_eq!([first.withdraw(), second.withdraw()], [Some(Answer::Deny(None)), None]);
        assert!(approvals.list().is_empty());
    }
}
