//! Mistakes that are spread over several lines: a list in braces, a comment as C has it within a list.

use super::{Line, Mistake, Trial, repair};

impl<'t> Trial<'t> {
    /// The mistake of several lines that reading stopped in, if it is one of these.
    pub(super) fn several(&self, stopped: Line<'t>) -> Option<Mistake> {
        self.spread(stopped).or_else(|| self.braces(stopped)).or_else(|| self.comment(stopped))
    }

    /// `dependencies = {`, items, `}`.
    fn braces(&self, stopped: Line<'t>) -> Option<Mistake> {
        let opens = |line: &Line<'_>| line.text.trim_end().ends_with('{');
        let head = if opens(&stopped) { stopped } else { self.above_all(stopped, |line| !opens(line))? };
        let closing = self.below(head).find(|line| line.text.trim_start().starts_with('}'))?;
        let (first, last) =
            (head.text.trim_end().trim_end_matches('{').to_owned() + "[", closing.text.replacen('}', "]", 1));
        let instead = format!("{first}{}{last}", &self.text[head.end()..closing.start]);
        let number = self.source.line_at(closing.start);
        let fix = format!("write exactly `{}`, and line {number} as `{}`", self.shown(&first), self.shown(&last));
        let what = "a list stands in square brackets".to_owned();
        self.passes(head.start, closing.end(), &instead).then_some(Mistake { at: head.start, what, fix })
    }

    /// `"six", // http`, at which reading stops on the line after it.
    fn comment(&self, stopped: Line<'t>) -> Option<Mistake> {
        [Some(stopped), stopped.above(self.text)].into_iter().flatten().find_map(|line| {
            let instead = repair::with_real_comment(line.text)?;
            let fix = format!("write exactly `{}`", self.shown(&instead));
            let what = "a comment begins with `#`".to_owned();
            self.passes(line.start, line.end(), &instead).then_some(Mistake { at: line.start, what, fix })
        })
    }

    /// The first line above for which something does not hold.
    pub(super) fn above_all(&self, line: Line<'t>, holds: impl Fn(&Line<'t>) -> bool) -> Option<Line<'t>> {
        std::iter::successors(line.above(self.text), |line| line.above(self.text)).take(MOST).find(|line| !holds(line))
    }

    pub(super) fn below(&self, line: Line<'t>) -> impl Iterator<Item = Line<'t>> {
        let text = self.text;
        let next = move |line: &Line<'t>| (line.end() < text.len()).then(|| Line::at(text, line.end() + 1));
        std::iter::successors(next(&line), next).take(MOST)
    }

    /// Whether reading gets past a part of the text when this stands in its place.
    pub(super) fn passes(&self, from: usize, to: usize, instead: &str) -> bool {
        let text = format!("{}{instead}{}", &self.text[..from], &self.text[to..]);
        let past = from + instead.len();
        match toml::de::DeTable::parse(&text) {
            Ok(_) => true,
            Err(error) => {
                error.span().is_some_and(|span| span.start > past && Line::at(&text, span.start).start > past)
            }
        }
    }
}

/// Lists that are longer are not looked through.
const MOST: usize = 100;
