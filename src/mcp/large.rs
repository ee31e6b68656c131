//! Answers that exceed the limit for a line (`max_result`). A client whose buffer is full ends the whole session, so it gets links
//! instead, if the tool file says so, or a fault.

use std::sync::Arc;

use rmcp::model::{ContentBlock, RequestId, ResourceContents};
use serde_json::Value;
use serde_json::value::RawValue;

use super::blocks::{Apart, taken_apart, uri_of};
use super::reading::on_thread_or_here;
use super::result::{self, Form, megabytes};
use super::session::McpSession;
use super::stored::{Body, Planned, StoredResults, encoded_length};
use crate::config::tool::LargeResult;
use crate::outcome::{Code, Fault, Metadata, Outcome, may_hold_blocks};

/// Room in a line for everything but the text of one part: ids, metadata, and the texts of the protocol.
const AROUND: usize = 16 << 10;
/// Blocks up to this size stay in the answer, as long as they fit together.
const MAX_INLINE: usize = 16 << 10;
/// What is kept of a tool's output as JSON, if the answer is too long with it.
const MAX_OUTPUT: usize = 8 << 10;
/// What is kept of a fault's message as JSON, if the answer is too long with it.
const MAX_MESSAGE: usize = 8 << 10;

/// An answer that exceeds the limit.
pub(super) struct TooLong {
    /// Its length, if it was made.
    pub length: Option<usize>,
    /// The limit.
    pub most: usize,
    /// What to do beyond it.
    pub large: LargeResult,
}

/// Whether the answer to a call exceeds a limit, as far as that is certain without making it.
pub(super) fn is_too_long(outcome: &Outcome, most: usize) -> bool {
    let is_long = |raw: &RawValue| raw.get().len() > most;
    // Files and links are written anew, and then possibly shorter.
    outcome.ended.as_ref().is_ok_and(|raw| is_long(raw) && !may_hold_blocks(raw.get()))
}

/// Stores a result and sends the links, on a thread: tens of megabytes take a while.
pub(super) fn send_stored(
    session: Arc<McpSession>,
    id: RequestId,
    outcome: Arc<Outcome>,
    form: &Form<'_>,
    too_long: TooLong,
) -> impl Future<Output = ()> + Send + 'static {
    let (rules, envelope, is_promised) = (form.rules, form.envelope, (form.is_promised)());
    async move {
        let (own, request) = (Arc::clone(&session), id.clone());
        let made = on_thread_or_here(move || {
            let form = Form { rules, envelope, is_promised: &|| is_promised };
            line(&request, &outcome, &form, &too_long, own.results())
        });
        session.reply(&id, &made.await);
    }
}

/// The answer to a call whose usual answer exceeds the limit.
pub(super) fn line(
    id: &RequestId,
    outcome: &Outcome,
    form: &Form<'_>,
    too_long: &TooLong,
    results: &StoredResults,
) -> Vec<u8> {
    let &TooLong { length, most, large } = too_long;
    let metadata = with_short_output(&outcome.metadata);
    if !is_too_long(outcome, most) {
        let line = result::line(id, outcome, &metadata, form);
        if line.len() <= most {
            return line;
        }
    }
    let fault = match &outcome.ended {
        Err(fault) => short(fault),
        Ok(raw) if large == LargeResult::Link => {
            let blocks = blocks_of(outcome, raw.get());
            let (answer, planned) = linked(outcome, &blocks, most);
            let line = result::line_of_blocks(id, outcome, &metadata, form, answer);
            if line.len() > most {
                too_many(outcome, blocks.all.len(), most)
            } else {
                match results.keep(planned) {
                    Ok(()) => return line,
                    Err(error) => unstored(outcome, &error),
                }
            }
        }
        Ok(raw) => too_large(outcome, length.unwrap_or(raw.get().len()), most),
    };
    tracing::warn!(tool = outcome.tool, call = outcome.call_id, length, "an answer exceeds max_result");
    let failed = Outcome {
        call_id: outcome.call_id.clone(),
        tool: outcome.tool.clone(),
        ended: Err(fault),
        latency: outcome.latency,
        metadata,
    };
    result::line(id, &failed, &failed.metadata, form)
}

