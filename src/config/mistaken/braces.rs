//! Tables within braces on one line, written anew: `=` between a key and its value, commas between the two and the next.

/// A line `key = { … }` as it was meant, or nothing when that is not certain. What stands for each value is the caller's.
pub(super) fn rewritten(key: &str, value: &str, shown: impl Fn(&str) -> String) -> Option<String> {
    let mut rest = value.strip_prefix('{')?.trim().strip_suffix('}')?.trim();
    let mut pairs: Vec<String> = Vec::new();
    while !rest.is_empty() {
        let end = rest.find(['=', ':']).filter(|end| *end > 0)?;
        let name = rest[..end].trim();
        let bare = name.trim_matches(['"', '\'']);
        if bare.is_empty() || !bare.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c)) {
            return None;
        }
        let after = rest[end..].trim_start_matches(['=', ':']).trim_start();
        let length = value_length(after)?;
        pairs.push(format!("{name} = {}", shown(&after[..length])));
        rest = after[length..].trim_start_matches(|c: char| c.is_whitespace() || ",;".contains(c));
    }
    (!pairs.is_empty()).then(|| format!("{key} = {{ {} }}", pairs.join(", ")))
}

/// The bytes of the value that a text begins with: a text in quotes, a list or table in its brackets, or a word.
fn value_length(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    match first {
        '"' | '\'' => Some(text[1..].find(first)? + 2),
        '[' | '{' => {
            let close = if first == '[' { ']' } else { '}' };
            let end = text.find(close)?;
            // Nested ones are beyond what is certain.
            (!text[1..end].contains(first)).then_some(end + 1)
        }
        _ => {
            let end = text.find(|c: char| c.is_whitespace() || ",;}".contains(c)).unwrap_or(text.len());
            (end > 0).then_some(end)
        }
    }
}
