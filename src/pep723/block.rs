//! Which lines of a text are a metadata block, and why a text that opens one has none.
//!
//! The rule is the PEP's reference regular expression:
//! `(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$`. It is matched by hand because backtracking
//! makes it quadratic on foreign text; a property test and a fuzz target compare the two.

use super::{CLOSING, HeaderError, OPENING, SCRIPT};

/// A metadata block, as the reference expression matches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block<'s> {
    /// The word after `# ///`.
    pub kind: &'s str,
    /// The lines between, with their comment marks and line ends.
    pub content: &'s str,
    /// The 1-based line of the opening.
    pub opening_line: usize,
    /// The 1-based line of the closing.
    pub closing_line: usize,
}

impl Block<'_> {
    /// The content without its comment marks, as the PEP strips them.
    pub fn text(&self) -> String {
        let lines = self.content.split_inclusive('\n');
        lines.map(|line| line.strip_prefix("# ").unwrap_or(&line[1..])).collect()
    }
}

/// Every block of a text, in order.
///
/// The opening, the content and the closing of one match are all comment lines, and the content is greedy, so each run of
/// comment lines holds at most one match: from its first opening to its last closing.
pub fn blocks(source: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut run = Run::default();
    let mut start = 0;
    for (number, line) in numbered(source) {
        if is_comment(line) {
            run.take(line, number, start);
        } else {
            found.extend(std::mem::take(&mut run).into_block(source));
        }
        start += line.len() + 1;
    }
    found.extend(run.into_block(source));
    found
}

/// Whether a line may stand inside a block.
fn is_comment(line: &str) -> bool {
    line == "#" || line.starts_with("# ")
}

fn numbered(source: &str) -> impl Iterator<Item = (usize, &str)> {
    source.split('\n').enumerate().map(|(index, line)| (index + 1, line))
}

/// One run of comment lines.
#[derive(Default)]
struct Run<'s> {
    opening: Option<Opening<'s>>,
    closing: Option<(usize, usize)>,
}

struct Opening<'s> {
    kind: &'s str,
    line: usize,
    content_start: usize,
}

impl<'s> Run<'s> {
    fn take(&mut self, line: &'s str, number: usize, start: usize) {
        match &self.opening {
            None => {
                let opening = |kind| Opening { kind, line: number, content_start: start + line.len() + 1 };
                self.opening = block_kind(line).map(opening);
            }
            // The content is at least one line, which may itself look like a closing.
            Some(opening) if line == CLOSING && number >= opening.line + 2 => self.closing = Some((number, start)),
            Some(_) => {}
        }
    }

    fn into_block(self, source: &'s str) -> Option<Block<'s>> {
        let (opening, (closing_line, content_end)) = (self.opening?, self.closing?);
        let content = &source[opening.content_start..content_end];
        Some(Block { kind: opening.kind, content, opening_line: opening.line, closing_line })
    }
}

fn block_kind(line: &str) -> Option<&str> {
    let kind = line.strip_prefix("# /// ")?;
    let is_word = !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_word.then_some(kind)
}

/// The one `script` block of a text. A text that opens one and has none is an error: without it the file would silently be
/// served by another interpreter, without its dependencies.
pub(super) fn script_block<'b, 's>(
    source: &str,
    blocks: &'b [Block<'s>],
) -> Result<Option<&'b Block<'s>>, HeaderError> {
    let mut scripts = blocks.iter().filter(|block| block.kind == SCRIPT);
    match (scripts.next(), scripts.next()) {
        (Some(first), Some(second)) => {
            let reason = format!("this is a second `script` block; the first begins on line {}", first.opening_line);
            Err(HeaderError::new(second.opening_line, reason, "keep one of them"))
        }
        (Some(only), None) => Ok(Some(only)),
        (None, _) => {
            let lines: Vec<&str> = source.split('\n').collect();
            let opening = (0..lines.len()).find(|at| opens_header(&lines[*at..]));
            opening.map_or(Ok(None), |at| Err(why_no_block(&lines, at)))
        }
    }
}

/// Whether a text begins with the opening of a header, or with a misspelt one. A comment that only mentions headers opens
/// none; where the words differ, a line of metadata has to follow.
fn opens_header(lines: &[&str]) -> bool {
    let Some(words) =
        lines[0].strip_prefix('#').map(|words| words.trim_start_matches(|c: char| c == '#' || c.is_whitespace()))
    else {
        return false;
    };
    let word = words.trim_start_matches('/');
    let slashes = words.len() - word.len();
    if slashes == 3 && word.trim().eq_ignore_ascii_case(SCRIPT) && !lines[0].starts_with("##") {
        return true;
    }
    let is_metadata = |line: &&str| {
        let words = line.trim_start_matches('#').trim_start();
        ["dependencies", "requires-python", "[tool."].iter().any(|start| words.starts_with(start))
    };
    slashes >= 2 && lines.get(1).is_some_and(|line| line.starts_with('#') && is_metadata(line))
}

/// Why the opening on this line begins no block.
fn why_no_block(lines: &[&str], at: usize) -> HeaderError {
    let number = at + 1;
    if lines[at] != OPENING {
        return HeaderError::new(number, "malformed opening of a header", format!("write exactly `{OPENING}`"));
    }
    let below = &lines[number..];
    let end = below.iter().position(|line| !is_comment(line) || *line == CLOSING);
    if end.is_some_and(|end| below[end] == CLOSING) {
        let fix = "write at least `# dependencies = []` in it, and an empty line above it";
        return HeaderError::new(number, "this header is empty, or inside another block", fix);
    }
    let reason = format!("the header that begins on line {number} is not closed");
    let fix = format!("begin each line of the header with `# `, and end it with a line `{CLOSING}`");
    HeaderError::new((number + 1 + end.unwrap_or(below.len())).min(lines.len()), reason, fix)
}
