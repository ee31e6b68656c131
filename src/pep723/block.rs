//! Which lines of a text are a metadata block.
//!
//! The rule is the PEP's reference regular expression:
//! `(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$`. It is followed by hand because backtracking
//! makes it quadratic on foreign text; a property test and a fuzz target hold the two together.

use super::CLOSING;

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
    for (index, line) in source.split('\n').enumerate() {
        if is_comment(line) {
            run.take(line, index + 1, start);
        } else {
            found.extend(std::mem::take(&mut run).into_block(source));
        }
        start += line.len() + 1;
    }
    found.extend(run.into_block(source));
    found
}

/// Whether a line may stand inside a block.
pub(super) fn is_comment(line: &str) -> bool {
    line == "#" || line.starts_with("# ")
}

/// What has been seen of one run of comment lines.
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
