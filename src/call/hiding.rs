//! Results without the secrets of other tools.

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::layer::CallContext;
use super::service::CallService;
use crate::secrets::{KnownSecret, Redactor};

/// Shorter values are left in the results of other tools: they are likely to be ordinary words there.
const SHORTEST: usize = 8;

/// The result of a call without secrets that neither its tool nor a call that waits for it may know; with `redact_results`, also without
/// those.
pub(super) fn hide(service: &CallService, call: &CallContext, raw: Box<RawValue>) -> Box<RawValue> {
    let Some(secrets) = call.running.secrets() else { return raw };
    let settings = &call.tool.entry.settings;
    if settings.redact_results.value {
        let own = |secret: &KnownSecret| settings.secrets.value.contains(&secret.name);
        return without(raw, &secrets, &|secret| secret.value.len() >= SHORTEST || own(secret));
    }
    let catalogue = service.registry.catalogue();
    let declares = |tool: &str, name: &String| {
        catalogue.resolve(tool).is_ok_and(|tool| tool.entry.settings.secrets.value.contains(name))
    };
    let knows = |name: &String| {
        settings.secrets.value.contains(name) || call.request.chain.iter().any(|outer| declares(outer, name))
    };
    without(raw, &secrets, &|secret| secret.value.len() >= SHORTEST && !knows(&secret.name))
}

fn without(raw: Box<RawValue>, secrets: &Redactor, is_hidden: &impl Fn(&KnownSecret) -> bool) -> Box<RawValue> {
    let Some(text) = secrets.text_hiding(raw.get(), is_hidden) else { return raw };
    if let Ok(clean) = RawValue::from_string(text) {
        return clean;
    }
    // A number was a secret, or what looked like one was a part of the notation.
    let Ok(mut value) = serde_json::from_str::<Value>(raw.get()) else { return raw };
    secrets.value_hiding(&mut value, is_hidden);
    to_raw_value(&value).unwrap_or(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str) -> String {
        let secrets = Redactor::of([("KEY", "sesame-open"), ("PIN", "27182818"), ("LONG", "nabcdefghi")]).unwrap();
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        without(raw, &secrets, &|secret| secret.name != "KEY").get().to_owned()
    }

    #[test]
    fn what_is_hidden_leaves_json_and_what_is_not_leaves_it_as_it_was() {
        for (text, expected) in [
            (r#"{"a": "27182818", "b": 1e2}"#, r#"{"a": "[secret PIN]", "b": 1e2}"#),
            ("27182818", r#""[secret PIN]""#),
            (r#"{"27182818":[1,27182818]}"#, r#"{"[secret PIN]":[1,"[secret PIN]"]}"#),
            (r#""sesame-open""#, r#""sesame-open""#),
            (r#""\nabcdefghi""#, r#""\nabcdefghi""#),
            ("[36893488147419103233]", "[36893488147419103233]"),
        ] {
            assert_eq!(clean(text), expected);
        }
    }
}
