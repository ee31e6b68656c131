//! What uv's words mean for the person who wrote the header: which dependency, on which line, and what to do.
//!
//! uv explains how it came to its end; whoever meets that for the first time wants to know what to change. Words of uv that
//! are not known here are passed on as they are.

use std::path::Path;

use super::platform::{Platforms, python_in};
use crate::pep723::{Metadata, distribution_of, normalised, package_of};

/// A header and the words with which uv refused it.
pub(super) struct Trouble<'t> {
    pub file: &'t Path,
    pub header: Option<&'t Metadata>,
    /// uv's reason on one line.
    pub reason: &'t str,
    /// All that uv wrote.
    pub stderr: &'t str,
}

impl Trouble<'_> {
    /// What is wrong and what to do, in a sentence or two; nothing where that is not certain.
    pub(super) fn told(&self) -> Option<String> {
        let rules = [
            Self::platform,
            Self::not_found,
            Self::conflict,
            Self::no_version,
            Self::build,
            Self::address,
            Self::no_python,
            Self::refused_table,
        ];
        rules.iter().find_map(|rule| rule(self))
    }

    /// The dependency on a package, as it stands in the header.
    fn wish(&self, package: &str) -> Option<&str> {
        let wishes = &self.header?.dependencies;
        wishes.iter().find(|wish| normalised(package_of(wish)) == normalised(package)).map(String::as_str)
    }

    /// `"rich==99" (/t/a.py:3)`, or how a package that no line names came in.
    fn named(&self, package: &str) -> String {
        match self.wish(package) {
            Some(wish) => format!("\"{}\"{}", without_password(wish), self.place(wish)),
            None => format!("{package}, which one of the dependencies needs,"),
        }
    }

    fn place(&self, word: &str) -> String {
        let line = self.header.and_then(|header| header.line_of(word));
        line.map(|line| format!(" ({}:{line})", self.file.display())).unwrap_or_default()
    }

    fn not_found(&self) -> Option<String> {
        let package = word_before(self.reason, " was not found in the")?;
        let right = distribution_of(package).map(|right| format!(" (its module comes with \"{right}\")"));
        let right = right.unwrap_or_default();
        let named = self.named(package);
        Some(format!("{named} was not found in the package index. Correct the name{right} or take it out"))
    }

    fn no_version(&self) -> Option<String> {
        let missing = word_after(self.reason, "there is no version of ");
        let missing = missing.or_else(|| word_after(self.reason, "only the following versions of "));
        let package = package_of(missing.or_else(|| only_available(self.reason))?);
        let named = self.named(package);
        Some(format!("no version of {package} fits {named}. Write a version that exists, or \"{package}\" for any"))
    }

    fn platform(&self) -> Option<String> {
        let platforms = Platforms::read(self.stderr)?;
        let package = platforms.package;
        let wish = self.wish(package).unwrap_or(package);
        let python = python_in(self.stderr).map(|python| format!(" (Python {python})")).unwrap_or_default();
        let mark = match platforms.marker() {
            Some(marker) => format!(", or mark it: \"{wish}; sys_platform == '{marker}'\""),
            None => String::new(),
        };
        let (theirs, ours, place) = (platforms.theirs(), Platforms::ours(), self.place(wish));
        let needs = if self.wish(package).is_some() { "" } else { ", which one of the dependencies needs," };
        Some(format!(
            "{package}{place}{needs} has packages for {theirs} only, not for {ours}{python}. Take another package{mark}"
        ))
    }

    /// Dependencies that no versions satisfy together.
    fn conflict(&self) -> Option<String> {
        let header = self.header?;
        if self.reason.contains("does not satisfy Python") || self.reason.contains("requested Python version") {
            let needed = word_after(self.reason, "depends on Python").map(|text| text.trim_end_matches([',', '.']));
            let needed = needed.unwrap_or(">=3.12");
            let (place, wish) = (self.place("requires-python"), header.requires_python.as_deref().unwrap_or("any"));
            return Some(format!(
                "a dependency needs Python {needed}, and requires-python allows others ({wish}){place}. Write \
                 requires-python = \"{needed}\", or take an older version of the dependency"
            ));
        }
        let required = self.reason.split("you require ").skip(1).filter_map(|rest| rest.split([' ', ',']).next());
        let mut named: Vec<&str> = Vec::new();
        for package in required.map(package_of) {
            let wish = self.wish(package)?;
            if !named.contains(&wish) {
                named.push(wish);
            }
        }
        if named.len() < 2 || !self.reason.contains("depends on") {
            return None;
        }
        let named: Vec<String> = named.iter().map(|wish| format!("\"{wish}\"{}", self.place(wish))).collect();
        let named = named.join(" and ");
        Some(format!("no versions satisfy {named} together. Loosen the version of one of them"))
    }

    fn build(&self) -> Option<String> {
        let rest = self.reason.split_once("Failed to build `")?.1;
        let what = rest.split('`').next()?;
        let package = package_of(what);
        let words = self.stderr.lines().rev().map(str::trim).find(|line| is_exception(line));
        let words = words.map(|line| format!(": {}", line.trim_end_matches('.'))).unwrap_or_default();
        let named = self.named(package);
        Some(format!(
            "{named} has no ready package for this Python and machine, and building {what} from its source failed{words}. \
             Take another version of it, or install what its build needs (a compiler, headers of libraries)"
        ))
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
            return Some(format!(
                "\"{wish}\"{place} was not found at its address, or the address was not reached. Correct it"
            ));
        }
        let missing = word_after(self.reason, "Distribution not found at: ")?;
        let path = missing.trim_start_matches("file://");
        Some(format!("nothing is at {path}, which [tool.uv] names{}. Correct it", self.place(path)))
    }

    fn no_python(&self) -> Option<String> {
        let says = |words: &str| self.reason.contains(words);
        let broken = says("Failed to inspect Python interpreter") || says("Querying Python at");
        if !(says("No interpreter found") || says("No download found") || says("no Python can fit") || broken) {
            return None;
        }
        let own = self.header.and_then(|header| header.requires_python.as_deref());
        let (wish, place) = (own.unwrap_or(">=3.9"), self.place("requires-python"));
        if !some_python_fits(wish) {
            return Some(format!("no Python can fit requires-python = \"{wish}\"{place}. Widen it, as in \">=3.11\""));
        }
        if broken {
            let path = self.reason.split('`').nth(1).unwrap_or("on PATH");
            return Some(format!(
                "the Python at {path} does not work. Mend it or take it off PATH, or name another as `python` under \
                 [environment] in hostler.toml"
            ));
        }
        let next = "Widen it, install such a Python, or correct `python` under [environment] if it is set";
        Some(format!("no Python here or to be fetched fits requires-python = \"{wish}\"{place}. {next}"))
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

/// A requirement as it may be told: an address can hold a name and a password.
fn without_password(wish: &str) -> String {
    let Some((before, rest)) = wish.split_once("://") else { return wish.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{before}://****{}", &rest[at..]),
        None => wish.to_owned(),
    }
}

/// Whether any release of Python fits, those to come included.
pub(super) fn some_python_fits(wish: &str) -> bool {
    let Ok(versions) = wish.parse::<pep440_rs::VersionSpecifiers>() else { return true };
    let fits = |major: u64, minor: u64, patch: u64| versions.contains(&pep440_rs::Version::new([major, minor, patch]));
    let releases = (0..40).flat_map(|minor| (0..40).map(move |patch| (3, minor, patch)));
    releases.chain([(2, 7, 18), (4, 0, 0), (9, 0, 0)]).any(|(major, minor, patch)| fits(major, minor, patch))
}

fn word_before<'t>(text: &'t str, mark: &str) -> Option<&'t str> {
    text.split_once(mark)?.0.split_whitespace().last()
}

fn word_after<'t>(text: &'t str, mark: &str) -> Option<&'t str> {
    text.split_once(mark)?.1.split_whitespace().next()
}

/// The package of `only rich<=14.0 is available`.
fn only_available(reason: &str) -> Option<&str> {
    let (before, _) = reason.split_once(" is available")?;
    before.rsplit_once("only ").map(|(_, package)| package)
}

/// `RuntimeError: words`, the last of a traceback, or a compiler's `error: words`.
fn is_exception(line: &str) -> bool {
    let word = line.split(':').next().unwrap_or_default();
    let kind = word.rsplit('.').next().unwrap_or_default();
    line.contains(": ")
        && !word.contains(' ')
        && (kind.ends_with("Error") || kind.ends_with("Exception") || word == "error")
}

#[cfg(test)]
#[path = "trouble_tests.rs"]
mod tests;
