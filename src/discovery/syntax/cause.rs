//! Causes that the parser's own words hide: characters that look like others, markers of a merge, Python 2, a text that is
//! closed where another was meant to begin.

use std::ops::Range;

use ruff_python_ast::ModModule;
use ruff_python_ast::token::TokenKind;
use ruff_python_parser::Parsed;
use ruff_text_size::Ranged;

use super::{Refusal, brackets};
use crate::pep723::MERGE;

/// The cause of an error at these bytes, if it is one of these.
pub(super) fn of(source: &str, parsed: &Parsed<ModModule>, error: &Range<usize>) -> Option<Refusal> {
    merge(source)
        .or_else(|| lookalike(source, error))
        .or_else(|| closed_too_late(source, parsed, error))
        .or_else(|| never_closed(source, error))
        .or_else(|| older_python(source, error))
        .or_else(|| brackets::never_closed(source, parsed, error))
}

/// The markers that a merge leaves where two sides changed the same lines.
fn merge(source: &str) -> Option<Refusal> {
    let place = |mark: &str| {
        let starts = std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1));
        starts.into_iter().find(|at| source[*at..].starts_with(mark))
    };
    let (begin, _) = (place("<<<<<<< ")?, place(">>>>>>> ")?);
    Some(Refusal::new(line_at(source, begin), MERGE.0, MERGE.1))
}

/// A character that is not the one it looks like, or cannot be seen at all.
fn lookalike(source: &str, error: &Range<usize>) -> Option<Refusal> {
    let line = line_at(source, error.start);
    let c = source.get(error.start..)?.chars().next()?;
    let fix = match c {
        '\u{A0}' | '\u{1680}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => {
            "write an ordinary blank in its place"
        }
        '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{FEFF}' | '\u{AD}' | '\u{202A}'..='\u{202E}' => {
            "it cannot be seen: delete it, or write this line anew"
        }
        '“' | '”' | '„' | '«' | '»' => "write straight quotes: `\"`",
        '‘' | '’' | '‚' => "write straight quotes: `'`",
        '–' | '—' | '−' => "write `-`",
        '…' => "write `...`",
        _ => return None,
    };
    let column = source[line.start..error.start].chars().count() + 1;
    let shown = if c.is_whitespace() || fix.starts_with("it cannot") { String::new() } else { format!(" (`{c}`)") };
    let what = format!("the character U+{:04X}{shown} at column {column}", u32::from(c));
    Some(Refusal::new(error.start..error.start + c.len_utf8(), &what, fix))
}

/// A text over lines that nobody closed ends where the next one begins, and what that one says is read as code.
fn closed_too_late(source: &str, parsed: &Parsed<ModModule>, error: &Range<usize>) -> Option<Refusal> {
    let text = parsed.tokens().iter().rev().find(|token| {
        let range = token.range();
        token.kind() == TokenKind::String && range.end().to_usize() <= error.start
    })?;
    let (start, end) = (text.start().to_usize(), text.end().to_usize());
    let mark = ["\"\"\"", "'''"].into_iter().find(|mark| source[start..end].ends_with(mark))?;
    let line = line_at(source, end);
    let is_same_line = line.contains(&error.start) && source[start..end].contains('\n');
    let begins_line = source[line.start..].trim_start().starts_with(mark);
    if !(is_same_line && begins_line) {
        return None;
    }
    let opened = source[..start].matches('\n').count() + 1;
    let what = format!("here ends the text that begins with `{mark}` on line {opened}");
    let fix = format!(
        "if another text was meant to begin here, close the one of line {opened} with `{mark}` above; else correct this line"
    );
    Some(Refusal::new(line, &what, fix))
}

/// A text over lines that goes on to the end of the file.
fn never_closed(source: &str, error: &Range<usize>) -> Option<Refusal> {
    let text = source.get(error.start..)?.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let mark = ["\"\"\"", "'''"].into_iter().find(|mark| text.starts_with(mark))?;
    // Behind a closed one something else is wrong.
    let is_closed = text[mark.len()..].contains(mark);
    let what = format!("the text that begins with `{mark}` on this line is never closed");
    (!is_closed).then(|| Refusal::new(line_at(source, error.start), &what, format!("write `{mark}` where it ends")))
}

/// Statements of Python 2.
fn older_python(source: &str, error: &Range<usize>) -> Option<Refusal> {
    let line = line_at(source, error.start);
    let words = source[line.clone()].trim();
    let of = |word: &str| {
        let rest = words.strip_prefix(word)?;
        rest.starts_with(|c: char| c.is_alphanumeric() || "'\"_".contains(c)).then_some(rest)
    };
    if let Some(rest) = of("print ") {
        let fix = format!("write `print({})`", rest.trim_end_matches([';', ',']));
        return Some(Refusal::new(line, "this is Python 2, whose `print` had no brackets", fix));
    }
    let (kind, text) = of("raise ")?.split_once(", ")?;
    let fix = format!("write `raise {kind}({text})`");
    kind.chars().all(|c| c.is_alphanumeric() || "_.".contains(c)).then(|| Refusal::new(line, "this is Python 2", fix))
}

/// The bytes of the line that holds a byte, without its indentation.
fn line_at(source: &str, at: usize) -> Range<usize> {
    let at = at.min(source.len());
    let start = source.as_bytes()[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let end = source.as_bytes()[at..].iter().position(|byte| *byte == b'\n').map_or(source.len(), |end| at + end);
    start..end
}

#[cfg(test)]
mod tests {
    use super::super::super::syntax_tree;
    use super::super::refusal;

    fn told(source: &str) -> String {
        let refusal = refusal(source, &syntax_tree(source).unwrap()).unwrap();
        let line = source[..refusal.range.start].matches('\n').count() + 1;
        format!("{line}: {}", refusal.sentence().trim_start_matches("not valid Python: "))
    }

    #[test]
    fn the_cause_is_told_and_not_where_the_parser_stumbled() {
        let texts = [
            "x =\u{A0}1\n",
            "def f():\n\u{A0}  return 1\n",
            "x = \u{200B}1\n",
            "x = “a”\n",
            "x = ‘a’\n",
            "x = 1 – 2\n",
            "x = …\n",
            "def f():\n    print 'x'\n",
            "print x, y\n",
            "raise ValueError, 'x'\n",
            "def f():\n<<<<<<< HEAD\n    return 1\n=======\n    return 2\n>>>>>>> other\n",
            "def f():\n    \"\"\"Doc.\n    return 1\n\ndef g():\n    \"\"\"Other one.\"\"\"\n    return 2\n",
            "def f():\n    \"\"\"Doc.\n    return 1\n",
            "x = print(\n    [1,\n\ndef g():\n    return (2)\n",
            "def g():\n    return (1 + (2)\n\ndef h():\n    return f(1)\n",
            "x = {'a': [1, 2}\n",
            "x = [1, 2\ny = 3\n",
            "x = f'{a}', g(1\nimport os\n",
            "x = (\n",
        ];
        insta::assert_snapshot!(texts.map(told).join("\n"));
    }

    #[test]
    fn what_is_no_such_cause_keeps_the_parsers_words() {
        for text in [
            "x = = 1\n",
            "s = \"\"\"a\nb\"\"\" c\n",
            "print = = 1\n",
            "x = '\u{A0}' = = 2\n",
            "=======\n",
            "x = [\n  1,\n  2\n  3\n]\n",
            "x = f(1 2)\n",
            "x = 1)\n",
        ] {
            assert!(told(text).ends_with("; correct this line"), "{}", told(text));
        }
    }
}
