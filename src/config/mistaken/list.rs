//! Lists on one line, written anew: quotes, commas and brackets as TOML has them.

/// A line `key = [ … ]` as it was meant, or nothing when that is not certain.
pub(super) fn rewritten(key: &str, value: &str) -> Option<String> {
    let inside = value.trim_start_matches(['[', '(', '{']).trim_end_matches(|c: char| "]),} ".contains(c));
    let had_bracket = value.starts_with(['[', '(', '{']);
    // An extra's own bracket is not the list's.
    let inside = if inside.matches('[').count() > inside.matches(']').count() {
        value.get(1..=inside.len() + 1).unwrap_or(inside)
    } else {
        inside
    };
    let items = items(inside);
    let is_whole = |item: &String| !item.contains(['"', '\'', '\\', '{', '}']) && !item.contains(" = ");
    if !had_bracket || items.iter().any(|item| !is_whole(item)) {
        return None;
    }
    let quoted: Vec<String> = items.iter().map(|item| format!("\"{item}\"")).collect();
    Some(format!("{key} = [{}]", quoted.join(", ")))
}

/// What stands between quotes or commas.
fn items(inside: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for piece in inside.split(',').flat_map(|piece| piece.split("\" \"")).flat_map(|piece| piece.split("' '")) {
        let bare = piece.trim().trim_matches(['"', '\'']).trim();
        if bare.is_empty() {
            continue;
        }
        let goes_on = |before: &String| {
            let in_extras = before.matches('[').count() > before.matches(']').count();
            in_extras || bare.starts_with(['<', '>', '=', '!', '~'])
        };
        match found.last_mut().filter(|before| goes_on(before)) {
            Some(before) => *before = format!("{before},{bare}"),
            None => found.push(bare.to_owned()),
        }
    }
    found
}
