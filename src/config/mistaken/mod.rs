//! Texts that are not TOML: on which line the cause stands, which is often above the one where reading stopped, and how the
//! right line looks.
//!
//! A line is only written out when it was tried: with it in place, reading gets past the line that was wrong.

mod braces;
mod list;
mod private;
mod repair;
mod scan;
mod several;
mod spread;
mod twice;

use toml::de::{DeTable, Error};

use super::section::Source;

/// What is wrong with a text, where it begins, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    /// The byte it begins with.
    pub at: usize,
    /// What is wrong.
    pub what: String,
    /// What to write instead.
    pub fix: String,
}

/// What TOML expects, for lines whose meaning cannot be told for certain.
const GRAMMAR: &str = "correct this line: TOML has `key = value` or `[table]`, texts in quotes (\"30s\"), lists in brackets \
                       ([\"a\", \"b\"]), true and false in small letters";

/// Explains why a text could not be parsed.
pub(super) fn explain(source: &Source, error: &Error) -> Mistake {
    let text = &*source.text;
    let stopped = error.span().map_or(0, |span| span.start);
    if error.message().starts_with("duplicate key") {
        return twice::explain(source, stopped);
    }
    let margin = if source.is_header { "# " } else { "" };
    let trial = Trial { source, text, margin };
    let open = scan::unclosed(text);
    if let Some(line) = private::line(text, open.as_ref().map_or(stopped, |open| open.at)) {
        return private::explain(line, open.as_ref(), margin);
    }
    if let Some(open) = &open {
        return trial.close(open);
    }
    // The end of the text belongs to its last line that says something.
    let line = Line::at(text, stopped.min(text.trim_end().len()));
    if let Some(mistake) = trial.several(line) {
        return mistake;
    }
    let parsers_words = error.message().replace('\n', ", ");
    trial.missing_comma(line).or_else(|| trial.mend(line, None)).unwrap_or_else(|| {
        let (what, fix) = repair::known(line.text, margin).unwrap_or((parsers_words, GRAMMAR.to_owned()));
        Mistake { at: stopped, what, fix }
    })
}

/// One line of a text.
#[derive(Clone, Copy)]
struct Line<'t> {
    start: usize,
    text: &'t str,
}

impl<'t> Line<'t> {
    fn at(text: &'t str, offset: usize) -> Self {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let start = text[..offset].rfind('\n').map_or(0, |end| end + 1);
        let end = text[start..].find('\n').map_or(text.len(), |end| start + end);
        Self { start, text: &text[start..end] }
    }

    fn end(self) -> usize {
        self.start + self.text.len()
    }

    /// The nearest line above that is neither empty nor a comment.
    fn above(self, text: &'t str) -> Option<Self> {
        let mut line = self;
        while line.start > 0 {
            line = Self::at(text, line.start - 1);
            let words = line.text.trim();
            if !words.is_empty() && !words.starts_with('#') {
                return Some(line);
            }
        }
        None
    }
}

/// Tries right lines in the place of wrong ones.
struct Trial<'t> {
    source: &'t Source,
    text: &'t str,
    margin: &'t str,
}

impl<'t> Trial<'t> {
    /// Whether reading gets past a line when this stands in its place, and past the one where it stopped.
    fn holds(&self, line: Line<'t>, instead: &str, stopped: Line<'t>) -> bool {
        let text = format!("{}{instead}{}", &self.text[..line.start], &self.text[line.end()..]);
        match DeTable::parse(&text) {
            Ok(_) => true,
            Err(error) => {
                let past = stopped.end().max(line.end()) + instead.len() - line.text.len().min(instead.len());
                let open = scan::unclosed(&text).is_some_and(|open| open.at <= past);
                !open && error.span().is_some_and(|span| Line::at(&text, span.start).start > past)
            }
        }
    }

    /// The first of the right lines that holds. `what` is said of it instead of what its repair would say.
    fn mend(&self, line: Line<'t>, what: Option<&str>) -> Option<Mistake> {
        let found = repair::candidates(line.text).into_iter().find(|(_, instead)| self.holds(line, instead, line))?;
        let fix = match found.1.split_once('\n') {
            Some((first, second)) => {
                format!("write them on two: `{}` and `{}`", self.shown(first), self.shown(second))
            }
            None => format!("write exactly `{}`", self.shown(&found.1)),
        };
        Some(Mistake { at: line.start, what: what.unwrap_or(found.0).to_owned(), fix })
    }

    /// An item of a list that stops on one line, and the next begins on another.
    fn missing_comma(&self, line: Line<'t>) -> Option<Mistake> {
        let above = line.above(self.text)?;
        let (words, comment) = repair::without_comment(above.text);
        if words.ends_with([',', '[']) {
            return None;
        }
        let instead = format!("{words},{comment}");
        let holds = self.holds(above, &instead, line);
        let what = "a comma is missing at the end of this line".to_owned();
        holds.then(|| Mistake { at: above.start, what, fix: format!("write exactly `{}`", self.shown(&instead)) })
    }

    /// What is opened and never closed.
    fn close(&self, open: &scan::Open) -> Mistake {
        let line = Line::at(self.text, open.at);
        let what = open.what();
        let last = Line::at(self.text, open.last);
        if last.start > line.start && open.mark.len() == 1 {
            let (mark, number) = (self.shown(open.mark), self.source.line_at(last.start));
            let fix = format!("write `{mark}` on a line of its own after line {number}");
            return Mistake { at: line.start, what, fix };
        }
        if let Some(mistake) = self.mend(line, Some(&what)) {
            return mistake;
        }
        let fix = format!("close it with `{}`", open.mark);
        Mistake { at: line.start, what, fix }
    }

    /// A line as it stands in the file: in a header, behind a comment mark.
    fn shown(&self, line: &str) -> String {
        format!("{}{line}", self.margin)
    }
}

#[cfg(test)]
mod tests;
