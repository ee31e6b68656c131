//! Syntax errors, the versions of Python that know a text's syntax, and how deeply a text nests. What the compiler refuses
//! beyond the grammar, such as `return` outside of a function, is Python's to report when a worker loads the file.

use std::mem::ManuallyDrop;
use std::ops::Range;
use std::thread;

use ruff_python_ast::token::TokenKind;
use ruff_python_ast::{ModModule, PythonVersion};
use ruff_python_parser::{Mode, ParseOptions, Parsed, UnsupportedSyntaxError, parse_unchecked};
use ruff_text_size::{Ranged, TextSize};

use crate::config::origin::Diagnosis;

/// Why a text is not Python, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The bytes it is about.
    pub range: Range<usize>,
    /// What is wrong and what to do.
    pub reason: Diagnosis,
}

impl SyntaxError {
    fn new(range: Range<usize>, what: &str, fix: &str) -> Self {
        Self { range, reason: Diagnosis::new(format!("not valid Python: {what}"), fix) }
    }
}

/// The first syntax error of a text.
pub fn syntax_error(source: &str, parsed: &Parsed<ModModule>) -> Option<SyntaxError> {
    // Python refuses NUL bytes everywhere; the parser accepts them in strings and comments.
    if let Some(at) = source.find('\0') {
        return Some(SyntaxError::new(at..at + 1, "a NUL byte", "remove it, or save the file as UTF-8"));
    }
    let error = parsed.errors().first()?;
    let range = error.location.start().to_usize()..error.location.end().to_usize();
    if let Some((at, mark)) = unclosed_bracket(parsed, range.start) {
        return Some(SyntaxError::new(at, &format!("`{mark}` is never closed"), "add the closing bracket"));
    }
    // The parser quotes what it finds, which may be a control character.
    let reason = error.error.to_string().replace(char::is_control, "\u{FFFD}");
    Some(SyntaxError::new(range, &reason, "correct this line"))
}

/// The last bracket that is opened before this byte and never closed: the parser only stops at a later line.
fn unclosed_bracket(parsed: &Parsed<ModModule>, before: usize) -> Option<(Range<usize>, char)> {
    let mut open: Vec<(Range<usize>, char)> = Vec::new();
    let mut unclosed: Vec<(Range<usize>, char)> = Vec::new();
    for token in parsed.tokens() {
        let at = token.start().to_usize()..token.end().to_usize();
        let closes = match token.kind() {
            // A text that the parser cannot read may hold brackets.
            TokenKind::Unknown if at.start <= before && !at.is_empty() => return None,
            TokenKind::Lpar => {
                open.push((at, '('));
                continue;
            }
            TokenKind::Lsqb => {
                open.push((at, '['));
                continue;
            }
            TokenKind::Lbrace => {
                open.push((at, '{'));
                continue;
            }
            TokenKind::Rpar => '(',
            TokenKind::Rsqb => '[',
            TokenKind::Rbrace => '{',
            _ => continue,
        };
        if let Some(index) = open.iter().rposition(|(_, mark)| *mark == closes) {
            unclosed.extend(open.drain(index + 1..));
            open.pop();
        }
    }
    unclosed.extend(open);
    unclosed.into_iter().filter(|(at, _)| at.start < before).max_by_key(|(at, _)| at.start)
}

/// The newest minor version whose syntax the parser distinguishes.
const NEWEST: u64 = 15;

/// The first syntax of a text that Python 3 of this minor version does not know.
pub fn unknown_to(source: &str, minor: u64) -> Option<UnsupportedSyntaxError> {
    let version = PythonVersion { major: 3, minor: u8::try_from(minor).unwrap_or(u8::MAX) };
    let options = ParseOptions::from(Mode::Module).with_target_version(version);
    parse_unchecked(source, options).unsupported_syntax_errors().first().cloned()
}

/// The first minor version after this one that knows all syntax of a text.
pub fn enough_for(source: &str, after: u64) -> Option<u64> {
    (after + 1..=NEWEST).find(|minor| unknown_to(source, *minor).is_none())
}

