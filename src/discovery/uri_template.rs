//! Addresses of resources: a URI, or a template with `{name}` for one segment and `{+name}` for several.
//!
//! Values come from clients, and functions use them as names of files and records. So a value never holds a control character, a
//! `..` segment or, unless the template says `{+name}`, a slash, however they are written.

use percent_encoding::percent_decode_str;

use crate::config::origin::Diagnosis;

/// Longer addresses match no template.
const LONGEST: usize = 4096;

/// The scheme of hostler's own addresses.
pub const OWN_SCHEME: &str = "hostler";

/// A parsed address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Variable { name: String, has_slashes: bool },
}

/// What an address gives a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    /// The values of the variables.
    Values(Vec<(String, String)>),
    /// A value that is refused: the variable, and what is wrong.
    Refused(String, &'static str),
}

impl UriTemplate {
    /// Parses an address.
    pub fn parse(text: &str) -> Result<Self, Diagnosis> {
        let (scheme, rest) = text.split_once(':').unwrap_or(("", text));
        let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
        if !is_scheme || rest.is_empty() {
            return Err(Diagnosis::new(format!("`{text}` is not a URI"), "write one like \"notes://{id}\""));
        }
        if scheme.eq_ignore_ascii_case(OWN_SCHEME) {
            return Err(Diagnosis::new(format!("the scheme `{scheme}` is hostler's own"), "choose another"));
        }
        if text.contains(|c: char| c.is_control() || c.is_whitespace()) {
            return Err(Diagnosis::new("a URI holds no spaces or control characters", "write spaces as %20"));
        }
        let template = Self { parts: parts_of(text)? };
        template.distinct()?;
        Ok(template)
    }

    fn distinct(&self) -> Result<(), Diagnosis> {
        let names: Vec<&str> = self.names().collect();
        if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            return Err(Diagnosis::new(format!("`{{{}}}` occurs twice", twice.1), "give each a name of its own"));
        }
        let is_variable = |part: &Part| matches!(part, Part::Variable { .. });
        if self.parts.windows(2).any(|pair| pair.iter().all(is_variable)) {
            return Err(Diagnosis::new("two variables are adjacent", "write something between them, such as `/`"));
        }
        Ok(())
    }

    /// Its variables, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable { name, .. } => Some(name.as_str()),
            Part::Literal(_) => None,
        })
    }

    /// The values that an address gives the variables; `None` if it does not match. A variable ends where what follows it first
    /// occurs. What is behind a variable with slashes is taken from the end, so that it is as long as possible.
    pub fn matches(&self, uri: &str) -> Option<Match> {
        if uri.len() > LONGEST {
            return None;
        }
        let widest = self.parts.iter().position(|part| matches!(part, Part::Variable { has_slashes: true, .. }));
        let last = || self.parts.iter().rposition(|part| matches!(part, Part::Variable { .. }));
        let Some(middle) = widest.or_else(last) else {
            let is_same = matches!(&self.parts[..], [Part::Literal(literal)] if literal == uri);
            return is_same.then(|| Match::Values(Vec::new()));
        };
        let (mut rest, mut values) = (uri, Vec::new());
        let mut before = self.parts[..middle].iter();
        while let Some(part) = before.next() {
            match (part, before.as_slice().first()) {
                (Part::Literal(literal), _) => rest = rest.strip_prefix(literal.as_str())?,
                (variable, Some(Part::Literal(next))) => {
                    let (value, left) = rest.split_at(rest.find(next.as_str())?);
                    values.push(written(variable, value)?);
                    rest = left;
                }
                _ => return None,
            }
        }
        let mut behind = self.parts[middle + 1..].iter();
        let mut ends = Vec::new();
        while let Some(part) = behind.next_back() {
            match (part, behind.as_slice().last()) {
                (Part::Literal(literal), _) => rest = rest.strip_suffix(literal.as_str())?,
                (variable, Some(Part::Literal(previous))) => {
                    let (left, value) = rest.split_at(rest.rfind(previous.as_str())? + previous.len());
                    ends.push(written(variable, value)?);
                    rest = left;
                }
                _ => return None,
            }
        }
        values.push(written(&self.parts[middle], rest)?);
        values.extend(ends.into_iter().rev());
        Some(decoded(values))
    }
}

