//! Lines that may hold a secret: messages reach logs and models, so nothing of such a line but its key is told.

use super::braces;
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
    let holds_one = || {
        let inside = line.text.to_ascii_lowercase();
        inside.contains('{') && words.iter().any(|word| inside.contains(word))
    };
    (in_private_table || is_called_so || holds_one()).then_some(line)
}

pub(super) fn explain(line: Line<'_>, open: Option<&Open>, margin: &str) -> Mistake {
    let value = line.text.split_once('=').map_or("", |(_, value)| value.trim());
    let has_braces = value.starts_with('{');
    if let (None, Some(place)) = (open, unquoted(value)) {
        let fix = format!("write exactly `{margin}{} = {place}`", key_of(line.text));
        return Mistake { at: line.start, what: "the quotes are missing".to_owned(), fix };
    }
    // The values of a table that is no secret's place may be secrets: their keys alone are told.
    let dense: String = value.split_whitespace().collect();
    let is_place = ["file=", "env=", "command="].iter().any(|word| dense.contains(word));
    let meant = braces::rewritten(key_of(line.text), value, |_| "\"…\"".to_owned());
    if let (Some(meant), None, false) = (meant, open, is_place) {
        let what = "within braces TOML has `key = value`, and commas between one and the next".to_owned();
        return Mistake { at: line.start, what, fix: format!("write it like `{margin}{meant}`") };
    }
    let what = match open {
        Some(open) => open.what(),
        None if has_braces => "within these braces stands something else than one `key = value`".to_owned(),
        None => "this is no `key = value`".to_owned(),
    };
    let key = key_of(line.text);
    let key = if key.is_empty() { "NAME" } else { key };
    let beginning = if has_braces { "write one place" } else { "write a text in quotes" };
    let fix = format!(
        "{beginning}; where a secret is, not what it is: `{margin}{key} = {{ env = \"{key}\" }}` or \
         `{margin}{key} = {{ file = \"/path/to/it\" }}` under [secrets] in hostler.toml"
    );
    Mistake { at: line.start, what, fix }
}

/// A place as `{ file = a/b }` and `{ env = KEY }` were meant. Anything else may be a secret.
fn unquoted(value: &str) -> Option<String> {
    let (key, bare) = value.strip_prefix('{')?.strip_suffix('}')?.split_once('=')?;
    let (key, bare) = (key.trim(), bare.trim());
    let name = bare.strip_prefix('$').unwrap_or(bare);
    let is_variable = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let is_path = bare.contains(['/', '.']) && bare.chars().all(|c| c.is_ascii_alphanumeric() || "~/._-".contains(c));
    match key {
        "env" if is_variable && !name.is_empty() => Some(format!("{{ env = \"{name}\" }}")),
        "file" if is_path => Some(format!("{{ file = \"{bare}\" }}")),
        _ => None,
    }
}

/// What can be a key at the beginning of a line; anything else may be a value.
fn key_of(line: &str) -> &str {
    let Some((key, _)) = line.split_once(['=', ':']) else { return "" };
    let key = key.trim();
    if key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c)) { key } else { "" }
}
