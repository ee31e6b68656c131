//! Settings of a tool file, as one layer sets them: a header, `[tool]` or `[tool.NAME]`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toml::de::DeValue;

use super::declared_policy::DeclaredPolicy;
use super::origin::Setting;
use super::section::Section;
use super::value::{ByteCount, Count, FromToml, IdleTimeout, Limit, MemoryLimit, Mismatch, choice};

/// The effect of repeating a call. It decides whether hostler may repeat one whose worker died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effects {
    /// It changes nothing.
    Pure,
    /// A second call changes nothing more.
    Idempotent,
    /// A second call may change something again.
    #[default]
    Once,
}

impl Effects {
    /// Its word in files and in `--json`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Idempotent => "idempotent",
            Self::Once => "once",
        }
    }
}

impl FromToml for Effects {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch> {
        choice(value, &[("pure", Self::Pure), ("idempotent", Self::Idempotent), ("once", Self::Once)])
    }
}

/// How a worker's interpreter is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Launcher {
    /// Through `uv run`, whose process stays.
    #[default]
    Uv,
    /// The environment's interpreter itself: 10 ms faster, and one process fewer.
    Direct,
}

impl Launcher {
    /// Its word in files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Uv => "uv",
            Self::Direct => "direct",
        }
    }
}

impl FromToml for Launcher {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch> {
        choice(value, &[("uv", Self::Uv), ("direct", Self::Direct)])
    }
}

/// The protocol of a worker that is not hostler's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// The worker protocol of `docs/protocol.md`.
    V1,
    /// A line in, a line out.
    Bare,
    /// No worker: an executable is started for each call, which is the default. It changes nothing for a Python file.
    Once,
}

impl Protocol {
    /// All, by their words.
    const WORDS: [(&'static str, Self); 3] = [("v1", Self::V1), ("bare", Self::Bare), ("once", Self::Once)];

    /// Its word in files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::Bare => "bare",
            Self::Once => "once",
        }
    }

    /// The one of this word.
    pub fn of(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, protocol)| *protocol)
    }
}

impl FromToml for Protocol {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch> {
        choice(value, &Self::WORDS)
    }
}

/// The settings of one layer.
#[derive(Debug, Clone, Default)]
pub struct ToolLayer {
    /// How long one call may run.
    pub timeout: Option<Setting<Duration>>,
    /// How long a worker may take from its start to its first message.
    pub startup_timeout: Option<Setting<Duration>>,
    /// When an idle worker ends.
    pub idle_timeout: Option<Setting<IdleTimeout>>,
    /// How many calls may wait for this tool file.
    pub max_queue: Option<Setting<usize>>,
    /// How many workers may be alive for this tool file.
    pub max_workers: Option<Setting<usize>>,
    /// How many calls a worker runs at once.
    pub concurrency: Option<Setting<usize>>,
    /// After how many calls a worker is replaced.
    pub max_calls: Option<Setting<usize>>,
    /// How long a worker runs until it is replaced.
    pub max_lifetime: Option<Setting<Duration>>,
    /// The memory after a call from which on a worker is replaced.
    pub max_rss: Option<Setting<ByteCount>>,
    /// The most memory a worker may use.
    pub max_memory: Option<Setting<ByteCount>>,
    /// The effect of repeating a call.
    pub effects: Option<Setting<Effects>>,
    /// The secrets this tool file may receive, by name.
    pub secrets: Option<Setting<Vec<String>>>,
    /// The protocol of its worker. Only `[tool.NAME]` and a header set it.
    pub protocol: Option<Setting<Protocol>>,
    /// Its declared policy.
    pub policy: DeclaredPolicy,
}

impl ToolLayer {
    /// Reads the keys that a header and `[tool.NAME]` have in common.
    pub fn read_of_one(section: &Section<'_>) -> Self {
        Self { protocol: section.take("protocol"), ..Self::read(section) }
    }

    /// Reads those that `[tool]` has as well.
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
            max_rss: section.take::<MemoryLimit>("max_rss").map(|limit| limit.map(|limit| limit.0)),
            max_memory: section.take::<MemoryLimit>("max_memory").map(|limit| limit.map(|limit| limit.0)),
            effects: section.take("effects"),
            secrets: section.take("secrets"),
            protocol: None,
            policy: DeclaredPolicy::read(section),
        }
    }
}

/// A positive number.
pub(super) fn count(section: &Section<'_>, key: &'static str) -> Option<Setting<usize>> {
    Some(section.take::<Count>(key)?.map(|count| count.0))
}

/// A duration longer than zero.
pub(super) fn limit(section: &Section<'_>, key: &'static str) -> Option<Setting<Duration>> {
    Some(section.take::<Limit>(key)?.map(|limit| limit.0))
}

impl ToolLayer {
    /// This layer with a stronger one over it.
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
            policy: self.policy.under(over.policy),
        }
    }
}
