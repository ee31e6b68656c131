//! uv's words when a build fails, made into a fault: what is wrong and what to do first, then its reason.

use super::circumstances::{is_full, known_advice};
use super::pythons::Minor;
use super::settings::EnvironmentSettings;
use super::trouble::{Trouble, without_password};
use crate::environment::EnvironmentSpec;
use crate::outcome::{Code, Details, Fault};
use crate::pep723::{UnsupportedPython, package_of};

/// The fault of a build that uv gave up: what to do first, then uv's words. `pythons` are those that work here, as far as
/// that was asked.
pub(super) fn build_fault(
    spec: &EnvironmentSpec,
    settings: &EnvironmentSettings,
    pythons: &[Minor],
    is_locked: bool,
    stderr: &str,
) -> Fault {
    let reason = reason(stderr);
    let header = spec.written.as_deref();
    let trouble = Trouble { file: &spec.file, is_locked, header, settings, pythons, reason: &reason, stderr };
    let message = format!("the environment of {} could not be built: {}", spec.name, ours(&trouble));
    let code = if is_full(stderr) { Code::ResourceExhausted } else { Code::EnvironmentFailed };
    let stderr = Some(without_password(stderr.trim())).filter(|text| !text.is_empty());
    Fault::new(code, message).with(Details { stderr, ..Details::default() })
}

/// A header that only versions fit which workers do not run on. uv would build such an environment where there is one, or
/// look for it at length; whoever wrote the header would hear of neither.
pub(super) fn refuse_ancient(spec: &EnvironmentSpec) -> Result<(), Fault> {
    let header = spec.written.as_deref();
    let wish = header.and_then(|header| Some((header, header.requires_python.as_deref()?)));
    let Some((header, wish)) = wish.filter(|(_, wish)| UnsupportedPython::of(wish) == Some(UnsupportedPython::TooOld))
    else {
        return Ok(());
    };
    let line = header.line_of("requires-python").unwrap_or(header.first_line);
    let named = format!("requires-python = \"{wish}\" ({}:{line})", spec.file.display());
    let (what, fix) = UnsupportedPython::TooOld.explain(&named);
    let text = format!("the environment of {} could not be built: {what}; {fix}", spec.name);
    Err(Fault::new(Code::EnvironmentFailed, text))
}

/// Extras that packages do not have: uv installs the package without and only warns; what the extra was to bring is missed
/// at an import.
pub(super) fn unknown_extras(spec: &EnvironmentSpec, stderr: &str) -> Vec<String> {
    let warned = stderr.lines().filter_map(|line| line.trim().strip_prefix("warning: The package `"));
    let told = |line: &str| {
        let (package, extra) = line.split_once("` does not have an extra named `")?;
        let (package, extra) = (package_of(package), extra.trim_end_matches('`'));
        let header = spec.written.as_deref();
        let line = header.and_then(|header| header.line_of(&format!("{package}["))).map(|line| format!(":{line}"));
        let place = format!("{}{}", spec.file.display(), line.unwrap_or_default());
        let text =
            format!("{place}: {package} has no extra \"{extra}\", and nothing was installed for it; correct its name");
        Some(text)
    };
    warned.filter_map(told).collect()
}

fn ours(trouble: &Trouble<'_>) -> String {
    let again = "the next call tries again";
    // What keeps uv from working is no fault of the header, whichever package it met it at.
    match known_advice(trouble.stderr, trouble.settings, trouble.header).or_else(|| trouble.told()) {
        Some(told) if is_enough(&told) => format!("{told}; {again}"),
        Some(told) => format!("{told}; {again}. uv said: {}", cut(&without_password(trouble.reason))),
        None => {
            format!("{}. Correct the header of {}; {again}", without_password(trouble.reason), trouble.file.display())
        }
    }
}

/// Where no requirement can hold, what an interpreter said while uv looked for one is beside the point; and a lock and the
/// whole of a build's words are told where they stand.
fn is_enough(told: &str) -> bool {
    ["no version of Python fits", "allows only versions", "`uv lock --script", "`--json` shows"]
        .iter()
        .any(|words| told.contains(words))
}

/// The most of uv's words that follow ours.
const MOST_WORDS: usize = 400;

/// The beginning of a long text, up to the end of a word.
fn cut(text: &str) -> String {
    if text.len() <= MOST_WORDS {
        return text.to_owned();
    }
    let end = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= MOST_WORDS).last().unwrap_or(0);
    let end = text[..end].rfind(' ').unwrap_or(end);
    format!("{} … (`--json` shows all of it)", text[..end].trim_end_matches([',', ';']))
}

/// The error itself, on one line: what stands before it is talk about what went well.
pub(super) fn reason(stderr: &str) -> String {
    let is_talk = |line: &&str| {
        let line = line.trim_start();
        ["Using ", "Creating ", "Resolved ", "Prepared ", "Downloading ", "Downloaded ", "warning:"]
            .iter()
            .any(|word| line.starts_with(word))
    };
    let lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
    let start = lines.iter().position(|line| line.trim_start().starts_with(['×', 'x']) || line.starts_with("error"));
    let error = lines[start.unwrap_or(0)..].iter().filter(|line| !is_talk(line));
    let words = error.flat_map(|line| unmarked(line).split_whitespace());
    let text = words.collect::<Vec<_>>().join(" ").replace(": cause: ", ": ").replace(" cause: ", ": ");
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    if text.is_empty() { "uv gave no reason".to_owned() } else { text.trim_end_matches('.').to_owned() }
}

/// A line without the drawing that uv puts before its parts.
fn unmarked(line: &str) -> &str {
    let line = line.trim_start();
    ["×", "x ", "├─▶", "╰─▶", "│"].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line)
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
