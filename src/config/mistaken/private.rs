//! Lines that may hold a secret: messages reach logs and models, so nothing of such a line but its key is told.

use super::scan::Open;
use super::{Line, Mistake};

/// The line of a byte, if it may hold a secret: by its table, or by what it is called.
pub(super) fn line(text: &str, at: usize) -> Option<Line<'_>> {
    let line = Line::at(text, at.min(text.trim_end().len()));
    let head = text[..line.start].lines().rev().map(str::trim).find(|line| line.starts_with('['));
    let head = head.unwrap_or_default().trim_matches(|c: char| "[] ".contains(c));
    let in_private_table = head == "secrets" || head.starts_with("secrets.") || head.ends_with("env");
    let key = line.text.split(['=', ':', '"', '\'', '[']).next().unwrap_or_default().trim().to_ascii_lowercase();
    let words = ["key", "token", "passw", "secret", "credential"];
    let is_called_so = key != "secrets" && words.iter().any(|word| key.contains(word));
    (in_private_table || is_called_so).then_some(line)
}

pub(super) fn explain(line: Line<'_>, open: Option<&Open>, margin: &str) -> Mistake {
    let what = open.map_or_else(|| "this is no `key = value`".to_owned(), Open::what);
    let key = key_of(line.text);
    let key = if key.is_empty() { "NAME" } else { key };
    let fix = format!(
        "write a text in quotes; where a secret is, not what it is: `{margin}{key} = {{ env = \"{key}\" }}` or \
         `{margin}{key} = {{ file = \"/path/to/it\" }}` under [secrets] in hostler.toml"
    );
    Mistake { at: line.start, what, fix }
}

/// What can be a key at the beginning of a line; anything else may be a value.
fn key_of(line: &str) -> &str {
    let Some((key, _)) = line.split_once(['=', ':']) else { return "" };
    let key = key.trim();
    if key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c)) { key } else { "" }
}
