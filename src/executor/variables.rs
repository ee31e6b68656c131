//! Environment variables that a tool misses, as its own words say: `raise ValueError("API_KEY is not set")`, or a line that it
//! prints before it exits.

use std::path::Path;

use crate::outcome::{Code, Fault};
use crate::process::reaches_workers;
use crate::registry::FileEntry;

/// Further files are not read for an error.
const MOST_FILES: usize = 16;
const LONGEST: u64 = 1 << 20;

/// The variable that a failed call names and the file reads, where workers do not have it.
pub(super) fn said_to_miss(fault: &Fault, entry: &FileEntry) -> Option<String> {
    if !matches!(fault.code, Code::StartupFailed | Code::ToolError) || !entry.serving().has_environment() {
        return None;
    }
    let settings = &entry.settings;
    let is_there = |name: &str| reaches_workers(name, &settings.pass_env.value) || settings.env.contains_key(name);
    let mut named = names_in(&fault.message).filter(|name| !is_there(name)).peekable();
    named.peek()?;
    let files = std::iter::once(&entry.file.path).chain(&entry.file.helpers).take(MOST_FILES);
    let sources: Vec<String> = files.filter_map(|path| read(path)).collect();
    named.find(|name| sources.iter().any(|source| reads(source, name))).map(str::to_owned)
}

fn read(path: &Path) -> Option<String> {
    let is_short = std::fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() <= LONGEST);
    let bytes = is_short.then(|| std::fs::read(path).ok())??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Words such as `API_KEY`.
fn names_in(message: &str) -> impl Iterator<Item = &str> {
    let words = message.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| {
        let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        word.contains('_') && word.starts_with(|c: char| c.is_ascii_uppercase()) && word.chars().all(is_name)
    })
}

/// What a name in quotes follows where it is that of a variable.
const BEFORE: [&str; 5] = ["getenv(", "environ[", "environ.get(", "env[", "env.get("];

/// Whether a source reads an environment variable of this name, as far as its text tells.
fn reads(source: &str, name: &str) -> bool {
    [format!("\"{name}\""), format!("'{name}'")].iter().any(|quoted| {
        let mut places = source.match_indices(quoted.as_str());
        places.any(|(at, _)| BEFORE.iter().any(|before| source[..at].trim_end().ends_with(before)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_words_in_capitals() {
        let names = |text: &str| names_in(text).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(names("ValueError: set API_KEY_2, or x.API_URL (HTTP, api_key, _X, A)"), ["API_KEY_2", "API_URL"]);
    }

    #[test]
    fn a_file_reads_what_it_names_in_quotes() {
        assert!(reads("import os\nos.getenv('API_KEY')", "API_KEY"));
        assert!(reads("env = os.environ\nenv[\"API_KEY\"]", "API_KEY"));
        assert!(!reads("os.environ['HOME']\nKINDS = ['API_KEY']", "API_KEY"));
        assert!(!reads("os.getenv('API_KEYS')", "API_KEY"));
        assert!(!reads("'API_KEY'", "API_KEY"));
    }
}
