//! Files and links within results. A file is an object with `mime_type` and `base64`, and optionally `name` and `uri`; a link is one
//! with `type: "resource_link"` and `uri`.

use serde_json::{Map, Value};

/// A file in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File<'a> {
    /// Its MIME type: `image/png`.
    pub mime_type: &'a str,
    /// Its bytes, as base64.
    pub base64: &'a str,
    /// Its name, if it has one.
    pub name: Option<&'a str>,
    /// Its address, if it is a copy of a resource.
    pub uri: Option<&'a str>,
}

/// A link in a result: clients read the resource themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link<'a> {
    /// The address.
    pub uri: &'a str,
    /// A short name.
    pub name: &'a str,
    /// The name for people.
    pub title: Option<&'a str>,
    /// What it is.
    pub description: Option<&'a str>,
    /// Its MIME type.
    pub mime_type: Option<&'a str>,
    /// Its size in bytes.
    pub size: Option<u64>,
}

const LINK: &str = "resource_link";

/// Whether a JSON text may hold a file or a link. Most results do not, and are not parsed.
pub fn may_hold_blocks(json: &str) -> bool {
    may_hold_files(json) || json.contains(LINK)
}

/// Whether a JSON text may hold a file.
pub fn may_hold_files(json: &str) -> bool {
    json.contains("\"base64\"") && json.contains("\"mime_type\"")
}

/// Visits the object of every file within a value, in document order.
pub fn each_file(value: &mut Value, shown: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| each_file(item, shown)),
        Value::Object(object) if File::of(object).is_some() => shown(object),
        Value::Object(object) => object.values_mut().for_each(|item| each_file(item, shown)),
        _ => {}
    }
}

/// Replaces a file's bytes with their size and their index in the content list.
pub fn without_bytes(object: &mut Map<String, Value>, place: usize) {
    let size = File::of(object).map(|file| file.size());
    object.remove("base64");
    object.extend([("size".to_owned(), size.into()), ("content".to_owned(), place.into())]);
}

impl<'a> File<'a> {
    /// The file that an object represents. An object with other members is not a file.
    pub fn of(object: &'a Map<String, Value>) -> Option<Self> {
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        let file =
            Self { mime_type: text("mime_type")?, base64: text("base64")?, name: text("name"), uri: text("uri") };
        let is_kind = file.mime_type.split_once('/').is_some_and(|(main, rest)| !main.is_empty() && !rest.is_empty());
        let members = 2 + usize::from(file.name.is_some()) + usize::from(file.uri.is_some());
        (is_kind && object.len() == members && is_base64(file.base64)).then_some(file)
    }

    /// The size in bytes.
    pub fn size(&self) -> usize {
        let padding = self.base64.bytes().rev().take_while(|byte| *byte == b'=').count();
        (self.base64.len() / 4 * 3).saturating_sub(padding)
    }
}

impl<'a> Link<'a> {
    /// The link that an object represents. An object with other members is not a link.
    pub fn of(object: &'a Map<String, Value>) -> Option<Self> {
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        if text("type") != Some(LINK) {
            return None;
        }
        let uri = text("uri")?;
        let link = Self {
            uri,
            name: text("name").unwrap_or(uri),
            title: text("title"),
            description: text("description"),
            mime_type: text("mime_type"),
            size: object.get("size").and_then(Value::as_u64),
        };
        let known = ["type", "uri", "name", "title", "description", "mime_type", "size"];
        object.keys().all(|key| known.contains(&key.as_str())).then_some(link)
    }
}

/// Whether a string is standard base64 with padding.
fn is_base64(text: &str) -> bool {
    let bare = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    text.len().is_multiple_of(4) && text.len() - bare.len() <= 2 && bare.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_differ_from_similar_objects() {
        let is_file = |value: Value| File::of(value.as_object().unwrap()).map(|file| file.size());
        assert_eq!(is_file(json!({"mime_type": "image/png", "base64": "aGk="})), Some(2));
        assert_eq!(is_file(json!({"mime_type": "text/plain", "base64": "", "name": "x"})), Some(0));
        for other in [
            json!({"mime_type": "image/png", "base64": "aGk"}),
            json!({"mime_type": "image/png", "base64": "a-k="}),
            json!({"mime_type": "png", "base64": "aGk="}),
            json!({"mime_type": "image/png", "base64": "aGk=", "width": 3}),
            json!({"mime_type": "image/png", "base64": "aGk=", "name": 3}),
            json!({"base64": "aGk="}),
        ] {
            assert_eq!(is_file(other.clone()), None, "{other}");
        }
    }
}
