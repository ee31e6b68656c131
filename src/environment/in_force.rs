//! What somebody set between uv and its packages: another index, a proxy, certificates. Where the network fails, what is in
//! force is suspected before anything else is advised to be set.

use std::fmt;

use super::index::host_of;
use super::settings::EnvironmentSettings;
use super::trouble::without_password;
use crate::pep723::Metadata;

/// One such setting, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InForce {
    pub name: String,
    /// Without a password.
    pub value: String,
    /// `/p/hostler.toml:3`, `hostler's environment`
    pub place: String,
}

impl fmt::Display for InForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} ({})", self.name, self.value, self.place)
    }
}

/// What uv asks when nobody says anything.
const USUAL_INDEX: &str = "https://pypi.org/simple";
/// A later one only counts where the earlier are not set.
const INDEXES: [&str; 2] = ["UV_DEFAULT_INDEX", "UV_INDEX_URL"];
const HTTPS_PROXIES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
const HTTP_PROXIES: [&str; 4] = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
const CERTIFICATES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

impl EnvironmentSettings {
    /// The index that is asked in the place of the usual one.
    pub(super) fn other_index(&self, header: Option<&Metadata>) -> Option<InForce> {
        let index = self.first_of(&INDEXES).or_else(|| index_of_header(header?))?;
        (index.value.trim_end_matches('/') != USUAL_INDEX).then_some(index)
    }

    /// The variables that certificates are read from.
    pub(super) fn certificates(&self) -> Vec<InForce> {
        CERTIFICATES.iter().filter_map(|name| self.first_of(&[name])).collect()
    }

    /// What may be why uv, or pip in its place, did not reach what it speaks of.
    pub(super) fn suspects(&self, words: &str, header: Option<&Metadata>) -> Vec<InForce> {
        let is_meant = |index: &InForce| !words.contains("://") || words.contains(host_of(&index.value));
        let index = self.other_index(header).filter(is_meant);
        let address = words.split_once("for url (").map(|(_, rest)| rest.split(')').next().unwrap_or(rest));
        self.proxy(address).into_iter().chain(index).collect()
    }

    /// The proxy that leads to an address.
    pub(super) fn proxy(&self, address: Option<&str>) -> Option<InForce> {
        let host = address.map(|address| host_of(address).split(':').next().unwrap_or_default());
        let direct = self.first_of(&["NO_PROXY", "no_proxy"]).map(|direct| direct.value).unwrap_or_default();
        let is_direct =
            |part: &str| part == "*" || host.is_some_and(|host| is_below(host, part.trim_start_matches('.')));
        if direct.split([',', ' ']).any(is_direct) {
            return None;
        }
        let is_plain = address.is_some_and(|address| address.starts_with("http://"));
        self.first_of(if is_plain { &HTTP_PROXIES } else { &HTTPS_PROXIES })
    }

    fn first_of(&self, names: &[&str]) -> Option<InForce> {
        names.iter().find_map(|name| {
            let variable = self.variable(name)?;
            let (name, value) = ((*name).to_owned(), shown(&variable.value));
            Some(InForce { name, value, place: variable.place })
        })
    }
}

/// A value as it may be told. Proxies are also written without a scheme.
fn shown(value: &str) -> String {
    match value.rsplit_once('@').filter(|_| !value.contains("://")) {
        Some((_, rest)) => format!("****@{rest}"),
        None => without_password(value),
    }
}

/// Whether a host is a domain of `NO_PROXY` or lies below it.
fn is_below(host: &str, domain: &str) -> bool {
    !domain.is_empty() && host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// `default = true` under `[[tool.uv.index]]`.
fn index_of_header(header: &Metadata) -> Option<InForce> {
    let indexes = header.other_tools.get("uv")?.get("index")?.as_array()?;
    let is_default = |index: &&toml::Value| index.get("default").and_then(toml::Value::as_bool) == Some(true);
    let url = indexes.iter().find(is_default)?.get("url")?.as_str()?;
    let line = header.line_of(url).map(|line| format!(", line {line}")).unwrap_or_default();
    let value = without_password(url);
    Some(InForce { name: "[[tool.uv.index]]".to_owned(), value, place: format!("the header{line}") })
}

/// What to do about a network that was not reached.
pub(super) fn unreached(suspects: &[InForce]) -> String {
    match suspects {
        [] => "Check the network, or set HTTPS_PROXY or UV_DEFAULT_INDEX under [environment.env] in hostler.toml"
            .to_owned(),
        [only] => {
            // Whoever has set no proxy may need one.
            let is_index = !only.name.to_ascii_uppercase().ends_with("_PROXY");
            let proxy = if is_index { ", or set HTTPS_PROXY under [environment.env] in hostler.toml" } else { "" };
            format!("{only} is in force: correct or unset it; if it is right, check the network{proxy}")
        }
        all => {
            let all = all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
            format!("{all} are in force: correct or unset the wrong one; if both are right, check the network")
        }
    }
}

/// Settings that see nothing of what this machine itself says.
#[cfg(test)]
pub(super) fn quiet(variables: &[(&str, &str)]) -> EnvironmentSettings {
    use crate::config::origin::{Origin, Place, Setting};

    let place = Place { file: std::sync::Arc::new("/p/hostler.toml".into()), line: 3 };
    let said = |value: &str| Setting { value: value.to_owned(), origin: Origin::File(place.clone()) };
    let known = [&INDEXES[..], &HTTPS_PROXIES, &HTTP_PROXIES, &CERTIFICATES].concat();
    let others = ["NO_PROXY", "no_proxy", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_OFFLINE", "UV_PYTHON_DOWNLOADS"];
    let nothing = known.into_iter().chain(others).map(|name| (name.to_owned(), said("")));
    let set = variables.iter().map(|(name, value)| ((*name).to_owned(), said(value)));
    EnvironmentSettings { env: nothing.chain(set).collect(), ..EnvironmentSettings::default() }
}

#[cfg(test)]
#[path = "in_force_tests.rs"]
mod tests;
