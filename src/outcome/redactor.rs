//! Redacts secrets from faults, output and logs. A tool's result is not changed.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};
use serde_json::{Map, Value};

use super::Fault;

/// Shorter secrets would match ordinary words.
const SHORTEST: usize = 4;
/// Shorter base64 would match by chance.
const SHORTEST_BASE64: usize = 8;

/// Finds a tool's secrets in every likely form.
#[derive(Debug)]
pub struct Redactor {
    /// The secrets' names and values.
    secrets: Vec<(String, String)>,
    forms: AhoCorasick,
    patterns: Vec<String>,
    marks: Vec<String>,
    /// What a call's own secrets are, if others were learned besides.
    own: Option<Arc<Redactor>>,
}

/// Secrets that came with the results of inner calls, and what finds them together with a call's own.
///
/// Secrets may change with every call, as tokens do: only the newest are kept.
#[derive(Debug, Default)]
pub struct Learned {
    /// Names and values, oldest first.
    secrets: VecDeque<(String, String)>,
    /// What finds these alone.
    redactor: Option<Arc<Redactor>>,
    /// The last combination, and whose own secrets are in it.
    combined: Option<(Arc<Redactor>, Arc<Redactor>)>,
}

/// The values that are kept of one name: a secret that changes is likely to appear soon or never.
const VALUES: usize = 4;
/// The learned secrets that are kept.
const LEARNED: usize = 64;
/// The bytes that they may have.
const LEARNED_BYTES: usize = 64 << 10;

impl Learned {
    /// Learns further secrets.
    pub fn add(&mut self, secrets: &Redactor) {
        let known = self.secrets.len();
        for secret in &secrets.secrets {
            if !self.secrets.contains(secret) {
                self.secrets.push_back(secret.clone());
            }
        }
        if self.secrets.len() == known {
            return;
        }
        for (name, _) in &secrets.secrets {
            while self.secrets.iter().filter(|(other, _)| other == name).count() > VALUES
                && let Some(oldest) = self.secrets.iter().position(|(other, _)| other == name)
            {
                self.secrets.remove(oldest);
            }
        }
        let bytes = |secrets: &VecDeque<(String, String)>| secrets.iter().map(|(_, value)| value.len()).sum::<usize>();
        while self.secrets.len() > LEARNED || self.secrets.len() > 1 && bytes(&self.secrets) > LEARNED_BYTES {
            self.secrets.pop_front();
        }
        (self.redactor, self.combined) = (Redactor::finding(self.secrets.iter().cloned().collect(), None), None);
    }

    /// A call's own secrets together with the learned ones.
    pub fn with(&mut self, given: Option<Arc<Redactor>>) -> Option<Arc<Redactor>> {
        let Some(learned) = &self.redactor else { return given };
        let Some(given) = given else { return Some(Arc::clone(learned)) };
        // What was learned before and has been forgotten does not stay.
        let own = given.own.as_ref().unwrap_or(&given);
        if let Some((of, both)) = &self.combined
            && Arc::ptr_eq(of, own)
        {
            return Some(Arc::clone(both));
        }
        let news = learned.secrets.iter().filter(|secret| !own.secrets.contains(secret)).cloned();
        let all = own.secrets.iter().cloned().chain(news).collect();
        let both = Redactor::finding(all, Some(Arc::clone(own))).unwrap_or_else(|| Arc::clone(own));
        self.combined = Some((Arc::clone(own), Arc::clone(&both)));
        Some(both)
    }
}

/// How the text begins that stands where a secret was.
pub const REMOVED: &str = "[secret ";

