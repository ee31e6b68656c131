//! Settings of a tool: one layer of wishes (a header, `[tool]`, `[tool.NAME]`), and what comes out when layers are stacked.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toml::de::DeValue;

use super::facts::Facts;
use super::origin::Setting;
use super::section::Section;
use super::value::{ByteCount, Count, FromToml, Limit, Patience, Room, choice};

/// What repeating a call does to the world; decides whether hostler may repeat one that died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effects {
    /// Only looks; changes nothing.
    Pure,
    /// Changes something, and a second time changes nothing more.
    Idempotent,
    /// Must happen at most once.
    #[default]
    Once,
}

impl Effects {
    /// The word that stands in files and in `--json`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Idempotent => "idempotent",
            Self::Once => "once",
        }
    }
}

impl FromToml for Effects {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        choice(value, &[("pure", Self::Pure), ("idempotent", Self::Idempotent), ("once", Self::Once)])
    }
}

/// How a worker's interpreter is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Launcher {
    /// Through `uv run`, which stays beside it.
    #[default]
    Uv,
    /// The environment's interpreter itself: 10 ms faster to start and one process fewer.
    Direct,
}

impl Launcher {
    /// The word that stands in files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Uv => "uv",
            Self::Direct => "direct",
        }
    }
}

impl FromToml for Launcher {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        choice(value, &[("uv", Self::Uv), ("direct", Self::Direct)])
    }
}

/// How a program that hostler does not bring is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// The worker protocol of `docs/protocol.md`.
    V1,
    /// A line in, a line out.
    Bare,
    /// Not as a worker: an executable is started for each call, as it is where nothing is said. A Python file has no such way
    /// and is served as ever.
    Once,
}

impl Protocol {
    /// All, by the words that stand in files.
    const WORDS: [(&'static str, Self); 3] = [("v1", Self::V1), ("bare", Self::Bare), ("once", Self::Once)];

    /// The word that stands in files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::Bare => "bare",
            Self::Once => "once",
        }
    }

    /// The one that goes by a word.
    pub fn of(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, protocol)| *protocol)
    }
}

impl FromToml for Protocol {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        choice(value, &Self::WORDS)
    }
}

/// One layer of wishes about a tool: only what that layer says.
#[derive(Debug, Clone, Default)]
pub struct ToolLayer {
    /// How long one call may run.
    pub timeout: Option<Setting<Duration>>,
    /// How long a worker may take from its start until it can serve.
    pub startup_timeout: Option<Setting<Duration>>,
    /// How long an idle worker stays, from the end of its last call.
    pub idle_timeout: Option<Setting<Patience>>,
    /// How many calls may wait for this tool file.
    pub max_queue: Option<Setting<usize>>,
    /// How many workers may be alive for this tool file.
    pub max_workers: Option<Setting<usize>>,
    /// How many calls a worker runs at once.
    pub concurrency: Option<Setting<usize>>,
    /// After how many calls a worker is replaced.
    pub max_calls: Option<Setting<usize>>,
    /// How long a worker serves until it is replaced.
    pub max_lifetime: Option<Setting<Duration>>,
    /// With how much memory after a call a worker is replaced.
    pub max_rss: Option<Setting<ByteCount>>,
    /// The most memory a worker may hold.
    pub max_memory: Option<Setting<ByteCount>>,
    /// What repeating a call does.
    pub effects: Option<Setting<Effects>>,
    /// The secrets this tool file may receive, by name.
    pub secrets: Option<Setting<Vec<String>>>,
    /// That it is kept as a worker that is spoken to so. Only for one file: no two need the same.
    pub protocol: Option<Setting<Protocol>>,
    /// What is said of it.
    pub facts: Facts,
}

impl ToolLayer {
    /// Takes the keys that a header and a `[tool.NAME]` table have in common, of one file.
    pub fn read_of_one(section: &Section<'_>) -> Self {
        Self { protocol: section.take("protocol"), ..Self::read(section) }
    }

    /// Takes those that `[tool]` has as well.
    pub fn read(section: &Section<'_>) -> Self {
        Self {
            timeout: limit(section, "timeout"),
            startup_timeout: limit(section, "startup_timeout"),
            idle_timeout: section.take("idle_timeout"),
            max_queue: section.take("max_queue"),
            max_workers: count(section, "max_workers"),
            concurrency: count(section, "concurrency"),
            max_calls: count(section, "max_calls"),
            max_lifetime: limit(section, "max_lifetime"),
            max_rss: section.take::<Room>("max_rss").map(|room| room.map(|room| room.0)),
            max_memory: section.take::<Room>("max_memory").map(|room| room.map(|room| room.0)),
            effects: section.take("effects"),
            secrets: section.take("secrets"),
            protocol: None,
            facts: Facts::read(section),
        }
    }
}

/// A number that must not be zero.
pub(super) fn count(section: &Section<'_>, key: &'static str) -> Option<Setting<usize>> {
    Some(section.take::<Count>(key)?.map(|count| count.0))
}

/// A duration that must not be zero.
pub(super) fn limit(section: &Section<'_>, key: &'static str) -> Option<Setting<Duration>> {
    Some(section.take::<Limit>(key)?.map(|limit| limit.0))
}

impl ToolLayer {
    /// This layer with a stronger one laid over it.
    #[must_use]
    pub fn under(self, over: Self) -> Self {
        Self {
            timeout: over.timeout.or(self.timeout),
            startup_timeout: over.startup_timeout.or(self.startup_timeout),
            idle_timeout: over.idle_timeout.or(self.idle_timeout),
            max_queue: over.max_queue.or(self.max_queue),
            max_workers: over.max_workers.or(self.max_workers),
            concurrency: over.concurrency.or(self.concurrency),
            max_calls: over.max_calls.or(self.max_calls),
            max_lifetime: over.max_lifetime.or(self.max_lifetime),
            max_rss: over.max_rss.or(self.max_rss),
            max_memory: over.max_memory.or(self.max_memory),
            effects: over.effects.or(self.effects),
            secrets: over.secrets.or(self.secrets),
            protocol: over.protocol.or(self.protocol),
            facts: self.facts.under(over.facts),
        }
    }
}
