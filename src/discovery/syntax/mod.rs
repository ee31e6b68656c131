//! What Python refuses of a text, in one sentence: for [`super::Status`] with its line, for `check` with its bytes.

mod brackets;
mod cause;
mod compiler;
mod newer;
mod older;
mod place;
mod tabs;

use std::ops::Range;

pub use newer::{enough_for, unknown_to};

use ruff_python_ast::ModModule;
use ruff_python_parser::Parsed;
use ruff_python_parser::semantic_errors::{SemanticSyntaxError, SemanticSyntaxErrorKind};

/// Why Python does not take a text, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The bytes it is about.
    pub range: Range<usize>,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub fix: String,
}

impl Refusal {
    pub(super) fn new(range: Range<usize>, what: &str, fix: impl Into<String>) -> Self {
        Self { range, what: format!("not valid Python: {what}"), fix: fix.into() }
    }

    /// Both halves as one sentence.
    pub(super) fn sentence(&self) -> String {
        format!("{}; {}", self.what, self.fix)
    }
}

/// The first reason for which Python refuses a text: of its bytes, then of its grammar, then of its compiler.
pub fn refusal(source: &str, parsed: &Parsed<ModModule>) -> Option<Refusal> {
    let refused = || compiler::refused(source, parsed.suite()).map(|error| of_compiler(&error));
    unreadable(source, parsed).or_else(|| older::except(source, parsed.suite())).or_else(refused)
}

/// The same without what takes a walk through the tree, for trees that are too deep to be walked.
pub(super) fn unreadable(source: &str, parsed: &Parsed<ModModule>) -> Option<Refusal> {
    if let Some(at) = source.find('\0') {
        // Python looks for them before anything else. The parser would let them pass in strings and comments.
        return Some(Refusal::new(at..at + 1, "a NUL byte", "remove it, or save the file as UTF-8 text"));
    }
    let mistaken = parsed.errors().first().map(|error| {
        // The parser quotes what it met, which may be a control character.
        let words = error.error.to_string().replace(char::is_control, "\u{FFFD}");
        let range = error.location.start().to_usize()..error.location.end().to_usize();
        cause::of(source, parsed, &range).unwrap_or_else(|| Refusal::new(range, &words, "correct this line"))
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

fn of_compiler(error: &SemanticSyntaxError) -> Refusal {
    use SemanticSyntaxErrorKind as Kind;
    let words = error.to_string().replace(char::is_control, "\u{FFFD}");
    let fix = match &error.kind {
        Kind::ReturnOutsideFunction | Kind::YieldOutsideFunction(_) => "remove it, or move it into a function",
        Kind::AwaitOutsideAsyncFunction(_) => "let the function around it begin with `async def`",
        Kind::BreakOutsideLoop | Kind::ContinueOutsideLoop => {
            "indent it, so that it belongs to the loop above, or remove it"
        }
        Kind::DuplicateParameter(_) | Kind::DuplicateKeywordArgument(_) => {
            "remove one of the two, or give it another name"
        }
        Kind::NonlocalDeclarationAtModuleLevel => "remove this line: what is assigned here is the module's own",
        _ => "correct this line",
    };
    Refusal::new(error.range.start().to_usize()..error.range.end().to_usize(), &words, fix)
}