impl Redactor {
    /// A redactor for these names and values; `None` if there is nothing to find.
    pub fn of<'s>(secrets: impl IntoIterator<Item = (&'s str, &'s str)>) -> Option<Arc<Self>> {
        Self::finding(secrets.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(), None)
    }

    /// Finds the secrets of both, as those of one call.
    #[must_use]
    pub fn and(self: &Arc<Self>, other: &Self) -> Arc<Self> {
        let news = other.secrets.iter().filter(|secret| !self.secrets.contains(secret));
        let all = self.secrets.iter().chain(news).cloned().collect();
        Self::finding(all, None).unwrap_or_else(|| Arc::clone(self))
    }

    fn finding(secrets: Vec<(String, String)>, own: Option<Arc<Self>>) -> Option<Arc<Self>> {
        let (mut patterns, mut marks) = (Vec::new(), Vec::new());
        for (name, value) in &secrets {
            for form in forms(value) {
                patterns.push(form);
                marks.push(format!("{REMOVED}{name}]"));
            }
        }
        let forms = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns).ok()?;
        (!patterns.is_empty()).then(|| Arc::new(Self { secrets, forms, patterns, marks, own }))
    }

    /// The text without secrets.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.forms.is_match(text) { self.forms.replace_all(text, &self.marks).into() } else { text.into() }
    }

    /// The number of bytes at the end of a text that may begin a secret continued in the next piece.
    pub fn held_back(&self, text: &str) -> usize {
        let begins = |pattern: &String| {
            let longest = text.len().min(pattern.len() - 1);
            (1..=longest).rev().find(|length| text.as_bytes().ends_with(&pattern.as_bytes()[..*length]))
        };
        let Some(held) = self.patterns.iter().filter_map(begins).max() else { return 0 };
        // A whole secret is not cut in two where its end is like its beginning.
        let cut = text.len() - held;
        let parted = self.forms.find_iter(text).find(|found| found.start() < cut && cut < found.end());
        parted.map_or(held, |found| text.len() - found.end())
    }

    /// Redacts a whole fault.
    pub fn fault(&self, fault: &mut Fault) {
        let details = &mut fault.details;
        let texts = [&mut details.stderr, &mut details.traceback, &mut details.exception].into_iter().flatten();
        let attempts = details.attempts.iter_mut().map(|attempt| &mut attempt.message);
        for text in texts.chain(attempts).chain([&mut fault.message]) {
            if let Cow::Owned(clean) = self.text(text) {
                *text = clean;
            }
        }
    }

    /// Redacts an object, including its keys.
    pub fn members(&self, members: &mut Map<String, Value>) {
        for (key, mut item) in std::mem::take(members) {
            self.value(&mut item);
            members.insert(self.text(&key).into_owned(), item);
        }
    }

    /// Redacts every string, number and key within a value.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.text(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(members) => self.members(members),
            Value::Number(number) => {
                if let Cow::Owned(clean) = self.text(&number.to_string()) {
                    *value = Value::String(clean);
                }
            }
            _ => {}
        }
    }
}

/// The forms of a secret: plain, each of its lines, escaped as in JSON and Python strings, URL-encoded, and in base64
/// at any offset of the encoded bytes.
fn forms(value: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |form: String, least: usize| {
        if form.len() >= least && !found.contains(&form) {
            found.push(form);
        }
    };
    add(value.to_owned(), SHORTEST);
    for line in value.lines().map(str::trim).filter(|line| line.len() >= 16) {
        add(line.to_owned(), SHORTEST);
    }
    let quoted = Value::from(value).to_string();
    add(quoted[1..quoted.len() - 1].to_owned(), SHORTEST);
    add(quoted[1..quoted.len() - 1].replace("\\\"", "\"").replace('\'', "\\'"), SHORTEST);
    let quoted = &quoted[1..quoted.len() - 1];
    let escaped: String = quoted.chars().map(ascii_escaped).collect();
    add(escaped.clone(), SHORTEST);
    // JSON that escapes slashes, JSON for HTML, and JSON within JSON.
    add(quoted.replace('/', "\\/"), SHORTEST);
    add(quoted.chars().map(html_escaped).collect(), SHORTEST);
    for inner in [quoted, &escaped] {
        let nested = Value::from(inner).to_string();
        add(nested[1..nested.len() - 1].to_owned(), SHORTEST);
    }
    if value.len() >= SHORTEST {
        add(HEXLOWER.encode(value.as_bytes()), SHORTEST_BASE64);
        add(HEXUPPER.encode(value.as_bytes()), SHORTEST_BASE64);
        let percent = |upper: bool| -> String { value.bytes().map(|byte| percent_encoded(byte, upper)).collect() };
        add(percent(true), SHORTEST);
        add(percent(false), SHORTEST);
        add(percent(true).replace("%20", "+"), SHORTEST);
        for offset in 0..3 {
            let bytes = [vec![0; offset], value.as_bytes().to_vec()].concat();
            // The first and the last character also encode adjacent bits.
            let (begin, end) = ((offset * 8).div_ceil(6), bytes.len() * 8 / 6);
            for text in [BASE64_NOPAD.encode(&bytes), BASE64URL_NOPAD.encode(&bytes)] {
                add(text[begin..end].to_owned(), SHORTEST_BASE64);
            }
        }
    }
    found
}

