//! Finds secrets in texts, whatever form they have there.

use std::borrow::Cow;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use crate::outcome::Fault;

/// Shorter secrets would match ordinary words.
const SHORTEST: usize = 4;
/// Shorter base64 would match by chance.
const SHORTEST_BASE64: usize = 8;

/// Finds secrets in every likely form.
#[derive(Debug)]
pub struct Redactor {
    secrets: Vec<KnownSecret>,
    forms: AhoCorasick,
    /// The forms, in the order of their bytes.
    sorted: Vec<Zeroizing<String>>,
    /// The secret of each form, as the automaton numbers them.
    owners: Vec<usize>,
    marks: Vec<String>,
}

/// A secret as the tools that declare it know it.
#[derive(Clone, PartialEq, Eq)]
pub struct KnownSecret {
    /// Its name.
    pub name: String,
    /// Its value, overwritten when it is dropped.
    pub value: Zeroizing<String>,
}

impl KnownSecret {
    /// A secret.
    pub fn new(name: &str, value: &str) -> Self {
        Self { name: name.to_owned(), value: Zeroizing::new(value.to_owned()) }
    }
}

impl std::fmt::Debug for KnownSecret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.name)
    }
}

/// How the text begins that stands where a secret was.
pub const REMOVED: &str = "[secret ";

impl Redactor {
    /// A redactor for these names and values; `None` if there is nothing to find.
    pub fn of<'s>(secrets: impl IntoIterator<Item = (&'s str, &'s str)>) -> Option<Arc<Self>> {
        Self::finding(secrets.into_iter().map(|(name, value)| KnownSecret::new(name, value)).collect())
    }

    /// A redactor for these secrets; `None` if there is nothing to find.
    pub fn finding(secrets: Vec<KnownSecret>) -> Option<Arc<Self>> {
        let (mut patterns, mut owners, mut marks) = (Vec::new(), Vec::new(), Vec::new());
        for (owner, secret) in secrets.iter().enumerate() {
            for form in forms(&secret.value) {
                patterns.push(Zeroizing::new(form));
                owners.push(owner);
                marks.push(format!("{REMOVED}{}]", secret.name));
            }
        }
        let texts = patterns.iter().map(|pattern| pattern.as_bytes());
        let forms = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(texts).ok()?;
        patterns.sort_unstable_by(|left, right| left.as_str().cmp(right));
        (!patterns.is_empty()).then(|| Arc::new(Self { secrets, forms, sorted: patterns, owners, marks }))
    }

    /// The text without secrets.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.forms.is_match(text) { self.forms.replace_all(text, &self.marks).into() } else { text.into() }
    }

    /// The text without the secrets that `is_hidden` names; `None` if it has none of them.
    pub fn text_hiding(&self, text: &str, is_hidden: &impl Fn(&KnownSecret) -> bool) -> Option<String> {
        let mut found = self.forms.find_iter(text).filter(|found| {
            // Two names may have the same value: a tool that may know one of them knows it.
            let value = &self.secrets[self.owners[found.pattern()]].value;
            self.secrets.iter().filter(|secret| secret.value == *value).all(is_hidden)
        });
        let first = found.next()?;
        let (mut clean, mut end) = (String::with_capacity(text.len()), 0);
        for found in std::iter::once(first).chain(found) {
            clean.push_str(&text[end..found.start()]);
            clean.push_str(&self.marks[found.pattern()]);
            end = found.end();
        }
        clean.push_str(&text[end..]);
        Some(clean)
    }

    /// The part of a piece that can be passed on, without secrets, and its length in the piece. The rest may begin a secret that
    /// the next piece continues.
    pub fn ready(&self, piece: &str) -> (String, usize) {
        let longest = self.forms.max_pattern_len().saturating_sub(1).min(piece.len());
        let begins = |length: &usize| self.begins_a_form(&piece.as_bytes()[piece.len() - length..]);
        let mut cut = piece.len() - (1..=longest).rev().find(begins).unwrap_or_default();
        let (mut clean, mut end) = (String::with_capacity(cut), 0);
        for found in self.forms.find_iter(piece) {
            if found.start() >= cut {
                break;
            }
            clean.push_str(&piece[end..found.start()]);
            clean.push_str(&self.marks[found.pattern()]);
            end = found.end();
            // A whole secret is not cut in two where its end is like its beginning.
            cut = cut.max(end);
        }
        clean.push_str(&piece[end..cut]);
        (clean, cut)
    }

    /// Whether a form is longer than these bytes and begins with them.
    fn begins_a_form(&self, bytes: &[u8]) -> bool {
        let at = self.sorted.partition_point(|form| form.as_bytes() <= bytes);
        self.sorted.get(at).is_some_and(|form| form.as_bytes().starts_with(bytes))
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
        self.members_hiding(members, &|_| true);
    }

    /// Redacts every string, number and key within a value.
    pub fn value(&self, value: &mut Value) {
        self.value_hiding(value, &|_| true);
    }

    /// Redacts the secrets that `is_hidden` names in every string, number and key within a value.
    pub fn value_hiding(&self, value: &mut Value, is_hidden: &impl Fn(&KnownSecret) -> bool) {
        match value {
            Value::String(text) => {
                if let Some(clean) = self.text_hiding(text, is_hidden) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value_hiding(item, is_hidden)),
            Value::Object(members) => self.members_hiding(members, is_hidden),
            Value::Number(number) => {
                if let Some(clean) = self.text_hiding(&number.to_string(), is_hidden) {
                    *value = Value::String(clean);
                }
            }
            _ => {}
        }
    }

    fn members_hiding(&self, members: &mut Map<String, Value>, is_hidden: &impl Fn(&KnownSecret) -> bool) {
        for (key, mut item) in std::mem::take(members) {
            self.value_hiding(&mut item, is_hidden);
            members.insert(self.text_hiding(&key, is_hidden).unwrap_or(key), item);
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
                let (clean, ready) = redactor.ready(&pending);
                redacted.push_str(&clean);
                pending.drain(..ready);
            }
            redacted.push_str(&redactor.text(&pending));
            prop_assert_eq!(redacted, format!("{before}[secret KEY]{after}"));
        }
    }
}
