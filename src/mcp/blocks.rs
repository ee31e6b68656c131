//! What of a result is a content block of its own: images, sounds, files and links. Everything else is the result's JSON text.

use data_encoding::BASE64;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rmcp::model::{ContentBlock, Resource, ResourceContents};
use serde_json::{Map, Value};

use crate::outcome::{File, Link, may_hold_blocks, without_bytes};

/// A result whose files and links are blocks.
pub(super) struct Apart {
    /// The result; `size` and `content` (the index of the content block) replace a file's bytes.
    pub result: Value,
    /// The blocks.
    pub blocks: Vec<ContentBlock>,
    /// Whether the blocks are all of the result, in its order: it is a file, a link, or a list of texts, files and links.
    /// Otherwise the result's text precedes them.
    pub is_all: bool,
}

/// Separates a result from its blocks; `None` if it has none. `place` is that of the first block in the answer.
pub(super) fn taken_apart(call_id: &str, json: &str, place: usize) -> Option<Apart> {
    if !may_hold_blocks(json) {
        return None;
    }
    let mut result: Value = serde_json::from_str(json).ok()?;
    let is_all = is_content(&result);
    let mut found = Found { call_id, before: place + usize::from(!is_all), blocks: Vec::new() };
    match &mut result {
        Value::Array(items) if is_all => items.iter_mut().for_each(|item| found.item(item)),
        single if is_all => found.item(single),
        nested => found.within(nested),
    }
    let blocks = found.blocks;
    (!blocks.is_empty()).then_some(Apart { result, blocks, is_all })
}

/// Whether a result consists of content: a file or a link, or a list of texts with at least one of those.
fn is_content(result: &Value) -> bool {
    let is_block =
        |value: &Value| value.as_object().is_some_and(|object| is_file(object) || Link::of(object).is_some());
    match result {
        Value::Array(items) => {
            items.iter().all(|item| item.is_string() || is_block(item)) && items.iter().any(is_block)
        }
        single => is_block(single),
    }
}

fn is_file(object: &Map<String, Value>) -> bool {
    File::of(object).is_some()
}

/// The blocks found so far.
struct Found<'a> {
    call_id: &'a str,
    /// Content blocks before the first.
    before: usize,
    blocks: Vec<ContentBlock>,
}

impl Found<'_> {
    /// An item of a list of content.
    fn item(&mut self, item: &mut Value) {
        match item {
            Value::String(text) => self.blocks.push(ContentBlock::text(text.clone())),
            other => self.within(other),
        }
    }

    /// Every file and link within a value, in document order.
    fn within(&mut self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.within(item)),
            Value::Object(object) if is_file(object) => {
                let place = self.before + self.blocks.len();
                self.blocks.extend(File::of(object).map(|file| block(&file, self.call_id, place)));
                without_bytes(object, place);
            }
            Value::Object(object) => match Link::of(object) {
                Some(link) => self.blocks.push(linked(&link)),
                None => object.values_mut().for_each(|item| self.within(item)),
            },
            _ => {}
        }
    }
}

fn block(file: &File<'_>, call_id: &str, place: usize) -> ContentBlock {
    match file.mime_type.split('/').next() {
        Some("image") => ContentBlock::image(file.base64, file.mime_type),
        Some("audio") => ContentBlock::audio(file.base64, file.mime_type),
        _ => {
            let uri = file.uri.map_or_else(|| uri_of(call_id, &file_name(file.name, place)), str::to_owned);
            ContentBlock::resource(contents(file.base64, file.mime_type, uri))
        }
    }
}

/// A file as the contents of a resource. What is text is sent as text: models read base64 as it is.
pub(super) fn contents(base64: &str, mime_type: &str, uri: String) -> ResourceContents {
    let text = is_text(mime_type).then(|| BASE64.decode(base64.as_bytes()).ok()).flatten();
    let contents = match text.and_then(|bytes| String::from_utf8(bytes).ok()) {
        Some(text) => ResourceContents::text(text, uri),
        None => ResourceContents::blob(base64, uri),
    };
    contents.with_mime_type(mime_type)
}

/// Whether files of a MIME type are text, if they are UTF-8.
pub(super) fn is_text(mime_type: &str) -> bool {
    let essence = mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_known =
        ["application/json", "application/xml", "application/yaml", "application/toml", "application/javascript"]
            .contains(&essence.as_str());
    is_known || essence.starts_with("text/") || essence.ends_with("+json") || essence.ends_with("+xml")
}

/// The name of a file of a result: its own, or its place.
fn file_name(name: Option<&str>, place: usize) -> String {
    name.map_or_else(|| place.to_string(), str::to_owned)
}

