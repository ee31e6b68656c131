//! Rules about results: how large one may be, and what is taken out of it.

use std::borrow::Cow;

use regex::Regex;

use super::decide::Because;
use super::rules::Rule;
use crate::config::declared_policy::DeclaredPolicy;
use crate::config::rules::redactions;

/// What stands for a text that was taken out.
const REDACTED: &str = "[redacted]";

/// The rules about a tool's results.
#[derive(Debug, Clone, Default)]
pub struct ResultRules {
    /// In bytes.
    max: Option<Rule<u64>>,
    patterns: Vec<Regex>,
}

impl ResultRules {
    /// Those of a policy.
    pub(super) fn of(policy: &DeclaredPolicy) -> Self {
        let max = Rule::of(policy.max_result_mb.as_ref(), |setting| (setting.value as u64).saturating_mul(1 << 20));
        // The configuration has compiled them once to check them.
        let patterns = policy.redact.iter().flat_map(|setting| redactions(&setting.value).unwrap_or_default());
        Self { max, patterns: patterns.collect() }
    }

    /// Whether there are some.
    pub fn are_any(&self) -> bool {
        self.max.is_some() || !self.patterns.is_empty()
    }

    /// Whether something is taken out of texts.
    pub fn redact(&self) -> bool {
        !self.patterns.is_empty()
    }

    /// Why a result of this length is not passed on.
    pub fn judge(&self, bytes: usize) -> Option<Because> {
        let rule = self.max.as_ref().filter(|rule| bytes as u64 > rule.value)?;
        let most = rule.value >> 20;
        let reason = format!("its result has {} MB, and at most {most} MB are allowed", bytes.div_ceil(1 << 20));
        Some(Because { key: "max_result_mb", origin: rule.origin.clone(), reason })
    }

    /// A text without what matches a pattern.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.patterns.iter().fold(Cow::Borrowed(text), |text, pattern| match pattern.replace_all(&text, REDACTED) {
            Cow::Borrowed(_) => text,
            Cow::Owned(clean) => Cow::Owned(clean),
        })
    }

    /// JSON without what matches in a string, in a name of a member, or in a number, which becomes a string then. `None` if nothing
    /// matches. All else stays as it is written.
    pub fn json(&self, json: &str) -> Option<String> {
        let (mut clean, mut copied, mut at) = (String::new(), 0, 0);
        let bytes = json.as_bytes();
        while let Some(&byte) = bytes.get(at) {
            let end = match byte {
                b'"' => end_of_string(bytes, at),
                b'-' | b'0'..=b'9' => end_of_number(bytes, at),
                _ => {
                    at += 1;
                    continue;
                }
            };
            let token = &json[at..end];
            if let Some(other) = self.token(token) {
                clean.push_str(&json[copied..at]);
                clean.push_str(&other);
                copied = end;
            }
            at = end;
        }
        (copied > 0).then(|| clean + &json[copied..])
    }

    fn token(&self, token: &str) -> Option<String> {
        let text = if token.starts_with('"') { serde_json::from_str::<String>(token).ok()? } else { token.to_owned() };
        match self.text(&text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(clean) => serde_json::to_string(&clean).ok(),
        }
    }
}

/// Behind the quotation mark that ends it.
fn end_of_string(bytes: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn end_of_number(bytes: &[u8], begin: usize) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    bytes[begin..].iter().position(|byte| !is_part(byte)).map_or(bytes.len(), |length| begin + length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
    use serde_json::Value;

    use super::*;
    use crate::config::origin::{Origin, Setting};

    fn rules(patterns: &[&str]) -> ResultRules {
        let value = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
        let policy =
            DeclaredPolicy { redact: vec![Setting { value, origin: Origin::Default }], ..DeclaredPolicy::default() };
        ResultRules::of(&policy)
    }

    #[test]
    fn what_matches_is_taken_out_of_strings_names_and_numbers_alone() {
        let rules = rules(&[r"\b\d{4}-\d{4}\b", "^4711$", "ä+"]);
        let json = r#"{ "a": "no 1234-5678 here\n", "1234-5678": [4711, 47110, 12345678901234567890123, -1.50e+3],"ü\u00e4" :true}"#;
        let clean = r#"{ "a": "no [redacted] here\n", "[redacted]": ["[redacted]", 47110, 12345678901234567890123, -1.50e+3],"ü[redacted]" :true}"#;
        assert_eq!(rules.json(json).as_deref(), Some(clean));
        assert_eq!(rules.json("[1, \"1234\", null]"), None);
        assert_eq!(rules.text("x 1234-5678"), "x [redacted]");
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
            Just(Value::Null)
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((".*", inner), 0..4).prop_map(|all| Value::Object(all.into_iter().collect())),
            ]
        })
    }

    /// Fails if a digit is left.
    fn check(value: &Value) {
        let matches = |text: &str| text.replace(REDACTED, "").contains(|c: char| c.is_ascii_hexdigit());
        match value {
            Value::String(text) => assert!(!matches(text), "{text}"),
            Value::Number(number) => panic!("{number}"),
            Value::Array(items) => items.iter().for_each(check),
            Value::Object(members) => members.iter().for_each(|(name, member)| {
                assert!(!matches(name), "{name}");
                check(member);
            }),
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn json_stays_json_and_has_no_match_in_it(value in value()) {
            let rules = rules(&["[0-9a-fA-F]"]);
            let text = value.to_string();
            let clean = rules.json(&text);
            let read: Value = serde_json::from_str(clean.as_deref().unwrap_or(&text)).unwrap();
            check(&read);
        }
    }
}
