//! Answers that exceed the limit for a line (`max_result`). A client whose buffer is full ends the whole session, so it gets links
//! instead, if the tool file says so, or a fault.

use rmcp::model::{ContentBlock, RequestId, ResourceContents};
use serde_json::Value;

use super::blocks::{Apart, taken_apart, uri_of};
use super::result::{self, Form, megabytes};
use super::stored::{Body, StoredResults};
use crate::config::tool::LargeResult;
use crate::outcome::{Code, Fault, Metadata, Outcome};

/// Room in a line for everything but the text of one part: ids, metadata, and the texts of the protocol.
const AROUND: usize = 16 << 10;
/// Blocks up to this size stay in the answer, as long as they fit together.
const MAX_INLINE: usize = 16 << 10;
/// What is kept of a tool's output, if the answer is too long with it.
const MAX_OUTPUT: usize = 8 << 10;
/// What is kept of a fault's message, if the answer is too long with it.
const MAX_MESSAGE: usize = 8 << 10;

/// The limit, and what to do beyond it.
pub(super) struct Limit<'a> {
    pub most: usize,
    pub large: LargeResult,
    pub results: &'a StoredResults,
}

/// The answer to a call whose usual answer takes `length` bytes, more than the limit.
pub(super) fn line(id: &RequestId, outcome: &Outcome, form: &Form<'_>, limit: &Limit<'_>, length: usize) -> Vec<u8> {
    let metadata = with_short_output(&outcome.metadata);
    let line = result::line(id, outcome, &metadata, form);
    if line.len() <= limit.most {
        return line;
    }
    let fault = match &outcome.ended {
        Err(fault) => short(fault),
        Ok(raw) if limit.large == LargeResult::Link => match linked(outcome, raw.get(), limit) {
            Ok(blocks) => return result::line_of_blocks(id, outcome, &metadata, form, blocks),
            Err(error) => unstored(outcome, &error),
        },
        Ok(_) => too_large(outcome, length, limit.most),
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

fn unstored(outcome: &Outcome, error: &std::io::Error) -> Fault {
    let message = format!(
        "the result of {} is too large for one message and cannot be stored: {error}; make room in the cache folder, or return less",
        outcome.tool
    );
    Fault::new(Code::InvalidOutput, message)
}

/// A fault without its details, and with the beginning of its message.
fn short(fault: &Fault) -> Fault {
    let mut message = fault.message.clone();
    message.truncate(message.floor_char_boundary(MAX_MESSAGE));
    Fault::new(fault.code, message)
}

fn with_short_output(metadata: &Metadata) -> Metadata {
    let mut metadata = metadata.clone();
    if let Some(output) = metadata.output.as_mut().filter(|output| output.len() > MAX_OUTPUT) {
        let length = output.len();
        output.truncate(output.floor_char_boundary(MAX_OUTPUT));
        let rest =
            format!("\n[{} of output in all; the rest is not sent, as the answer is too long]", megabytes(length));
        output.push_str(&rest);
    }
    metadata
}

/// The content blocks of a result, with links in place of large ones.
fn linked(outcome: &Outcome, json: &str, limit: &Limit<'_>) -> std::io::Result<Vec<ContentBlock>> {
    let mut is_text = json.starts_with('"');
    let blocks = match taken_apart(&outcome.call_id, json) {
        Some(Apart { blocks, is_all: true, .. }) => {
            is_text = true;
            blocks
        }
        Some(Apart { blocks, result, is_all: false }) => {
            std::iter::once(ContentBlock::text(result.to_string())).chain(blocks).collect()
        }
        // A string is a text of its own; everything else stays the text that it is.
        None => vec![ContentBlock::text(serde_json::from_str(json).unwrap_or_else(|_| json.to_owned()))],
    };
    let mut room = limit.most.saturating_sub(AROUND) / 2;
    let mut answer = Vec::new();
    for (place, block) in blocks.into_iter().enumerate() {
        let length = length_of(&block);
        if length <= MAX_INLINE && length <= room {
            room -= length;
            answer.push(block);
            continue;
        }
        let links = store(outcome, place, &block, is_text, limit)?;
        if answer.is_empty() {
            answer.push(ContentBlock::text(said(links.len(), length)));
        }
        answer.extend(links);
    }
    Ok(answer)
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

fn store(
    outcome: &Outcome,
    place: usize,
    block: &ContentBlock,
    is_text: bool,
    limit: &Limit<'_>,
) -> std::io::Result<Vec<ContentBlock>> {
    let uri = format!("{}/{place}", uri_of(&outcome.call_id, "result"));
    let text_type = if is_text { "text/plain" } else { "application/json" };
    let body = |text, is_base64, mime_type, name| Body { text, is_base64, mime_type, name };
    let body = match block {
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
            _ => return Ok(vec![block.clone()]),
        },
        _ => return Ok(vec![block.clone()]),
    };
    let links = limit.results.keep(uri, &body, limit.most.saturating_sub(AROUND))?;
    Ok(links.into_iter().map(ContentBlock::resource_link).collect())
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
