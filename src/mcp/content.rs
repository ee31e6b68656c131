//! Results with images or files in them, taken apart for MCP: models get the files as content of their own, and the
//! result itself says where each of them is.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rmcp::model::{ContentBlock, ResourceContents};
use serde_json::Value;

use crate::outcome::{File, each_file, may_hold_files, without_bytes};

/// A result without its files, and the files.
pub(super) struct Apart {
    /// The result, with `size` and `content` (the place in the list of content) where a file's bytes stood.
    pub result: Value,
    /// The files, in the order they stand in the result.
    pub files: Vec<ContentBlock>,
}

/// Content before the files: the result as text.
const BEFORE: usize = 1;

/// Takes a result apart; `None` for one without files.
pub(super) fn taken_apart(call_id: &str, json: &str) -> Option<Apart> {
    if !may_hold_files(json) {
        return None;
    }
    let mut result: Value = serde_json::from_str(json).ok()?;
    let mut files = Vec::new();
    each_file(&mut result, &mut |object| {
        let place = files.len() + BEFORE;
        files.extend(File::of(object).map(|file| block(&file, call_id, place)));
        without_bytes(object, place);
    });
    (!files.is_empty()).then_some(Apart { result, files })
}

fn block(file: &File<'_>, call_id: &str, place: usize) -> ContentBlock {
    match file.mime_type.split('/').next() {
        Some("image") => ContentBlock::image(file.base64, file.mime_type),
        Some("audio") => ContentBlock::audio(file.base64, file.mime_type),
        _ => {
            let name = file
                .name
                .map_or_else(|| place.to_string(), |name| utf8_percent_encode(name, BESIDE_LETTERS).to_string());
            let uri = format!("hostler://calls/{call_id}/{name}");
            ContentBlock::resource(ResourceContents::blob(file.base64, uri).with_mime_type(file.mime_type))
        }
    }
}

/// What may stand in an address as it is.
const BESIDE_LETTERS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_become_content_and_the_result_says_where_they_are() {
        let result = json!({
            "title": "engine",
            "pictures": [{"mime_type": "image/png", "base64": "iVBO", "name": "a.png"}],
            "report": {"mime_type": "text/csv", "base64": "YSxi", "name": "two words.csv"},
        });
        let apart = taken_apart("c-1", &result.to_string()).unwrap();
        assert_eq!(
            apart.result,
            json!({
                "title": "engine",
                "pictures": [{"mime_type": "image/png", "name": "a.png", "size": 3, "content": 1}],
                "report": {"mime_type": "text/csv", "name": "two words.csv", "size": 3, "content": 2},
            })
        );
        assert_eq!(
            json!(apart.files),
            json!([
                {"type": "image", "data": "iVBO", "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "hostler://calls/c-1/two%20words.csv", "mimeType": "text/csv",
                 "blob": "YSxi"}},
            ])
        );
        assert!(taken_apart("c-1", "{\"base64\": \"x\", \"mime_type\": 3}").is_none());
    }
}
