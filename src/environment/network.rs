//! Settings between uv and the package index: another index, a proxy, certificates. Messages about the network name those that
//! are set.

use std::fmt;

use super::settings::EnvironmentSettings;
use crate::pep723::Metadata;

/// One such setting, and where it is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NetworkSetting {
    pub name: String,
    /// Without a password.
    pub value: String,
    /// `/p/hostler.toml:3`, `hostler's environment`
    pub place: String,
}

impl fmt::Display for NetworkSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} ({})", self.name, self.value, self.place)
    }
}

const USUAL_INDEX: &str = "https://pypi.org/simple";
/// A later one only counts where the earlier are not set.
pub(super) const INDEXES: &[&str] = &["UV_DEFAULT_INDEX", "UV_INDEX_URL"];
pub(super) const PROXIES: &[&str] =
    &["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"];
pub(super) const CERTIFICATES: &[&str] = &["SSL_CERT_FILE", "SSL_CERT_DIR"];

impl EnvironmentSettings {
    /// The index that uv asks instead of the usual one.
    pub(super) fn index(&self, header: Option<&Metadata>) -> Option<NetworkSetting> {
        let index = self.first_of(INDEXES).or_else(|| default_index_of(header?))?;
        (index.value.trim_end_matches('/') != USUAL_INDEX).then_some(index)
    }

    /// `HTTPS_PROXY = http://p:3128 (/p/hostler.toml:3), `: what may be wrong between uv and the index.
    pub(super) fn network(&self, header: Option<&Metadata>) -> String {
        let suspects = self.first_of(PROXIES).into_iter().chain(self.index(header));
        suspects.fold(String::new(), |text, setting| format!("{text}{setting}, "))
    }

    /// The first of these variables that is set.
    pub(super) fn first_of(&self, names: &[&str]) -> Option<NetworkSetting> {
        names.iter().find_map(|name| {
            let variable = self.variable(name)?;
            Some(NetworkSetting { name: (*name).to_owned(), value: shown(&variable.value), place: variable.place })
        })
    }
}

/// A value without its password. Proxies are also written without a scheme.
fn shown(value: &str) -> String {
    match value.rsplit_once('@').filter(|_| !value.contains("://")) {
        Some((_, rest)) => format!("****@{rest}"),
        None => without_password(value),
    }
}

/// `default = true` under `[[tool.uv.index]]`.
fn default_index_of(header: &Metadata) -> Option<NetworkSetting> {
    let indexes = header.other_tools.get("uv")?.get("index")?.as_array()?;
    let is_default = |index: &&toml::Value| index.get("default").and_then(toml::Value::as_bool) == Some(true);
    let url = indexes.iter().find(is_default)?.get("url")?.as_str()?;
    let line = header.line_of(url).map(|line| format!(", line {line}")).unwrap_or_default();
    let (name, value) = ("[[tool.uv.index]]".to_owned(), without_password(url));
    Some(NetworkSetting { name, value, place: format!("the header{line}") })
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