fn too_large(outcome: &Outcome, length: usize, most: usize) -> Fault {
    let message = format!(
        "the result of {} takes {} as a message, the limit is {}; return less, write it to a file and return the path, set `large = \
         \"link\"` for the tool file, or raise `max_result` under [mcp] if the client reads longer lines",
        outcome.tool,
        megabytes(length),
        megabytes(most)
    );
    Fault::new(Code::InvalidOutput, message)
}

fn too_many(outcome: &Outcome, blocks: usize, most: usize) -> Fault {
    let message = format!(
        "the result of {} has {blocks} texts and files, and links to them exceed the limit of {} for a message too; return fewer of \
         them, or write them to a folder and return the path",
        outcome.tool,
        megabytes(most)
    );
    Fault::new(Code::InvalidOutput, message)
}

fn unstored(outcome: &Outcome, error: &std::io::Error) -> Fault {
    let message = format!(
        "the result of {} is too large for one message and cannot be stored: {error}; make room in the cache folder, or return less",
        outcome.tool
    );
    Fault::new(Code::InvalidOutput, message)
}

/// A fault without its details, and with the beginning of its message.
fn short(fault: &Fault) -> Fault {
    Fault::new(fault.code, beginning(&fault.message, MAX_MESSAGE))
}

/// The beginning of a text that takes this many bytes as JSON.
fn beginning(text: &str, most: usize) -> &str {
    let mut length = 0;
    let is_beyond = |character: char| {
        length += encoded_length(character);
        length > most
    };
    text.find(is_beyond).map_or(text, |end| &text[..end])
}

fn with_short_output(metadata: &Metadata) -> Metadata {
    let mut metadata = metadata.clone();
    if let Some(output) = metadata.output.as_mut().filter(|output| output.len() > MAX_OUTPUT) {
        let length = output.len();
        output.truncate(beginning(output, MAX_OUTPUT).len());
        let rest =
            format!("\n[{} of output in all; the rest is not sent, as the answer is too long]", megabytes(length));
        output.push_str(&rest);
    }
    metadata
}

/// The content blocks of a result.
struct Blocks {
    all: Vec<ContentBlock>,
    /// The MIME type of those that are text.
    text_type: &'static str,
}

fn blocks_of(outcome: &Outcome, json: &str) -> Blocks {
    let text_type = if json.starts_with('"') { "text/plain" } else { "application/json" };
    match taken_apart(&outcome.call_id, json, 0) {
        Some(Apart { blocks, is_all: true, .. }) => Blocks { all: blocks, text_type: "text/plain" },
        Some(Apart { blocks, result, is_all: false }) => {
            let text = ContentBlock::text(result.to_string());
            Blocks { all: std::iter::once(text).chain(blocks).collect(), text_type }
        }
        // A string is a text of its own; everything else stays the text that it is.
        None => {
            let text = serde_json::from_str(json).unwrap_or_else(|_| json.to_owned());
            Blocks { all: vec![ContentBlock::text(text)], text_type }
        }
    }
}

/// The blocks, with links in place of large ones, and what the links lead to.
fn linked<'b>(outcome: &Outcome, blocks: &'b Blocks, most: usize) -> (Vec<ContentBlock>, Planned<'b>) {
    let mut room = most.saturating_sub(AROUND) / 2;
    let (mut answer, mut planned) = (Vec::new(), Planned::new());
    for (place, block) in blocks.all.iter().enumerate() {
        let length = length_of(block);
        let body = if length <= MAX_INLINE && length <= room { None } else { body_of(outcome, place, block, blocks) };
        let Some(body) = body else {
            room = room.saturating_sub(length);
            answer.push(block.clone());
            continue;
        };
        let links = planned.add(body, most.saturating_sub(AROUND));
        if answer.is_empty() {
            answer.push(ContentBlock::text(said(links.len(), length)));
        }
        answer.extend(links.into_iter().map(ContentBlock::resource_link));
    }
    (answer, planned)
}

/// The text about links for models.
fn said(parts: usize, length: usize) -> String {
    let size = megabytes(length);
    match parts {
        1 => {
            format!("The result is {size}, too large for this answer. Read it with resources/read from the link below.")
        }
        parts => format!(
            "The result is {size}, too large for one answer. Read its {parts} parts with resources/read from the links below; one \
             after another they are the whole."
        ),
    }
}

