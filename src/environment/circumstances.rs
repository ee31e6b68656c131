//! What keeps uv from working and is no fault of the header, whichever package it met it at: the disk, permissions,
//! certificates, the network, the index.

use super::failure::reason;
use super::in_force::unreached;
use super::index;
use super::pythons::is_about_fetching;
use super::settings::EnvironmentSettings;
use crate::pep723::Metadata;

/// What hostler itself says of an index that keeps it waiting.
pub(super) const NO_ANSWER: &str = "no answer within";

/// What to do about troubles that are not the file's.
pub(super) fn known_advice(stderr: &str, settings: &EnvironmentSettings, header: Option<&Metadata>) -> Option<String> {
    let says = |words: &[&str]| words.iter().any(|word| stderr.contains(word));
    if is_full(stderr) {
        let text = "the disk is full. Make room on it (`hostler warm --prune` removes unused environments), or set \
                    XDG_CACHE_HOME to another";
        return Some(text.to_owned());
    }
    if says(&["Failed to initialize cache", "Read-only file system", "os error 30", "Permission denied (os error 13)"])
    {
        let text = "a folder cannot be written. Correct its permissions, or set UV_CACHE_DIR under [environment.env] in \
                    hostler.toml, or XDG_CACHE_HOME, to a place that can";
        return Some(text.to_owned());
    }
    if says(&["UnknownIssuer", "invalid peer certificate"]) {
        return Some(unknown_certificate(settings));
    }
    if is_about_fetching(stderr) {
        return None;
    }
    if let Some(told) = index::advice(stderr, settings, header) {
        return Some(told);
    }
    if says(&["error sending request", "Could not connect", "dns error", NO_ANSWER])
        && !(says(&["Failed to download `"]) && says(&[" @ "]))
    {
        let suspects = settings.suspects(&reason(stderr), header);
        return Some(format!("the package index was not reached. {}", unreached(&suspects)));
    }
    None
}

fn unknown_certificate(settings: &EnvironmentSettings) -> String {
    let what = "the package index has a certificate that is not known here";
    let set = settings.certificates();
    let own = match set.iter().find(|variable| variable.name == "SSL_CERT_FILE") {
        Some(_) => "add it to the file that SSL_CERT_FILE names",
        None => "set SSL_CERT_FILE to it under [environment.env] in hostler.toml",
    };
    if set.is_empty() {
        return format!("{what}. If your network has one of its own, {own}");
    }
    let set = set.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    format!(
        "{what}: only those of {set} are in force. Correct or unset that; if your network has one of its own, {own}"
    )
}

/// Whether there was no room left on a disk.
pub(super) fn is_full(stderr: &str) -> bool {
    ["No space left on device", "os error 28", "Disk quota exceeded"].iter().any(|words| stderr.contains(words))
}
