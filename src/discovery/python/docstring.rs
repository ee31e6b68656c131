//! The parts of a docstring: summary, description, and a text for each parameter (the styles of Google, `NumPy` and reST).

use std::collections::HashMap;

/// The parts of a docstring.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Docstring {
    /// The first paragraph, on one line.
    pub(super) summary: Option<String>,
    /// Everything but the sections about arguments, results or errors.
    pub(super) description: Option<String>,
    /// A text for each parameter (or attribute of a class), by name.
    pub(super) parameters: HashMap<String, String>,
    /// A text for what is returned.
    pub(super) returns: Option<String>,
}

/// The topic of a section.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Topic {
    Parameters,
    Returns,
    Other,
}

impl Docstring {
    pub(super) fn parse(text: &str) -> Self {
        let lines = clean(text);
        let mut docs = Self::default();
        let mut body = Body::default();
        let mut at = 0;
        while at < lines.len() {
            let found = section(&lines, at);
            if let Some(end) = example_end(&lines, at).filter(|_| found.is_none()) {
                lines[at..end].iter().for_each(|line| body.add(line));
                at = end;
            } else if let Some((topic, style, first)) = found {
                body.end_part();
                let end = section_end(&lines, first, indent(lines[at]), style);
                match topic {
                    Topic::Parameters => docs.entries(&lines[first..end], style),
                    Topic::Returns => docs.returned(&lines[first..end], style),
                    Topic::Other => {}
                }
                at = end.max(at + 1);
            } else if let Some(field) = Field::read(lines[at]) {
                body.end_part();
                let end = field_end(&lines, at);
                docs.field(&field, &lines[at + 1..end]);
                at = end;
            } else {
                body.add(lines[at]);
                at += 1;
            }
        }
        docs.summary = not_empty(body.summary());
        docs.description = not_empty(body.lines.join("\n").trim().to_owned());
        docs
    }

    /// The entries of a section: `name (type): text` or `name : type`, each with the deeper lines below it.
    fn entries(&mut self, lines: &[&str], style: Style) {
        let Some(base) = lines.iter().find(|line| !line.is_empty()).map(|line| indent(line)) else { return };
        let mut names: Vec<String> = Vec::new();
        let mut text: Vec<&str> = Vec::new();
        for line in lines.iter().filter(|line| !line.is_empty()) {
            let entry = if indent(line) == base { style.entry(line.trim()) } else { None };
            if let Some((new_names, first)) = entry {
                self.describe(&names, &text);
                names = new_names;
                text = vec![first];
            } else {
                text.push(line.trim());
            }
        }
        self.describe(&names, &text);
    }

    /// A text, or `type: text`. With an underlined heading the type is on a line of its own.
    fn returned(&mut self, lines: &[&str], style: Style) {
        let base = lines.iter().find(|line| !line.is_empty()).map_or(0, |line| indent(line));
        let is_text = |line: &&&str| !line.is_empty() && (style != Style::Numpy || indent(line) > base);
        let text = joined(lines.iter().filter(is_text).copied());
        let untyped = match text.split_once(": ") {
            Some((kind, rest)) if style != Style::Numpy && is_type(kind) => rest.to_owned(),
            _ => text,
        };
        self.returns = not_empty(untyped);
    }

    fn field(&mut self, field: &Field<'_>, more: &[&str]) {
        let lines: Vec<&str> = std::iter::once(field.text).chain(more.iter().map(|line| line.trim())).collect();
        match field.topic {
            Topic::Parameters => self.describe(&[field.name.to_owned()], &lines),
            Topic::Returns => self.returns = not_empty(joined(lines.into_iter())),
            Topic::Other => {}
        }
    }

    fn describe(&mut self, names: &[String], lines: &[&str]) {
        let text = joined(lines.iter().copied().filter(|line| !line.is_empty()));
        if text.is_empty() {
            return;
        }
        for name in names {
            self.parameters.insert(name.trim_start_matches('*').to_owned(), text.clone());
        }
    }
}

/// What is in no section: the lines before the first one, and those after each.
#[derive(Default)]
struct Body<'l> {
    lines: Vec<&'l str>,
    /// How many lines the first part has, once it has ended.
    first: Option<usize>,
}

