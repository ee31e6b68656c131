//! Brackets that nobody closed: the parser stumbles over what comes after, on a line that is innocent.

use std::ops::Range;

use ruff_python_ast::ModModule;
use ruff_python_ast::token::TokenKind;
use ruff_python_parser::Parsed;
use ruff_text_size::Ranged;

use super::Refusal;

struct Open {
    at: Range<usize>,
    mark: char,
    closing: char,
}

/// The bracket before an error that is never closed, if that is what the error comes from.
pub(super) fn never_closed(source: &str, parsed: &Parsed<ModModule>, error: &Range<usize>) -> Option<Refusal> {
    let open = unclosed(parsed, error.start)?;
    let line = source[..open.at.start].matches('\n').count() + 1;
    let what = format!("`{}` on line {line} is never closed", open.mark);
    let fix = match source[error.start..].chars().next() {
        Some(c @ (')' | ']' | '}')) if source[open.at.start..error.start].lines().count() == 1 => {
            format!("write `{}` before the `{c}`", open.closing)
        }
        _ => format!("write `{}` where it ends", open.closing),
    };
    Some(Refusal::new(open.at, &what, fix))
}

/// The last bracket opened before this byte that stays open, in all of the text. One that is closed further down has only
/// something wrong in it.
fn unclosed(parsed: &Parsed<ModModule>, before: usize) -> Option<Open> {
    let mut open: Vec<Open> = Vec::new();
    let mut left: Vec<Open> = Vec::new();
    for token in parsed.tokens() {
        let at = token.start().to_usize()..token.end().to_usize();
        let (mark, closing) = match token.kind() {
            // What the parser cannot read may hold brackets, or be a text that is never closed.
            TokenKind::Unknown if at.start <= before && !at.is_empty() => return None,
            TokenKind::Lpar => ('(', ')'),
            TokenKind::Lsqb => ('[', ']'),
            TokenKind::Lbrace => ('{', '}'),
            TokenKind::Rpar => (')', ')'),
            TokenKind::Rsqb => (']', ']'),
            TokenKind::Rbrace => ('}', '}'),
            _ => continue,
        };
        if mark != closing {
            open.push(Open { at, mark, closing });
        } else if let Some(index) = open.iter().rposition(|one| one.closing == closing) {
            // Those within are passed over, and never closed.
            left.extend(open.drain(index + 1..));
            open.pop();
        }
    }
    left.extend(open);
    left.into_iter().filter(|one| one.at.start < before).max_by_key(|one| one.at.start)
}
