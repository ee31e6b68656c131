//! `read_file`

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

use encoding_rs::Encoding;
use encoding_rs_io::DecodeReaderBytesBuilder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::open_to_read;
use crate::builtin::{About, Roots, Stop};
use crate::config::declared_policy::Risk;
use crate::outcome::{Code, Fault};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    /// The file, absolute or relative to the first allowed folder.
    pub path: String,
    /// The first line to read, from 1.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    pub offset: u64,
    /// The most lines to read.
    #[serde(default = "usual")]
    #[schemars(range(min = 1, max = 100_000))]
    pub limit: u64,
    /// Its text encoding, if not UTF-8: latin1, utf-16le, big5, gbk …
    #[serde(default)]
    pub encoding: Option<String>,
}

fn first() -> u64 {
    1
}

fn usual() -> u64 {
    2000
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Text {
    /// The lines.
    pub content: String,
    /// The number of lines returned.
    pub lines: u64,
    /// The size of the whole file in bytes.
    pub size: u64,
    /// The line to continue from, if there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
    /// The number of lines of the file, if its end was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_lines: Option<u64>,
}

/// The most text returned at once, in bytes.
const MOST: usize = 256 * 1024;
/// How much of a file is searched for NUL bytes.
const HEAD: usize = 8 * 1024;

pub(super) fn about() -> About {
    About::new(
        "read_file",
        "Read a text file, or some lines of it.\n\nAt most 256 kB are returned at once; `next_offset` is where to continue. \
         Binary files are refused.",
    )
    .reads("read_only", Risk::Low)
    .path_argument("path")
    .timeout(Duration::from_secs(30))
}

pub(super) fn read(roots: &Roots, params: &Params, stop: &Stop) -> Result<Text, Fault> {
    let at = roots.locate(&params.path)?;
    let path = at.path();
    let mut file = open_to_read(roots, &path, &at.root, at.inner())?;
    let refused = |error: std::io::Error| roots.refused(&path, &error);
    let size = file.metadata().map_err(refused)?.len();
    let encoding = params.encoding.as_deref().map(named).transpose()?;
    let mut head = Vec::new();
    file.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(refused)?;
    if encoding.is_none() && is_binary(&head) {
        let message = format!("{} is binary ({size} bytes); if it is text, pass its `encoding`", path.display());
        return Err(Fault::new(Code::ToolError, message));
    }
    // A byte order mark decides; without one and without `encoding`, bytes pass unchanged.
    let decoded =
        DecodeReaderBytesBuilder::new().encoding(encoding).bom_override(true).build(head.as_slice().chain(file));
    let mut lines = BufReader::new(decoded);
    let first = params.offset.max(1);
    let mut before = 0;
    while before + 1 < first && skip_line(&mut lines, stop).map_err(refused)? {
        before += 1;
    }
    let part = part(&mut lines, params.limit, stop).map_err(refused)?;
    if part.lines == 0 && part.rest == Rest::LongLine {
        let message = format!(
            "line {first} of {} is longer than {} kB, the most that is returned at once; use `grep` to search it",
            path.display(),
            MOST / 1024
        );
        return Err(Fault::new(Code::ToolError, message));
    }
    let is_end = part.rest == Rest::Nothing;
    if is_end && part.lines == 0 && first > 1 {
        let message = format!("{} has {before} lines; line {first} does not exist", path.display());
        return Err(Fault::new(Code::ToolError, message));
    }
    Ok(Text {
        content: as_text(part.text, &path)?,
        lines: part.lines,
        size,
        next_offset: (!is_end).then_some(first + part.lines),
        total_lines: is_end.then_some(before + part.lines),
    })
}

/// Some lines of a file.
struct Part {
    text: Vec<u8>,
    lines: u64,
    rest: Rest,
}

/// What follows them.
#[derive(PartialEq, Eq)]
enum Rest {
    Nothing,
    Lines,
    /// A line that does not fit.
    LongLine,
}

/// Reads whole lines, up to the limits.
fn part(lines: &mut impl BufRead, limit: u64, stop: &Stop) -> std::io::Result<Part> {
    let mut part = Part { text: Vec::new(), lines: 0, rest: Rest::Lines };
    while part.lines < limit && part.text.len() < MOST && !stop.is_set() {
        let (before, room) = (part.text.len(), MOST - part.text.len());
        let got = lines.by_ref().take(room as u64).read_until(b'\n', &mut part.text)?;
        let is_cut = got == room && !part.text.ends_with(b"\n") && !lines.fill_buf()?.is_empty();
        if is_cut {
            // The next call can read the line.
            part.text.truncate(before);
            part.rest = Rest::LongLine;
            return Ok(part);
        }
        if got == 0 {
            break;
        }
        part.lines += 1;
    }
    if lines.fill_buf()?.is_empty() {
        part.rest = Rest::Nothing;
    }
    Ok(part)
}

/// Skips a line of any length. Returns whether there was one.
fn skip_line(lines: &mut impl BufRead, stop: &Stop) -> std::io::Result<bool> {
    let mut any = false;
    loop {
        if stop.is_set() {
            return Ok(false);
        }
        let there = lines.fill_buf()?;
        if there.is_empty() {
            return Ok(any);
        }
        any = true;
        let end = there.iter().position(|byte| *byte == b'\n');
        let passed = end.map_or(there.len(), |end| end + 1);
        lines.consume(passed);
        if end.is_some() {
            return Ok(true);
        }
    }
}

fn as_text(bytes: Vec<u8>, path: &Path) -> Result<String, Fault> {
    String::from_utf8(bytes).map_err(|error| {
        let message = format!(
            "{} is not valid UTF-8 (at byte {} of this part); if it is text, pass its `encoding`, such as \"latin1\"",
            path.display(),
            error.utf8_error().valid_up_to()
        );
        Fault::new(Code::ToolError, message)
    })
}

fn named(label: &str) -> Result<&'static Encoding, Fault> {
    Encoding::for_label(label.as_bytes()).ok_or_else(|| {
        let message = format!(
            "there is no encoding `{label}`; use a name such as utf-8, latin1, utf-16le, windows-1252, shift_jis"
        );
        Fault::new(Code::InvalidParams, message)
    })
}

/// Text has no NUL bytes, unless a byte order mark says that it is UTF-16.
pub(super) fn is_binary(head: &[u8]) -> bool {
    let is_marked = head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]);
    !is_marked && head.contains(&0)
}
