//! What is said of a tool besides what it takes and returns: what it is about, how much harm it can do, where it may run. Kept,
//! shown and selected by; whoever operates hostler has the last word on each.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toml::de::DeValue;

use super::origin::{Origin, Setting};
use super::section::Section;
use super::tool::{Effects, ToolLayer};
use super::value::{Count, FromToml, choice};

/// How much harm a tool can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// It looks.
    Low,
    /// It reaches out, or looks where not everybody may.
    Medium,
    /// It changes things.
    High,
}

impl Risk {
    /// The word that stands in files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl FromToml for Risk {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        choice(value, &[("low", Self::Low), ("medium", Self::Medium), ("high", Self::High)])
    }
}

/// How a system stands that tools work for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// All is well.
    Normal,
    /// Somebody should look.
    Alert,
    /// Parts of it do not work.
    Degraded,
    /// As little as possible is to happen.
    Lockdown,
    /// It is being brought back.
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

    /// The word that stands in files.
    pub fn word(self) -> &'static str {
        Self::EVERY.iter().find(|(_, mode)| *mode == self).map_or("", |(word, _)| word)
    }
}

impl FromToml for Mode {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        choice(value, &Self::EVERY)
    }
}

/// The same, as a header or a table of hostler.toml says it.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Which version of the tool it is.
    pub version: Option<Setting<String>>,
    /// Words it can be found by.
    pub tags: Option<Setting<Vec<String>>>,
    /// What kind of thing it does, such as `read_only` or `network`.
    pub category: Option<Setting<String>>,
    /// How much harm it can do.
    pub risk_level: Option<Setting<Risk>>,
    /// The modes it may be called in; in all where nothing is said.
    pub allowed_modes: Option<Setting<Vec<Mode>>>,
    /// Whether a person is to be asked before each call.
    pub requires_approval: Option<Setting<bool>>,
    /// Whether it may only run behind walls.
    pub requires_sandbox: Option<Setting<bool>>,
    /// How often it may be called within an hour.
    pub rate_limit_per_hour: Option<Setting<usize>>,
}

impl Facts {
    /// The keys, for whoever says where they belong.
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

    /// These with stronger ones laid over them.
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

    /// What is said, as JSON.
    pub fn as_json(&self) -> Map<String, Value> {
        fn said<T: Serialize>(key: &str, setting: Option<&Setting<T>>) -> Option<(String, Value)> {
            let setting = setting?;
            Some((key.to_owned(), serde_json::to_value(&setting.value).ok()?))
        }
        let all = [
            said("version", self.version.as_ref()),
            said("tags", self.tags.as_ref()),
            said("category", self.category.as_ref()),
            said("risk_level", self.risk_level.as_ref()),
            said("allowed_modes", self.allowed_modes.as_ref()),
            said("requires_approval", self.requires_approval.as_ref()),
            said("requires_sandbox", self.requires_sandbox.as_ref()),
            said("rate_limit_per_hour", self.rate_limit_per_hour.as_ref()),
        ];
        all.into_iter().flatten().collect()
    }

    /// Whether it may be called in a mode.
    pub fn allows(&self, mode: Mode) -> bool {
        self.allowed_modes.as_ref().is_none_or(|modes| modes.value.contains(&mode))
    }
}

/// What a tool says of itself that has no header to say it in: an executable in what `--schema` prints, a built-in one in its
/// definition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Declared {
    /// How long one call may run.
    pub timeout: Option<Duration>,
    /// What repeating a call does.
    pub effects: Option<Effects>,
    /// Which version of it this is.
    pub version: Option<String>,
    /// Words it can be found by.
    pub tags: Option<Vec<String>>,
    /// What kind of thing it does.
    pub category: Option<String>,
    /// How much harm it can do.
    pub risk_level: Option<Risk>,
    /// The modes it may be called in.
    pub allowed_modes: Option<Vec<Mode>>,
    /// Whether a person is to be asked before each call.
    pub requires_approval: Option<bool>,
    /// Whether it may only run behind walls.
    pub requires_sandbox: Option<bool>,
    /// How often it may be called within an hour.
    pub rate_limit_per_hour: Option<usize>,
}

impl Declared {
    /// The same as a layer of wishes.
    pub fn layer(&self) -> ToolLayer {
        let facts = Facts {
            version: said(self.version.as_ref()),
            tags: said(self.tags.as_ref()),
            category: said(self.category.as_ref()),
            risk_level: said(self.risk_level.as_ref()),
            allowed_modes: said(self.allowed_modes.as_ref()),
            requires_approval: said(self.requires_approval.as_ref()),
            requires_sandbox: said(self.requires_sandbox.as_ref()),
            rate_limit_per_hour: said(self.rate_limit_per_hour.as_ref()),
        };
        let (timeout, effects) = (said(self.timeout.as_ref()), said(self.effects.as_ref()));
        ToolLayer { timeout, effects, facts, ..ToolLayer::default() }
    }
}

fn said<T: Clone>(value: Option<&T>) -> Option<Setting<T>> {
    value.map(|value| Setting { value: value.clone(), origin: Origin::Tool })
}
