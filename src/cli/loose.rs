//! What looks like JSON and is none, read as it was meant: bare words, single quotes, Python's names, a comma at the end.
//! Only to be shown: a call is never made with it.

use serde_json::{Map, Value};

/// Nobody types more levels by hand.
const DEEPEST: usize = 20;

/// A list or an object as it was meant, if nothing else can be meant. `texts`: whatever has no brackets is a text.
pub(super) fn meant(text: &str, texts: bool) -> Option<Value> {
    let mut loose = Loose { rest: text.trim(), texts };
    let value = loose.value(0).filter(|value| value.is_object() || value.is_array())?;
    loose.rest.trim().is_empty().then_some(value)
}

struct Loose<'t> {
    rest: &'t str,
    texts: bool,
}

impl Loose<'_> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEEPEST {
            return None;
        }
        if self.takes('[') {
            let mut items = Vec::new();
            while !self.takes(']') {
                items.push(self.value(depth + 1)?);
                self.ends_item(']')?;
            }
            return Some(Value::Array(items));
        }
        if self.takes('{') {
            let mut fields = Map::new();
            while !self.takes('}') {
                let name = self.word(&[':', '=', ',', '}'])?.0;
                (self.takes(':') || self.takes('=')).then_some(())?;
                fields.insert(name, self.value(depth + 1)?);
                self.ends_item('}')?;
            }
            return Some(Value::Object(fields));
        }
        let (word, is_quoted) = self.word(&[',', ']', '}'])?;
        Some(match word.as_str() {
            _ if is_quoted || self.texts => Value::String(word),
            "True" => true.into(),
            "False" => false.into(),
            "None" => Value::Null,
            _ => serde_json::from_str(&word).ok().filter(|value: &Value| !value.is_string()).unwrap_or(word.into()),
        })
    }

    /// A text in either quotes, or bare up to one of these marks.
    fn word(&mut self, ends: &[char]) -> Option<(String, bool)> {
        self.rest = self.rest.trim_start();
        if let Some(quote) = self.rest.chars().next().filter(|c| "\"'".contains(*c)) {
            let (word, rest) = self.rest[1..].split_once(quote)?;
            // What is escaped is beyond what is certain.
            self.rest = rest;
            return (!word.contains('\\')).then(|| (word.to_owned(), true));
        }
        let end = self.rest.find(ends)?;
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        let word = word.trim();
        let is_plain = !word.is_empty() && !word.contains(['"', '\'', '[', '{', '\\']);
        is_plain.then(|| (word.to_owned(), false))
    }

    fn ends_item(&mut self, end: char) -> Option<()> {
        (self.takes(',') || self.rest.trim_start().starts_with(end)).then_some(())
    }

    fn takes(&mut self, mark: char) -> bool {
        let rest = self.rest.trim_start().strip_prefix(mark);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::meant;

    #[test]
    fn what_is_meant_is_certain_or_nothing() {
        for (text, right) in [
            ("{a:1}", json!({"a": 1})),
            ("{'a': 'b c', d: True, e: None,}", json!({"a": "b c", "d": true, "e": null})),
            ("[a, b]", json!(["a", "b"])),
            ("['a', \"b\", 1.5, [c]]", json!(["a", "b", 1.5, ["c"]])),
            ("{a=1, \"b\": {c: x}}", json!({"a": 1, "b": {"c": "x"}})),
        ] {
            assert_eq!(meant(text, false), Some(right), "{text}");
        }
        assert_eq!(meant("[1, a, true]", true), Some(json!(["1", "a", "true"])));
        for text in ["", "a", "[a", "{a}", "{a, b}", "[a] b", "['it's']", "[a\"b]", "{:1}", "[,]", "['\\n']"] {
            assert_eq!(meant(text, false), None, "{text}");
        }
        let nested = |levels: usize| "[".repeat(levels) + "a" + &"]".repeat(levels);
        assert!(
            meant(&nested(20), false).is_some() && meant(&nested(22), false).is_none(),
            "deeper than anybody types"
        );
    }
}
