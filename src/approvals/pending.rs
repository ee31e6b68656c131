//! Which calls wait for a person, and what an answer settles. Pure.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most calls that wait at once. A person does not read more.
pub const MOST_WAITING: usize = 256;
/// The most calls of one session that wait at once: one session does not keep others from being asked about.
pub const MOST_OF_SESSION: usize = 64;
/// The most bytes of the arguments of all calls that wait, and of one session's.
const MOST_BYTES: usize = 4 << 20;
const MOST_BYTES_OF_SESSION: usize = 1 << 20;
/// The most approvals of sessions, and the most tools whose last approved arguments are known.
const MOST_KNOWN: usize = 1000;
/// Longer arguments are not compared with later ones.
const LONGEST_KNOWN: usize = 4096;

/// What a person is asked about. What was shown is what runs: a later version of the tool, or other arguments, are another question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRequest {
    /// The id of the call.
    pub call: String,
    /// The full name of the tool.
    pub tool: String,
    /// The version of the tool's file.
    pub version: String,
    /// A digest of what an approval is bound to: the tool, its version and rights, the mode, the configuration file, the folder.
    pub identity: String,
    /// The arguments as the tool gets them, JSON on one line without invisible characters.
    pub arguments: Arc<str>,
    /// A digest of the arguments.
    pub digest: String,
    /// Whether the arguments may hold secrets, and are not written down.
    pub is_secret: bool,
    /// Why a person has to approve it.
    pub reason: String,
    /// The session.
    pub session: u64,
    /// The session as reports number it; `None` if several clients share it.
    pub number: Option<u64>,
    /// The client.
    pub client: Option<String>,
    /// The configuration file whose rules ask.
    pub project: String,
    /// The folder that paths in the arguments begin at.
    pub folder: String,
}

/// What an approval covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalScope {
    /// This call.
    Once,
    /// Calls of this version of the tool in this session.
    Session,
    /// Calls of this version of the tool with these arguments.
    Arguments,
    /// Calls of this version of the tool.
    Tool,
}

/// What a person says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The call is made.
    Allow(ApprovalScope),
    /// It is not. The reason is for the model.
    Deny(Option<String>),
}

/// A call that waits.
#[derive(Debug, Clone)]
pub struct Pending {
    pub request: ApprovalRequest,
    /// When it began to wait, on the caller's clock.
    pub since: Duration,
}

/// Why a call does not wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// There are too many of its session.
    #[error(
        "{MOST_OF_SESSION} calls of this session, or 1 MiB of their arguments, wait for approval already; answer them with `hostler approve`"
    )]
    OfSession,
    /// There are too many.
    #[error(
        "{MOST_WAITING} calls, or 4 MiB of their arguments, wait for approval already; answer them with `hostler approve`"
    )]
    All,
}

/// The calls that wait for a person.
#[derive(Debug, Default)]
pub struct PendingApprovals {
    waiting: BTreeMap<String, Pending>,
    /// Sessions, with what is allowed in them until they end.
    of_sessions: HashSet<(u64, String)>,
    /// The arguments with which tools were approved last.
    last: HashMap<(String, String), Arc<str>>,
}

impl PendingApprovals {
    /// Whether it was allowed for its session.
    pub fn is_allowed(&self, request: &ApprovalRequest) -> bool {
        self.of_sessions.contains(&(request.session, request.identity.clone()))
    }

    /// Adds a call, under an id that cannot be guessed.
    pub fn add(&mut self, id: String, request: ApprovalRequest, now: Duration) -> Result<(), Full> {
        let of_session = || self.waiting.values().filter(|pending| pending.request.session == request.session);
        let bytes = |pending: &Pending| pending.request.arguments.len();
        let own = request.arguments.len();
        if of_session().count() >= MOST_OF_SESSION
            || of_session().map(bytes).sum::<usize>() + own > MOST_BYTES_OF_SESSION
        {
            return Err(Full::OfSession);
        }
        if self.waiting.len() >= MOST_WAITING || self.waiting.values().map(bytes).sum::<usize>() + own > MOST_BYTES {
            return Err(Full::All);
        }
        self.waiting.insert(id, Pending { request, since: now });
        Ok(())
    }