/// Converts byte offsets of a text to lines.
#[derive(Debug, Clone)]
pub struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    /// Finds the lines of a text.
    pub fn of(source: &str) -> Self {
        let ends = source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self { starts: std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect() }
    }

    /// The 1-based line on which a node begins.
    pub(super) fn of_node(&self, node: &impl Ranged) -> usize {
        self.at(node.range().start().to_usize())
    }

    /// The 1-based line of a byte.
    pub fn at(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }

    /// The first byte of a 1-based line.
    pub fn start_of(&self, line: usize) -> Option<usize> {
        self.starts.get(line.saturating_sub(1)).copied()
    }
}

/// `CPython` accepts 200 open brackets; brackets in strings are counted here too.
const DEEPEST_BRACKETS: usize = 10_000;
/// `CPython` accepts 100 levels of indentation.
const DEEPEST_BLOCK: usize = 100;
/// Trees of more levels are dropped on a larger stack.
const DEEP_EXPRESSION: usize = 1000;
/// The stack that dropping one level takes, without optimisation.
const BYTES_A_LEVEL: usize = 2048;

/// The line from which on a text has too many open brackets to be parsed.
pub(super) fn too_many_brackets(source: &str) -> Option<usize> {
    // Most texts are shorter.
    if source.len() <= DEEPEST_BRACKETS {
        return None;
    }
    let (mut open, mut line) = (0_usize, 1);
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            b'\n' => line += 1,
            _ => {}
        }
        if open > DEEPEST_BRACKETS {
            return Some(line);
        }
    }
    None
}

/// How far a visitor looks into expressions, which may nest more deeply than its stack allows.
#[derive(Debug, Default)]
pub(super) struct Depth(usize);

impl Depth {
    const DEEPEST: usize = 64;

    /// Whether it looks a level further. Each time it does, it has to [leave](Self::leave).
    pub(super) fn enter(&mut self) -> bool {
        let enters = self.0 < Self::DEEPEST;
        self.0 += usize::from(enters);
        enters
    }

    pub(super) fn leave(&mut self) {
        self.0 -= 1;
    }
}

/// The nesting of a parsed text.
pub(super) struct Nesting {
    /// Whether its tree has to be dropped by [`dispose`].
    pub(super) is_deep: bool,
    /// Where it has too many blocks to be walked.
    pub(super) too_many_blocks: Option<TextSize>,
}

impl Nesting {
    /// An expression has at most as many levels as there are tokens since the last comma of each open bracket.
    pub(super) fn of(parsed: &Parsed<ModModule>) -> Self {
        let mut nesting = Self { is_deep: false, too_many_blocks: None };
        // The tokens of the innermost open bracket, and of those around it.
        let (mut level, mut outer) = (0_usize, Vec::new());
        let (mut depth, mut blocks) = (0_usize, 0_usize);
        for token in parsed.tokens() {
            match token.kind() {
                TokenKind::Comma => depth -= std::mem::take(&mut level),
                TokenKind::Newline if outer.is_empty() => depth -= std::mem::take(&mut level),
                TokenKind::Indent => blocks += 1,
                TokenKind::Dedent => blocks = blocks.saturating_sub(1),
                TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace => {
                    depth -= std::mem::replace(&mut level, outer.pop().unwrap_or_default());
                }
                TokenKind::Comment | TokenKind::NonLogicalNewline | TokenKind::String => {}
                kind => {
                    level += 1;
                    depth += 1;
                    if matches!(kind, TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace) {
                        outer.push(std::mem::take(&mut level));
                    }
                }
            }
            nesting.is_deep |= depth > DEEP_EXPRESSION;
            if blocks > DEEPEST_BLOCK && nesting.too_many_blocks.is_none() {
                nesting.too_many_blocks = Some(token.start());
                nesting.is_deep = true;
            }
        }
        nesting
    }
}

/// Drops a deep tree on a thread with a larger stack. Without such a thread, its memory leaks.
pub(super) fn dispose(parsed: Parsed<ModModule>) {
    let room = parsed.tokens().len().saturating_mul(BYTES_A_LEVEL);
    let kept = ManuallyDrop::new(parsed);
    let disposal = thread::Builder::new().stack_size(room).spawn(move || drop(ManuallyDrop::into_inner(kept)));
    drop(disposal.map(thread::JoinHandle::join));
}
