//! A first look at requirement strings, so that a slip is told with its line and the right words before uv is ever asked.
//! What is no slip for certain is left to uv.

use std::str::FromStr;

use pep440_rs::VersionSpecifiers;

use super::requirement::package_of;

/// What is wrong with a requirement, and what was meant if that is certain.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Slip {
    pub what: String,
    /// In the quotes of TOML.
    pub instead: Option<String>,
}

impl Slip {
    fn new(what: impl Into<String>, instead: Option<String>) -> Self {
        // A right word is told only if it is one.
        let instead = instead.filter(|text| in_dependency(text).is_none());
        Self { what: what.into(), instead: instead.map(|text| format!("\"{text}\"")) }
    }
}

/// What keeps a text from being a dependency.
pub(super) fn in_dependency(text: &str) -> Option<Slip> {
    let text = text.trim();
    let name = package_of(text);
    let rest = text[name.len()..].trim_start();
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let ends_well = name.ends_with(|c: char| c.is_ascii_alphanumeric());
    if !(begins_well && ends_well) {
        return Some(Slip::new("it does not begin with a package's name", None));
    }
    if let Some(place) = rest.strip_prefix('@') {
        let place = place.trim();
        let slip = || Slip::new("`@` is followed by an address, not by a version", Some(format!("{name}=={place}")));
        return is_version(place).then(slip);
    }
    let (extras, rest) = match rest.find(']') {
        _ if !rest.starts_with('[') => ("", rest),
        Some(end) => (&rest[..=end], rest[end + 1..].trim_start()),
        None => return Some(Slip::new("its `[` is never closed", Some(format!("{name}{rest}]")))),
    };
    if rest.starts_with('@') {
        return None;
    }
    let (versions, marker) = rest.split_once(';').map_or((rest, None), |(versions, marker)| (versions, Some(marker)));
    let versions = versions.trim();
    let slip =
        follows(text, name, versions).or_else(|| in_versions(versions)).or_else(|| in_marker(versions, marker?))?;
    let marker = marker.filter(|_| !slip.1.as_deref().unwrap_or_default().contains(';'));
    let marker = marker.map(|marker| format!("; {}", marker.trim())).unwrap_or_default();
    match slip {
        (what, Some(right)) if right.starts_with('"') => Some(Slip { what, instead: Some(right) }),
        (what, right) => Some(Slip::new(what, right.map(|right| format!("{name}{extras}{right}{marker}")))),
    }
}

/// A line of a table of packages, as other tools have it (`six = "^1.2"`), as a requirement in the quotes of TOML.
pub(super) fn of_table(name: &str, version: Option<&str>) -> String {
    let version = version.unwrap_or("*").trim();
    let text = match version {
        "*" | "latest" | "" => name.to_owned(),
        version => format!("{name}{version}"),
    };
    let bare = format!("{name}=={version}");
    match in_dependency(&text) {
        None if is_version(version) => format!("\"{bare}\""),
        None => format!("\"{text}\""),
        Some(Slip { instead, .. }) => instead.unwrap_or_else(|| format!("\"{name}\"")),
    }
}

/// What keeps a text from being a list of versions, for `requires-python`.
pub(super) fn in_python(text: &str) -> Option<Slip> {
    let text = text.trim();
    // A bare `3.11` or `=3.11` would be 3.11.0 alone.
    let exact = text.strip_prefix('=').filter(|rest| is_version(rest)).map(|rest| format!("=={rest}.*"));
    let bare = is_version(text).then(|| format!(">={text}"));
    let (what, right) = match exact.or(bare) {
        Some(right) => ("begin every clause with an operator".to_owned(), Some(right)),
        None => otherwise(text).map_or_else(|| in_versions(text), Some)?,
    };
    // Several versions that must all be the one are none.
    let is_possible = |right: &String| right.matches("==").count() < 2 && in_versions(right).is_none();
    let right = right.filter(is_possible);
    Some(Slip { what, instead: right.map(|right| format!("\"{right}\"")) })
}

/// Versions of Python as people write them elsewhere: `python>=3.10`, `3.10+`, `3.10 - 3.12`.
fn otherwise(text: &str) -> Option<Found> {
    if let Some(rest) = text.get(..6).filter(|word| word.eq_ignore_ascii_case("python")).map(|_| text[6..].trim()) {
        let right = if is_version(rest) { format!(">={rest}") } else { rest.to_owned() };
        return Some(("only versions stand there, without the word `python`".to_owned(), Some(right)));
    }
    if let Some(version) = text.strip_suffix('+').map(str::trim).filter(|version| is_version(version)) {
        return Some(("`+` is no comparison of versions".to_owned(), Some(format!(">={version}"))));
    }
    let clauses = text.split(" and ").map(str::trim).collect::<Vec<_>>().join(",");
    if clauses != text && in_versions(&clauses).is_none() {
        return Some(("between two conditions stands a comma".to_owned(), Some(clauses)));
    }
    let (from, to) = text.split_once('-').map(|(from, to)| (from.trim(), to.trim()))?;
    // Whoever says 3.12 means all of it.
    let (major, minor) = to.split_once('.')?;
    let after = format!("{major}.{}", minor.parse::<u32>().ok()?.checked_add(1)?);
    let what = "a range is written as two comparisons".to_owned();
    (is_version(from) && is_version(to)).then(|| (what, Some(format!(">={from},<{after}"))))
}

