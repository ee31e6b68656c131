//! `[builtin]`: which built-in tools are on, and what they may reach. None is on by default.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use toml::de::DeValue;

use super::environment::Environment;
use super::environment::from_file;
use super::origin::{Diagnosis, Problem, Setting};
use super::section::{Section, nearest};
use super::value::{FromToml, Word, mismatch};

/// Every built-in tool, by the group that switches it on.
pub const GROUPS: [(&str, &[&str]); 6] = [
    ("files", &["read_file", "list_directory", "write_file", "delete_file", "file_edit"]),
    ("search", &["glob", "grep", "git_status"]),
    ("system", &["system_metrics_snapshot", "check_process_health", "read_system_logs"]),
    ("web", &["fetch_url", "web_search"]),
    ("shell", &["bash"]),
    ("host", &["hostler_tools", "hostler_status", "hostler_refresh", "hostler_config", "hostler_ask_llm"]),
];

/// Their names in other hosts, which work as well.
pub const ALIASES: [(&str, &str); 2] = [("file_read", "read_file"), ("file_write", "write_file")];

/// The name of the built-in tool that has this other name.
pub fn listed_as(name: &str) -> Option<&'static str> {
    ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, listed)| *listed)
}

/// The groups whose tools use folders.
const OF_FOLDERS: [&str; 3] = ["files", "search", "shell"];

/// The settings of built-in tools.
#[derive(Debug, Clone, Default)]
pub struct BuiltinSettings {
    /// The tools, or groups of them, that are on.
    pub enable: Option<Setting<Vec<String>>>,
    /// Those that are off although their group is on.
    pub disable: Option<Setting<Vec<String>>>,
    /// The folders they may use. Relative paths begin at the first.
    pub roots: Option<Setting<Vec<PathBuf>>>,
    /// The provider of `web_search`.
    pub search: Option<Setting<SearchProvider>>,
    /// The address of that provider, if it is self-hosted.
    pub search_url: Option<Setting<String>>,
    /// Private hosts and addresses that `fetch_url` may use.
    pub fetch_private: Option<Setting<Vec<String>>>,
}

/// The provider of `web_search`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchProvider {
    /// The page for browsers without scripts.
    DuckDuckGo,
    /// A self-hosted instance.
    SearXng,
    /// Brave's API, with a key.
    Brave,
}

impl Word for SearchProvider {
    const WORDS: &'static [(&'static str, Self)] =
        &[("duckduckgo", Self::DuckDuckGo), ("searxng", Self::SearXng), ("brave", Self::Brave)];
}

impl BuiltinSettings {
    /// What decides what the tools can reach, as one text: an approval is bound to it.
    pub fn reach(&self) -> String {
        let value = |setting: &Option<Setting<Vec<String>>>| setting.as_ref().map(|setting| setting.value.clone());
        let roots = self.roots.as_ref().map(|roots| &roots.value);
        format!("{roots:?} {:?}", value(&self.fetch_private))
    }

    pub(super) fn read(section: Section<'_>, environment: &Environment) -> Self {
        let (search, fetch) = (section.section("web_search"), section.section("fetch_url"));
        let roots = section.take::<Vec<PathBuf>>("roots").map(|Setting { value, origin }| {
            // Without `.`, which would stand in every path that is shown.
            let whole = |path: &PathBuf| from_file(&origin, path, environment).components().collect();
            Setting { value: value.iter().map(whole).collect(), origin }
        });
        let settings = Self {
            enable: section.take_as("enable", tool_names),
            disable: section.take_as("disable", tool_names),
            roots,
            search: search.take("provider"),
            search_url: search.take_as("url", web_address),
            fetch_private: fetch.take_as("allow_private", hosts),
        };
        search.finish(false);
        fetch.finish(false);
        section.finish(false);
        settings
    }

