//! Why a text is not TOML: the line that causes it, which is often above the one where the parser stops.
//!
//! Such a line may hold a secret, and messages reach logs and models: of a line, only its key is ever shown.

use toml::de::Error;

use super::section::Source;

/// What is wrong with a text, where, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TomlError {
    /// The byte where it begins.
    pub at: usize,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub fix: String,
}

/// Explains why a text could not be parsed.
pub(super) fn explain(source: &Source, error: &Error) -> TomlError {
    let text = &*source.text;
    let stopped = error.span().map_or(0, |span| span.start);
    if error.message().starts_with("duplicate key") {
        return duplicate(source, stopped);
    }
    if let Some(open) = unclosed(text) {
        return open.explain(source);
    }
    // The parser stops at the end of the text where its last line lacks something.
    let at = stopped.min(text.trim_end().len());
    let column = text[line_start(text, at)..at].chars().count() + 1 + if source.is_header { 2 } else { 0 };
    let what = format!("column {column}: {}", error.message().replace('\n', ", "));
    let fix = "correct this line: TOML has `key = value`, with strings in quotes and lists in brackets";
    TomlError { at, what, fix: fix.to_owned() }
}

fn line_start(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

fn line_at(text: &str, at: usize) -> &str {
    text[line_start(text, at)..].lines().next().unwrap_or_default()
}

/// A key or a table whose second definition is at this byte.
fn duplicate(source: &Source, second: usize) -> TomlError {
    let name_of = |line: &str| match line.trim() {
        head if head.starts_with('[') => head.split('#').next().unwrap_or(head).trim().to_owned(),
        setting => setting.split('=').next().unwrap_or_default().trim().to_owned(),
    };
    let name = name_of(line_at(&source.text, second));
    let above = source.text[..line_start(&source.text, second)].lines();
    let first = above.enumerate().filter(|(_, line)| name_of(line) == name).last();
    let place = first.map(|(index, _)| format!(", first on line {}", source.first_line + index)).unwrap_or_default();
    let what = format!("`{name}` is defined twice{place}");
    TomlError { at: second, what, fix: "keep one of the two".to_owned() }
}

/// A bracket or a string that is opened and never closed.
#[derive(Debug, PartialEq, Eq)]
struct Unclosed {
    /// The byte that opens it.
    at: usize,
    /// What closes it.
    mark: &'static str,
}

impl Unclosed {
    fn explain(self, source: &Source) -> TomlError {
        let what = match self.mark {
            "]" => "the list that begins on this line is never closed".to_owned(),
            "}" => "the `{` on this line is never closed".to_owned(),
            mark => format!("the string that begins on this line has no closing `{mark}`"),
        };
        let place = if matches!(self.mark, "\"" | "'") { " on the same line" } else { "" };
        let fix = format!("close it with `{}`{place}", self.mark);
        TomlError { at: line_start(&source.text, self.at), what, fix }
    }
}

/// The first thing that is never closed. A line that can only be a setting or a table ends an open list.
fn unclosed(text: &str) -> Option<Unclosed> {
    let mut open: Vec<Unclosed> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let line = line_at(text, at);
        let is_head = line.trim_start().starts_with('[') && open.is_empty();
        if open.last().is_some_and(|open| open.mark == "]") && begins_anew(line) {
            return open.pop();
        }
        if is_head {
            at += line.len() + 1;
            continue;
        }
        match scan_line(text, at, &mut open) {
            Ok(end) => at = end + 1,
            Err(string) => return Some(string),
        }
    }
    open.pop()
}

/// Reads to the end of a line, or of the multi-line string that begins on it.
fn scan_line(text: &str, from: usize, open: &mut Vec<Unclosed>) -> Result<usize, Unclosed> {
    let bytes = text.as_bytes();
    let mut at = from;
    while at < bytes.len() && bytes[at] != b'\n' {
        match bytes[at] {
            b'#' => return Ok(line_start(text, at) + line_at(text, at).len()),
            b'"' => at = string_end(text, at, ["\"\"\"", "\""])?,
            b'\'' => at = string_end(text, at, ["'''", "'"])?,
            b'[' => open.push(Unclosed { at, mark: "]" }),
            b'{' => open.push(Unclosed { at, mark: "}" }),
            b']' | b'}' => drop(open.pop()),
            _ => {}
        }
        at += 1;
    }
    Ok(at)
}

