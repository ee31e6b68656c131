//! The declared policy of a tool: its version, tags and category, its risk, where and how often it may run, and what its arguments may
//! name. Tools declare it, and the operator's settings override it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::mode::{Mode, covers};
use super::origin::{Origin, Setting};
use super::rules::{at_least_two, command_patterns, host_patterns, path_patterns, rate, redact_patterns};
use super::section::Section;
use super::value::{FromToml, Word, count};

/// How much harm a tool can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// It only reads.
    Low,
    /// It uses the network, or reads private data.
    Medium,
    /// It changes things.
    High,
}

impl Word for Risk {
    const WORDS: &'static [(&'static str, Self)] =
        &[("low", Self::Low), ("medium", Self::Medium), ("high", Self::High)];
}

/// The policy, with the place that set each part. What forbids something adds to what else does, wherever it stands: to forbid more
/// never allows more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeclaredPolicy {
    /// The version of the tool.
    pub version: Option<Setting<String>>,
    /// Words to find it by.
    pub tags: Option<Setting<Vec<String>>>,
    /// What kind of thing it does, such as `read_only` or `network`.
    pub category: Option<Setting<String>>,
    /// How much harm it can do.
    pub risk_level: Option<Setting<Risk>>,
    /// The modes it may be called in; `None` for all.
    pub allowed_modes: Option<Setting<Vec<Mode>>>,
    /// The modes it may not be called in.
    pub forbidden_in_modes: Vec<Setting<Vec<Mode>>>,
    /// Whether a person has to approve each call.
    pub requires_approval: Option<Setting<bool>>,
    /// The modes in which a person has to approve each call.
    pub requires_approval_in_modes: Vec<Setting<Vec<Mode>>>,
    /// Whether it may only run in a sandbox.
    pub requires_sandbox: Option<Setting<bool>>,
    /// How often it may be called in an hour.
    pub rate_limit_per_hour: Option<Setting<usize>>,
    /// How often it may be called in a minute.
    pub rate_limit_per_minute: Option<Setting<usize>>,
    /// How often it may be called in a day.
    pub budget_calls_per_day: Option<Setting<usize>>,
    /// How many seconds its calls may run in a day.
    pub budget_seconds_per_day: Option<Setting<usize>>,
    /// How often one session may call it in an hour.
    pub session_rate_limit_per_hour: Option<Setting<usize>>,
    /// How often one session may call it in a minute.
    pub session_rate_limit_per_minute: Option<Setting<usize>>,
    /// How often one session may call it.
    pub session_budget_calls: Option<Setting<usize>>,
    /// How many seconds its calls may run for one session.
    pub session_budget_seconds: Option<Setting<usize>>,
    /// After how many calls in a row with the same arguments and result the model gets a note.
    pub loop_guard: Option<Setting<usize>>,
    /// What its paths have to match.
    pub allowed_paths: Option<Setting<Vec<String>>>,
    /// What its paths may not match.
    pub forbidden_paths: Vec<Setting<Vec<String>>>,
    /// The longest file that its paths may name, and the longest that its arguments may be together.
    pub max_file_size_mb: Option<Setting<usize>>,
    /// How large its result may be.
    pub max_result_mb: Option<Setting<usize>>,
    /// What is taken out of its results and of all else that it says.
    pub redact: Vec<Setting<Vec<String>>>,
    /// What its commands have to begin with.
    pub allowed_commands: Option<Setting<Vec<String>>>,
    /// What its commands may not have.
    pub forbidden_commands: Vec<Setting<Vec<String>>>,
    /// The hosts that its addresses have to name.
    pub allowed_hosts: Option<Setting<Vec<String>>>,
    /// Its arguments that are paths, besides those that its schema says.
    pub path_arguments: Vec<Setting<Vec<String>>>,
    /// Its arguments that are commands.
    pub command_arguments: Vec<Setting<Vec<String>>>,
    /// Its arguments that are addresses or hosts, besides those that its schema says.
    pub host_arguments: Vec<Setting<Vec<String>>>,
}

/// Does something for each key of which the strongest setting counts.
macro_rules! strongest {
    ($do:ident!($($first:tt)*)) => {
        $do!($($first)* version, tags, category, risk_level, allowed_modes, requires_approval, requires_sandbox, rate_limit_per_hour,
            rate_limit_per_minute, budget_calls_per_day, budget_seconds_per_day, session_rate_limit_per_hour,
            session_rate_limit_per_minute, session_budget_calls, session_budget_seconds, loop_guard, allowed_paths, max_file_size_mb, max_result_mb, allowed_commands, allowed_hosts)
    };
}

/// The same for each key of which every setting counts.
macro_rules! every {
    ($do:ident!($($first:tt)*)) => {
        $do!($($first)* forbidden_in_modes, requires_approval_in_modes, forbidden_paths, forbidden_commands, path_arguments,
            command_arguments, host_arguments, redact)
    };
}

macro_rules! names {
    ($($key:ident),*) => { [$(stringify!($key)),*] };
}

macro_rules! override_each {
    ($weak:ident $strong:ident $($key:ident),*) => { $($weak.$key = $strong.$key.or($weak.$key);)* };
}

macro_rules! add_each {
    ($weak:ident $strong:ident $($key:ident),*) => { $($weak.$key.extend($strong.$key);)* };
}

macro_rules! rows {
    ($rows:ident $policy:ident $($key:ident),*) => { $($rows.extend($policy.$key.iter().filter_map(|one| row(stringify!($key), one)));)* };
}