/// What is stored of a block; `None` for links.
fn body_of<'b>(outcome: &Outcome, place: usize, block: &'b ContentBlock, blocks: &Blocks) -> Option<Body<'b>> {
    let text_type = blocks.text_type;
    let uri = format!("{}/{place}", uri_of(&outcome.call_id, "result"));
    let body = |text, is_base64, mime_type, name| Some(Body { uri, text, is_base64, mime_type, name });
    match block {
        ContentBlock::Text(text) => body(text.text.as_str(), false, text_type, "result"),
        ContentBlock::Image(image) => body(&image.data, true, &image.mime_type, "image"),
        ContentBlock::Audio(audio) => body(&audio.data, true, &audio.mime_type, "audio"),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { text, mime_type, uri, .. } => {
                body(text, false, mime_type.as_deref().unwrap_or(text_type), last_segment(uri))
            }
            ResourceContents::BlobResourceContents { blob, mime_type, uri, .. } => {
                body(blob, true, mime_type.as_deref().unwrap_or("application/octet-stream"), last_segment(uri))
            }
            _ => None,
        },
        _ => None,
    }
}

fn last_segment(uri: &str) -> &str {
    uri.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("file")
}

/// The length of what a block holds.
fn length_of(block: &ContentBlock) -> usize {
    match serde_json::to_value(block) {
        Ok(Value::Object(block)) => block.values().map(|value| value.to_string().len()).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::config::Environment;
    use crate::mcp::lifecycle::Rules;
    use crate::mcp::stored::Found;

    const MOST: usize = 64_000;

    /// The answer to a call that ended so and printed this, with links.
    fn answered(ended: Result<&Value, Fault>, output: &str, results: &StoredResults) -> Value {
        let ended = ended.map(|value| RawValue::from_string(value.to_string()).unwrap());
        let metadata = Metadata { output: Some(output.to_owned()), ..Metadata::default() };
        let (call_id, tool) = ("c-1".to_owned(), "a.b".to_owned());
        let outcome = Outcome { call_id, tool, ended, latency: Duration::ZERO, metadata };
        let form = Form { rules: Rules::Modern, envelope: false, is_promised: &|| false };
        let too_long = TooLong { length: Some(MOST + 1), most: MOST, large: LargeResult::Link };
        let line = line(&RequestId::Number(1), &outcome, &form, &too_long, results);
        assert!(line.len() <= MOST, "{} bytes", line.len());
        serde_json::from_slice::<Value>(&line).unwrap()["result"].take()
    }

    fn results() -> StoredResults {
        StoredResults::new(&Environment::default())
    }

    #[test]
    fn every_link_of_an_answer_can_be_read() {
        let image = json!({"mime_type": "image/png", "base64": "iVBO".repeat(5000)});
        let (results, images) = (results(), json!(vec![image; 200]));
        let answer = answered(Ok(&images), "", &results);
        let links = &answer["content"].as_array().unwrap()[1..];
        assert_eq!(links.len(), 200);
        for link in links {
            let found = results.read(link["uri"].as_str().unwrap());
            assert!(matches!(found, Some(Found::Contents(ResourceContents::BlobResourceContents { .. }))), "{link}");
        }
    }

    #[test]
    fn links_that_do_not_fit_are_a_fault() {
        let image = json!({"mime_type": "image/png", "base64": "iVBO"});
        let mut list = vec![json!("t".repeat(100)); 5000];
        list.push(image);
        let (results, list) = (results(), json!(list));
        let answer = answered(Ok(&list), "", &results);
        let error = &answer["_meta"]["hostler/outcome"]["error"];
        assert_eq!((&answer["isError"], &error["code"]), (&json!(true), &json!("INVALID_OUTPUT")), "{error}");
        assert!(results.read("hostler://calls/c-1/result/4000").is_none(), "nothing is stored");
    }

    #[test]
    fn a_fault_fits_however_its_text_is_escaped() {
        let text = "\u{1}".repeat(MOST);
        let answer = answered(Err(Fault::new(Code::ToolError, text.clone())), &text, &results());
        assert_eq!(answer["isError"], true);
    }
}
