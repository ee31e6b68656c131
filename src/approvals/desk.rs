//! Which calls wait for a person, and what an answer settles. Pure.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most calls that wait at once. Nobody reads more.
pub const MOST_WAITING: usize = 256;
/// The most calls of one session that wait at once: one session does not keep the others from being asked about.
pub const MOST_OF_SESSION: usize = 64;
/// The most approvals of sessions, and the most tools whose last approved arguments are known.
const MOST_KNOWN: usize = 1000;

/// What a person is asked about. What was shown is what runs: a later version of the tool, or other arguments, are another question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The id of the call.
    pub call: String,
    /// The full name of the tool.
    pub tool: String,
    /// The version of the tool's file.
    pub version: String,
    /// The arguments as the tool gets them, JSON on one line in which nothing is invisible.
    pub arguments: Arc<str>,
    /// Says whether two calls have the same arguments.
    pub digest: String,
    /// Why a person has to approve it.
    pub why: String,
    /// The session, as reports number it.
    pub session: u64,
    /// The client.
    pub client: Option<String>,
    /// The configuration file whose rules ask.
    pub project: String,
}

/// What an approval is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Extent {
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
    Allow(Extent),
    /// It is not. The reason is for the model.
    Deny(Option<String>),
}

/// A call that waits.
#[derive(Debug, Clone)]
pub struct Item {
    pub asked: Asked,
    /// When it was asked, on the clock of the desk.
    pub since: Duration,
}

/// Why a call does not wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{MOST_WAITING} calls, or {MOST_OF_SESSION} of this session, wait for approval already")]
pub struct Full;

/// The calls that wait for a person.
#[derive(Debug, Default)]
pub struct Desk {
    waiting: BTreeMap<String, Item>,
    /// Sessions, tools and versions that are allowed until the session ends.
    of_sessions: HashSet<(u64, String, String)>,
    /// The arguments with which tools were approved last.
    last: HashMap<(String, String), Arc<str>>,
}

impl Desk {
    /// Whether it was allowed for the session.
    pub fn is_allowed(&self, asked: &Asked) -> bool {
        self.of_sessions.contains(&(asked.session, asked.tool.clone(), asked.version.clone()))
    }

    /// Asks a person, under an id that nobody can guess.
    pub fn ask(&mut self, id: String, asked: Asked, now: Duration) -> Result<(), Full> {
        let of_session = self.waiting.values().filter(|item| item.asked.session == asked.session).count();
        if self.waiting.len() >= MOST_WAITING || of_session >= MOST_OF_SESSION {
            return Err(Full);
        }
        self.waiting.insert(id, Item { asked, since: now });
        Ok(())
    }

    /// Takes an answer. Returns the ids that it settles, that of the question first; `None` if that waits no more.
    pub fn answer(&mut self, id: &str, answer: &Answer) -> Option<Vec<String>> {
        let first = self.waiting.remove(id)?.asked;
        let mut settled = vec![id.to_owned()];
        let Answer::Allow(extent) = answer else { return Some(settled) };
        if *extent == Extent::Session && self.of_sessions.len() < MOST_KNOWN {
            self.of_sessions.insert((first.session, first.tool.clone(), first.version.clone()));
        }
        let covered = self.waiting.iter().filter(|(_, item)| covers(*extent, &first, &item.asked));
        settled.extend(covered.map(|(id, _)| id.clone()).collect::<Vec<_>>());
        self.waiting.retain(|id, _| !settled.contains(id));
        self.approved(&first);
        Some(settled)
    }

    /// It was approved by somebody else, such as the client's user.
    pub fn approved(&mut self, asked: &Asked) {
        if self.last.len() >= MOST_KNOWN {
            self.last.clear();
        }
        self.last.insert((asked.project.clone(), asked.tool.clone()), Arc::clone(&asked.arguments));
    }

    /// It waits no more. Whether it did.
    pub fn withdraw(&mut self, id: &str) -> bool {
        self.waiting.remove(id).is_some()
    }

    /// Those that wait, with the arguments with which the same tool was approved last.
    pub fn waiting(&self) -> impl Iterator<Item = (&String, &Item, Option<&Arc<str>>)> {
        let last = |asked: &Asked| self.last.get(&(asked.project.clone(), asked.tool.clone()));
        self.waiting.iter().map(move |(id, item)| (id, item, last(&item.asked)))
    }
}

