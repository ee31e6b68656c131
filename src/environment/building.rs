//! A package that had to be built from its source and was not: the line that says why, out of all that a build writes.

use super::platform::{Platforms, System, system_meant};
use super::renamed::renamed;
use super::trouble::Trouble;
use crate::pep723::{normalised, package_of};

impl Trouble<'_> {
    pub(super) fn build(&self) -> Option<String> {
        let rest = self.reason.split_once("Failed to build `")?.1;
        let what = rest.split('`').next()?;
        let package = package_of(what);
        let why = why(self.stderr);
        if let Some(system) = system_of(package).or_else(|| why.and_then(system_meant)) {
            let package = self.asked_for_with(package);
            let (name, ours, cure) = (system.name(), Platforms::ours(), self.without(package, Some(system)));
            let (place, words) = (self.place_of(package), why.map(|why| format!(" ({why})")).unwrap_or_default());
            return Some(format!("{package}{place} is for {name} only, not for {ours}{words}. {cure}"));
        }
        if let Some(told) = self.is_old(package, what, why) {
            return Some(told);
        }
        let words = why.map(|why| format!(": {why}")).unwrap_or_default();
        let lacks = lacking_library(self.stderr)
            .map(|file| format!(" the library that brings {file} (often a package called -dev or -devel),"));
        let lacks = lacks.unwrap_or_else(|| " what its build needs (a compiler, headers of libraries),".to_owned());
        let named = self.named(package);
        let other = self.meant(package).map(|meant| format!(", or \"{meant}\", if that is meant")).unwrap_or_default();
        Some(format!(
            "{named} has no ready package for this Python and machine, and building {what} from its source failed{words}. \
             Install{lacks} or take another version of it{other} (`--json` shows all that the build wrote)"
        ))
    }
}

impl Trouble<'_> {
    /// A package whose own recipe runs on no Python of today, or whose name another one took over. No compiler helps there.
    fn is_old(&self, package: &str, what: &str, why: Option<&str>) -> Option<String> {
        let is_old = self.stderr.contains("use_2to3 is invalid") || why.is_some_and(is_old_python);
        if !is_old && renamed(package).is_none() {
            return None;
        }
        let named = self.named(package);
        let words = why.map(|why| format!(" ({why} in its setup.py)")).unwrap_or_default();
        let what = if is_old {
            format!("{named} cannot be built: the source of {what} is most likely for Python 2{words}")
        } else {
            format!("{named} cannot be built")
        };
        let cure = match self.meant(package) {
            _ if self.wish(package).is_none() => "Take a newer version of that one".to_owned(),
            Some(meant) => format!("Is \"{meant}\" meant? Write that in its place"),
            None => "Take a newer version of it, or another package".to_owned(),
        };
        Some(format!("{what}. {cure} (`--json` shows all that the build wrote)"))
    }

    /// The dependency that a part of `pyobjc` came in with: uv builds several of them, and any may fail first.
    fn asked_for_with<'p>(&'p self, package: &'p str) -> &'p str {
        let is_part = |wish: &&String| system_of(package_of(wish)).is_some();
        match self.header.filter(|_| self.wish(package).is_none() && system_of(package).is_some()) {
            Some(header) => header.dependencies.iter().find(is_part).map_or(package, |wish| package_of(wish)),
            None => package,
        }
    }
}

/// The system of packages that say it by their name, where it is not ours.
fn system_of(package: &str) -> Option<System> {
    let is_apples = normalised(package).starts_with("pyobjc");
    (is_apples && !cfg!(target_os = "macos")).then_some(System::MacOs)
}

/// `SyntaxError: Missing parentheses in call to 'print'`, and the modules that only Python 2 had.
fn is_old_python(why: &str) -> bool {
    let gone = ["ConfigParser", "commands", "urllib2", "__builtin__", "StringIO", "cPickle", "HTMLParser"];
    why.starts_with("SyntaxError")
        || gone.iter().any(|module| why == format!("ModuleNotFoundError: No module named '{module}'"))
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
        && !line.starts_with("error: Failed to build")
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
