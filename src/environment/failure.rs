//! uv's words when a build fails, made into a fault: its reason first, then what to do where we know better.

use crate::environment::EnvironmentSpec;
use crate::outcome::{Code, Details, Fault};

/// The fault of a build that uv gave up.
pub(super) fn build_fault(spec: &EnvironmentSpec, stderr: &str) -> Fault {
    let reason = reason(stderr);
    let advice = advice(spec, stderr);
    let message = format!("the environment of {} could not be built: {reason}{advice}", spec.name);
    let code = if is_full(stderr) { Code::ResourceExhausted } else { Code::EnvironmentFailed };
    let stderr = Some(stderr.trim().to_owned()).filter(|text| !text.is_empty());
    Fault::new(code, message).with(Details { stderr, ..Details::default() })
}

fn is_full(stderr: &str) -> bool {
    ["No space left on device", "os error 28", "Disk quota exceeded"].iter().any(|words| stderr.contains(words))
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

fn advice(spec: &EnvironmentSpec, stderr: &str) -> String {
    let file = spec.file.display();
    if stderr.contains("needs to be updated") || stderr.contains("lockfile") && stderr.contains("--locked") {
        return format!(". The lock beside the file is older than its header: run `uv lock --script {file}`");
    }
    match known_advice(stderr) {
        Some(advice) => format!(". {advice}"),
        None => format!(". Correct the header of {file}; the next call tries again"),
    }
}

/// What to do about troubles that are not the file's: certificates, interpreters, the network.
pub(super) fn known_advice(stderr: &str) -> Option<String> {
    let says = |words: &[&str]| words.iter().any(|word| stderr.contains(word));
    if is_full(stderr) {
        let text = "Make room on that disk (`hostler warm --prune` removes unused environments), or set XDG_CACHE_HOME to another";
        return Some(text.to_owned());
    }
    if says(&["UnknownIssuer", "invalid peer certificate"]) {
        let text =
            "Your network needs a certificate of its own: set SSL_CERT_FILE under [environment.env] in hostler.toml";
        return Some(text.to_owned());
    }
    if says(&["No interpreter found", "No download found", "python-build-standalone"]) {
        return Some("Install such a Python, widen requires-python in the header, or correct `python` under [environment] if it is set".to_owned());
    }
    if says(&["error sending request", "Could not connect", "dns error"]) {
        let text = "The package index was not reached: check the network, or set HTTPS_PROXY or UV_DEFAULT_INDEX under \
                    [environment.env] in hostler.toml";
        return Some(text.to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn uvs_own_reason_comes_through_on_one_line() {
        let stderr = "Using CPython 3.11.7\nCreating virtual environment at: x\n  × No solution found when resolving script dependencies:\n  ╰─▶ Because no-such was not found in the package registry\n      and you require no-such, we can conclude that your requirements are unsatisfiable.\n";
        let fault = build_fault(&EnvironmentSpec::house("a", Path::new("/t/a.py")), stderr);
        assert_eq!(
            fault.message,
            "the environment of a could not be built: No solution found when resolving script dependencies: Because \
             no-such was not found in the package registry and you require no-such, we can conclude that your \
             requirements are unsatisfiable. Correct the header of /t/a.py; the next call tries again"
        );
    }

    #[test]
    fn a_cause_on_a_line_of_its_own_follows_a_colon() {
        let stderr = "error: No solution found when resolving dependencies\n  cause: Because x was not found.\n";
        assert_eq!(reason(stderr), "No solution found when resolving dependencies: Because x was not found");
    }

    #[test]
    fn a_stale_lock_is_told_with_the_command_that_mends_it() {
        let stderr = "error: The lockfile at `script.py.lock` needs to be updated, but `--locked` was provided. To update the lockfile, run `uv lock`.\n";
        let fault = build_fault(&EnvironmentSpec::house("a", Path::new("/t/a.py")), stderr);
        assert!(fault.message.ends_with("run `uv lock --script /t/a.py`"), "{}", fault.message);
    }
}
