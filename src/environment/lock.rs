//! A lock beside the file that uv does not take: too old for its header, not what the index has, or no lock at all.

use super::index::http_error;
use super::trouble::Trouble;
use crate::pep723::package_of;
use crate::process::shell_word;

/// What stands in a file where two branches were not merged.
const CONFLICT: [&str; 3] = ["<<<<<<<", "=======", ">>>>>>>"];

impl Trouble<'_> {
    /// What is wrong with the lock and which command writes it anew.
    pub(super) fn lock(&self) -> Option<String> {
        let says = |words: &str| self.stderr.contains(words);
        let command = format!("`uv lock --script {}`", shell_word(&self.file.to_string_lossy()));
        if says("needs to be updated") || says("lockfile") && says("--locked") {
            return Some(format!("the lock beside the file is older than its header. Run {command}"));
        }
        let lock = format!("{}.lock", self.file.display());
        let anew = format!("Delete it and run {command}");
        if let Some(misfit) = self.is_locked.then(|| misfit(self.reason)).flatten() {
            return Some(format!("{lock} does not fit what the index has: {misfit}. {anew}"));
        }
        if says("Failed to parse `uv.lock`") {
            let line = self.stderr.split_once("error at line ").and_then(|(_, rest)| rest.split(',').next());
            let line = line.map(|line| format!(":{line}")).unwrap_or_default();
            // uv shows the line after its number: `1 | <<<<<<< HEAD`.
            let shown = self.stderr.lines().filter_map(|line| line.split_once(" | ")).map(|(_, text)| text);
            let is_conflict = shown.into_iter().any(|text| CONFLICT.iter().any(|mark| text.starts_with(mark)));
            let cause = if is_conflict { " (a merge conflict that nobody resolved)" } else { "" };
            return Some(format!("{lock}{line} is not as uv writes locks{cause}. {anew}"));
        }
        if says("stream did not contain valid UTF-8") && says(".lock`") {
            return Some(format!("{lock} is no text. {anew}"));
        }
        let other = says("unsupported schema version") && says("uv.lock");
        other.then(|| {
            format!("{lock} was written by another version of uv, which this one does not read. {anew}, or update uv")
        })
    }
}

/// What a lock says and the index does not have. Who of them changed cannot be known here.
fn misfit(reason: &str) -> Option<String> {
    let (_, rest) = reason.split_once("Failed to download `")?;
    let package = rest.split('`').next().filter(|package| !package.contains('@'))?;
    if reason.contains("Hash mismatch for") {
        return Some(format!("the file of {package} there has another hash (the lock was changed, or that file was)"));
    }
    let (address, _) =
        http_error(reason, "client").filter(|(_, status)| status.starts_with("404") || status.starts_with("410"))?;
    let version = package.strip_prefix(package_of(package)).unwrap_or_default().trim_start_matches('=');
    Some(format!("the file of {} {version} is not there ({address})", package_of(package)))
}