    /// A call that waits.
    pub fn get(&self, id: &str) -> Option<&ApprovalRequest> {
        Some(&self.waiting.get(id)?.request)
    }

    /// Takes an answer. Returns what it settles, its own call first; `None` if that does not wait.
    pub fn answer(&mut self, id: &str, answer: &Answer) -> Option<Vec<(String, ApprovalRequest)>> {
        let first = self.waiting.remove(id)?.request;
        let Answer::Allow(scope) = answer else { return Some(vec![(id.to_owned(), first)]) };
        if *scope == ApprovalScope::Session {
            if self.of_sessions.len() >= MOST_KNOWN
                && let Some(one) = self.of_sessions.iter().next().cloned()
            {
                self.of_sessions.remove(&one);
            }
            self.of_sessions.insert((first.session, first.identity.clone()));
        }
        let covered = self.waiting.extract_if(.., |_, pending| covers(*scope, &first, &pending.request));
        let covered: Vec<_> = covered.map(|(id, pending)| (id, pending.request)).collect();
        self.record_approved(&first);
        Some(std::iter::once((id.to_owned(), first)).chain(covered).collect())
    }

    /// Records the arguments with which a tool was approved.
    pub fn record_approved(&mut self, request: &ApprovalRequest) {
        if request.arguments.len() > LONGEST_KNOWN {
            return;
        }
        if self.last.len() >= MOST_KNOWN
            && let Some(one) = self.last.keys().next().cloned()
        {
            self.last.remove(&one);
        }
        self.last.insert((request.project.clone(), request.tool.clone()), Arc::clone(&request.arguments));
    }

    /// What was allowed for a session ends with it.
    pub fn session_ended(&mut self, session: u64) {
        self.of_sessions.retain(|(of, _)| *of != session);
    }

    /// Removes a call. Returns whether it waited.
    pub fn withdraw(&mut self, id: &str) -> bool {
        self.waiting.remove(id).is_some()
    }

    /// Those that wait, with the arguments with which the same tool was approved last.
    pub fn waiting(&self) -> impl Iterator<Item = (&String, &Pending, Option<&Arc<str>>)> {
        let last = |request: &ApprovalRequest| self.last.get(&(request.project.clone(), request.tool.clone()));
        self.waiting.iter().map(move |(id, pending)| (id, pending, last(&pending.request)))
    }
}

