//! How environments are built, as hostler.toml configures it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::origin::{Origin, Setting};
use crate::process::EnvFilter;

/// Receives what a build does, a line at a time.
pub type Progress<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// How environments are built. A value that a message may name knows where it is set.
#[derive(Debug, Clone, Default)]
pub struct EnvironmentSettings {
    /// uv, when its path is configured.
    pub uv: Option<Setting<PathBuf>>,
    /// The interpreter to build on, as uv understands it: `3.12`, a path.
    pub python: Option<Setting<String>>,
    /// Variables for uv, over those of hostler itself.
    pub env: BTreeMap<String, Setting<String>>,
    /// The time limit of a build.
    pub build_timeout: Duration,
    /// How long an unused environment is kept.
    pub keep: Duration,
    /// Variables that may hold tools' secrets; they are removed from uv's environment.
    pub env_filter: EnvFilter,
}

/// A variable as uv gets it, and where it is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable {
    pub value: String,
    /// `/p/hostler.toml:3`, `hostler's environment`
    pub place: String,
}

impl EnvironmentSettings {
    /// The configured variables.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.env.iter().map(|(name, setting)| (name.as_str(), setting.value.as_str()))
    }

    /// A variable as uv gets it; none where it is unset or empty.
    pub(super) fn variable(&self, name: &str) -> Option<Variable> {
        let inherited =
            || self.env_filter.environment().text(name).filter(|_| !self.env_filter.holds(name)).map(str::to_owned);
        let variable = match self.env.get(name) {
            Some(set) => Some(Variable { value: set.value.clone(), place: place_of(&set.origin) }),
            None => inherited().map(|value| Variable { value, place: "hostler's environment".to_owned() }),
        };
        variable.filter(|variable| !variable.value.is_empty())
    }
}

/// Where a setting is set; `hostler.toml` for a default, as in tests.
pub(super) fn place_of(origin: &Origin) -> String {
    match origin {
        Origin::File(place) => place.to_string(),
        Origin::Default => "hostler.toml".to_owned(),
        other => other.to_string(),
    }
}
