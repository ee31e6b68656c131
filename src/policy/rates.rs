//! How often calls may be made and how long they may run: what counts together, how much there may be, and when the next call may come.

use std::time::Duration;

use super::decide::Because;
use crate::config::declared_policy::DeclaredPolicy;
use crate::config::origin::{Origin, Setting};
use crate::words::plural;

/// The tools whose calls are counted together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// One tool.
    Tool(String),
    /// All tools of a category.
    Category(String),
    /// All tools.
    Every,
}

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Calls that were let through.
    Calls,
    /// Seconds that they ran.
    Seconds,
}

/// A limit for calls.
#[derive(Debug, Clone)]
pub struct Rate {
    /// The key that sets it.
    pub key: &'static str,
    /// What set it.
    pub origin: Origin,
    /// What it counts.
    pub unit: Unit,
    /// Whose calls are counted.
    pub scope: Scope,
    /// What the count is kept under: the same for all limits that count the same.
    pub name: String,
    /// Whether each session is counted apart.
    pub is_of_session: bool,
    /// How far back calls are counted; `None` for all of a session.
    pub window: Option<Duration>,
    /// The most calls, or seconds, in that time.
    pub most: usize,
}

/// When a limit admits the next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Turn {
    /// Now.
    #[default]
    Now,
    /// So much later, if none is made meanwhile.
    After(Duration),
    /// Not at all.
    Never,
}

/// A key of rates: whether each session is counted apart, how far back it looks, and what it counts.
type Key = (&'static str, bool, Option<Duration>, Unit);

/// The keys of rates, in the order of [`DeclaredPolicy::rates`].
const KEYS: [Key; 8] = [
    ("rate_limit_per_minute", false, Some(Duration::from_mins(1)), Unit::Calls),
    ("rate_limit_per_hour", false, Some(Duration::from_hours(1)), Unit::Calls),
    ("budget_calls_per_day", false, Some(Duration::from_hours(24)), Unit::Calls),
    ("budget_seconds_per_day", false, Some(Duration::from_hours(24)), Unit::Seconds),
    ("session_rate_limit_per_minute", true, Some(Duration::from_mins(1)), Unit::Calls),
    ("session_rate_limit_per_hour", true, Some(Duration::from_hours(1)), Unit::Calls),
    ("session_budget_calls", true, None, Unit::Calls),
    ("session_budget_seconds", true, None, Unit::Seconds),
];

impl Rate {
    /// Those that a policy sets for the calls of a scope.
    pub(super) fn of(policy: &DeclaredPolicy, scope: &Scope, name: impl Fn(&Origin) -> String) -> Vec<Self> {
        let set = policy.rates();
        let rate = |((key, is_of_session, window, unit), setting): (&Key, _)| {
            let setting: &Setting<usize> = Option::as_ref(setting)?;
            let name = name(&setting.origin);
            Some(Self {
                key,
                origin: setting.origin.clone(),
                scope: scope.clone(),
                name: if *unit == Unit::Seconds { format!("{name} seconds") } else { name },
                unit: *unit,
                is_of_session: *is_of_session,
                window: *window,
                most: setting.value,
            })
        };
        KEYS.iter().zip(set).filter_map(rate).collect()
    }

    /// Why a call is denied, if it is not its turn.
    pub(super) fn denies(&self, turn: Turn) -> Option<Because> {
        let next = match turn {
            Turn::Now => return None,
            Turn::After(wait) => format!("; try again in {}", shown(wait)),
            Turn::Never => String::new(),
        };
        let of = match &self.scope {
            Scope::Tool(name) => name.clone(),
            Scope::Category(name) => format!("category {name}"),
            Scope::Every => "all tools".to_owned(),
        };
        let per = match self.window {
            Some(window) if window <= Duration::from_mins(1) => " in a minute",
            Some(window) if window <= Duration::from_hours(1) => " in an hour",
            Some(_) => " in a day",
            None => "",
        };
        let session = if self.is_of_session { " in one session" } else { "" };
        let amount = match self.unit {
            Unit::Calls => plural(self.most, "call"),
            Unit::Seconds => format!("{} for calls", plural(self.most, "second")),
        };
        let reason = format!("Rate limit exceeded: at most {amount} of {of}{per}{session}{next}");
        Some(Because { key: self.key, origin: self.origin.clone(), reason })
    }

    /// Whether a key is that of a rate.
    pub fn has_key(key: &str) -> bool {
        KEYS.iter().any(|(known, ..)| *known == key)
    }
}

/// In whole seconds, rounded up: who comes back then is not too early.
fn shown(wait: Duration) -> String {
    let begun = u64::from(wait.subsec_nanos() > 0);
    humantime::format_duration(Duration::from_secs(wait.as_secs().saturating_add(begun))).to_string()
}