/// Whether an approval of one covers another.
fn covers(scope: ApprovalScope, approved: &ApprovalRequest, other: &ApprovalRequest) -> bool {
    approved.identity == other.identity
        && match scope {
            ApprovalScope::Once => false,
            ApprovalScope::Session => approved.session == other.session,
            ApprovalScope::Arguments => approved.digest == other.digest,
            ApprovalScope::Tool => true,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(call: u64, session: u64, digest: &str) -> ApprovalRequest {
        ApprovalRequest {
            call: call.to_string(),
            tool: "a.b".into(),
            version: "v1".into(),
            identity: "a.b v1".into(),
            arguments: digest.into(),
            digest: digest.into(),
            is_secret: false,
            reason: String::new(),
            session,
            number: Some(session),
            client: None,
            project: "p".into(),
            folder: "f".into(),
        }
    }

    fn pending() -> PendingApprovals {
        let mut pending = PendingApprovals::default();
        let others = [
            ("1", request(1, 1, "x")),
            ("2", request(2, 1, "y")),
            ("3", request(3, 2, "x")),
            ("4", ApprovalRequest { identity: "a.b v2".into(), ..request(4, 1, "x") }),
            ("5", ApprovalRequest { project: "q".into(), identity: "in q".into(), ..request(5, 1, "x") }),
        ];
        for (id, one) in others {
            pending.add(id.into(), one, Duration::ZERO).unwrap();
        }
        pending
    }

    fn settled(answer: &Answer) -> Vec<String> {
        pending().answer("1", answer).unwrap().into_iter().map(|(id, _)| id).collect()
    }

    #[test]
    fn an_answer_settles_what_it_covers_and_nothing_of_another_identity() {
        assert_eq!(settled(&Answer::Allow(ApprovalScope::Once)), ["1"]);
        assert_eq!(settled(&Answer::Allow(ApprovalScope::Session)), ["1", "2"]);
        assert_eq!(settled(&Answer::Allow(ApprovalScope::Arguments)), ["1", "3"]);
        assert_eq!(settled(&Answer::Allow(ApprovalScope::Tool)), ["1", "2", "3"]);
        assert_eq!(settled(&Answer::Deny(None)), ["1"], "a denial is of one call");
    }

    #[test]
    fn the_first_answer_counts() {
        let mut pending = pending();
        assert!(pending.answer("1", &Answer::Deny(None)).is_some());
        assert_eq!(pending.answer("1", &Answer::Allow(ApprovalScope::Tool)), None);
        assert!(pending.withdraw("2") && !pending.withdraw("2"));
        assert_eq!(pending.answer("2", &Answer::Allow(ApprovalScope::Once)), None, "it was withdrawn");
        assert_eq!(pending.waiting().count(), 3);
    }

    #[test]
    fn a_session_is_allowed_for_itself_and_for_this_identity() {
        let mut pending = pending();
        pending.answer("1", &Answer::Allow(ApprovalScope::Session)).unwrap();
        assert!(pending.is_allowed(&request(9, 1, "other")));
        assert!(!pending.is_allowed(&request(9, 2, "x")));
        assert!(!pending.is_allowed(&ApprovalRequest { identity: "a.b v2".into(), ..request(9, 1, "x") }));
        pending.session_ended(2);
        assert!(pending.is_allowed(&request(9, 1, "other")));
        pending.session_ended(1);
        assert!(!pending.is_allowed(&request(9, 1, "other")));
    }

    #[test]
    fn one_session_does_not_fill_it_for_others() {
        let mut pending = PendingApprovals::default();
        let mut add = |call: u64, session| pending.add(call.to_string(), request(call, session, "x"), Duration::ZERO);
        assert!((0..64).all(|call| add(call, 1).is_ok()));
        assert_eq!(add(64, 1), Err(Full::OfSession));
        assert!((100..292).all(|call| add(call, call).is_ok()));
        assert_eq!(add(300, 300), Err(Full::All));
    }

    #[test]
    fn the_bytes_that_a_person_would_have_to_read_are_limited() {
        let mut pending = PendingApprovals::default();
        let long: Arc<str> = "x".repeat(64 << 10).into();
        let mut add = |call: u64, session| {
            let request = ApprovalRequest { arguments: Arc::clone(&long), ..request(call, session, "x") };
            pending.add(call.to_string(), request, Duration::ZERO)
        };
        assert!((0..16).all(|call| add(call, 1).is_ok()));
        assert_eq!(add(16, 1), Err(Full::OfSession));
        assert!((100..148).all(|call| add(call, call).is_ok()));
        assert_eq!(add(148, 148), Err(Full::All));
    }

    #[test]
    fn the_last_approved_arguments_are_shown() {
        let mut pending = pending();
        pending.answer("1", &Answer::Allow(ApprovalScope::Once)).unwrap();
        let last: Vec<(&str, Option<&str>)> =
            pending.waiting().map(|(id, _, last)| (id.as_str(), last.map(|last| &**last))).collect();
        assert_eq!(last, [("2", Some("x")), ("3", Some("x")), ("4", Some("x")), ("5", None)]);
    }
}
