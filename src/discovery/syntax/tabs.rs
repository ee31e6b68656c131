//! Indentation as `CPython` compares it: once with tabs up to every eighth column and once with tabs of one. Where the
//! two disagree about how a line stands to those above it, Python raises `TabError`. The parser here knows other widths.

use std::ops::Range;

use ruff_python_ast::ModModule;
use ruff_python_ast::token::TokenKind;
use ruff_python_parser::Parsed;
use ruff_text_size::Ranged;

/// The width of an indentation, measured both ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Width {
    eights: usize,
    ones: usize,
}

impl Width {
    fn of(blanks: &str) -> Self {
        blanks.bytes().fold(Self::default(), |width, byte| match byte {
            b'\t' => Self { eights: (width.eights / 8 + 1) * 8, ones: width.ones + 1 },
            // A form feed begins the line anew.
            b'\x0c' => Self::default(),
            _ => Self { eights: width.eights + 1, ones: width.ones + 1 },
        })
    }
}

/// The indentation of the first line whose depth depends on the width of a tab.
pub(super) fn inconsistent(source: &str, parsed: &Parsed<ModModule>) -> Option<Range<usize>> {
    if !source.contains('\t') {
        return None;
    }
    let mut open = vec![Width::default()];
    let mut begins = true;
    for token in parsed.tokens() {
        match token.kind() {
            TokenKind::Newline => begins = true,
            TokenKind::Indent
            | TokenKind::Dedent
            | TokenKind::Comment
            | TokenKind::NonLogicalNewline
            | TokenKind::EndOfFile
            | TokenKind::Unknown => {}
            _ if begins => {
                begins = false;
                let end = token.start().to_usize();
                let start = source[..end].rfind('\n').map_or(0, |at| at + 1);
                if !fits(Width::of(&source[start..end]), &mut open) {
                    return Some(start..end);
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether a line stands the same to those above it by both measures. A dedent to no line above it is the parser's to tell.
fn fits(width: Width, open: &mut Vec<Width>) -> bool {
    while open.last().is_some_and(|last| width.eights < last.eights) {
        open.pop();
    }
    let Some(last) = open.last().copied() else { return true };
    if width.eights == last.eights {
        return width.ones == last.ones;
    }
    open.push(width);
    width.ones > last.ones
}