impl<'l> Body<'l> {
    fn add(&mut self, line: &'l str) {
        let is_apart = self.lines.last().is_none_or(|last| last.is_empty());
        if self.first.is_none() || !line.is_empty() || !is_apart {
            self.lines.push(line);
        }
    }

    /// A section begins. What follows it is apart.
    fn end_part(&mut self) {
        self.first.get_or_insert(self.lines.len());
        self.add("");
    }

    /// The first paragraph of the first part.
    fn summary(&self) -> String {
        let first = self.lines[..self.first.unwrap_or(self.lines.len())].iter().copied();
        joined(first.skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty()))
    }
}

/// The end of an example that begins here: a code fence with its end, or what is indented below `::`. It is text, whatever it looks like.
fn example_end(lines: &[&str], at: usize) -> Option<usize> {
    let (line, rest) = (lines[at].trim_start(), &lines[at + 1..]);
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'));
    let length = mark.map_or(0, |mark| line.chars().take_while(|it| *it == mark).count());
    if let Some(mark) = mark.filter(|_| length >= 3) {
        // Code within a line, or what underlines a heading.
        let is_none = line[length..].contains(mark) || mark == '~' && at > 0 && !lines[at - 1].is_empty();
        let is_end = |line: &&str| line.trim().len() >= length && line.trim().chars().all(|it| it == mark);
        return rest.iter().position(is_end).filter(|_| !is_none).map(|length| at + length + 2);
    }
    let is_below = |line: &&str| line.is_empty() || indent(line) > indent(lines[at]);
    line.ends_with("::").then(|| at + 1 + rest.iter().take_while(|line| is_below(line)).count())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Google,
    /// A list below the heading, without deeper indentation.
    Bullets,
    Numpy,
}

impl Style {
    fn entry(self, line: &str) -> Option<(Vec<String>, &str)> {
        let (names, text) = match self {
            Self::Google | Self::Bullets => google_entry(without_bullet(line))?,
            Self::Numpy => (line.split_once(':').map_or(line, |(names, _)| names), ""),
        };
        let names: Vec<&str> = names.split(',').map(str::trim).collect();
        let are_names = names.iter().all(|name| is_name(name));
        are_names.then(|| (names.into_iter().map(str::to_owned).collect(), text))
    }
}

/// `- name: text`
fn without_bullet(line: &str) -> &str {
    BULLETS.iter().find_map(|bullet| line.strip_prefix(bullet)).unwrap_or(line)
}

fn is_item(line: &str) -> bool {
    without_bullet(line.trim_start()) != line.trim_start()
}

const BULLETS: [&str; 3] = ["- ", "* ", "\u{2022} "];

/// `name: text`, `name (type, optional): text`, `name -- text`.
fn google_entry(line: &str) -> Option<(&str, &str)> {
    let dashed = [" -- ", " - "].iter().find_map(|dash| line.split_once(dash));
    if let Some((name, text)) = dashed.filter(|(name, _)| is_name(name)) {
        return Some((name, text.trim()));
    }
    let end = line.find([':', '('])?;
    let (names, rest) = line.split_at(end);
    if let Some(text) = rest.strip_prefix(':') {
        return Some((names.trim(), text.trim()));
    }
    let mut open = 0_usize;
    let close = rest.find(|c| {
        match c {
            '(' => open += 1,
            ')' => open = open.saturating_sub(1),
            _ => {}
        }
        open == 0
    })?;
    let text = rest[close + 1..].trim_start().strip_prefix(':')?;
    Some((names.trim(), text.trim()))
}

fn is_name(name: &str) -> bool {
    let name = name.trim_start_matches('*');
    !name.is_empty() && !name.starts_with(char::is_numeric) && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Whether words before the text are a type: `int`, `list[str]`, `dict of int`. A sentence begins with a capital and has
/// more words than the name of a class.
fn is_type(words: &str) -> bool {
    let outer = words.split('[').next().unwrap_or_default();
    let is_short = outer.split(' ').count() <= 3;
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '|' | ' ');
    is_short && outer.chars().all(is_word) && (!words.starts_with(char::is_uppercase) || !outer.contains(' '))
}

