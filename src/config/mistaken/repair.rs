//! Right lines that a wrong one may have been meant to be. Each is tried before it is told.

use super::{braces, list, spread};

type Candidate = (&'static str, String);

/// What a line may have been meant to be, the likeliest first, each with what is wrong then.
pub(super) fn candidates(line: &str) -> Vec<Candidate> {
    let (words, comment) = without_comment(line);
    let indent = &words[..words.len() - words.trim_start().len()];
    let words = words.trim();
    let straight = words.replace(['“', '”', '„', '«', '»'], "\"").replace(['‘', '’'], "'");
    let mut found = of_words(&straight);
    if straight != words {
        found.insert(0, ("", straight));
        for (what, _) in &mut found {
            *what = "curly quotes are none to TOML";
        }
    }
    found.into_iter().map(|(what, line)| (what, format!("{indent}{line}{comment}"))).collect()
}

fn of_words(words: &str) -> Vec<Candidate> {
    let mut found = Vec::new();
    if (words.starts_with('[') || words.ends_with(']')) && !words.contains('=') && !words.contains(['"', '\'', ',']) {
        found.extend(head(words));
    }
    found.extend(extra_mark(words));
    if let Some((key, sign, value)) = setting(words) {
        let plain = format!("{key} = {value}");
        match sign {
            "=" => {}
            ":" => found.push(("a colon stands where TOML has `=`", plain.clone())),
            "" => found.push(("between the key and its value `=` is missing", plain.clone())),
            _ => found.push(("TOML has a single `=` between a key and its value", plain.clone())),
        }
        found.extend(spaced_key(key, value));
        found.extend(of_value(key, value));
    } else {
        found.extend(bare_comparison(words));
        found.extend(item(words));
    }
    found.extend(extra_bracket(words));
    found
}

/// A line's key, what stands between, and its value.
fn setting(words: &str) -> Option<(&str, &'static str, &str)> {
    let end = words.find(['=', ':', '"', '\'', '[', '{', '(', '>', '<', ','])?;
    let key = words[..end].trim();
    let rest = &words[end..];
    let is_key = key.chars().all(|c| c.is_alphanumeric() || "_-. ".contains(c));
    if !is_key || !key.starts_with(|c: char| c.is_alphabetic()) {
        return None;
    }
    let signs = ["===", "==", ":=", "=>", "=", ":"];
    let sign = signs.iter().find(|sign| rest.starts_with(**sign)).copied();
    // `httpx>=0.27` is no key and value; `requires-python ">=3.9"` is.
    let sign = sign.filter(|sign| *sign != "==" || words[..end].ends_with(' '));
    match sign {
        // An operator without quotes: `requires-python = >=3.11`.
        Some(sign) => Some((key, sign, rest[sign.len()..].trim())),
        None if rest.starts_with(['"', '\'', '[', '{']) && !words[..end].is_empty() && words[..end].ends_with(' ') => {
            Some((key, "", rest))
        }
        None => None,
    }
}

fn of_value(key: &str, value: &str) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    match value {
        "True" | "TRUE" => found.push(("TOML writes true and false in small letters", format!("{key} = true"))),
        "False" | "FALSE" => found.push(("TOML writes true and false in small letters", format!("{key} = false"))),
        "" | "None" | "null" | "nil" => return found,
        _ => {}
    }
    if let Some(line) = spread::bare_list(key, value) {
        found.push((spread::BARE, line));
    }
    if let Some((first, second)) = two_settings(value) {
        found.push(("two settings stand on one line", format!("{key} = {first}\n{second}")));
    }
    found.extend(with_real_comment(value).map(|value| ("a comment begins with `#`", format!("{key} = {value}"))));
    if value.contains("\";") {
        found.push(("a `;` stands where TOML has a comma", format!("{key} = {}", value.replace("\";", "\","))));
    }
    if value.starts_with(['[', '(', '{']) || value.ends_with(']') {
        let value = if value.starts_with(['[', '(', '{']) { value.to_owned() } else { format!("[{value}") };
        let what = if value.starts_with('[') {
            "a quote, a comma or a bracket of this list is not as it must be"
        } else {
            "a list stands in square brackets"
        };
        found.extend(list::rewritten(key, &value).map(|line| (what, line)));
        if value.starts_with('{') {
            let what = "within braces TOML has `key = value`, and commas between one and the next";
            found.extend(braces::rewritten(key, &value, str::to_owned).map(|line| (what, line)));
            found.push(("within braces TOML has `key = value`", format!("{key} = {}", value.replace("\": ", "\" = "))));
            found.push(("the braces are not closed", format!("{key} = {value} }}")));
        }
    }
    let digits: String = value.chars().filter(|c| !c.is_whitespace()).collect();
    if digits.chars().all(|c| c.is_ascii_digit()) {
        let number = digits.trim_start_matches('0');
        found.push(("TOML writes numbers without spaces and leading zeros", format!("{key} = {number}")));
    }
    found.extend(quoted(key, value));
    if value.contains('\\') && !value.contains('\'') {
        let what = "within double quotes `\\` begins a special character, within single quotes it is itself";
        found.push((what, format!("{key} = {}", value.replace('"', "'"))));
    }
    found
}

/// A line or value whose `//`, outside of quotes, begins a comment as it does in other languages.
pub(super) fn with_real_comment(words: &str) -> Option<String> {
    let mut quote = None;
    for (at, c) in words.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '#') => return None,
            (None, '/') if words[at..].starts_with("//") && words[..at].ends_with([' ', ',', '\t']) => {
                return Some(format!("{} #{}", words[..at].trim_end(), &words[at + 2..]));
            }
            _ => {}
        }
    }
    None
}

