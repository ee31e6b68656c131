//! A lock beside the file that uv does not take: too old for its header, or no lock at all.

use super::trouble::Trouble;

/// What stands in a file where two branches were not merged.
const CONFLICT: [&str; 3] = ["<<<<<<<", "=======", ">>>>>>>"];

impl Trouble<'_> {
    /// What is wrong with the lock and which command writes it anew.
    pub(super) fn lock(&self) -> Option<String> {
        let says = |words: &str| self.stderr.contains(words);
        let file = self.file.display();
        if says("needs to be updated") || says("lockfile") && says("--locked") {
            return Some(format!("the lock beside the file is older than its header. Run `uv lock --script {file}`"));
        }
        let lock = format!("{file}.lock");
        let anew = format!("Delete it and run `uv lock --script {file}`");
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
