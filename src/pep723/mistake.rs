//! Texts that were meant to be a header and are not: found, and answered with the line that would be right.

use super::block::{Block, is_comment};
use super::{CLOSING, HeaderError, MERGE, OPENING, SCRIPT, opening};

/// The first mistake around the blocks of a text, if there is one.
pub(super) fn find(source: &str, blocks: &[Block<'_>]) -> Option<HeaderError> {
    let mut scripts = blocks.iter().filter(|block| block.kind == SCRIPT);
    let first = scripts.next();
    if let (Some(first), Some(second)) = (first, scripts.next()) {
        let reason = format!("a second `script` block; the first begins on line {}", first.opening_line);
        return Some(HeaderError::new(second.opening_line, reason, "keep one of them"));
    }
    if let Some(block) = first {
        return doubled(block);
    }
    // A block of type `Script` would be skipped without a word, and the file would be of another kind.
    if let Some(block) = blocks.iter().find(|block| block.kind.eq_ignore_ascii_case(SCRIPT)) {
        let reason = format!("`{}` is not the block type `{SCRIPT}`", block.kind);
        return Some(HeaderError::new(block.opening_line, reason, write_instead(OPENING)));
    }
    let mut suspects = source.split('\n').enumerate().filter(|(_, line)| opening::begins_like_one(line));
    let (index, line) = suspects.find(|(index, _)| opening::is_meant(source, index + 1))?;
    Some(judge(source, blocks, index + 1, line))
}

/// A block runs from its first opening to the last closing that only comments part from it.
fn doubled(block: &Block<'_>) -> Option<HeaderError> {
    let mut lines = block.content.lines().enumerate().map(|(index, line)| (block.opening_line + 1 + index, line));
    let (number, line) = lines.find(|(_, line)| *line == OPENING || *line == CLOSING)?;
    let (reason, fix) = match line {
        OPENING => ("the line that opens the header stands twice".to_owned(), format!("delete line {number}")),
        _ if number + 1 == block.closing_line => {
            ("the line that closes the header stands twice".to_owned(), format!("delete line {number}"))
        }
        _ => (
            format!(
                "only comments follow up to another `{CLOSING}`, on line {}, so the header goes on",
                block.closing_line
            ),
            format!("put an empty line after line {number}, or delete line {}", block.closing_line),
        ),
    };
    Some(HeaderError::new(number, reason, fix))
}

fn looks_like_closing(line: &str) -> bool {
    line.strip_prefix('#').is_some_and(|rest| rest.trim() == "///")
}

fn judge(source: &str, blocks: &[Block<'_>], number: usize, line: &str) -> HeaderError {
    let before = blocks.partition_point(|block| block.opening_line <= number);
    match blocks[..before].last().filter(|block| number <= block.closing_line) {
        Some(block) => {
            let reason = format!("a header begins inside the `{}` block of line {}", block.kind, block.opening_line);
            let fix = format!("close that block with `{CLOSING}` and put an empty line between the two");
            HeaderError::new(number, reason, fix)
        }
        None if line != OPENING => {
            let reason = format!("this looks like a header and {}", difference(line));
            let below: Vec<(usize, &str)> = numbered(source).skip(number).collect();
            HeaderError::new(number, reason, write_instead(OPENING) + &rest_of_header(&below))
        }
        None => unclosed(source, number),
    }
}

/// In what a line differs from the opening it was meant to be.
fn difference(line: &str) -> &'static str {
    if line.trim_end() == OPENING {
        "has white space at its end"
    } else if line.eq_ignore_ascii_case(OPENING) {
        "is not in lower case"
    } else if line.split_whitespace().collect::<String>() == "#///script" {
        "is spaced differently"
    } else {
        "has more after the word `script`"
    }
}

/// Why the right opening on line `opening` begins no block.
fn unclosed(source: &str, opening: usize) -> HeaderError {
    let mut interruption = None;
    for (number, line) in numbered(source).skip(opening) {
        if looks_like_closing(line) {
            let mut error = misplaced_closing(opening, number, line, interruption);
            let below: Vec<(usize, &str)> = numbered(source).skip(error.line).take(number - error.line).collect();
            error.fix += &rest_of_header(&below);
            return error;
        }
        // A header's first line that is no comment ends it; look no further than the code it runs into.
        if !is_comment(line) && interruption.is_none() {
            interruption = Some((number, line));
        }
        if !line.trim().is_empty() && !line.starts_with('#') && looks_like_code(line) {
            break;
        }
    }
    let end = interruption.map_or_else(|| "the end of the file".to_owned(), |(number, _)| format!("line {number}"));
    let fix = match last_line_of_toml(source, opening) {
        Some(last) => format!("write `{CLOSING}` on a line of its own after line {last}, the last that is TOML"),
        None => format!("write `{CLOSING}` on a line of its own before {end}"),
    };
    HeaderError::new(opening, "this header is never closed", fix)
}

/// Longer headers are not looked through.
const LONGEST: usize = 200;

/// Where TOML ends and a comment for people follows it without a border. `None` where all of it is TOML, or nothing.
fn last_line_of_toml(source: &str, opening: usize) -> Option<usize> {
    let comments = source.split('\n').skip(opening).take_while(|line| is_comment(line)).take(LONGEST);
    let lines: Vec<&str> = comments.map(|line| line.get(2..).unwrap_or_default()).collect();
    let is_toml = |count: &usize| toml::de::DeTable::parse(&lines[..*count].join("\n")).is_ok();
    let most = (1..=lines.len()).rev().find(is_toml)?;
    let words = lines[..most].iter().rposition(|line| !line.trim().is_empty())? + 1;
    (most < lines.len()).then_some(opening + words)
}

/// Header lines that lost their `#` look like TOML; anything else is the program.
fn looks_like_code(line: &str) -> bool {
    let starts = ["import ", "from ", "def ", "class ", "async ", "@", "\"\"\"", "'''", "if ", "try:", "with "];
    starts.iter().any(|start| line.starts_with(start))
}

fn misplaced_closing(opening: usize, number: usize, line: &str, interruption: Option<(usize, &str)>) -> HeaderError {
    if let Some((at, text)) = interruption {
        if text.starts_with("<<<<<<< ") {
            return HeaderError::new(at, MERGE.0, MERGE.1);
        }
        let fix = if text.trim().is_empty() {
            "write `#` there, or delete the line".to_owned()
        } else {
            format!("begin it with `# `: {}", write_instead(&format!("# {}", text.trim_start_matches('#').trim())))
        };
        let reason = format!("the header of line {opening} holds a line that is neither `#` nor `# …`");
        return HeaderError::new(at, reason, fix);
    }
    if line != CLOSING {
        let reason = format!("this is not quite the end of the header of line {opening}");
        return HeaderError::new(number, reason, write_instead(CLOSING));
    }
    let fix = "put at least one line into it: `# dependencies = []`";
    HeaderError::new(opening, "this header is empty, so it counts as none", fix)
}

fn numbered(source: &str) -> impl Iterator<Item = (usize, &str)> {
    source.split('\n').enumerate().map(|(index, line)| (index + 1, line))
}

/// What else a header wants corrected below a wrong line, up to its closing, so that it is all told at once.
pub(super) fn rest_of_header(below: &[(usize, &str)]) -> String {
    let is_end = |line: &str| {
        let words = line.trim().trim_start_matches('#').trim();
        words.len() >= 2 && words.chars().all(|c| c == '/')
    };
    let Some(end) = below.iter().take_while(|(_, line)| line.starts_with('#')).position(|line| is_end(line.1)) else {
        return String::new();
    };
    let tight: Vec<String> =
        below[..end].iter().filter(|(_, line)| !is_comment(line)).map(|(number, _)| number.to_string()).collect();
    let told = match tight.split_last() {
        None => String::new(),
        Some((only, [])) => format!(", put a blank after the `#` of line {only}"),
        Some((last, more)) => format!(", put a blank after the `#` of lines {} and {last}", more.join(", ")),
    };
    let write = if told.is_empty() { "" } else { "write " };
    match below[end] {
        (_, CLOSING) => told,
        (number, _) => format!("{told}, and {write}line {number} as `{CLOSING}`"),
    }
}

fn write_instead(line: &str) -> String {
    format!("write exactly `{line}`")
}