/// A value in the quotes that it lacks, or has but one of.
fn quoted(key: &str, value: &str) -> Option<Candidate> {
    let value = value.trim_end_matches(|c: char| ",;\\ ".contains(c));
    let bare = value.trim_matches(['"', '\'']).trim();
    let is_plain = !bare.contains(['"', '\'', '\\', '{', '}', '(', ')', '`']) && !bare.is_empty();
    let is_list = value.starts_with('[') || value.ends_with(']') && !bare.contains('[');
    let what = if value.starts_with(['"', '\'']) || value.ends_with(['"', '\'']) {
        "this text is not in one pair of quotes"
    } else {
        "a text without quotes"
    };
    (is_plain && !is_list).then(|| (what, format!("{key} = \"{bare}\"")))
}

/// `requires-python >= "3.10"`: the comparison belongs into the quotes.
fn bare_comparison(words: &str) -> Option<Candidate> {
    let (key, rest) = words.split_at(words.find(['<', '>', '~', '!', '='])?);
    let end = rest.find(|c| !"<>=~!".contains(c))?;
    let (operator, version) = rest.split_at(end);
    let version = version.trim().trim_matches(['"', '\'']);
    let is_version = version.starts_with(|c: char| c.is_ascii_digit()) && !version.contains(['"', '\'', ' ']);
    let line = format!("{} = \"{operator}{version}\"", key.trim());
    (key.trim() == "requires-python" && is_version).then_some(("the comparison stands within the quotes", line))
}

/// An item of a list of several lines.
fn item(words: &str) -> Option<Candidate> {
    let bare = words.trim_end_matches(',').trim().trim_matches(['"', '\'']);
    let is_plain = !bare.contains(['"', '\'', '\\', '{', '}', '(', ')']) && bare.split_whitespace().count() < 3;
    let what = "this item of the list is not in one pair of quotes";
    (is_plain && !bare.is_empty() && !bare.starts_with(['[', ']'])).then(|| (what, format!("\"{bare}\",")))
}

/// The head of a table with one bracket too few or too many.
fn head(words: &str) -> Vec<Candidate> {
    let name = words.trim_matches(|c: char| "[] ".contains(c));
    let what = "the brackets of this table do not match";
    let (single, double) = ((what, format!("[{name}]")), (what, format!("[[{name}]]")));
    if words.starts_with("[[") && !name.ends_with("hostler") { vec![double, single] } else { vec![single] }
}

/// What other languages end a line with.
fn extra_mark(words: &str) -> Option<Candidate> {
    let shorter = words.trim_end_matches(|c: char| ",;\\ ".contains(c));
    (shorter != words).then(|| ("nothing may follow a value", shorter.to_owned()))
}

fn extra_bracket(words: &str) -> Option<Candidate> {
    let shorter = words.strip_suffix([']', '}', ')'])?.trim_end();
    Some(("one closing bracket too many", shorter.to_owned()))
}

fn spaced_key(key: &str, value: &str) -> Option<Candidate> {
    let is_short = key.contains(' ') && key.split_whitespace().count() <= 3;
    is_short.then(|| {
        let joined = key.split_whitespace().collect::<Vec<_>>().join("_");
        ("a key has no spaces", format!("{joined} = {value}"))
    })
}

/// `1 b = 2` after `a = `.
fn two_settings(value: &str) -> Option<(&str, &str)> {
    let equals = value.match_indices(" = ").map(|(at, _)| at).last()?;
    let key = value[..equals].rfind(char::is_whitespace)?;
    Some((value[..key].trim_end_matches([',', ';', ' ']), value[key..].trim()))
}

/// A line's words and its comment, with what stands before it. Only ` #` after the last quote is certainly one.
pub(super) fn without_comment(line: &str) -> (&str, &str) {
    let after_quotes = line.rfind(['"', '\'']).unwrap_or(0);
    let comment = line[after_quotes..].find(" #").map_or(line.len(), |at| after_quotes + at);
    let end = line[..comment].trim_end().len();
    line.split_at(end)
}

/// What can be said of a line that no other line takes the place of.
pub(super) fn known(line: &str, margin: &str) -> Option<(String, String)> {
    let words = line.trim();
    let key = words.split(['=', ':']).next().unwrap_or(words).trim();
    let value =
        words.strip_prefix(key).map(|rest| rest.trim_start().trim_start_matches(['=', ':']).trim()).unwrap_or_default();
    if key.split_whitespace().count() > 3 || (key == words && key.contains(' ')) {
        let what = "this line is a sentence, not TOML".to_owned();
        let place = if margin.is_empty() { "" } else { ", or move it below the line that closes the header" };
        return Some((what, format!("write `{margin}# {words}`, which is a comment{place}")));
    }
    if matches!(value, "None" | "null" | "nil") {
        return Some((format!("TOML has no {value}"), format!("delete the line: without `{key}` its default holds")));
    }
    let is_key = key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    if value.is_empty() && !key.is_empty() && is_key {
        let fix = format!("write a value, like `{margin}{key} = {}`, or delete the line", example(key));
        return Some((format!("`{key}` has no value"), fix));
    }
    None
}

/// A value as a key is likely to want one.
fn example(key: &str) -> &'static str {
    match key {
        "dependencies" => "[\"httpx\"]",
        "requires-python" => "\">=3.11\"",
        "secrets" => "[\"API_KEY\"]",
        "tools" => "[\"tools\"]",
        key if key.ends_with("timeout") => "\"30s\"",
        "max_memory" => "\"512MB\"",
        "max_queue" => "10",
        "effects" => "\"pure\"",
        _ => "\"…\"",
    }
}
