//! The values of rules: numbers, and patterns of paths, commands and hosts.

use std::path::{Component, Path};
use std::time::Duration;

use regex::Regex;
use toml::de::DeValue;

use super::origin::{Diagnosis, Setting};
use super::section::Section;
use super::value::{FromToml, count, limit};

/// How long a person has to approve a call, by default (specification 002).
const TO_APPROVE: Duration = Duration::from_mins(5);

/// How long a person has to approve a call.
pub(super) fn to_approve(policy: &Section<'_>) -> Setting<Duration> {
    policy.take_as("approval_timeout", limit).unwrap_or(Setting::default_value(TO_APPROVE))
}

/// The most calls in some time. Each of them is remembered for that long.
pub(super) fn rate(value: &DeValue<'_>) -> Result<usize, Diagnosis> {
    match count(value)? {
        most if most <= MOST_CALLS => Ok(most),
        most => Err(Diagnosis::new(format!("{most} is too much"), format!("write at most {MOST_CALLS}"))),
    }
}

/// How often something has to happen to happen again.
pub(super) fn at_least_two(value: &DeValue<'_>) -> Result<usize, Diagnosis> {
    match count(value)? {
        1 => Err(Diagnosis::new("one call repeats nothing", "write 2 or more")),
        times => Ok(times),
    }
}

/// What is taken out of results: regular expressions.
pub(super) fn redact_patterns(value: &DeValue<'_>) -> Result<Vec<String>, Diagnosis> {
    let patterns = Vec::<String>::from_toml(value)?;
    let fix = "write one like '\\b\\d{4}-\\d{4}\\b', in single quotes, which keep backslashes";
    redactions(&patterns).map_err(|what| Diagnosis::new(what, fix))?;
    Ok(patterns)
}

/// The same, compiled. A pattern that matches nothing at all would be between any two letters.
pub fn redactions(patterns: &[String]) -> Result<Vec<Regex>, String> {
    let compiled = |pattern: &String| {
        let reason = |error: regex::Error| error.to_string().lines().last().unwrap_or_default().trim().to_owned();
        let compiled =
            Regex::new(pattern).map_err(|error| format!("{pattern:?} is not a pattern: {}", reason(error)))?;
        if compiled.is_match("") { Err(format!("{pattern:?} matches an empty text")) } else { Ok(compiled) }
    };
    patterns.iter().map(compiled).collect()
}

/// The most that a rate may admit.
const MOST_CALLS: usize = 1_000_000;

/// Patterns of paths, as they were written.
pub(super) fn path_patterns(value: &DeValue<'_>) -> Result<Vec<String>, Diagnosis> {
    let patterns = Vec::<String>::from_toml(value)?;
    // The folder and the home that they begin at are known later, and are paths.
    let is_pattern = |pattern: &&String| whole(pattern, Path::new("/"), Path::new("/")).is_some();
    match patterns.iter().find(|pattern| !is_pattern(pattern)) {
        None => Ok(patterns),
        Some(pattern) => {
            let what = format!("{pattern:?} is not a pattern of paths");
            Err(Diagnosis::new(what, "write one like \"$HOME/projects/**\" or \"/srv/data/*.csv\", without `..`"))
        }
    }
}

/// A pattern with the folder that it begins at: the home folder behind `$HOME` or `~`, that of the file that has it if it is relative.
pub fn whole(pattern: &str, home: &Path, folder: &Path) -> Option<String> {
    let behind_home = ["$HOME", "${HOME}", "~"].iter().find_map(|name| {
        let rest = pattern.strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    });
    let (start, rest) = match behind_home {
        Some(rest) => (home, rest),
        None if pattern.starts_with('/') => (Path::new("/"), pattern),
        None => (folder, pattern.strip_prefix("./").unwrap_or(pattern)),
    };
    let rest = rest.trim_start_matches('/').trim_end_matches('/');
    let is_plain = Path::new(rest).components().all(|part| matches!(part, Component::Normal(_)));
    if pattern.is_empty() || !is_plain || rest.contains(['\0', '$']) {
        return None;
    }
    let whole = Path::new(&escaped(start)?).join(rest);
    let text = whole.to_str()?.to_owned();
    let text = if text.len() > 1 { text.trim_end_matches('/').to_owned() } else { text };
    glob(&text).is_some().then_some(text)
}

/// A path as a pattern of itself.
fn escaped(path: &Path) -> Option<String> {
    Some(escape(path.to_str()?))
}

/// A text as a pattern of itself.
pub fn escape(text: &str) -> String {
    globset::escape(&text.replace('\\', "\\\\"))
}

/// The pattern, parsed: `*` ends at `/`, and `**` does not.
pub fn glob(pattern: &str) -> Option<globset::Glob> {
    globset::GlobBuilder::new(pattern).literal_separator(true).build().ok()
}

/// Words with which a command begins.
pub(super) fn command_patterns(value: &DeValue<'_>) -> Result<Vec<String>, Diagnosis> {
    let patterns = Vec::<String>::from_toml(value)?;
    let is_plain = |pattern: &&String| {
        let words = shlex::split(pattern);
        words.is_some_and(|words| !words.is_empty())
            && !pattern.contains(['|', '&', ';', '<', '>', '`', '$', '\n', '*', '\0'])
    };
    match patterns.iter().find(|pattern| !is_plain(pattern)) {
        None => Ok(patterns),
        Some(pattern) => {
            let what = format!("{pattern:?} is not the beginning of a command");
            Err(Diagnosis::new(what, "write words like \"git status\" or \"ls\": a command is compared word by word"))
        }
    }
}

/// Names of hosts, or `*.` before the names of all beneath one.
pub(super) fn host_patterns(value: &DeValue<'_>) -> Result<Vec<String>, Diagnosis> {
    let patterns = Vec::<String>::from_toml(value)?;
    let is_host = |pattern: &str| {
        let name = pattern.strip_prefix("*.").unwrap_or(pattern).trim_start_matches('[').trim_end_matches(']');
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
        !name.is_empty()
            && name.chars().all(is_part)
            && (!name.contains(':') || name.parse::<std::net::Ipv6Addr>().is_ok())
    };
    match patterns.iter().find(|pattern| !is_host(pattern)) {
        None => Ok(patterns.iter().map(|pattern| pattern.to_lowercase()).collect()),
        Some(pattern) => {
            let what = format!("{pattern:?} is not a host");
            Err(Diagnosis::new(
                what,
                "write one like \"example.com\" or \"*.example.com\", without a scheme and a port",
            ))
        }
    }
}
