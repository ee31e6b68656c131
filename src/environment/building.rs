//! A package that had to be built from its source and was not: the line that says why, out of all that a build writes.

use super::platform::{Platforms, system_meant};
use super::trouble::Trouble;
use crate::pep723::package_of;

impl Trouble<'_> {
    pub(super) fn build(&self) -> Option<String> {
        let rest = self.reason.split_once("Failed to build `")?.1;
        let what = rest.split('`').next()?;
        let package = package_of(what);
        let why = why(self.stderr);
        if let Some(system) = why.and_then(system_meant) {
            let (name, ours, cure) = (system.name(), Platforms::ours(), self.without(package, Some(system)));
            let (place, words) = (self.place_of(package), why.unwrap_or_default());
            return Some(format!("{package}{place} is for {name} only, not for {ours} ({words}). {cure}"));
        }
        let words = why.map(|why| format!(": {why}")).unwrap_or_default();
        let lacks = lacking_library(self.stderr)
            .map(|file| format!(" the library that brings {file} (often a package called -dev or -devel),"));
        let lacks = lacks.unwrap_or_else(|| " what its build needs (a compiler, headers of libraries),".to_owned());
        let named = self.named(package);
        Some(format!(
            "{named} has no ready package for this Python and machine, and building {what} from its source failed{words}. \
             Install{lacks} or take another version of it (`--json` shows all that the build wrote)"
        ))
    }
}

/// What the compiler stumbled over, or else the last exception of a traceback.
fn why(stderr: &str) -> Option<&str> {
    let lines = || stderr.lines().map(str::trim);
    let fatal = || lines().find(|line| line.contains(": fatal error: "));
    let compiler = || lines().find(|line| line.split_once(": error: ").is_some_and(|(place, _)| is_place(place)));
    let exception = || lines().rev().find(|line| is_exception(line));
    fatal().or_else(compiler).or_else(exception).map(|line| line.trim_end_matches('.'))
}

/// `Modules/common.h:15:10`
fn is_place(text: &str) -> bool {
    let mut parts = text.rsplit(':');
    parts.next().is_some_and(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
        && parts.next().is_some()
}

/// `lber.h`, where uv or the compiler says that it is missing.
fn lacking_library(stderr: &str) -> Option<&str> {
    let (_, rest) = stderr.split_once(": fatal error: ")?;
    let (file, rest) = rest.lines().next()?.split_once(':')?;
    (rest.trim() == "No such file or directory" || rest.trim() == "file not found")
        .then(|| file.trim_matches(['\'', '"']))
}

/// `RuntimeError: words`, the last of a traceback, or a build's `error: words`.
fn is_exception(line: &str) -> bool {
    let word = line.split(':').next().unwrap_or_default();
    let kind = word.rsplit('.').next().unwrap_or_default();
    line.contains(": ")
        && !word.contains(' ')
        && (kind.ends_with("Error") || kind.ends_with("Exception") || word == "error")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_says_why_is_found() {
        let gcc = "  running build\n  Modules/common.h:15:10: fatal error: lber.h: No such file or directory\n  compilation \
                   terminated.\n  error: Command '['gcc', '-Wall']' returned non-zero exit status 1.\n";
        assert_eq!(why(gcc), Some("Modules/common.h:15:10: fatal error: lber.h: No such file or directory"));
        assert_eq!(lacking_library(gcc), Some("lber.h"));
        assert_eq!(why("a.c:3: error: unknown type\nerror: Command failed\n"), Some("a.c:3: error: unknown type"));
        assert_eq!(why("Traceback\nRuntimeError: no compiler.\n"), Some("RuntimeError: no compiler"));
        assert_eq!(lacking_library("x.c:1: fatal error: too many errors"), None);
        assert_eq!(why("nothing of the kind"), None);
    }
}
