//! The tools: their folders, those that are broken, interpreters and secrets they ask for.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use pep440_rs::VersionSpecifiers;

use super::{Sign, State};
use crate::app::App;
use crate::check::Interpreters;
use crate::pep723::{Hindrance, OLDEST_PYTHON};

pub(super) fn folders(app: &App) -> Sign {
    let catalogue = app.dispatcher.registry.catalogue();
    let folders: Vec<String> = app.config.tools.value.iter().map(|folder| folder.display().to_string()).collect();
    if let Some(problem) = catalogue.problems.first() {
        return Sign::new("tools", State::Bad, problem.to_string(), "correct `tools` in hostler.toml, or --tools");
    }
    let (tools, files) = (catalogue.ready().count(), catalogue.files.len());
    if files == 0 {
        let places = if folders.is_empty() { "no folder".to_owned() } else { folders.join(", ") };
        let fix = "`hostler new NAME` writes a first one; `tools = [\"…\"]` in hostler.toml names other folders";
        return Sign::new("tools", State::Doubtful, format!("none in {places}"), fix);
    }
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    Sign::good("tools", format!("{} in {} of {}", plural(tools, "tool"), plural(files, "file"), folders.join(", ")))
}

pub(super) fn broken(app: &App) -> Vec<Sign> {
    let catalogue = app.dispatcher.registry.catalogue();
    let broken: Vec<String> =
        catalogue.files.iter().filter(|entry| entry.broken().is_some()).map(|entry| entry.file.pack.clone()).collect();
    if broken.is_empty() {
        return Vec::new();
    }
    let found = format!(
        "{} cannot be served: {}",
        if broken.len() == 1 { "one file" } else { "some files" },
        broken.join(", ")
    );
    vec![Sign::new("tools", State::Bad, found, "`hostler check` shows what is wrong, and where")]
}

/// The interpreters that run here, and headers that none of them fits. A file's name does not make it one: version managers
/// put names on `PATH` that run nothing.
pub(super) async fn interpreters(app: &App) -> Vec<Sign> {
    let environments = app.dispatcher.pools.environments();
    let named = Interpreters::of_this_machine();
    let running = match environments.find_uv() {
        Ok(Some(uv)) => environments.pythons(&uv).await,
        _ => None,
    };
    let Some(running) = running.map(|running| Interpreters(running.into_iter().collect())) else {
        let have = if named.0.is_empty() { "none".to_owned() } else { format!("{} by name", named.told()) };
        let found = format!("found {have}; none was tried, since that is uv's work");
        return vec![Sign::new("python", State::Doubtful, found, "install uv, or mend it, and ask again")];
    };
    let silent = |minor: &&(u64, u64)| **minor >= OLDEST_PYTHON && !running.0.contains(*minor);
    let silent = Interpreters(named.0.iter().filter(silent).copied().collect());
    let beside =
        if silent.0.is_empty() { String::new() } else { format!(" (by name only, not running: {})", silent.told()) };
    let have = if running.0.is_empty() { "none".to_owned() } else { running.told() };
    let have = format!("found {have}{beside}");
    let mut unmet: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in &app.dispatcher.registry.catalogue().files {
        let wanted = entry.file.header.as_ref().and_then(|header| header.requires_python.as_ref());
        let Some(wanted) = wanted else { continue };
        if VersionSpecifiers::from_str(wanted).is_ok_and(|range| !running.fits(&range)) {
            unmet.entry(wanted.clone()).or_default().push(entry.file.pack.clone());
        }
    }
    if unmet.is_empty() {
        return vec![Sign::good("python", have)];
    }
    unmet.iter().map(|(wanted, packs)| unmet_sign(wanted, packs, &have)).collect()
}

fn unmet_sign(wanted: &str, packs: &[String], have: &str) -> Sign {
    let found = format!("{} wants {wanted}; {have}", packs.join(", "));
    if let Some(hindrance) = Hindrance::of(wanted) {
        return Sign::new("python", State::Bad, found, hindrance.told("").1);
    }
    let fix = "`uv python install` gets one; uv also tries to fetch it at the first call";
    Sign::new("python", State::Doubtful, found, fix)
}

/// Declared secrets that are not set.
pub(super) async fn secrets(app: &App) -> Vec<Sign> {
    let catalogue = app.dispatcher.registry.catalogue();
    let mut wanted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in &catalogue.files {
        for name in &entry.settings.secrets.value {
            wanted.entry(name.clone()).or_default().insert(entry.file.pack.clone());
        }
    }
    let mut signs = Vec::new();
    for (name, packs) in wanted {
        let packs = packs.into_iter().collect::<Vec<_>>().join(", ");
        let configured = app.config.layer.secrets.contains_key(&name);
        signs.push(match app.dispatcher.pools.secret(&name).await {
            Ok(Some(_)) if configured => Sign::good("secret", format!("{name} is set ({packs})")),
            Ok(Some(_)) => Sign::new(
                "secret",
                State::Doubtful,
                format!("{name} is set here ({packs}), and MCP clients start servers without it"),
                format!("add `{name} = {{ file = \"…\" }}` under [secrets] in hostler.toml"),
            ),
            Ok(None) => Sign::new(
                "secret",
                State::Doubtful,
                format!("{name} is not set ({packs})"),
                format!("add `{name} = {{ file = \"…\" }}` under [secrets] in hostler.toml"),
            ),
            Err(fault) => Sign::new("secret", State::Bad, fault.message, "correct its line in [secrets]"),
        });
    }
    signs
}
