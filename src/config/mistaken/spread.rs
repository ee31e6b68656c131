//! Lists that lack their brackets, on one line or on several: as YAML has them, in parentheses, with the first item behind
//! the key or below it.
//!
//! All lines are told at once: whoever mends them one by one loses what stood on the others.

use super::{Line, Mistake, Trial, list, repair};

/// What is said of items without brackets and quotes.
pub(super) const BARE: &str = "a list stands in square brackets, and each of its texts in quotes";

/// The keys that want lists of texts.
const LISTS: [&str; 5] = ["dependencies", "secrets", "tools", "ignore", "pass_env"];

impl<'t> Trial<'t> {
    /// The list that reading stopped in, if it goes on below the line of its key.
    pub(super) fn spread(&self, stopped: Line<'t>) -> Option<Mistake> {
        let goes_on = |line: &Line<'_>| is_filling(line.text) || is_end(line.text) || items_of(line.text).is_some();
        let head = if head_of(stopped.text).is_some() { stopped } else { self.above_all(stopped, goes_on)? };
        let (key, first) = head_of(head.text)?;
        let mut items: Vec<String> = if first.is_empty() { Vec::new() } else { vec![items_of(first)?] };
        let (mut last, mut is_yaml, mut is_quoted) =
            (None, false, first.is_empty() || quoted(words_of(first)).is_some());
        for line in self.below(head).take_while(goes_on) {
            if is_filling(line.text) {
                continue;
            }
            last = Some(line);
            if is_end(line.text) {
                break;
            }
            is_yaml |= line.text.trim_start().starts_with("- ");
            is_quoted &= quoted(words_of(line.text)).is_some();
            items.push(items_of(line.text)?);
        }
        // Words without quotes below any other key may be something else.
        let is_certain = LISTS.contains(&key) || is_yaml || is_quoted;
        let last = last.filter(|_| is_certain && !items.is_empty())?;
        let instead = format!("{key} = [{}]", items.join(", "));
        let (from, to) = (self.source.line_at(head.start), self.source.line_at(last.start));
        let fix = format!("in the place of lines {from} to {to}, write exactly `{}`", self.shown(&instead));
        let what = match (is_yaml, is_quoted) {
            (true, _) => "a list is written as YAML has it",
            (_, true) => "a list stands in square brackets",
            _ => BARE,
        };
        let what = what.to_owned();
        self.passes(head.start, last.end(), &instead).then_some(Mistake { at: head.start, what, fix })
    }
}

/// The key of a list without brackets, and what stands behind it on its line.
fn head_of(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(['=', ':'])?;
    let (key, value) = (key.trim(), repair::without_comment(value).0.trim());
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    let is_sign = value.starts_with(['[', '{', '=']);
    (is_key && !is_sign).then(|| (key, value.trim_start_matches('(').trim()))
}

/// The words of an item's line, without what stands around them.
fn words_of(line: &str) -> &str {
    let words = repair::without_comment(line).0.trim();
    let words = words.strip_prefix("- ").unwrap_or(words).trim();
    // A version may stand in parentheses of its own.
    let words = if words.contains('(') { words } else { words.trim_end_matches([')', ',']) };
    words.trim_end_matches(',').trim_end()
}

/// The items of a line as TOML has them, if it certainly holds nothing else.
fn items_of(line: &str) -> Option<String> {
    let words = words_of(line);
    if let Some(item) = quoted(words) {
        return Some(item);
    }
    let is_requirement = |c: char| c.is_ascii_alphanumeric() || "._-[]<>=!~*+, \"'".contains(c);
    let begins_well = words.starts_with(|c: char| c.is_ascii_alphanumeric() || "\"'".contains(c));
    let is_setting = words.split_once('=').is_some_and(|(key, value)| {
        !value.starts_with('=') && !key.ends_with(['<', '>', '!', '~', '=']) && !key.contains(['"', '\''])
    });
    // Behind a blank within an item stands a comparison or its version; anything else is a sentence.
    let is_sentence = words.split(',').any(|item| {
        let bare = item.trim().replace(['<', '>', '=', '!', '~'], " ");
        bare.split_whitespace().skip(1).any(|word| !word.starts_with(|c: char| c.is_ascii_digit()))
    });
    if !begins_well || !words.chars().all(is_requirement) || is_setting || is_sentence {
        return None;
    }
    let whole = list::rewritten("_", &format!("[{words}]"))?;
    Some(whole.strip_prefix("_ = [")?.strip_suffix(']')?.to_owned()).filter(|items| !items.is_empty())
}

/// A text that stands in one pair of quotes, in those that TOML has for it.
fn quoted(words: &str) -> Option<String> {
    ['"', '\''].into_iter().find_map(|quote| {
        let inner = words.strip_prefix(quote)?.strip_suffix(quote)?;
        let is_one = !inner.is_empty() && !inner.contains(quote);
        is_one.then(|| if inner.contains(['"', '\\']) { format!("'{inner}'") } else { format!("\"{inner}\"") })
    })
}

fn is_filling(line: &str) -> bool {
    let words = line.trim();
    words.is_empty() || words.starts_with('#')
}

fn is_end(line: &str) -> bool {
    [")", "),", "]", "],"].contains(&repair::without_comment(line).0.trim())
}

/// A list that a key wants and that has no brackets: `dependencies = idna, six`.
pub(super) fn bare_list(key: &str, value: &str) -> Option<String> {
    let is_bare = !value.starts_with(['[', '(', '{']) && !value.ends_with(']');
    let is_list = LISTS.contains(&key) && is_bare && !value.contains([':', '#']) && !value.contains(" = ");
    is_list.then(|| list::rewritten(key, &format!("[{value}]"))).flatten()
}
