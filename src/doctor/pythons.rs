//! The interpreters: those that run here, the one that hostler.toml names, those that headers ask for.

use std::collections::BTreeMap;
use std::str::FromStr;

use pep440_rs::VersionSpecifiers;

use super::{Sign, State};
use crate::app::App;
use crate::check::Interpreters;
use crate::pep723::{Hindrance, OLDEST_PYTHON};

/// The interpreters that run here, and headers that none of them fits. A file's name does not make it one: version managers
/// put names on `PATH` that run nothing.
pub(super) async fn interpreters(app: &App) -> Vec<Sign> {
    let environments = app.dispatcher.pools.environments();
    let named = Interpreters::of_this_machine();
    let mut running = None;
    if let Ok(Some(uv)) = environments.find_uv() {
        running = environments.pythons(&uv).await;
        // Whatever else is there, nothing is built on it.
        if let Some((what, fix)) = environments.missing_python(&uv).await.filter(|_| running.is_some()) {
            return vec![Sign::new("python", State::Bad, what, fix)];
        }
    }
    let Some(running) = running.map(|running| Interpreters(running.into_iter().collect())) else {
        let have = if named.0.is_empty() { "none".to_owned() } else { format!("{} by name", named.list()) };
        let found = format!("found {have}; none was tried, since that is uv's work");
        let fix = "see to what is said of uv above, and ask again";
        return vec![Sign::new("python", State::Doubtful, found, fix)];
    };
    let silent = |minor: &&(u64, u64)| **minor >= OLDEST_PYTHON && !running.0.contains(*minor);
    let silent = Interpreters(named.0.iter().filter(silent).copied().collect());
    let beside =
        if silent.0.is_empty() { String::new() } else { format!(" (by name only, not running: {})", silent.list()) };
    let have = if running.0.is_empty() { "none".to_owned() } else { running.list() };
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
