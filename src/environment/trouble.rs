//! What uv's words mean for the person who wrote the header: which dependency, on which line, and what to do.
//!
//! uv explains how it came to its end; whoever meets that for the first time wants to know what to change. Words of uv that
//! are not known here are passed on as they are.

use std::path::Path;

use super::index::http_error;
use super::pythons::Minor;
use super::settings::EnvironmentSettings;
use crate::pep723::{Metadata, normalised, package_of};

/// A header and the words with which uv refused it.
pub(super) struct Trouble<'t> {
    pub file: &'t Path,
    /// Whether a lock beside it says what to install.
    pub is_locked: bool,
    pub header: Option<&'t Metadata>,
    pub settings: &'t EnvironmentSettings,
    /// The Pythons that work here, as far as that was asked.
    pub pythons: &'t [Minor],
    /// uv's reason on one line.
    pub reason: &'t str,
    /// All that uv wrote.
    pub stderr: &'t str,
}

impl Trouble<'_> {
    /// What is wrong and what to do, in a sentence or two; nothing where that is not certain.
    pub(super) fn told(&self) -> Option<String> {
        let rules = [
            Self::lock,
            Self::no_python,
            Self::platform,
            Self::not_found,
            Self::conflict,
            Self::no_version,
            Self::build,
            Self::address,
            Self::refused_table,
        ];
        rules.iter().find_map(|rule| rule(self))
    }

    /// The dependency on a package, as it stands in the header.
    pub(super) fn wish(&self, package: &str) -> Option<&str> {
        let wishes = &self.header?.dependencies;
        wishes.iter().find(|wish| normalised(package_of(wish)) == normalised(package)).map(String::as_str)
    }

    /// `"rich==99" (/t/a.py:3)`, or how a package that no line names came in.
    pub(super) fn named(&self, package: &str) -> String {
        match self.wish(package) {
            Some(wish) => format!("\"{}\"{}", without_password(wish), self.place(wish)),
            None => format!("{package}, which one of the dependencies needs,"),
        }
    }

    pub(super) fn place(&self, word: &str) -> String {
        let line = self.header.and_then(|header| header.line_of(word));
        line.map(|line| format!(" ({}:{line})", self.file.display())).unwrap_or_default()
    }

    /// ` (/t/a.py:3)` of the dependency on a package, or how it came in.
    pub(super) fn place_of(&self, package: &str) -> String {
        match self.wish(package) {
            Some(wish) => self.place(wish),
            None => ", which one of the dependencies needs,".to_owned(),
        }
    }

    /// A dependency with an address of its own.
    fn address(&self) -> Option<String> {
        let starts = [
            "Failed to download `",
            "Failed to download and build `",
            "Distribution not found at: ",
            "Git operation failed",
        ];
        if !starts.iter().any(|start| self.reason.contains(start)) {
            return None;
        }
        let header = self.header?;
        let address = |wish: &&String| wish.split_once('@').map(|(_, place)| place.trim().to_owned());
        let is_named = |wish: &&String| {
            let said = format!("`{} @ ", package_of(wish));
            address(wish).is_some_and(|address| self.reason.contains(&address) || self.reason.contains(&said))
        };
        if let Some(wish) = header.dependencies.iter().find(is_named) {
            let (place, wish) = (self.place(wish), without_password(wish));
            let refused = http_error(self.stderr, "client")
                .filter(|(_, status)| status.starts_with("401") || status.starts_with("403"));
            if let Some((_, status)) = refused {
                return Some(format!(
                    "\"{wish}\"{place} was refused at its address ({status}). Correct the address, or write the credentials \
                     for it into ~/.netrc: machine HOST login USER password PASSWORD"
                ));
            }
            return Some(format!(
                "\"{wish}\"{place} was not found at its address, or the address was not reached. Correct it"
            ));
        }
        let missing = word_after(self.reason, "Distribution not found at: ")?;
        let path = missing.trim_start_matches("file://");
        Some(format!("nothing is at {path}, which [tool.uv] names{}. Correct it", self.place(path)))
    }

    /// `[tool.uv]` is uv's own; so is a requirement that only uv finds wrong.
    fn refused_table(&self) -> Option<String> {
        if !self.reason.contains("TOML parse error") {
            return None;
        }
        let header = self.header?;
        let last = self.stderr.lines().map(str::trim).rfind(|line| line.starts_with(|c: char| c.is_alphabetic()))?;
        if let Some(wish) = header.dependencies.iter().find(|wish| self.stderr.contains(wish.as_str())) {
            let place = self.place(wish);
            return Some(format!("\"{wish}\"{place} is not a requirement. Write it like \"httpx>=0.27\""));
        }
        let word = last.split('`').nth(1).filter(|word| header.line_of(word).is_some()).unwrap_or("[tool.uv");
        Some(format!("[tool.uv] in the header is not as uv wants it{}: {last}. Correct it", self.place(word)))
    }
}

/// A text as it may be told: every address in it can hold a name and a password.
pub(super) fn without_password(text: &str) -> String {
    let mut pieces = text.split("://");
    let first = pieces.next().unwrap_or_default().to_owned();
    let bare = |piece: &str| {
        let end = piece.find(|c: char| c.is_whitespace() || "/`\"".contains(c)).unwrap_or(piece.len());
        piece[..end].rfind('@').map_or_else(|| piece.to_owned(), |at| format!("****{}", &piece[at..]))
    };
    pieces.fold(first, |told, piece| told + "://" + &bare(piece))
}

pub(super) fn word_after<'t>(text: &'t str, mark: &str) -> Option<&'t str> {
    text.split_once(mark)?.1.split_whitespace().next()
}

#[cfg(test)]
#[path = "trouble_tests.rs"]
mod tests;