/// A value as it is written: its variable, whether it may have slashes, the text.
type Written<'a> = ((&'a str, bool), &'a str);

/// The value of a variable. It is never empty, and has a `/`, `?` or `#` of the address's own only where it may have slashes.
fn written<'a>(variable: &'a Part, value: &'a str) -> Option<Written<'a>> {
    let Part::Variable { name, has_slashes } = variable else { return None };
    let is_one_segment = !value.contains(['/', '?', '#']);
    (!value.is_empty() && (*has_slashes || is_one_segment)).then_some(((name.as_str(), *has_slashes), value))
}

fn decoded(values: Vec<Written<'_>>) -> Match {
    let mut done = Vec::new();
    for ((name, has_slashes), written) in values {
        let text = percent_decode_str(written).decode_utf8();
        match text.map_err(|_| "it is not UTF-8").and_then(|text| checked(&text, has_slashes).map(|()| text)) {
            Ok(text) => done.push((name.to_owned(), text.into_owned())),
            Err(wrong) => return Match::Refused(name.to_owned(), wrong),
        }
    }
    Match::Values(done)
}

/// Whether a value can be passed to a function.
fn checked(value: &str, has_slashes: bool) -> Result<(), &'static str> {
    let is_slash = |c: char| c == '/' || c == '\\';
    if value.contains(char::is_control) {
        return Err("it holds a control character");
    }
    if value.split(is_slash).any(|segment| segment == "..") {
        return Err("it holds `..`, which leads out of a folder");
    }
    if !has_slashes && value.contains(is_slash) {
        return Err("it holds a slash, and the address has room for one segment");
    }
    if value.starts_with(is_slash) {
        return Err("it begins with a slash, as a path from the root does");
    }
    Ok(())
}

fn parts_of(text: &str) -> Result<Vec<Part>, Diagnosis> {
    let unclosed = || Diagnosis::new(format!("`{text}` has a brace without its other half"), "write `{name}`");
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some(open) = rest.find(['{', '}']) {
        let (before, from_brace) = rest.split_at(open);
        let inside = from_brace.strip_prefix('{').ok_or_else(unclosed)?;
        let (variable, after) = inside.split_once('}').ok_or_else(unclosed)?;
        parts.extend((!before.is_empty()).then(|| Part::Literal(before.to_owned())));
        parts.push(variable_of(variable)?);
        rest = after;
    }
    parts.extend((!rest.is_empty()).then(|| Part::Literal(rest.to_owned())));
    Ok(parts)
}