type Found = (String, Option<String>);

/// Something behind the name that is no comparison.
fn follows(text: &str, name: &str, versions: &str) -> Option<Found> {
    if versions.is_empty() || versions.starts_with(['<', '>', '=', '!', '~', '(']) {
        return None;
    }
    if let Some(rest) = text.strip_prefix("pip install ") {
        return Some(("`pip install` is no part of it".to_owned(), Some(format!("\"{}\"", rest.trim()))));
    }
    let version = versions.trim_start_matches([':', '^', '-', '@', '=']).trim();
    if is_version(version) {
        let right = if versions.starts_with('^') { format!(">={version}") } else { format!("=={version}") };
        return Some(("its version is not behind `==` or another comparison".to_owned(), Some(right)));
    }
    let pieces: Vec<&str> = text.split([',', ' ']).filter(|piece| !piece.is_empty()).collect();
    if pieces.len() > 1 && pieces[0] == name && pieces.iter().all(|piece| in_dependency(piece).is_none()) {
        let quoted: Vec<String> = pieces.iter().map(|piece| format!("\"{piece}\"")).collect();
        return Some(("each package has quotes of its own".to_owned(), Some(quoted.join(", "))));
    }
    let what = "a package's name is followed by something that is no version, extra, marker or URL";
    Some((what.to_owned(), None))
}

fn in_versions(text: &str) -> Option<Found> {
    let text = text.trim_start_matches('(').trim_end_matches(')').trim();
    let text = text.strip_suffix(',').unwrap_or(text);
    if text.is_empty() || VersionSpecifiers::from_str(text).is_ok() {
        return None;
    }
    let clauses = clauses(text);
    let mut what = None;
    let mut right: Vec<String> = Vec::new();
    for (operator, version) in &clauses {
        let (meant, better) = meant(operator, version);
        if operator.is_empty() {
            what.get_or_insert_with(|| format!("before `{version}` stands no comparison of versions"));
        } else if version.is_empty() {
            what.get_or_insert_with(|| format!("behind `{operator}` stands no version"));
        } else if meant != *operator {
            what.get_or_insert_with(|| format!("`{operator}` is no comparison of versions"));
        } else if better != *version {
            what.get_or_insert_with(|| format!("`{version}` is no version that `{operator}` takes"));
        } else if !is_version(better.trim_end_matches(".*")) {
            what.get_or_insert_with(|| format!("`{version}` is no version"));
        }
        right.push(format!("{meant}{better}"));
    }
    let what = what.unwrap_or_else(|| "between two conditions stands a comma, and after them nothing".to_owned());
    let right = right.join(",");
    Some((what, VersionSpecifiers::from_str(&right).is_ok().then_some(right)))
}

/// The comparisons of a text, wherever their commas are.
fn clauses(text: &str) -> Vec<(String, String)> {
    let is_operator = |c: char| "<>=!~^".contains(c);
    let mut found: Vec<(String, String)> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_operator(c)).unwrap_or(rest.len());
        let (operator, after) = rest.split_at(end);
        let end = after.find(|c| is_operator(c) || c == ',').unwrap_or(after.len());
        let version = after[..end].trim().trim_matches(['"', '\'']);
        match found.last_mut().filter(|(_, version)| version.is_empty()) {
            Some(last) => *last = (format!("{}{operator}", last.0), version.to_owned()),
            None => found.push((operator.to_owned(), version.to_owned())),
        }
        rest = after[end..].trim_start_matches([',', ' ']);
    }
    found
}

/// A comparison as it was most likely meant.
fn meant(operator: &str, version: &str) -> (String, String) {
    let operator = match operator {
        "=" | "" => "==",
        "=>" | "^" | "==^" | ">=^" | "==>" | "==>=" => ">=",
        "=<" => "<=",
        "~" | "==~" => "~=",
        "<>" | "!" | "!==" => "!=",
        other => other,
    };
    let stars = version.replace(".x", ".*").replace(".X", ".*");
    let version = match stars.strip_suffix(".*") {
        // `<=3.x` may mean 3 alone or all of it.
        Some(bare) if matches!(operator, ">=" | "<" | "~=") => bare.to_owned(),
        None if operator == "~=" && !stars.contains('.') => format!("{stars}.0"),
        _ => stars,
    };
    (operator.to_owned(), version)
}

