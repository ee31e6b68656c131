//! Finds what is opened in a text and never closed: reading stops at a later line, or at the end.

use super::Line;

/// Something that is opened and never closed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Open {
    /// The byte that opens it.
    pub at: usize,
    /// What would close it.
    pub mark: &'static str,
    /// The last byte of what belongs into it.
    pub last: usize,
}

impl Open {
    pub(super) fn what(&self) -> String {
        match self.mark {
            "]" => "the list that begins on this line is never closed".to_owned(),
            "}" => "the `{` on this line is never closed".to_owned(),
            "\"\"\"" | "'''" => format!("the text that begins with `{}` on this line is never closed", self.mark),
            mark => format!("the text that begins on this line has no closing `{mark}`"),
        }
    }
}

/// The first thing that is never closed.
pub(super) fn unclosed(text: &str) -> Option<Open> {
    let mut open: Vec<(usize, &'static str)> = Vec::new();
    let mut at = 0;
    let mut last = 0;
    while at < text.len() {
        let line = Line::at(text, at);
        if let Some((opened, mark)) = open.last()
            && begins_something_else(line.text, mark)
        {
            return Some(Open { at: *opened, mark, last });
        }
        if open.is_empty() && line.text.trim_start().starts_with('[') {
            // The head of a table is one line for certain.
            at = line.end() + 1;
            continue;
        }
        match line_end(text, at, &mut open, &mut last) {
            Ok(next) => at = next + 1,
            Err(string) => return Some(string),
        }
    }
    open.last().map(|(at, mark)| Open { at: *at, mark, last })
}

/// Reads from a byte to the end of a line, which lies further down when a text of several lines begins on it.
fn line_end(text: &str, from: usize, open: &mut Vec<(usize, &'static str)>, last: &mut usize) -> Result<usize, Open> {
    let bytes = text.as_bytes();
    let mut at = from;
    while at < bytes.len() && bytes[at] != b'\n' {
        match bytes[at] {
            b'#' => return Ok(Line::at(text, at).end().max(at)),
            b'"' => at = string_end(text, at, ["\"\"\"", "\""])?,
            b'\'' => at = string_end(text, at, ["'''", "'"])?,
            b'[' => open.push((at, "]")),
            b'{' => open.push((at, "}")),
            b']' | b'}' => drop(open.pop()),
            _ => {}
        }
        if !bytes[at].is_ascii_whitespace() {
            *last = at;
        }
        at += 1;
    }
    Ok(at)
}

/// The last byte of a string that begins here.
fn string_end(text: &str, at: usize, marks: [&'static str; 2]) -> Result<usize, Open> {
    let [long, short] = marks;
    let is_long = text[at..].starts_with(long);
    let mark = if is_long { long } else { short };
    let inside = at + mark.len();
    let mut place = inside;
    while place < text.len() {
        let rest = &text.as_bytes()[place..];
        match rest[0] {
            b'\\' if short == "\"" => place += 1,
            b'\n' if !is_long => break,
            _ if rest.starts_with(mark.as_bytes()) => return Ok(place + mark.len() - 1),
            _ => {}
        }
        place += 1;
    }
    Err(Open { at, mark, last: Line::at(text, at).end() })
}

/// Whether a line within brackets can only be meant to stand after them.
fn begins_something_else(line: &str, mark: &str) -> bool {
    let line = line.trim();
    let is_word = |text: &str| {
        let bare = |c: char| c.is_ascii_alphanumeric() || "_-.\" ".contains(c);
        text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(bare)
    };
    let head = line.strip_prefix('[').map(|rest| rest.trim_matches(['[', ']']));
    if head.is_some_and(|name| line.ends_with(']') && is_word(name) && !name.contains([' ', '"'])) {
        return true;
    }
    // `a = 1` within braces is one of their keys, and `a==1` within brackets lacks its quotes.
    let (key, value) = line.split_once('=').unwrap_or_default();
    mark == "]" && !value.starts_with('=') && is_word(key.trim()) && key.ends_with(' ')
}