    /// The tools that are on.
    pub fn enabled(&self) -> BTreeSet<&'static str> {
        let mut on: BTreeSet<&str> = self.enable.iter().flat_map(|names| tools_in(&names.value)).collect();
        for off in self.disable.iter().flat_map(|names| tools_in(&names.value)) {
            on.remove(off);
        }
        on
    }

    /// The folders that the enabled tools may use, each with the reason why it cannot be used, if any.
    pub fn reached(&self) -> Vec<(&Path, Option<&'static str>)> {
        let why = |root: &Path| match root.metadata() {
            Ok(found) if found.is_dir() => None,
            Ok(_) => Some("is a file, not a folder"),
            Err(_) => Some("does not exist"),
        };
        let roots = self.roots.iter().filter(|_| self.reaching().is_some()).flat_map(|roots| &roots.value);
        roots.map(|root| (root.as_path(), why(root))).collect()
    }

    /// One enabled tool that uses folders.
    fn reaching(&self) -> Option<&'static str> {
        let on = self.enabled();
        let groups = GROUPS.iter().filter(|(group, _)| OF_FOLDERS.contains(group));
        groups.flat_map(|(_, tools)| *tools).find(|name| on.contains(**name)).copied()
    }

    /// What is wrong with all layers together.
    pub(super) fn problem(&self) -> Option<Problem> {
        self.of_folders().or_else(|| self.of_search())
    }

    fn of_search(&self) -> Option<Problem> {
        let provider = self.search.as_ref().filter(|provider| provider.value == SearchProvider::SearXng)?;
        if self.search_url.is_some() {
            return None;
        }
        let what = "`searxng` needs the address of an instance".to_owned();
        let fix = "add `url = \"https://searx.example\"` to [builtin.web_search]".to_owned();
        Some(Problem {
            place: provider.origin.place()?.clone(),
            key: "builtin.web_search.provider".to_owned(),
            what,
            fix,
        })
    }

    fn of_folders(&self) -> Option<Problem> {
        let enable = self.enable.as_ref()?;
        let place = enable.origin.place()?.clone();
        let reaching = self.reaching()?;
        if self.roots.as_ref().is_some_and(|roots| !roots.value.is_empty()) {
            return None;
        }
        let what = format!("`{reaching}` needs at least one folder");
        let fix =
            "add `roots = [\".\"]` to [builtin], with the folders that it may use, relative to this file".to_owned();
        Some(Problem { place, key: "builtin.enable".to_owned(), what, fix })
    }
}

/// The tools in a list of tools and groups.
fn tools_in(names: &[String]) -> impl Iterator<Item = &'static str> {
    let every = GROUPS.iter().flat_map(|(group, tools)| tools.iter().map(move |tool| (*group, *tool)));
    every.filter(|(group, tool)| names.iter().any(|name| name == group || name == tool)).map(|(_, tool)| tool)
}

/// Names of tools and groups.
fn tool_names(value: &DeValue<'_>) -> Result<Vec<String>, Diagnosis> {
    let names = Vec::<String>::from_toml(value)?;
    let known = || GROUPS.iter().flat_map(|(group, tools)| tools.iter().chain([group])).copied();
    let Some(unknown) = names.iter().find(|name| !known().any(|other| other == *name)) else { return Ok(names) };
    let near = listed_as(unknown).or_else(|| nearest(unknown, known()));
    let groups = || GROUPS.map(|(group, _)| group).join(", ");
    let fix = near.map_or_else(
        || format!("name tools (`hostler builtin` lists them) or groups: {}", groups()),
        |near| format!("did you mean \"{near}\"?"),
    );
    Err(Diagnosis { what: format!("there is no built-in tool \"{unknown}\""), fix })
}

/// A whole address: an incomplete one would only fail at a call.
fn web_address(value: &DeValue<'_>) -> Result<String, Diagnosis> {
    let url = String::from_toml(value)?;
    if !(url.starts_with("https://") || url.starts_with("http://")) {
        let fix = format!("write the whole address, like \"https://{url}\"");
        return Err(mismatch("an address that begins with https:// or http://", value, fix));
    }
    Ok(url)
}

/// Hosts, addresses and networks. An invalid network would count as the name of a host.
fn hosts(value: &DeValue<'_>) -> Result<Vec<String>, Diagnosis> {
    let names = Vec::<String>::from_toml(value)?;
    let is_known = |name: &String| !name.contains(['/', '*', ' ']) || network(name).is_some();
    let Some(unknown) = names.iter().find(|name| !is_known(name)) else { return Ok(names) };
    let fix = "write a host (\"wiki.internal\"), an address (\"10.1.2.3\") or a network (\"10.1.0.0/16\")";
    Err(Diagnosis { what: format!("\"{unknown}\" is not a host, address or network"), fix: fix.to_owned() })
}

/// An address, or a network such as `10.1.0.0/16`: its first address and the length of its prefix.
pub fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.trim_matches(['[', ']']).parse().ok()?;
    let all = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(all), |bits| bits.parse().ok())?;
    (bits <= all).then_some((address, bits))
}
