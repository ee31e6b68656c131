//! How deep a text nests. The parser can grow its stack; dropping and walking the tree it builds cannot, so a text that
//! nests deeper than any interpreter would take is refused, and its tree is disposed of with room.

use std::mem::ManuallyDrop;
use std::thread;

use ruff_python_ast::ModModule;
use ruff_python_ast::token::TokenKind;
use ruff_python_parser::Parsed;
use ruff_text_size::{Ranged, TextSize};

/// `CPython` stops at 200 open brackets.
const DEEPEST_BRACKETS: usize = 1000;
/// `CPython` stops at 100 levels of indentation.
const DEEPEST_BLOCK: usize = 100;
/// More than one expression holds between two commas; `CPython` stops at about as many levels.
const DEEPEST_EXPRESSION: usize = 3000;
/// More than one level of a tree takes to drop, in a build without optimisation.
const BYTES_A_LEVEL: usize = 2048;

/// The line on which the brackets of a text become too many to hand it to the parser. A rough count: strings count too.
pub(super) fn too_many_brackets(source: &str) -> Option<usize> {
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

/// Where the tree of a parsed text may be too deep to touch. The tokens since the last comma, on every bracket level that
/// is open, are at least as many as the levels of the expression they make.
pub(super) fn too_deep(parsed: &Parsed<ModModule>) -> Option<TextSize> {
    // Of the innermost open bracket, and of those around it.
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
        if depth > DEEPEST_EXPRESSION || blocks > DEEPEST_BLOCK {
            return Some(token.start());
        }
    }
    None
}

/// Drops a tree that is too deep for an ordinary stack; where no larger one is to be had, the memory is given up.
pub(super) fn dispose(parsed: Parsed<ModModule>) {
    let room = parsed.tokens().len().saturating_mul(BYTES_A_LEVEL);
    let kept = ManuallyDrop::new(parsed);
    let disposal = thread::Builder::new().stack_size(room).spawn(move || drop(ManuallyDrop::into_inner(kept)));
    drop(disposal.map(thread::JoinHandle::join));
}
