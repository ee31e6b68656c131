//! Idempotency keys: a person's request with a key is made once, whichever hostler gets it and however often, for a day.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::store::CallRow;

/// How long a key is remembered.
pub const REMEMBERED_MS: u64 = 24 * 60 * 60 * 1000;

/// A request with a key.
#[derive(Debug, Clone)]
pub struct Keyed {
    /// The tool's full name.
    pub tool: String,
    /// The key.
    pub key: String,
    /// Says whether two requests have the same arguments.
    pub digest: String,
    /// The call that would be made.
    pub call: String,
}

/// What the key says of a request.
#[derive(Debug)]
pub enum Claimed {
    /// It is the first: the call is made.
    First,
    /// Another call was made with it.
    Known {
        /// That call's id.
        call: String,
        /// Whether it has the same arguments.
        is_same: bool,
        /// The call, if the store has it by now.
        row: Option<Box<CallRow>>,
    },
}

/// A digest of arguments that does not depend on the order of members.
pub fn digest(arguments: &Value) -> String {
    let mut hash = Sha256::new();
    add(arguments, &mut hash);
    data_encoding::HEXLOWER.encode(&hash.finalize())
}

fn add(value: &Value, hash: &mut Sha256) {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort();
            hash.update(b"{");
            for name in names {
                add(&Value::String(name.clone()), hash);
                add(&members[name], hash);
            }
            hash.update(b"}");
        }
        Value::Array(items) => {
            hash.update(b"[");
            for item in items {
                add(item, hash);
            }
            hash.update(b"]");
        }
        // JSON text of these ends where it ends: none is the beginning of another that may follow.
        other => {
            hash.update(other.to_string());
            hash.update(b",");
        }
    }
}

/// The members in which two lists of arguments differ.
pub fn difference(first: &Value, second: &Value) -> Vec<String> {
    let (Value::Object(first), Value::Object(second)) = (first, second) else { return Vec::new() };
    let mut names: Vec<&String> = first.keys().chain(second.keys()).collect();
    names.sort();
    names.dedup();
    names.into_iter().filter(|name| first.get(*name) != second.get(*name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_the_same_in_any_order_and_no_others_are() {
        let same = digest(&json!({"a": [1, {"x": "1", "y": null}], "b": "2"}));
        assert_eq!(same, digest(&json!({"b": "2", "a": [1, {"y": null, "x": "1"}]})));
        let others = [
            json!({"a": [1, {"x": 1, "y": null}], "b": "2"}),
            json!({"a": [1, {"x": "1"}], "b": "2"}),
            json!({"a": [{"x": "1", "y": null}, 1], "b": "2"}),
            json!({"a": [1, {"x": "1", "y": null}, "b", "2"]}),
            json!({}),
            json!([]),
        ];
        for other in others {
            assert_ne!(same, digest(&other), "{other}");
        }
        assert_ne!(digest(&json!([12])), digest(&json!([1, 2])));
        assert_ne!(digest(&json!({"a": {"b": 1}})), digest(&json!({"a": "b", "1": {}})));
    }

    #[test]
    fn the_difference_names_members() {
        let differs = difference(&json!({"a": 1, "b": 2, "c": 3}), &json!({"a": 1, "b": 3, "d": 3}));
        assert_eq!(differs, ["b", "c", "d"]);
    }
}
