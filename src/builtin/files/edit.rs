//! `file_edit`

use std::io::{ErrorKind, Read};
use std::time::Duration;

use cap_std::fs::{Metadata, MetadataExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use similar::TextDiff;

use super::spot::Spot;
use super::{open_to_read, place};
use crate::builtin::{About, Builtin, Call, Roots, Stop};
use crate::config::declared_policy::Risk;
use crate::outcome::{Code, Fault};

pub(super) struct FileEdit(pub Roots);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// The file; relative paths begin at the first folder that tools may reach.
    pub path: String,
    /// The text to be replaced, exactly as it stands in the file, with enough around it to be there only once.
    #[schemars(length(min = 1))]
    pub old_text: String,
    /// What to put in its place.
    pub new_text: String,
    /// Replace it wherever it stands, instead of exactly once.
    #[serde(default)]
    pub replace_all: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Edited {
    /// The file.
    pub path: String,
    /// How many times the text was replaced.
    pub replacements: usize,
    /// What changed, as a unified diff.
    pub diff: String,
}

/// Larger files are edited by other means.
const LARGEST: u64 = 16 << 20;
/// So much of a diff is shown.
const MOST_DIFF: usize = 64 * 1024;

impl Builtin for FileEdit {
    type Params = Wanted;
    type Answer = Edited;

    fn about(&self) -> About {
        About::new(
            "file_edit",
            "Replace a piece of a text file by another, exactly, and show what changed.\n\nThe old text must stand in the file \
             once, unless `replace_all` is given.",
        )
        .risk("system_write", Risk::High)
        .timeout(Duration::from_secs(30))
    }

    async fn call(&self, wanted: Wanted, call: Call) -> Result<Edited, Fault> {
        let roots = self.0.clone();
        call.blocking(move |stop| edit(&roots, &wanted, stop)).await
    }
}

fn edit(roots: &Roots, wanted: &Wanted, stop: &Stop) -> Result<Edited, Fault> {
    let at = roots.locate(&wanted.path)?;
    let path = at.path();
    let refused = |error: std::io::Error| roots.refused(&path, &error);
    let wrong = |message: String| Fault::new(Code::ToolError, format!("{} was not changed: {message}", path.display()));
    let spot = Spot::led_to(&at).map_err(refused)?;
    let turn = spot.turn(stop).map_err(refused)?;
    let file = open_to_read(roots, &path, &spot.folder, &spot.name)?;
    let seen = stamp(&file.metadata().map_err(refused)?);
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(refused)?;
    if bytes.len() as u64 > LARGEST {
        return Err(wrong(format!("it is larger than {} MB", LARGEST >> 20)));
    }
    let before = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
    let (after, replacements) = replaced(&before, wanted).map_err(wrong)?;
    if stop.is_said() {
        return Err(wrong("nobody waits for it any more".to_owned()));
    }
    // Somebody else's program waits for no turn.
    let is_as_seen = || match spot.folder.symlink_metadata(&spot.name) {
        Ok(metadata) if stamp(&metadata) == seen => Ok(()),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Err(ErrorKind::ResourceBusy.into()),
    };
    place::replace(&spot, after.as_bytes(), is_as_seen).map_err(|error| match error.kind() {
        ErrorKind::ResourceBusy => wrong("somebody else changed it at the same time; read it again".to_owned()),
        _ => refused(error),
    })?;
    // To compare large files takes seconds, in which others would give up waiting.
    drop(turn);
    Ok(Edited { diff: diff(&before, &after, &wanted.path), path: path.display().to_string(), replacements })
}

/// What a file is and when it was last changed.
fn stamp(metadata: &Metadata) -> (u64, u64, u64, i64, i64) {
    (metadata.dev(), metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

/// The text with the replacement made, and how often; or why not.
fn replaced(text: &str, wanted: &Wanted) -> Result<(String, usize), String> {
    let (mut old, mut new) = (wanted.old_text.clone(), wanted.new_text.clone());
    if old.is_empty() {
        return Err("`old_text` is empty, so it says nothing about where".to_owned());
    }
    if !text.contains(&old) && text.contains("\r\n") && !old.contains('\r') {
        // Written on another system; a model sees no difference.
        (old, new) = (old.replace('\n', "\r\n"), new.replace("\r\n", "\n").replace('\n', "\r\n"));
    }
    if old == new {
        return Err("`old_text` and `new_text` are the same".to_owned());
    }
    let places: Vec<usize> = text.match_indices(&old).map(|(at, _)| at).collect();
    match places.len() {
        0 => Err(not_there(text, &old)),
        1 => Ok((text.replacen(&old, &new, 1), 1)),
        count if wanted.replace_all => Ok((text.replace(&old, &new), count)),
        count => {
            let lines: Vec<String> = places.iter().take(8).map(|at| line_of(text, *at).to_string()).collect();
            Err(format!(
                "`old_text` stands in it {count} times (lines {}{}); give more of what is around the one that is meant, or \
                 `replace_all`",
                lines.join(", "),
                if count > 8 { " …" } else { "" }
            ))
        }
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Why a text is not in a file that seems to be there: nearly always white space.
fn not_there(text: &str, old: &str) -> String {
    let bare = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted: Vec<String> = old.trim().lines().map(bare).collect();
    let lines: Vec<&str> = text.lines().collect();
    let has = |window: &[&str]| window.iter().map(|line| bare(line)).eq(wanted.iter().cloned());
    let near = lines.windows(wanted.len().max(1)).position(has);
    match near {
        Some(place) => format!(
            "`old_text` does not stand in it exactly; line {} has it with other white space: `{}`",
            place + 1,
            lines[place]
        ),
        None => "`old_text` does not stand in it; read the file again, it may have changed".to_owned(),
    }
}

fn diff(before: &str, after: &str, path: &str) -> String {
    let diff = TextDiff::configure().timeout(Duration::from_secs(2)).diff_lines(before, after);
    let mut text = diff.unified_diff().context_radius(3).header(path, path).to_string();
    if text.len() > MOST_DIFF {
        let end = (0..=MOST_DIFF).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("\n… the rest is left out\n");
    }
    text
}