/// The section that begins on a line: its topic, style, and the line of its first entry.
fn section(lines: &[&str], at: usize) -> Option<(Topic, Style, usize)> {
    let line = lines[at].trim();
    let underline = lines.get(at + 1).map(|next| next.trim()).unwrap_or_default();
    if underline.len() >= 3 && underline.bytes().all(|byte| byte == b'-') {
        return topic(line).map(|topic| (topic, Style::Numpy, at + 2));
    }
    // Deeper lines follow a heading of this style, but not "Returns:" in running text.
    let heading = line.strip_suffix(':')?;
    let below = lines[at + 1..].iter().find(|next| !next.is_empty())?;
    let owns_lines = indent(below) > indent(lines[at]);
    let is_list = lines.get(at + 1).is_some_and(|next| indent(next) == indent(lines[at]) && is_item(next));
    let style = match (owns_lines, is_list) {
        (true, _) => Style::Google,
        (false, true) => Style::Bullets,
        _ => return None,
    };
    topic(heading).map(|topic| (topic, style, at + 1))
}

fn topic(heading: &str) -> Option<Topic> {
    Some(match heading.to_ascii_lowercase().as_str() {
        "args" | "arguments" | "parameters" | "params" | "keyword args" | "keyword arguments" | "other parameters"
        | "attributes" => Topic::Parameters,
        "returns" | "return" | "yields" | "yield" => Topic::Returns,
        "raises" | "raise" | "warns" | "except" | "exceptions" => Topic::Other,
        _ => return None,
    })
}

fn section_end(lines: &[&str], first: usize, heading_indent: usize, style: Style) -> usize {
    let ends = |at: usize| match style {
        Style::Google => !lines[at].is_empty() && indent(lines[at]) <= heading_indent,
        Style::Bullets => lines[at].is_empty() || indent(lines[at]) <= heading_indent && !is_item(lines[at]),
        Style::Numpy => is_underlined(lines, at),
    };
    (first..lines.len()).find(|at| ends(*at)).unwrap_or(lines.len())
}

fn is_underlined(lines: &[&str], at: usize) -> bool {
    let underline = lines.get(at + 1).map(|next| next.trim()).unwrap_or_default();
    !lines[at].is_empty() && underline.len() >= 3 && underline.bytes().all(|byte| byte == b'-')
}

/// `:param int count: text`, or `@param count: text`.
struct Field<'l> {
    topic: Topic,
    name: &'l str,
    text: &'l str,
}

impl<'l> Field<'l> {
    fn read(line: &'l str) -> Option<Self> {
        let (head, text) = line.trim().strip_prefix([':', '@'])?.split_once(':')?;
        let mut words = head.split_whitespace();
        let topic = match words.next()? {
            "param" | "parameter" | "arg" | "argument" | "key" | "keyword" => Topic::Parameters,
            "return" | "returns" | "yields" => Topic::Returns,
            "type" | "rtype" | "raise" | "raises" | "except" | "exception" | "ytype" => Topic::Other,
            _ => return None,
        };
        Some(Self { topic, name: words.last().unwrap_or_default(), text: text.trim() })
    }
}

/// The text of a field ends at the next field or an empty line.
fn field_end(lines: &[&str], at: usize) -> usize {
    let ends = |next: &usize| lines[*next].is_empty() || Field::read(lines[*next]).is_some();
    (at + 1..lines.len()).find(ends).unwrap_or(lines.len())
}

/// The lines of a docstring without their common indentation, as `inspect.cleandoc` does it.
fn clean(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let common = lines.iter().skip(1).filter(|line| !line.is_empty()).map(|line| indent(line)).min().unwrap_or(0);
    for (index, line) in lines.iter_mut().enumerate() {
        *line = if index == 0 { line.trim_start() } else { line.get(common..).unwrap_or_else(|| line.trim_start()) };
    }
    lines
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Wrapped lines as one; the items of a list keep their lines.
fn joined<'l>(lines: impl Iterator<Item = &'l str>) -> String {
    let mut text = String::new();
    for line in lines {
        if !text.is_empty() {
            let is_item = line.trim_start().starts_with(['-', '*', '•']);
            text.push(if is_item { '\n' } else { ' ' });
        }
        text.push_str(line.trim());
    }
    text
}

fn not_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests;