/// `{name}`, `{+name}`, or as FastMCP writes the latter, `{name*}`.
fn variable_of(text: &str) -> Result<Part, Diagnosis> {
    let plain = text.strip_prefix('+').or_else(|| text.strip_suffix('*'));
    let (name, has_slashes) = (plain.unwrap_or(text), plain.is_some());
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name {
        let fix = "write `{name}` for one segment, or `{+name}` for several";
        return Err(Diagnosis::new(format!("`{{{text}}}` is not a variable"), fix));
    }
    Ok(Part::Variable { name: name.to_owned(), has_slashes })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matched(template: &str, uri: &str) -> Option<Match> {
        UriTemplate::parse(template).unwrap().matches(uri)
    }

    fn values(pairs: &[(&str, &str)]) -> Match {
        Match::Values(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn variables_take_what_stands_in_their_place() {
        for (template, uri, expected) in [
            ("notes://all", "notes://all", Some(values(&[]))),
            ("notes://all", "notes://al", None),
            ("notes://{id}", "notes://7", Some(values(&[("id", "7")]))),
            ("notes://{id}", "notes://a%20b", Some(values(&[("id", "a b")]))),
            ("notes://{id}", "notes://", None),
            ("notes://{id}", "notes://a/b", None),
            ("notes://{id}", "notes://a?b", None),
            ("notes://{id}/text", "notes://a/text", Some(values(&[("id", "a")]))),
            ("notes://{id}/text", "notes://a/other", None),
            ("r://{owner}/{name}", "r://a/b", Some(values(&[("owner", "a"), ("name", "b")]))),
            ("r://{owner}/{name}.md", "r://a/b.c.md", Some(values(&[("owner", "a"), ("name", "b.c")]))),
            ("docs://{+path}", "docs://a/b.md", Some(values(&[("path", "a/b.md")]))),
            ("docs://{path*}", "docs://a/b.md", Some(values(&[("path", "a/b.md")]))),
            ("docs://{+path}/info", "docs://a/info/info", Some(values(&[("path", "a/info")]))),
            ("p://{+path}/{name}", "p://a/b/c", Some(values(&[("path", "a/b"), ("name", "c")]))),
            ("p://{+path}/{name}", "p://c", None),
            (
                "p://{+path}/{name}.{kind}",
                "p://a.b/c.d/e.f",
                Some(values(&[("path", "a.b/c.d"), ("name", "e"), ("kind", "f")])),
            ),
            (
                "p://{host}/{+path}/x/{+rest}",
                "p://h/a/x/b/x/c",
                Some(values(&[("host", "h"), ("path", "a/x/b"), ("rest", "c")])),
            ),
            ("p://{+path}/", "p://a/b/", Some(values(&[("path", "a/b")]))),
        ] {
            assert_eq!(matched(template, uri), expected, "{template} {uri}");
        }
        assert_eq!(matched("notes://{+id}", &format!("notes://{}", "a".repeat(LONGEST))), None);
    }

    #[test]
    fn a_value_leads_nowhere_else() {
        for (template, uri) in [
            ("notes://{id}", "notes://.."),
            ("notes://{id}", "notes://%2e%2e"),
            ("notes://{id}", "notes://a%2Fb"),
            ("notes://{id}", "notes://a%5Cb"),
            ("notes://{id}", "notes://a%00"),
            ("notes://{id}", "notes://a%0Ab"),
            ("notes://{id}", "notes://%ff"),
            ("docs://{+path}", "docs://a/../b"),
            ("docs://{+path}", "docs://%2Fetc/passwd"),
            ("docs://{+path}", "docs:///etc/passwd"),
            ("docs://{+path}", "docs://a%5C..%5Cb"),
            ("docs://{+path}", "docs://a/%2E%2E"),
        ] {
            assert!(matches!(matched(template, uri), Some(Match::Refused(..))), "{template} {uri}");
        }
    }

    #[test]
    fn a_wrong_template_says_what_is_wrong() {
        for text in [
            "",
            "notes",
            "notes:",
            "1a://b",
            "hostler://x",
            "a://b c",
            "a://{",
            "a://}",
            "a://{1}",
            "a://{?q}",
            "a://{x}{y}",
            "a://{x}/{x}",
            "a://\n",
        ] {
            assert!(UriTemplate::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_address_passes_a_value_that_leads_elsewhere(uri in "a://(\\.|/|%2[eEfF]|%5[cC]|%0[0-9a-f]|[a-c]){0,12}") {
            for template in ["a://{x}", "a://{+x}", "a://{x}/{+y}", "a://{+x}/{y}"] {
                if let Some(Match::Values(values)) = matched(template, &uri) {
                    for (_, value) in values {
                        prop_assert!(!value.is_empty() && !value.starts_with('/'));
                        prop_assert!(!value.split(['/', '\\']).any(|segment| segment == ".."));
                        prop_assert!(!value.contains(char::is_control));
                    }
                }
            }
        }
    }
}