/// A character as JSON encoders write it that keep their text out of HTML.
fn html_escaped(c: char) -> String {
    if matches!(c, '<' | '>' | '&' | '\'') { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() }
}

/// A character as Python's `json` writes it by default: `\u00e4`, surrogate pairs beyond the first plane.
fn ascii_escaped(c: char) -> String {
    if c.is_ascii() {
        return c.to_string();
    }
    let mut units = [0; 2];
    let units: Vec<String> = c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect();
    units.concat()
}

fn percent_encoded(byte: u8, upper: bool) -> String {
    match byte {
        byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => char::from(byte).to_string(),
        byte if upper => format!("%{byte:02X}"),
        byte => format!("%{byte:02x}"),
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::BASE64;
    use proptest::prelude::*;

    use super::*;
    use crate::outcome::{Code, Details};

    const KEY: &str = "p@ss w0rd/\"x\"";

    fn redactor() -> Arc<Redactor> {
        Redactor::of([("KEY", KEY), ("PIN", "123")]).unwrap()
    }

    #[test]
    fn a_secret_escaped_to_ascii_is_found_in_json_within_json() {
        let redactor = Redactor::of([("KEY", "pa\"ss-ümlaut")]).unwrap();
        let inner = r#"{"key":"pa\"ss-\u00fcmlaut"}"#;
        let outer = serde_json::json!({"body": inner}).to_string();
        assert_eq!(redactor.text(&outer), r#"{"body":"{\"key\":\"[secret KEY]\"}"}"#);
    }

    #[test]
    fn a_secret_is_found_in_every_form() {
        for form in [
            format!("it is {KEY}!"),
            "https://x/?k=p%40ss%20w0rd%2F%22x%22&y=1".to_owned(),
            "https://x/?k=p%40ss+w0rd%2f%22x%22".replace("%2f", "%2F"),
            format!("{}", serde_json::json!({ "k": KEY })),
            serde_json::json!({"k": serde_json::json!({ "k": KEY }).to_string()}).to_string(),
            "{\"k\": \"p@ss w0rd\\/\\\"x\\\"\"}".to_owned(),
            format!("bytes {}", HEXLOWER.encode(KEY.as_bytes())),
            format!("bytes {}", HEXUPPER.encode(KEY.as_bytes())),
            format!("Authorization: Basic {}", BASE64.encode(format!("me:{KEY}").as_bytes())),
            format!("Authorization: Basic {}", BASE64.encode(format!("you1:{KEY}:more").as_bytes())),
            format!("Authorization: Basic {}", BASE64.encode(format!("them:{KEY}").as_bytes())),
        ] {
            let clean = redactor().text(&form).into_owned();
            assert!(clean.contains("[secret KEY]"), "{form} became {clean}");
            assert!(!clean.contains("w0rd") && !clean.contains("zMHJk"), "{form} became {clean}");
        }
        assert_eq!(
            redactor().text("123 is too short to be redacted from numbers"),
            "123 is too short to be redacted from numbers"
        );
        assert!(Redactor::of([("PIN", "123"), ("EMPTY", "")]).is_none());
    }

    #[test]
    fn each_line_of_a_long_secret_is_found() {
        let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASC\n-----END PRIVATE KEY-----\n";
        let redactor = Redactor::of([("PEM", key)]).unwrap();
        assert_eq!(redactor.text("line: MIIEvQIBADANBgkqhkiG9w0B"), "line: [secret PEM]");
    }

    #[test]
    fn every_part_of_a_fault_is_redacted() {
        let text = || Some(format!("… {KEY} …"));
        let details = Details { stderr: text(), traceback: text(), ..Details::default() };
        let mut fault = Fault::new(Code::ToolError, format!("ValueError: {KEY}")).with(details);
        redactor().fault(&mut fault);
        let text = format!("{fault:?}");
        assert_eq!(text.matches("[secret KEY]").count(), 3, "{text}");
    }

    #[test]
    fn a_non_ascii_secret_is_found_as_pythons_json_writes_it() {
        let redactor = Redactor::of([("KEY", "Größe\u{1F682}1")]).unwrap();
        assert_eq!(redactor.text("{\"k\": \"Gr\\u00f6\\u00dfe\\ud83d\\ude821\"}"), "{\"k\": \"[secret KEY]\"}");
    }

    #[test]
    fn keys_and_numbers_are_redacted() {
        let redactor = Redactor::of([("PIN", "271828"), ("KEY", KEY)]).unwrap();
        let mut value = serde_json::json!({"pin": 271_828, KEY: [1, {"deep": KEY}]});
        redactor.value(&mut value);
        assert_eq!(value, serde_json::json!({"pin": "[secret PIN]", "[secret KEY]": [1, {"deep": "[secret KEY]"}]}));
    }

    fn token(number: usize) -> Arc<Redactor> {
        Redactor::of([("TOKEN", format!("token-{number:04}").as_str())]).unwrap()
    }

    #[test]
    fn learned_secrets_are_found_beside_own_ones() {
        let (mut learned, own) = (Learned::default(), redactor());
        assert!(Arc::ptr_eq(&learned.with(Some(Arc::clone(&own))).unwrap(), &own), "nothing was learned");
        learned.add(&token(1));
        let both = learned.with(Some(Arc::clone(&own))).unwrap();
        assert_eq!(both.text(&format!("{KEY} token-0001")), "[secret KEY] [secret TOKEN]");
        assert!(Arc::ptr_eq(&learned.with(Some(own)).unwrap(), &both), "made once");
        assert_eq!(learned.with(None).unwrap().text("token-0001"), "[secret TOKEN]");
    }

    #[test]
    fn a_secret_that_changes_with_every_call_is_not_kept_for_ever() {
        let (mut learned, mut redactor) = (Learned::default(), Some(redactor()));
        for number in 0..200 {
            learned.add(&token(number));
            redactor = learned.with(redactor.take());
        }
        let redactor = redactor.unwrap();
        assert_eq!(redactor.secrets.len(), 2 + VALUES, "those of the call, and the newest of the name");
        assert_eq!(redactor.text("token-0199 token-0196 token-0195"), "[secret TOKEN] [secret TOKEN] token-0195");
        let large = "x".repeat(LEARNED_BYTES / 2);
        for name in ["A", "B", "C"] {
            learned.add(&Redactor::of([(name, format!("{name}{large}").as_str())]).unwrap());
        }
        assert_eq!(
            learned.secrets.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["C"],
            "bytes are limited"
        );
    }

    proptest! {
        #[test]
        fn a_secret_across_pieces_is_found(
            before in "[ps@ ]{0,6}",
            after in "[ps@ ]{0,6}",
            cuts in prop::collection::vec(0_usize..30, 0..4),
            // The end of the second is like its beginning.
            key in prop::sample::select(&[KEY, "1234-5-1234"][..]),
        ) {
            let (redactor, whole) = (Redactor::of([("KEY", key)]).unwrap(), format!("{before}{key}{after}"));
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(whole.len())).collect();
            cuts.extend([0, whole.len()]);
            cuts.sort_unstable();
            let (mut pending, mut redacted) = (String::new(), String::new());
            for pair in cuts.windows(2) {
                pending.push_str(&whole[pair[0]..pair[1]]);
                let ready = pending.len() - redactor.held_back(&pending);
                redacted.push_str(&redactor.text(&pending[..ready]));
                pending.drain(..ready);
            }
            redacted.push_str(&redactor.text(&pending));
            prop_assert_eq!(redacted, format!("{before}[secret KEY]{after}"));
        }
    }
}
