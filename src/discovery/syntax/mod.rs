//! What Python refuses of a text, in one sentence: for [`super::Status`] with its line, for `check` with its bytes.

mod tabs;

use std::ops::Range;

use ruff_python_ast::ModModule;
use ruff_python_parser::Parsed;

/// Why Python does not take a text, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The bytes it is about.
    pub range: Range<usize>,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub fix: &'static str,
}

impl Refusal {
    pub(super) fn new(range: Range<usize>, what: &str, fix: &'static str) -> Self {
        Self { range, what: format!("not valid Python: {what}"), fix }
    }

    /// Both halves as one sentence.
    pub(super) fn sentence(&self) -> String {
        format!("{}; {}", self.what, self.fix)
    }
}

/// The first reason for which Python refuses a text.
pub fn refusal(source: &str, parsed: &Parsed<ModModule>) -> Option<Refusal> {
    if let Some(at) = source.find('\0') {
        // Python looks for them before anything else. The parser would let them pass in strings and comments.
        return Some(Refusal::new(at..at + 1, "a NUL byte", "remove it, or save the file as UTF-8 text"));
    }
    let mistaken = parsed.errors().first().map(|error| {
        // The parser quotes what it met, which may be a control character.
        let words = error.error.to_string().replace(char::is_control, "\u{FFFD}");
        let range = error.location.start().to_usize()..error.location.end().to_usize();
        Refusal::new(range, &words, "correct this line")
    });
    let indented = tabs::inconsistent(source, parsed).map(|range| {
        let what = "inconsistent use of tabs and spaces in indentation";
        Refusal::new(range, what, "indent this line and those around it with spaces alone")
    });
    // The parser measures tabs otherwise: where both stumble over a line, tabs are why.
    let comes_first = |tabs: &Refusal| mistaken.as_ref().is_none_or(|other| tabs.range.start <= other.range.start);
    match indented.filter(comes_first) {
        Some(indented) => Some(indented),
        None => mistaken,
    }
}
