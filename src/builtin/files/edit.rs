//! `file_edit`

use std::io::{ErrorKind, Read};
use std::time::Duration;

use cap_std::fs::{Metadata, MetadataExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use similar::TextDiff;

use super::change::Target;
use super::open_to_read;
use crate::builtin::{About, Roots, Stop};
use crate::config::declared_policy::Risk;
use crate::outcome::{Code, Fault};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    /// The file, absolute or relative to the first allowed folder.
    pub path: String,
    /// The text to replace, exactly as in the file, with enough context to be unique.
    #[schemars(length(min = 1))]
    pub old_text: String,
    /// The new text.
    pub new_text: String,
    /// Replace every occurrence, instead of exactly one.
    #[serde(default)]
    pub replace_all: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Edited {
    /// The file.
    pub path: String,
    /// The number of replacements.
    pub replacements: usize,
    /// What changed, as a unified diff.
    pub diff: String,
}

/// Larger files are refused.
const LARGEST: u64 = 16 << 20;
/// The most of a diff that is returned, in bytes.
const MOST_DIFF: usize = 64 * 1024;

pub(super) fn about() -> About {
    About::new(
        "file_edit",
        "Replace a piece of text in a file and return the diff.\n\nThe old text must occur exactly once, unless \
         `replace_all` is given.",
    )
    .risk("system_write", Risk::High)
    .path_argument("path")
    .timeout(Duration::from_secs(30))
}

pub(super) fn edit(roots: &Roots, params: &Params, stop: &Stop) -> Result<Edited, Fault> {
    let at = roots.locate(&params.path)?;
    let path = at.path();
    let refused = |error: std::io::Error| roots.refused(&path, &error);
    let wrong = |message: String| Fault::new(Code::ToolError, format!("{} was not changed: {message}", path.display()));
    let target = Target::followed(&at).map_err(refused)?;
    let lock = target.lock(stop).map_err(refused)?;
    let file = open_to_read(roots, &path, &target.folder, &target.name)?;
    let seen = stamp(&file.metadata().map_err(refused)?);
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(refused)?;
    if bytes.len() as u64 > LARGEST {
        return Err(wrong(format!("it is larger than {} MB", LARGEST >> 20)));
    }
    let before = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
    let (after, replacements) = replaced(&before, params).map_err(|error| wrong(error.to_string()).caused_by(error))?;
    if stop.is_set() {
        return Err(wrong("the call was cancelled".to_owned()));
    }
    // Other programs do not wait for the lock.
    let is_unchanged = || match target.folder.symlink_metadata(&target.name) {
        Ok(metadata) if stamp(&metadata) == seen => Ok(()),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Err(ErrorKind::ResourceBusy.into()),
    };
    target.replace(after.as_bytes(), is_unchanged).map_err(|error| match error.kind() {
        ErrorKind::ResourceBusy => wrong("another program changed it meanwhile; read it again".to_owned()),
        _ => refused(error),
    })?;
    // A diff of large files takes seconds; others must not wait for it.
    drop(lock);
    Ok(Edited { diff: diff(&before, &after, &params.path), path: path.display().to_string(), replacements })
}

/// The identity of a file and its last change.
fn stamp(metadata: &Metadata) -> (u64, u64, u64, i64, i64) {
    (metadata.dev(), metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

/// Why a text was not replaced.
#[derive(Debug, thiserror::Error)]
#[error("{what}; {fix}")]
struct NotReplaced {
    what: String,
    /// What to do.
    fix: &'static str,
}

/// The text with the replacement made, and how often.
fn replaced(text: &str, params: &Params) -> Result<(String, usize), NotReplaced> {
    let refused = |what: &str, fix| Err(NotReplaced { what: what.to_owned(), fix });
    let (mut old, mut new) = (params.old_text.clone(), params.new_text.clone());
    if old.is_empty() {
        return refused("`old_text` is empty", "use `write_file` to write a whole file");
    }
    if !text.contains(&old) && text.contains("\r\n") && !old.contains('\r') {
        // The file has Windows line ends, which a model does not see.
        (old, new) = (old.replace('\n', "\r\n"), new.replace("\r\n", "\n").replace('\n', "\r\n"));
    }
    if old == new {
        return refused("`old_text` and `new_text` are the same", "no edit is needed");
    }
    let places: Vec<usize> = text.match_indices(&old).map(|(at, _)| at).collect();
    match places.len() {
        0 => refused("`old_text` was not found", "read the file again and copy the text exactly, with its white space"),
        1 => Ok((text.replacen(&old, &new, 1), 1)),
        count if params.replace_all => Ok((text.replace(&old, &new), count)),
        count => {
            let line = |at: &usize| (text[..*at].matches('\n').count() + 1).to_string();
            let first: Vec<String> = places.iter().take(8).map(line).collect();
            let more = if count > 8 { " …" } else { "" };
            let what = format!("`old_text` occurs {count} times, in lines {}{more}", first.join(", "));
            refused(&what, "add context to make it unique, or pass `replace_all`")
        }
    }
}

fn diff(before: &str, after: &str, path: &str) -> String {
    let diff = TextDiff::configure().timeout(Duration::from_secs(2)).diff_lines(before, after);
    let mut text = diff.unified_diff().context_radius(3).header(path, path).to_string();
    if text.len() > MOST_DIFF {
        let end = (0..=MOST_DIFF).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("\n… truncated\n");
    }
    text
}