/// The address of something that a call returned.
pub(super) fn uri_of(call_id: &str, name: &str) -> String {
    format!("{CALLS}{call_id}/{}", utf8_percent_encode(name, NOT_ENCODED))
}

/// How addresses of results begin.
pub(super) const CALLS: &str = "hostler://calls/";

/// Characters that need no encoding in a URI, besides letters and digits.
const NOT_ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

fn linked(link: &Link<'_>) -> ContentBlock {
    let mut resource = Resource::new(link.uri, link.name);
    resource.title = link.title.map(str::to_owned);
    resource.description = link.description.map(str::to_owned);
    resource.mime_type = link.mime_type.map(str::to_owned);
    resource.size = link.size;
    ContentBlock::resource_link(resource)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_within_a_result_become_blocks_and_the_result_says_where_they_are() {
        let result = json!({
            "title": "engine",
            "pictures": [{"mime_type": "image/png", "base64": "iVBO", "name": "a.png"}],
            "report": {"mime_type": "text/csv", "base64": "YSxi", "name": "two words.csv"},
            "see": {"type": "resource_link", "uri": "https://a.b/c", "name": "c", "size": 7},
        });
        let apart = taken_apart("c-1", &result.to_string(), 0).unwrap();
        assert!(!apart.is_all);
        assert_eq!(
            apart.result,
            json!({
                "title": "engine",
                "pictures": [{"mime_type": "image/png", "name": "a.png", "size": 3, "content": 1}],
                "report": {"mime_type": "text/csv", "name": "two words.csv", "size": 3, "content": 2},
                "see": {"type": "resource_link", "uri": "https://a.b/c", "name": "c", "size": 7},
            })
        );
        assert_eq!(
            json!(apart.blocks),
            json!([
                {"type": "image", "data": "iVBO", "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "hostler://calls/c-1/two%20words.csv", "mimeType": "text/csv",
                 "text": "a,b"}},
                {"type": "resource_link", "uri": "https://a.b/c", "name": "c", "size": 7},
            ])
        );
    }

    #[test]
    fn a_list_of_content_is_its_blocks_in_its_order() {
        let image = json!({"mime_type": "image/png", "base64": "iVBO"});
        let link = json!({"type": "resource_link", "uri": "a://b"});
        let apart = taken_apart("c-1", &json!(["before", image, "between", link]).to_string(), 0).unwrap();
        assert!(apart.is_all);
        let kinds: Vec<Value> = apart.blocks.iter().map(|block| json!(block)["type"].clone()).collect();
        assert_eq!(kinds, ["text", "image", "text", "resource_link"]);
        assert_eq!(apart.result[1], json!({"mime_type": "image/png", "size": 3, "content": 1}));
        assert_eq!(apart.result[3], link, "a link loses nothing");
        assert!(taken_apart("c-1", &image.to_string(), 0).unwrap().is_all);
        for other in [json!(["text", 1, image]), json!({"a": image}), json!([[image]])] {
            let apart = taken_apart("c-1", &other.to_string(), 0).unwrap();
            assert!(!apart.is_all && apart.blocks.len() == 1, "{other}");
        }
    }

    #[test]
    fn what_only_resembles_a_file_or_a_link_is_part_of_the_result() {
        for other in [
            json!({"base64": "x", "mime_type": 3}),
            json!({"type": "resource_link", "name": "no address"}),
            json!({"type": "resource_link", "uri": "a://b", "more": 1}),
            json!(["resource_link"]),
        ] {
            assert!(taken_apart("c-1", &other.to_string(), 0).is_none(), "{other}");
        }
    }

    #[test]
    fn text_is_sent_as_text_if_it_is_utf_8() {
        let sent = |mime_type: &str, bytes: &[u8]| {
            let file = json!({"mime_type": mime_type, "base64": BASE64.encode(bytes), "uri": "docs://a"});
            let apart = taken_apart("c-1", &file.to_string(), 0).unwrap();
            json!(apart.blocks[0])["resource"].clone()
        };
        for mime_type in ["text/plain; charset=utf-8", "application/json", "application/ld+json", "TEXT/Markdown"] {
            let expected = json!({"uri": "docs://a", "mimeType": mime_type, "text": "ü"});
            assert_eq!(sent(mime_type, "ü".as_bytes()), expected);
        }
        assert_eq!(sent("text/plain", b"\xff")["blob"], "/w==", "not UTF-8");
        assert_eq!(sent("application/pdf", b"%PDF")["blob"], "JVBERg==");
    }
}
