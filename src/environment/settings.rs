//! How environments are built, as hostler.toml configures it. Messages name the variables that are set between uv and the package
//! index: another index, a proxy, certificates.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::origin::{Origin, Setting};
use crate::pep723::Metadata;
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

/// A variable as uv gets it, or an index of a header, and where it is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable {
    pub name: String,
    /// Without a password.
    pub value: String,
    /// `/p/hostler.toml:3`, `hostler's environment`
    pub place: String,
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} ({})", self.name, self.value, self.place)
    }
}

/// The interpreter that uv uses, whatever a header says.
pub const UV_PYTHON: &str = "UV_PYTHON";
const USUAL_INDEX: &str = "https://pypi.org/simple";
/// A later one only counts where the earlier are not set.
pub(super) const INDEXES: &[&str] = &["UV_DEFAULT_INDEX", "UV_INDEX_URL"];
pub(super) const PROXIES: &[&str] =
    &["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"];

impl EnvironmentSettings {
    /// The configured variables.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.env.iter().map(|(name, setting)| (name.as_str(), setting.value.as_str()))
    }

    /// The interpreter that is asked for, whatever a header says: the configured one, or that of `UV_PYTHON`.
    pub fn asked_python(&self) -> Option<String> {
        let set = self.python.as_ref().or_else(|| self.env.get(UV_PYTHON)).map(|set| set.value.clone());
        let inherited = || self.env_filter.environment().text(UV_PYTHON).filter(|_| !self.env_filter.holds(UV_PYTHON));
        set.or_else(|| inherited().map(str::to_owned)).filter(|python| !python.is_empty())
    }

    /// The first of these variables that is set and not empty, as uv gets it.
    pub(super) fn first_of(&self, names: &[&str]) -> Option<Variable> {
        names.iter().find_map(|name| {
            let inherited = || self.env_filter.environment().text(name).filter(|_| !self.env_filter.holds(name));
            let (value, place) = match self.env.get(*name) {
                Some(set) => (set.value.as_str(), place_of(&set.origin)),
                None => (inherited()?, "hostler's environment".to_owned()),
            };
            let variable = || Variable { name: (*name).to_owned(), value: shown(name, value), place };
            (!value.is_empty()).then(variable)
        })
    }

    /// The index that uv asks instead of the usual one.
    pub(super) fn index(&self, header: Option<&Metadata>) -> Option<Variable> {
        let index = self.first_of(INDEXES).or_else(|| default_index_of(header?))?;
        (index.value.trim_end_matches('/') != USUAL_INDEX).then_some(index)
    }

    /// `HTTPS_PROXY = http://p:3128 (/p/hostler.toml:3), `: what may be wrong between uv and the index.
    pub(super) fn network(&self, header: Option<&Metadata>) -> String {
        let suspects = self.first_of(PROXIES).into_iter().chain(self.index(header));
        suspects.fold(String::new(), |text, setting| format!("{text}{setting}, "))
    }
}

/// A value without its password. Proxies are also written without a scheme.
fn shown(name: &str, value: &str) -> String {
    // `cpython@3.13`
    match value.rsplit_once('@').filter(|_| !value.contains("://") && name != UV_PYTHON) {
        Some((_, rest)) => format!("****@{rest}"),
        None => without_password(value),
    }
}

/// `default = true` under `[[tool.uv.index]]`.
fn default_index_of(header: &Metadata) -> Option<Variable> {
    let indexes = header.other_tools.get("uv")?.get("index")?.as_array()?;
    let is_default = |index: &&toml::Value| index.get("default").and_then(toml::Value::as_bool) == Some(true);
    let url = indexes.iter().find(is_default)?.get("url")?.as_str()?;
    let line = header.line_of(url).map(|line| format!(", line {line}")).unwrap_or_default();
    let (name, value) = ("[[tool.uv.index]]".to_owned(), without_password(url));
    Some(Variable { name, value, place: format!("the header{line}") })
}

/// `e.org:80` of `https://me:pw@e.org:80/simple`.
pub(super) fn host_of(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or(rest);
    host.rsplit('@').next().unwrap_or(host)
}

/// A text without the name and password of any address in it.
pub(super) fn without_password(text: &str) -> String {
    let mut pieces = text.split("://");
    let first = pieces.next().unwrap_or_default().to_owned();
    let bare = |piece: &str| {
        let end = piece.find(|c: char| c.is_whitespace() || "/`\"".contains(c)).unwrap_or(piece.len());
        piece[..end].rfind('@').map_or_else(|| piece.to_owned(), |at| format!("****{}", &piece[at..]))
    };
    pieces.fold(first, |text, piece| text + "://" + &bare(piece))
}

/// Where a setting is set; `hostler.toml` for a default, as in tests.
pub(super) fn place_of(origin: &Origin) -> String {
    match origin {
        Origin::File(place) => place.to_string(),
        Origin::Default => "hostler.toml".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configured_python_counts_before_the_variable_of_uv() {
        let mut settings = EnvironmentSettings::default();
        assert_eq!(settings.asked_python(), None);
        settings.env.insert(UV_PYTHON.to_owned(), Setting::default_value("/opt/a@1/python".to_owned()));
        assert_eq!(settings.asked_python().as_deref(), Some("/opt/a@1/python"));
        settings.python = Some(Setting::default_value("3.12".to_owned()));
        assert_eq!(settings.asked_python().as_deref(), Some("3.12"));
    }
}