fn is_version(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit()) && pep440_rs::Version::from_str(text).is_ok()
}

/// A version without quotes in a marker: `python_version >= 3.9`.
fn in_marker(versions: &str, marker: &str) -> Option<Found> {
    let at = marker.find(['<', '>', '='])?;
    let (before, rest) = marker.split_at(at);
    let end = rest.find(|c| !"<>=".contains(c))?;
    let (operator, value) = rest.split_at(end);
    let value = value.trim();
    let right = || format!("{versions}; {} {operator} '{value}'", before.trim_end_matches('!').trim());
    is_version(value).then(|| (format!("`{value}` stands in quotes there"), Some(right())))
}

#[cfg(test)]
mod tests {
    use super::{in_dependency, in_python};

    #[test]
    fn what_uv_takes_is_no_slip() {
        for text in [
            "httpx",
            "httpx[http2] >= 0.27",
            "httpx[http2,brotli]>=0.27,<1; python_version > '3.9' and sys_platform != 'win32'",
            "httpx @ https://x.y/z.whl",
            "httpx[http2] @ https://x.y/z.whl ; python_version >= '3.9'",
            "httpx @ ./x.whl",
            "markdown (>=3)",
            "markdown>3,<4,",
            "markdown==3.5.*",
            "markdown===3.5",
            "markdown==v3.5",
            "markdown>=3.5-beta",
            "markdown==1!3",
            "markdown[]",
        ] {
            assert_eq!(in_dependency(text), None, "{text}");
        }
        for text in [">=3.9", ">=3.9,<4", "~=3.11", "==3.12.*", ""] {
            assert_eq!(in_python(text), None, "{text}");
        }
    }

    #[test]
    fn nothing_is_told_of_words_that_are_not_there() {
        let what = |text: &str| in_dependency(text).unwrap().what;
        assert_eq!(what("six >= "), "behind `>=` stands no version");
        for text in ["six>=", "six>=1,<", "six==,>1", "six>=1,2"] {
            assert!(!what(text).contains("``"), "{text}: {}", what(text));
        }
        for (text, right, cause) in [
            ("python>=3.10", ">=3.10", "only versions stand there, without the word `python`"),
            ("Python 3.10", ">=3.10", "only versions stand there, without the word `python`"),
            ("3.10+", ">=3.10", "`+` is no comparison of versions"),
            ("3.10 - 3.12", ">=3.10,<3.13", "a range is written as two comparisons"),
            (">=3.10 <3.13", ">=3.10,<3.13", ""),
            (">=3.10 and <3.13", ">=3.10,<3.13", "between two conditions stands a comma"),
            ("3.10, 3.11", "", ""),
            ("3.10 or newer", "", ""),
            ("latest", "", ""),
        ] {
            let slip = in_python(text).unwrap();
            assert_eq!(
                slip.instead.unwrap_or_default(),
                if right.is_empty() { String::new() } else { format!("\"{right}\"") }
            );
            assert!(!slip.what.contains("``") && slip.what.contains(cause), "{text}: {}", slip.what);
        }
    }

    #[test]
    fn a_slip_is_told_with_what_was_meant() {
        for (text, right) in [
            ("markdown=3.5", "\"markdown==3.5\""),
            ("markdown = 3.5; sys_platform == 'linux'", "\"markdown==3.5; sys_platform == 'linux'\""),
            ("markdown[x]=>3.5", "\"markdown[x]>=3.5\""),
            ("markdown 3.5", "\"markdown==3.5\""),
            ("markdown@3.5", "\"markdown==3.5\""),
            ("markdown:3.5", "\"markdown==3.5\""),
            ("markdown^3.5", "\"markdown>=3.5\""),
            ("markdown~3", "\"markdown~=3.0\""),
            ("markdown==3.x", "\"markdown==3.*\""),
            ("markdown>=3.*", "\"markdown>=3\""),
            ("markdown>=3 <4", "\"markdown>=3,<4\""),
            ("markdown[extra", "\"markdown[extra]\""),
            ("markdown==3.5; python_version >= 3.9", "\"markdown==3.5; python_version >= '3.9'\""),
            ("markdown, rich>=3", "\"markdown\", \"rich>=3\""),
            ("pip install markdown", "\"markdown\""),
        ] {
            assert_eq!(in_dependency(text).unwrap().instead.as_deref(), Some(right), "{text}");
        }
        for text in ["", "-x", "markdown>=abc", "markdown<=3.x", "git+https://e.org/x", "markdown>="] {
            assert_eq!(in_dependency(text).unwrap().instead, None, "{text}");
        }
        for (text, right) in [("3.11", ">=3.11"), ("=3.11", "==3.11.*"), ("^3.11", ">=3.11"), (">=3.9 <4", ">=3.9,<4")]
        {
            assert_eq!(in_python(text).unwrap().instead, Some(format!("\"{right}\"")), "{text}");
        }
    }
}
