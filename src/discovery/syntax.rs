//! Why a text is not Python, and which versions of Python know its syntax. What the compiler refuses beyond the grammar,
//! such as `return` outside of a function, is Python's to report when a worker loads the file.

use std::ops::Range;

use ruff_python_ast::token::TokenKind;
use ruff_python_ast::{ModModule, PythonVersion};
use ruff_python_parser::{Mode, ParseOptions, Parsed, UnsupportedSyntaxError, parse_unchecked};
use ruff_text_size::Ranged;

/// Why a text is not Python, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The bytes it is about.
    pub range: Range<usize>,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub fix: String,
}

impl SyntaxError {
    fn new(range: Range<usize>, what: &str, fix: &str) -> Self {
        Self { range, what: format!("not valid Python: {what}"), fix: fix.to_owned() }
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
        return Some(SyntaxError::new(at, &format!("`{mark}` is never closed"), "close it where it ends"));
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