/// Whether an approval of one is good for another.
fn covers(extent: Extent, approved: &Asked, other: &Asked) -> bool {
    let is_same_tool =
        (&approved.project, &approved.tool, &approved.version) == (&other.project, &other.tool, &other.version);
    is_same_tool
        && match extent {
            Extent::Once => false,
            Extent::Session => approved.session == other.session,
            Extent::Arguments => approved.digest == other.digest,
            Extent::Tool => true,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(call: u64, session: u64, digest: &str) -> Asked {
        Asked {
            call: call.to_string(),
            tool: "a.b".into(),
            version: "v1".into(),
            arguments: digest.into(),
            digest: digest.into(),
            why: String::new(),
            session,
            client: None,
            project: "p".into(),
        }
    }

    fn desk() -> Desk {
        let mut desk = Desk::default();
        let others = [
            ("1", asked(1, 1, "x")),
            ("2", asked(2, 1, "y")),
            ("3", asked(3, 2, "x")),
            ("4", Asked { version: "v2".into(), ..asked(4, 1, "x") }),
            ("5", Asked { project: "q".into(), ..asked(5, 1, "x") }),
            ("6", Asked { tool: "a.c".into(), ..asked(6, 1, "x") }),
        ];
        for (id, one) in others {
            desk.ask(id.into(), one, Duration::ZERO).unwrap();
        }
        desk
    }

    fn settled(answer: &Answer) -> Vec<String> {
        desk().answer("1", answer).unwrap()
    }

    #[test]
    fn an_answer_settles_what_it_is_good_for_and_no_other_version_tool_or_project() {
        assert_eq!(settled(&Answer::Allow(Extent::Once)), ["1"]);
        assert_eq!(settled(&Answer::Allow(Extent::Session)), ["1", "2"]);
        assert_eq!(settled(&Answer::Allow(Extent::Arguments)), ["1", "3"]);
        assert_eq!(settled(&Answer::Allow(Extent::Tool)), ["1", "2", "3"]);
        assert_eq!(settled(&Answer::Deny(None)), ["1"], "a denial is of one call");
    }

    #[test]
    fn the_first_answer_counts() {
        let mut desk = desk();
        assert!(desk.answer("1", &Answer::Deny(None)).is_some());
        assert_eq!(desk.answer("1", &Answer::Allow(Extent::Tool)), None);
        assert!(desk.withdraw("2") && !desk.withdraw("2"));
        assert_eq!(desk.answer("2", &Answer::Allow(Extent::Once)), None, "it was withdrawn");
        assert_eq!(desk.waiting().count(), 4);
    }

    #[test]
    fn a_session_is_allowed_for_itself_and_for_this_version() {
        let mut desk = desk();
        desk.answer("1", &Answer::Allow(Extent::Session)).unwrap();
        assert!(desk.is_allowed(&asked(9, 1, "other")));
        assert!(!desk.is_allowed(&asked(9, 2, "x")));
        assert!(!desk.is_allowed(&Asked { version: "v2".into(), ..asked(9, 1, "x") }));
    }

    #[test]
    fn one_session_does_not_fill_it_for_others() {
        let mut desk = Desk::default();
        let mut ask = |call: u64, session| desk.ask(call.to_string(), asked(call, session, "x"), Duration::ZERO);
        assert!((0..64).all(|call| ask(call, 1).is_ok()));
        assert_eq!(ask(64, 1), Err(Full));
        assert!((100..292).all(|call| ask(call, call).is_ok()));
        assert_eq!(ask(300, 300), Err(Full));
    }

    #[test]
    fn the_last_approved_arguments_are_shown() {
        let mut desk = desk();
        desk.answer("1", &Answer::Allow(Extent::Once)).unwrap();
        let last: Vec<(&str, Option<&str>)> =
            desk.waiting().map(|(id, _, last)| (id.as_str(), last.map(|last| &**last))).collect();
        assert_eq!(last, [("2", Some("x")), ("3", Some("x")), ("4", Some("x")), ("5", None), ("6", None)]);
    }
}
