//! The beginning of a call's arguments, for reports: bounded, and without secrets.

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::secrets::Redactor;

/// The most bytes that are kept.
const KEPT: usize = 2 << 10;

/// The beginning of a call's arguments as they are sent to its tool, with their secrets.
#[derive(Debug)]
pub(super) struct Input {
    text: Box<str>,
    whole: usize,
}

impl Input {
    pub fn of(arguments: &str) -> Self {
        Self { text: arguments[..arguments.floor_char_boundary(KEPT)].into(), whole: arguments.len() }
    }

    /// The beginning without these secrets, for people.
    pub fn text(&self, secrets: Option<&Redactor>) -> String {
        let rest = self.whole - self.text.len();
        // A secret may begin before the cut.
        let Some(secrets) = secrets else {
            return if rest == 0 { self.text.to_string() } else { format!("{}… [{} bytes]", self.text, self.whole) };
        };
        if rest == 0 {
            secrets.text(&self.text).into_owned()
        } else {
            format!("{}… [{} bytes]", secrets.ready(&self.text).0, self.whole)
        }
    }

    /// The same for programs: the arguments, or a string if they are longer.
    pub fn json(&self, secrets: Option<&Redactor>) -> Option<Box<RawValue>> {
        if self.whole > self.text.len() {
            return to_raw_value(&self.text(secrets)).ok();
        }
        let text = self.text(secrets);
        let Some(secrets) = secrets.filter(|_| serde_json::from_str::<&RawValue>(&text).is_err()) else {
            return RawValue::from_string(text).ok();
        };
        // A number was a secret.
        let mut value: Value = serde_json::from_str(&self.text).ok()?;
        secrets.value(&mut value);
        to_raw_value(&value).ok()
    }
}

/// A result without these secrets, however they are written.
pub(in crate::call) fn without_secrets(result: &RawValue, secrets: Option<&Redactor>) -> Option<Box<RawValue>> {
    let Some(secrets) = secrets else { return Some(result.to_owned()) };
    let mut value: Value = serde_json::from_str(result.get()).ok()?;
    secrets.value(&mut value);
    to_raw_value(&value).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_arguments_stay_json_also_where_a_number_is_secret() {
        let secrets = Redactor::of([("PIN", "271828")]).unwrap();
        let input = Input::of(r#"{"pin":271828,"n":1.5}"#);
        assert_eq!(input.json(Some(&secrets)).unwrap().get(), r#"{"pin":"[secret PIN]","n":1.5}"#);
        assert_eq!(input.json(None).unwrap().get(), r#"{"pin":271828,"n":1.5}"#);
        let exact = Input::of(r#"{"pin":"271828","n":36893488147419103233}"#).json(Some(&secrets)).unwrap();
        assert_eq!(exact.get(), r#"{"pin":"[secret PIN]","n":36893488147419103233}"#);
    }

    proptest! {
        #[test]
        fn no_secret_is_shown_wherever_the_cut_is(before in prop_oneof![0..2 * KEPT, KEPT - 40..KEPT], after in 0_usize..KEPT) {
            let secrets = Redactor::of([("KEY", "hunter2-hunter2")]).unwrap();
            let whole = format!("{{\"a\":\"{}hunter2-hunter2{}\"}}", "x".repeat(before), "y".repeat(after));
            let input = Input::of(&whole);
            for text in [input.text(Some(&secrets)), input.json(Some(&secrets)).unwrap().to_string()] {
                prop_assert!(!text.contains("hunt"), "{}", text);
                prop_assert!(text.len() < KEPT + 64);
            }
        }
    }
}
