//! How environments are built, as the operator says.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::origin::{Origin, Setting};
use crate::process::Withheld;

/// A listener for what is being done, a line at a time.
pub type Said<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// How environments are built. What messages may have to name knows where it was said.
#[derive(Debug, Clone, Default)]
pub struct EnvironmentSettings {
    /// uv, when the operator says where it is.
    pub uv: Option<Setting<PathBuf>>,
    /// The interpreter to build on, as uv understands it: `3.12`, a path.
    pub python: Option<Setting<String>>,
    /// Variables that uv gets while it builds, over those of hostler itself.
    pub env: BTreeMap<String, Setting<String>>,
    /// The longest a build may take.
    pub build_timeout: Duration,
    /// How long an unused environment is kept.
    pub keep: Duration,
    /// Variables that may hold tools' secrets; uv does not get them.
    pub withheld: Withheld,
}

/// A variable as uv has it, with the words for where it is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable {
    pub value: String,
    /// `/p/hostler.toml:3`, `hostler's environment`
    pub place: String,
}

impl EnvironmentSettings {
    /// What uv gets beside hostler's own environment.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.env.iter().map(|(name, setting)| (name.as_str(), setting.value.as_str()))
    }

    /// A variable that is set to something while uv builds.
    pub(super) fn variable(&self, name: &str) -> Option<Variable> {
        let inherited =
            || self.withheld.environment().text(name).filter(|_| !self.withheld.holds(name)).map(str::to_owned);
        let variable = match self.env.get(name) {
            Some(said) => Some(Variable { value: said.value.clone(), place: place_of(&said.origin) }),
            None => inherited().map(|value| Variable { value, place: "hostler's environment".to_owned() }),
        };
        variable.filter(|variable| !variable.value.is_empty())
    }
}

/// Where a line of a file said something; `hostler.toml` for what has no place, as in tests.
pub(super) fn place_of(origin: &Origin) -> String {
    match origin {
        Origin::File(place) => place.to_string(),
        Origin::Default => "hostler.toml".to_owned(),
        other => other.to_string(),
    }
}
