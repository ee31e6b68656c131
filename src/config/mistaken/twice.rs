//! Keys and tables that stand there twice.

use super::{Line, Mistake};
use crate::config::section::Source;

/// Explains a duplicate whose second place is known.
pub(super) fn explain(source: &Source, second: usize) -> Mistake {
    let text = &*source.text;
    let line = Line::at(text, second);
    let words = line.text.trim();
    let is_table = words.starts_with('[');
    let key_of = |line: &str| line.split('=').next().unwrap_or(line).trim().to_owned();
    let name = if is_table { words.to_owned() } else { key_of(words) };
    let mut first = None;
    let mut above = line;
    while let Some(other) = above.above(text) {
        above = other;
        let words = other.text.trim();
        if (is_table && words == name) || (!is_table && key_of(words) == name) {
            first = Some(source.line_at(other.start));
            break;
        }
    }
    let place = first.map(|number| format!(", the first is on line {number}")).unwrap_or_default();
    let fix = if is_table {
        "delete this line, and move those that follow it up to the first".to_owned()
    } else {
        "keep one of the two".to_owned()
    };
    Mistake { at: second, what: format!("`{name}` stands here a second time{place}"), fix }
}
