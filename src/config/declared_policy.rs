//! The declared policy of a tool: its version, tags and category, its risk, and where and how often it may run. Tools
//! declare it, and the operator's settings override it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toml::de::DeValue;

use super::origin::{Origin, Setting};
use super::section::Section;
use super::tool::{Effects, ToolLayer};
use super::value::{Count, FromToml, Mismatch, choice};

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

impl Risk {
    /// Its word in files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl FromToml for Risk {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch> {
        choice(value, &[("low", Self::Low), ("medium", Self::Medium), ("high", Self::High)])
    }
}

/// The state of the system that tools work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// All is well.
    Normal,
    /// A person should look.
    Alert,
    /// Parts of it do not work.
    Degraded,
    /// As little as possible may happen.
    Lockdown,
    /// It is being restored.
    Recovery,
}

impl Mode {
    /// Every mode, by its word.
    pub const EVERY: [(&'static str, Self); 5] = [
        ("normal", Self::Normal),
        ("alert", Self::Alert),
        ("degraded", Self::Degraded),
        ("lockdown", Self::Lockdown),
        ("recovery", Self::Recovery),
    ];

    /// Its word in files.
    pub fn word(self) -> &'static str {
        Self::EVERY.iter().find(|(_, mode)| *mode == self).map_or("", |(word, _)| word)
    }
}

impl FromToml for Mode {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch> {
        choice(value, &Self::EVERY)
    }
}

/// The policy, with the place that set each part.
#[derive(Debug, Clone, Default)]
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
    /// Whether a person has to approve each call.
    pub requires_approval: Option<Setting<bool>>,
    /// Whether it may only run in a sandbox.
    pub requires_sandbox: Option<Setting<bool>>,
    /// How often it may be called in an hour.
    pub rate_limit_per_hour: Option<Setting<usize>>,
}

impl DeclaredPolicy {
    /// Its keys in settings.
    pub const KEYS: [&'static str; 8] = [
        "version",
        "tags",
        "category",
        "risk_level",
        "allowed_modes",
        "requires_approval",
        "requires_sandbox",
        "rate_limit_per_hour",
    ];

    pub(super) fn read(section: &Section<'_>) -> Self {
        Self {
            version: section.take("version"),
            tags: section.take("tags"),
            category: section.take("category"),
            risk_level: section.take("risk_level"),
            allowed_modes: section.take("allowed_modes"),
            requires_approval: section.take("requires_approval"),
            requires_sandbox: section.take("requires_sandbox"),
            rate_limit_per_hour: section.take::<Count>("rate_limit_per_hour").map(|count| count.map(|count| count.0)),
        }
    }

    /// This policy with a stronger one over it.
    #[must_use]
    pub fn under(self, over: Self) -> Self {
        Self {
            version: over.version.or(self.version),
            tags: over.tags.or(self.tags),
            category: over.category.or(self.category),
            risk_level: over.risk_level.or(self.risk_level),
            allowed_modes: over.allowed_modes.or(self.allowed_modes),
            requires_approval: over.requires_approval.or(self.requires_approval),
            requires_sandbox: over.requires_sandbox.or(self.requires_sandbox),
            rate_limit_per_hour: over.rate_limit_per_hour.or(self.rate_limit_per_hour),
        }
    }

    /// What is declared, as JSON.
    pub fn as_json(&self) -> Map<String, Value> {
        fn declared<T: Serialize>(key: &str, setting: Option<&Setting<T>>) -> Option<(String, Value)> {
            let setting = setting?;
            Some((key.to_owned(), serde_json::to_value(&setting.value).ok()?))
        }
        let all = [
            declared("version", self.version.as_ref()),
            declared("tags", self.tags.as_ref()),
            declared("category", self.category.as_ref()),
            declared("risk_level", self.risk_level.as_ref()),
            declared("allowed_modes", self.allowed_modes.as_ref()),
            declared("requires_approval", self.requires_approval.as_ref()),
            declared("requires_sandbox", self.requires_sandbox.as_ref()),
            declared("rate_limit_per_hour", self.rate_limit_per_hour.as_ref()),
        ];
        all.into_iter().flatten().collect()
    }

    /// Whether it may be called in a mode.
    pub fn allows(&self, mode: Mode) -> bool {
        self.allowed_modes.as_ref().is_none_or(|modes| modes.value.contains(&mode))
    }
}

/// What a tool without a header declares: an executable in its `--schema` output, a built-in tool in its definition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Declared {
    /// How long one call may run.
    pub timeout: Option<Duration>,
    /// The effect of repeating a call.
    pub effects: Option<Effects>,
    /// Its version.
    pub version: Option<String>,
    /// Words to find it by.
    pub tags: Option<Vec<String>>,
    /// What kind of thing it does.
    pub category: Option<String>,
    /// How much harm it can do.
    pub risk_level: Option<Risk>,
    /// The modes it may be called in.
    pub allowed_modes: Option<Vec<Mode>>,
    /// Whether a person has to approve each call.
    pub requires_approval: Option<bool>,
    /// Whether it may only run in a sandbox.
    pub requires_sandbox: Option<bool>,
    /// How often it may be called in an hour.
    pub rate_limit_per_hour: Option<usize>,
}

impl Declared {
    /// The same as a layer of settings.
    pub fn layer(&self) -> ToolLayer {
        let policy = DeclaredPolicy {
            version: declared(self.version.as_ref()),
            tags: declared(self.tags.as_ref()),
            category: declared(self.category.as_ref()),
            risk_level: declared(self.risk_level.as_ref()),
            allowed_modes: declared(self.allowed_modes.as_ref()),
            requires_approval: declared(self.requires_approval.as_ref()),
            requires_sandbox: declared(self.requires_sandbox.as_ref()),
            rate_limit_per_hour: declared(self.rate_limit_per_hour.as_ref()),
        };
        let (timeout, effects) = (declared(self.timeout.as_ref()), declared(self.effects.as_ref()));
        ToolLayer { timeout, effects, policy, ..ToolLayer::default() }
    }
}

fn declared<T: Clone>(value: Option<&T>) -> Option<Setting<T>> {
    value.map(|value| Setting { value: value.clone(), origin: Origin::Tool })
}