impl DeclaredPolicy {
    /// Whether a key in settings is one of its.
    pub fn has_key(key: &str) -> bool {
        strongest!(names!()).contains(&key) || every!(names!()).contains(&key) || key == "allowed_in_modes"
    }

    pub(super) fn read(section: &Section<'_>) -> Self {
        Self {
            version: section.take("version"),
            tags: section.take("tags"),
            category: section.take("category"),
            risk_level: section.take("risk_level"),
            ..Self::rules(section)
        }
    }

    /// What of it is no fact about one tool: `[policy]`, `[category.NAME]`.
    pub(super) fn rules(section: &Section<'_>) -> Self {
        Self {
            allowed_modes: allowed_modes(section),
            forbidden_in_modes: section.take_each("forbidden_in_modes", |value| section.modes.list(value)),
            requires_approval: section.take("requires_approval"),
            requires_approval_in_modes: section
                .take_each("requires_approval_in_modes", |value| section.modes.list(value)),
            requires_sandbox: section.take("requires_sandbox"),
            rate_limit_per_hour: section.take_as("rate_limit_per_hour", rate),
            rate_limit_per_minute: section.take_as("rate_limit_per_minute", rate),
            budget_calls_per_day: section.take_as("budget_calls_per_day", rate),
            budget_seconds_per_day: section.take_as("budget_seconds_per_day", rate),
            session_rate_limit_per_hour: section.take_as("session_rate_limit_per_hour", rate),
            session_rate_limit_per_minute: section.take_as("session_rate_limit_per_minute", rate),
            session_budget_calls: section.take_as("session_budget_calls", rate),
            session_budget_seconds: section.take_as("session_budget_seconds", rate),
            loop_guard: section.take_as("loop_guard", at_least_two),
            allowed_paths: section.take_as("allowed_paths", path_patterns),
            forbidden_paths: section.take_each("forbidden_paths", path_patterns),
            max_file_size_mb: section.take_as("max_file_size_mb", count),
            max_result_mb: section.take_as("max_result_mb", count),
            redact: section.take_each("redact", redact_patterns),
            allowed_commands: section.take_as("allowed_commands", command_patterns),
            forbidden_commands: section.take_each("forbidden_commands", command_patterns),
            allowed_hosts: section.take_as("allowed_hosts", host_patterns),
            path_arguments: section.take_each("path_arguments", Vec::from_toml),
            command_arguments: section.take_each("command_arguments", Vec::from_toml),
            host_arguments: section.take_each("host_arguments", Vec::from_toml),
            ..Self::default()
        }
    }

    /// This policy with a stronger one over it.
    #[must_use]
    pub fn under(mut self, over: Self) -> Self {
        strongest!(override_each!(self over));
        every!(add_each!(self over));
        self
    }

    /// The limits for calls: in a minute, an hour and a day, for their seconds in a day, and for one session in a minute, an hour and as
    /// long as it lives, and for their seconds in it.
    pub fn rates(&self) -> [&Option<Setting<usize>>; 8] {
        [
            &self.rate_limit_per_minute,
            &self.rate_limit_per_hour,
            &self.budget_calls_per_day,
            &self.budget_seconds_per_day,
            &self.session_rate_limit_per_minute,
            &self.session_rate_limit_per_hour,
            &self.session_budget_calls,
            &self.session_budget_seconds,
        ]
    }

    /// The policy without them.
    #[must_use]
    pub fn without_rates(self) -> Self {
        Self {
            rate_limit_per_minute: None,
            rate_limit_per_hour: None,
            budget_calls_per_day: None,
            budget_seconds_per_day: None,
            session_rate_limit_per_minute: None,
            session_rate_limit_per_hour: None,
            session_budget_calls: None,
            session_budget_seconds: None,
            ..self
        }
    }

    /// What is declared: each key with its value and what set it. A key of which every setting counts may come several times.
    pub fn declared(&self) -> impl Iterator<Item = (&'static str, Value, &Origin)> {
        fn row<'s, T: Serialize>(
            key: &'static str,
            setting: &'s Setting<T>,
        ) -> Option<(&'static str, Value, &'s Origin)> {
            Some((key, serde_json::to_value(&setting.value).ok()?, &setting.origin))
        }
        let mut rows = Vec::new();
        strongest!(rows!(rows self));
        every!(rows!(rows self));
        rows.into_iter()
    }

    /// What is declared, as JSON, without what only says where rules apply, and without the patterns of `redact`.
    pub fn as_json(&self) -> Map<String, Value> {
        let mut found = Map::new();
        for (key, value, _) in self.declared().filter(|(key, ..)| !key.ends_with("_arguments") && *key != "redact") {
            match (found.get_mut(key), value) {
                (Some(Value::Array(known)), Value::Array(more)) => known.extend(more),
                (_, value) => drop(found.insert(key.to_owned(), value)),
            }
        }
        found
    }

    /// Whether it may be called in a mode.
    pub fn allows(&self, mode: Mode) -> bool {
        let is_forbidden = self.forbidden_in_modes.iter().any(|modes| covers(&modes.value, &mode));
        !is_forbidden && self.allowed_modes.as_ref().is_none_or(|modes| covers(&modes.value, &mode))
    }
}

/// Under either of its two names.
fn allowed_modes(section: &Section<'_>) -> Option<Setting<Vec<Mode>>> {
    let taken = |key| section.take_as(key, |value| section.modes.list(value));
    let (own, other) = (taken("allowed_modes"), taken("allowed_in_modes"));
    if own.is_some()
        && let Some(entry) = section.entries().find(|entry| entry.key == "allowed_in_modes")
    {
        section.report(&entry, "the same as `allowed_modes`, which is set as well", "keep one of the two");
    }
    own.or(other)
}
