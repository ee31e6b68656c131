//! How deep a text nests. The parser can grow its stack; dropping the tree it builds cannot, so a deep tree is disposed of
//! where there is room, and a text that nests deeper than any interpreter takes is not walked at all.

use std::mem::ManuallyDrop;
use std::thread;

use ruff_python_ast::ModModule;
use ruff_python_ast::token::TokenKind;
use ruff_python_parser::Parsed;
use ruff_text_size::{Ranged, TextSize};

/// `CPython` stops at 200 open brackets; the rest is for brackets in strings, which are not told apart here.
const DEEPEST_BRACKETS: usize = 10_000;
/// `CPython` stops at 100 levels of indentation.
const DEEPEST_BLOCK: usize = 100;
/// A tree of more levels is not dropped on an ordinary stack.
const DEEP_EXPRESSION: usize = 1000;
/// More than one level of a tree takes to drop, in a build without optimisation.
const BYTES_A_LEVEL: usize = 2048;

/// The line on which the brackets of a text become too many to hand it to the parser. A rough count: strings count too.
pub(super) fn too_many_brackets(source: &str) -> Option<usize> {
    // Nearly every text is shorter than that, and is not searched.
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

/// How deep a parsed text may be.
pub(super) struct Nesting {
    /// Whether its tree needs room to be dropped ([`dispose`]).
    pub(super) is_deep: bool,
    /// Where its blocks become too many to walk.
    pub(super) too_many_blocks: Option<TextSize>,
}

impl Nesting {
    /// The tokens since the last comma, on every bracket level that is open, are at least as many as the levels of the
    /// expression they make.
    pub(super) fn of(parsed: &Parsed<ModModule>) -> Self {
        let mut nesting = Self { is_deep: false, too_many_blocks: None };
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
            nesting.is_deep |= depth > DEEP_EXPRESSION;
            if blocks > DEEPEST_BLOCK && nesting.too_many_blocks.is_none() {
                nesting.too_many_blocks = Some(token.start());
                nesting.is_deep = true;
            }
        }
        nesting
    }
}

/// Drops a tree that is too deep for an ordinary stack; where no larger one is to be had, the memory is given up.
pub(super) fn dispose(parsed: Parsed<ModModule>) {
    let room = parsed.tokens().len().saturating_mul(BYTES_A_LEVEL);
    let kept = ManuallyDrop::new(parsed);
    let disposal = thread::Builder::new().stack_size(room).spawn(move || drop(ManuallyDrop::into_inner(kept)));
    drop(disposal.map(thread::JoinHandle::join));
}
