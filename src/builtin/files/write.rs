//! `write_file` and `delete_file`

use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use cap_std::fs::{OpenOptions, OpenOptionsExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{Target, not_a_file};
use crate::builtin::{About, Located, Roots, Stop};
use crate::config::declared_policy::Risk;
use crate::outcome::{Code, Fault};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    /// The file, absolute or relative to the first allowed folder. Missing folders are created.
    pub path: String,
    /// What to write, as UTF-8.
    pub content: String,
    /// What to do with an existing file.
    #[serde(default)]
    pub mode: Mode,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mode {
    /// Fail.
    #[default]
    Create,
    /// Replace its content.
    Overwrite,
    /// Add to its end.
    Append,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Written {
    /// The file.
    pub path: String,
    /// How many bytes were written.
    pub bytes: usize,
    /// Whether the file is new.
    pub created: bool,
}

pub(super) fn about() -> About {
    About::new(
        "write_file",
        "Write a text file: create a new one, replace an existing one (overwrite), or add to its end (append).\n\nA \
         failure leaves an existing file as it was. To change a part of a file, use file_edit.",
    )
    .risk("system_write", Risk::High)
    .path_argument("path")
    .timeout(Duration::from_secs(30))
}

pub(super) fn write(roots: &Roots, params: &Params, stop: &Stop) -> Result<Written, Fault> {
    let at = roots.locate(&params.path)?;
    let path = at.path();
    let content = params.content.as_bytes();
    let done = folders(&at).and_then(|()| put(&at, content, params.mode, stop));
    let created = done.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists if params.mode == Mode::Create => {
            let message = format!(
                "{} exists already and was not changed; use mode \"overwrite\" or \"append\", or `file_edit` for a part of \
                 it",
                path.display()
            );
            Fault::new(Code::ToolError, message)
        }
        ErrorKind::IsADirectory | ErrorKind::InvalidInput => {
            Fault::new(Code::ToolError, format!("{} is a folder; name a file in it", path.display()))
        }
        _ => roots.refused(&path, &error),
    })?;
    Ok(Written { path: path.display().to_string(), bytes: content.len(), created })
}

/// Returns whether the file is new.
fn put(at: &Located, content: &[u8], mode: Mode, stop: &Stop) -> io::Result<bool> {
    let target = if mode == Mode::Create { Target::unfollowed(at)? } else { Target::followed(at)? };
    let is_new = target.folder.symlink_metadata(&target.name).is_err();
    match mode {
        // No lock: a file that does not exist is not edited, and the system lets only one call create it.
        Mode::Create => target.create(content),
        Mode::Overwrite => {
            // Writing the draft needs no lock; putting it in place does.
            let mut lock = None;
            target.replace(content, || {
                lock = Some(target.lock(stop)?);
                Ok(())
            })
        }
        Mode::Append => {
            let _lock = target.lock(stop)?;
            append(&target, content)
        }
    }
    .map(|()| is_new)
}

fn folders(at: &Located) -> io::Result<()> {
    let Some(above) = at.inner().parent().filter(|above| *above != Path::new("")) else { return Ok(()) };
    match at.root.metadata(above) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            at.root.create_dir_all(above).map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => io::Error::other("its folder is a link to nothing; remove that link"),
                _ => error,
            })
        }
        other => other.map(|_| ()),
    }
}

fn append(target: &Target, content: &[u8]) -> io::Result<()> {
    let mut how = OpenOptions::new();
    // Opening a pipe without a reader would block.
    how.append(true).create(true).custom_flags(libc::O_NONBLOCK);
    let mut file = target.folder.open_with(&target.name, &how).map_err(|error| match error.raw_os_error() {
        // A pipe without a reader.
        Some(libc::ENXIO) => not_a_file(),
        _ => error,
    })?;
    if !file.metadata()?.is_file() {
        return Err(not_a_file());
    }
    let before = file.metadata()?.len();
    file.write_all(content).inspect_err(|_| {
        // A full disk may have taken a part of it.
        let _ = file.set_len(before);
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteParams {
    /// The file, absolute or relative to the first allowed folder.
    pub path: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Deleted {
    /// The file that was deleted.
    pub path: String,
}

pub(super) fn about_delete() -> About {
    About::new(
        "delete_file",
        "Delete one file permanently.\n\nOf a link, the link itself is deleted. Folders are refused.",
    )
    .risk("system_write", Risk::High)
    .path_argument("path")
    .timeout(Duration::from_secs(30))
}

pub(super) fn delete(roots: &Roots, params: &DeleteParams, stop: &Stop) -> Result<Deleted, Fault> {
    let at = roots.locate(&params.path)?;
    let path = at.path();
    let folder = || Fault::new(Code::ToolError, format!("{} is a folder; only files can be deleted", path.display()));
    let target = Target::unfollowed(&at).map_err(|error| roots.refused(&path, &error))?;
    let _lock = target.lock(stop).map_err(|error| roots.refused(&path, &error))?;
    if target.folder.symlink_metadata(&target.name).is_ok_and(|metadata| metadata.is_dir()) {
        return Err(folder());
    }
    target.folder.remove_file(&target.name).map_err(|error| match error.kind() {
        ErrorKind::IsADirectory => folder(),
        _ => roots.refused(&path, &error),
    })?;
    Ok(Deleted { path: path.display().to_string() })
}
