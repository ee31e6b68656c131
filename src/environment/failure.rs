//! uv's words when a build fails, made into a fault: what is wrong and what to do first, then its reason.

use super::circumstances::{is_full, known_advice};
use super::pythons::Minor;
use super::settings::EnvironmentSettings;
use super::trouble::Trouble;
use crate::environment::EnvironmentSpec;
use crate::outcome::{Code, Details, Fault};
use crate::pep723::{Hindrance, package_of};

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
    let stderr = Some(stderr.trim().to_owned()).filter(|text| !text.is_empty());
    Fault::new(code, message).with(Details { stderr, ..Details::default() })
}

/// A header that only versions fit which workers do not run on. uv would build such an environment where there is one, or
/// look for it at length; whoever wrote the header would hear of neither.
pub(super) fn refuse_ancient(spec: &EnvironmentSpec) -> Result<(), Fault> {
    let header = spec.written.as_deref();
    let wish = header.and_then(|header| Some((header, header.requires_python.as_deref()?)));
    let Some((header, wish)) = wish.filter(|(_, wish)| Hindrance::of(wish) == Some(Hindrance::TooOld)) else {
        return Ok(());
    };
    let line = header.line_of("requires-python").unwrap_or(header.first_line);
    let named = format!("requires-python = \"{wish}\" ({}:{line})", spec.file.display());
    let (what, fix) = Hindrance::TooOld.told(&named);
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
        Some(told) => format!("{told}; {again}. uv said: {}", cut(trouble.reason)),
        None => format!("{}. Correct the header of {}; {again}", trouble.reason, trouble.file.display()),
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
mod tests {
    use std::path::Path;

    use super::*;
    use crate::environment::in_force::quiet;
    use crate::pep723::Metadata;

    fn fault(stderr: &str) -> Fault {
        let spec = EnvironmentSpec::house("a", Path::new("/t/a.py"));
        build_fault(&spec, &quiet(&[]), &[], true, stderr)
    }

    #[test]
    fn words_that_are_not_known_come_through_on_one_line() {
        let stderr = "Using CPython 3.11.7\nCreating virtual environment at: x\n  × Something new:\n  ╰─▶ Because of this\n      and that.\n";
        let fault = fault(stderr);
        assert_eq!(
            fault.message,
            "the environment of a could not be built: Something new: Because of this and that. Correct the header of \
             /t/a.py; the next call tries again"
        );
    }

    #[test]
    fn what_is_no_fault_of_the_header_is_told_with_its_own_cure() {
        for (stderr, cure) in [
            (
                "error: Failed to initialize cache at `/x`\n  cause: Operation not permitted (os error 1)\n",
                "UV_CACHE_DIR",
            ),
            ("error: failed to write\n  cause: Read-only file system (os error 30)\n", "UV_CACHE_DIR"),
            ("error: failed to write\n  cause: No space left on device (os error 28)\n", "hostler warm --prune"),
            ("error: Failed to fetch\n  cause: invalid peer certificate: UnknownIssuer\n", "SSL_CERT_FILE"),
            ("error: Failed to fetch\n  cause: error sending request for url\n", "HTTPS_PROXY"),
        ] {
            let told = fault(stderr).message;
            let (ours, uvs) = told.split_once(". uv said: ").unwrap();
            assert!(ours.contains(cure) && !ours.contains("header") && !uvs.is_empty(), "{told}");
        }
    }

    #[test]
    fn an_extra_that_a_package_does_not_have_is_told_with_its_line() {
        let stderr = "Installed 5 packages in 2ms\nwarning: The package `requests==2.34.2` does not have an extra named `sockz`\n";
        let file = std::sync::Arc::new(Path::new("/t/a.py").to_owned());
        let header = Metadata::from_toml("dependencies = [\n  \"requests[sockz]\",\n]\n", 2, &file).unwrap();
        let spec = EnvironmentSpec::from_header("a", &file, &header);
        let told = "/t/a.py:3: requests has no extra \"sockz\", and nothing was installed for it; correct its name";
        assert_eq!(unknown_extras(&spec, stderr), [told]);
        assert_eq!(unknown_extras(&spec, "warning: something else\n"), Vec::<String>::new());
    }

    #[test]
    fn long_words_are_cut_at_a_word() {
        let text = "gray ".repeat(200);
        let short = cut(text.trim());
        assert!(short.len() < 450 && short.contains("gray … ("), "{short}");
        assert_eq!(cut("short"), "short");
    }

    #[test]
    fn a_cause_on_a_line_of_its_own_follows_a_colon() {
        let stderr = "error: No solution found when resolving dependencies\n  cause: Because x was not found.\n";
        assert_eq!(reason(stderr), "No solution found when resolving dependencies: Because x was not found");
    }

    #[test]
    fn a_stale_lock_is_told_with_the_command_that_mends_it() {
        let stderr = "error: The lockfile at `script.py.lock` needs to be updated, but `--locked` was provided. To update the lockfile, run `uv lock`.\n";
        let fault = fault(stderr);
        assert!(fault.message.contains("Run `uv lock --script /t/a.py`;"), "{}", fault.message);
    }

    #[test]
    fn a_lock_that_does_not_fit_the_index_is_told_with_the_command_that_mends_it() {
        let file = Path::new("/my tools/a.py");
        let told = |is_locked, stderr: &str| {
            let spec = EnvironmentSpec::house("a", file);
            build_fault(&spec, &quiet(&[]), &[], is_locked, stderr).message
        };
        let changed = "Resolved 1 package in 1ms\nerror: Failed to download `six==1.17.0`\n  cause: Hash mismatch for `six==1.17.0`\n\n  \
                       Expected:\n  sha256:0000\n\n  Computed:\n  sha256:4721\n";
        let anew = "Delete it and run `uv lock --script '/my tools/a.py'`; the next call tries again";
        let lock =
            "the environment of a could not be built: /my tools/a.py.lock does not fit what the index has: the file of";
        assert_eq!(
            told(true, changed),
            format!("{lock} six==1.17.0 there has another hash (the lock was changed, or that file was). {anew}")
        );
        let gone = "error: Failed to download `six==1.17.0`\n  cause: Failed to fetch: `https://f.org/s.whl`\n  cause: HTTP status client \
                    error (404 Not Found) for url (https://f.org/s.whl)\n";
        assert_eq!(told(true, gone), format!("{lock} six 1.17.0 is not there (https://f.org/s.whl). {anew}"));
        assert!(!told(false, gone).contains("uv lock"), "{}", told(false, gone));
        assert!(!told(true, &gone.replace("404", "500")).contains("uv lock"));
        let stale = "error: The lockfile at `script.py.lock` needs to be updated, but `--locked` was provided.\n";
        assert!(told(true, stale).contains("Run `uv lock --script '/my tools/a.py'`"), "{}", told(true, stale));
    }
}
