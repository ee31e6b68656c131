//! The declared policy of a tool: its version, tags and category, its risk, and where and how often it may run. Tools
//! declare it, and the operator's settings override it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::origin::{Origin, Setting};
use super::section::Section;
use super::value::{Word, count};

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

/// The state of the system that tools work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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

impl Word for Mode {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("normal", Self::Normal),
        ("alert", Self::Alert),
        ("degraded", Self::Degraded),
        ("lockdown", Self::Lockdown),
        ("recovery", Self::Recovery),
    ];
}

/// The policy, with the place that set each part.
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
            rate_limit_per_hour: section.take_as("rate_limit_per_hour", count),
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

    /// What is declared: each key with its value and what set it.
    pub(super) fn declared(&self) -> impl Iterator<Item = (&'static str, Value, &Origin)> {
        fn row<'s, T: Serialize>(
            key: &'static str,
            setting: Option<&'s Setting<T>>,
        ) -> Option<(&'static str, Value, &'s Origin)> {
            let setting = setting?;
            Some((key, serde_json::to_value(&setting.value).ok()?, &setting.origin))
        }
        let rows = [
            row("version", self.version.as_ref()),
            row("tags", self.tags.as_ref()),
            row("category", self.category.as_ref()),
            row("risk_level", self.risk_level.as_ref()),
            row("allowed_modes", self.allowed_modes.as_ref()),
            row("requires_approval", self.requires_approval.as_ref()),
            row("requires_sandbox", self.requires_sandbox.as_ref()),
            row("rate_limit_per_hour", self.rate_limit_per_hour.as_ref()),
        ];
        rows.into_iter().flatten()
    }

    /// What is declared, as JSON.
    pub fn as_json(&self) -> Map<String, Value> {
        self.declared().map(|(key, value, _)| (key.to_owned(), value)).collect()
    }

    /// Whether it may be called in a mode.
    pub fn allows(&self, mode: Mode) -> bool {
        self.allowed_modes.as_ref().is_none_or(|modes| modes.value.contains(&mode))
    }
}