/// The last byte of the string that begins here.
fn string_end(text: &str, at: usize, [long, short]: [&'static str; 2]) -> Result<usize, Unclosed> {
    let is_long = text[at..].starts_with(long);
    let mark = if is_long { long } else { short };
    let mut place = at + mark.len();
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
    Err(Unclosed { at, mark })
}

/// Whether a line is a setting or the head of a table, and not an item of a list.
fn begins_anew(line: &str) -> bool {
    let line = line.trim();
    let is_word = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
    };
    let head = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let setting = line.split_once('=').filter(|(_, value)| !value.starts_with('='));
    head.is_some_and(|head| is_word(head.trim_matches(['[', ']'])))
        || setting.is_some_and(|(key, _)| key.ends_with(' ') && is_word(key.trim()))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use proptest::prelude::*;
    use toml::de::DeTable;

    use super::{TomlError, explain};
    use crate::config::section::Source;

    fn explained(text: &str) -> (usize, TomlError) {
        let source =
            Source { file: Arc::new(PathBuf::from("a.py")), text: text.into(), first_line: 2, is_header: true };
        let error = explain(&source, &DeTable::parse(text).unwrap_err());
        (source.line_at(error.at), error)
    }

    #[test]
    fn what_is_never_closed_is_reported_where_it_is_opened() {
        for (text, line, mark) in [
            ("dependencies = [\"httpx\"\nrequires-python = \">=3.11\"", 2, "`]`"),
            ("dependencies = [\n  \"httpx\",\n  \"rich\",\nrequires-python = \">=3.11\"", 2, "`]`"),
            ("a = 1\ndependencies = [\n  \"httpx\",\n\n[tool.hostler]\ntimeout = \"3s\"", 3, "`]`"),
            ("dependencies = [", 2, "`]`"),
            ("requires-python = \">=3.11\ndependencies = []", 2, "`\"`"),
            ("requires-python = '>=3.11\ndependencies = []", 2, "`'`"),
            ("requires-python = \"\"\">=3.11\ndependencies = []", 2, "`\"\"\"`"),
            ("dependencies = [\"httpx]\nrequires-python = \">=3.11\"", 2, "`\"`"),
            ("[tool]\nhostler = { timeout = \"3s\"", 3, "`}`"),
        ] {
            let (found, error) = explained(text);
            assert_eq!(found, line, "{text}");
            assert!(error.fix.contains(mark), "{text}: {}", error.fix);
        }
    }

    #[test]
    fn a_duplicate_names_both_lines() {
        for (text, name) in [("a = 1\nb = 2\na = 3", "`a`"), ("[a.b]\nx = 1\n[a.b]", "`[a.b]`")] {
            let (line, error) = explained(text);
            assert_eq!(line, 4, "{text}");
            assert!(error.what.contains(name) && error.what.ends_with("line 2"), "{}", error.what);
        }
    }

    #[test]
    fn other_errors_name_line_and_column() {
        for (text, line, column) in [
            ("a = 1\ndependencies: []", 3, "column 17:"),
            ("timeout = 30s", 2, "column "),
            ("a = ", 2, "column "),
            ("x = True", 2, "column 7:"),
            ("httpx", 2, "column "),
        ] {
            let (found, error) = explained(text);
            assert_eq!(found, line, "{text}");
            assert!(error.what.starts_with(column), "{text}: {}", error.what);
        }
    }

    #[test]
    fn no_value_is_ever_shown() {
        for text in [
            "[secrets]\nKEY = s3cret",
            "[secrets]\nKEY = \"s3cret",
            "[secrets]\nKEY = { file = s3cret }",
            "KEY = 's3cret'\nKEY = 's3cret'",
            "token = [\"s3cret\"",
            "KEY = \"a\" s3cret",
        ] {
            let (_, TomlError { what, fix, .. }) = explained(text);
            assert!(!what.contains("s3cret") && !fix.contains("s3cret"), "{text}: {what}; {fix}");
        }
    }

    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("a"),
            Just(" = "),
            Just("="),
            Just("\""),
            Just("'"),
            Just("\"\"\""),
            Just("["),
            Just("]"),
            Just("{"),
            Just("}"),
            Just("\n"),
            Just("# é"),
            Just(","),
            Just("\\"),
            Just("é"),
            Just("[t]\n"),
            Just("1"),
            Just("\r\n"),
        ];
        prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_error_is_explained(text in pieces()) {
            if DeTable::parse(&text).is_err() {
                let (line, error) = explained(&text);
                prop_assert!(line >= 2 && line <= 2 + text.matches('\n').count());
                prop_assert!(!error.what.is_empty() && !error.fix.is_empty());
            }
        }
    }
}
