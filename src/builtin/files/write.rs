//! `write_file`

use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use cap_std::fs::{OpenOptions, OpenOptionsExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::place;
use super::spot::Spot;
use crate::builtin::{About, Builtin, Call, Located, Roots, Stop};
use crate::config::declared_policy::Risk;
use crate::outcome::{Code, Fault};

pub(super) struct WriteFile(pub Roots);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// The file; relative paths begin at the first folder that tools may reach. Folders on the way are made.
    pub path: String,
    /// What to write, as UTF-8.
    pub content: String,
    /// What to do with a file that is there.
    #[serde(default)]
    pub mode: Mode,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mode {
    /// Refuse to touch it.
    #[default]
    Create,
    /// Put the new content in its place.
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

impl Builtin for WriteFile {
    type Params = Wanted;
    type Answer = Written;

    fn about(&self) -> About {
        About::new(
            "write_file",
            "Write a text file: a new one, or in the place of one that is there (overwrite), or at its end (append).\n\nA file \
             is put in its place whole; a failure leaves what was there. To change a part of a file, use file_edit.",
        )
        .risk("system_write", Risk::High)
        .timeout(Duration::from_secs(30))
    }

    async fn call(&self, wanted: Wanted, call: Call) -> Result<Written, Fault> {
        let roots = self.0.clone();
        call.blocking(move |stop| write(&roots, &wanted, stop)).await
    }
}

fn write(roots: &Roots, wanted: &Wanted, stop: &Stop) -> Result<Written, Fault> {
    let at = roots.locate(&wanted.path)?;
    let path = at.path();
    let content = wanted.content.as_bytes();
    let done = folders(&at).and_then(|()| put(&at, content, wanted.mode, stop));
    let created = done.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists if wanted.mode == Mode::Create => {
            let message = format!(
                "{} is there already and was left as it is; use mode \"overwrite\" or \"append\", or `file_edit` for a part \
                 of it",
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

/// Says whether the file is new.
fn put(at: &Located, content: &[u8], mode: Mode, stop: &Stop) -> io::Result<bool> {
    // A link is led on to, unless nothing that is there may be touched.
    let spot = if mode == Mode::Create { Spot::named(at)? } else { Spot::led_to(at)? };
    let is_new = spot.folder.symlink_metadata(&spot.name).is_err();
    match mode {
        // Where nothing is, nobody is at work, and the system lets only one begin.
        Mode::Create => place::create(&spot, content),
        Mode::Overwrite => {
            // What is written beside it bothers nobody; only to put it there waits for others.
            let mut turn = None;
            place::replace(&spot, content, || {
                turn = Some(spot.turn(stop)?);
                Ok(())
            })
        }
        Mode::Append => {
            let _turn = spot.turn(stop)?;
            append(&spot, content)
        }
    }
    .map(|()| is_new)
}

fn folders(at: &Located) -> io::Result<()> {
    let Some(above) = at.inner().parent().filter(|above| *above != Path::new("")) else { return Ok(()) };
    match at.root.metadata(above) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            at.root.create_dir_all(above).map_err(|error| match error.kind() {
                // Said of the file, it would be another's fault.
                ErrorKind::AlreadyExists => {
                    io::Error::other("a link that leads nowhere is where its folder would be; remove it")
                }
                _ => error,
            })
        }
        other => other.map(|_| ()),
    }
}

fn append(spot: &Spot, content: &[u8]) -> io::Result<()> {
    let mut how = OpenOptions::new();
    // A pipe without a reader would hold up whoever opens it.
    how.append(true).create(true).custom_flags(libc::O_NONBLOCK);
    let no_file = || io::Error::other("it is no file of bytes but a pipe, a socket or a device");
    let mut file = spot.folder.open_with(&spot.name, &how).map_err(|error| match error.raw_os_error() {
        // Nobody is at a pipe's other end.
        Some(libc::ENXIO) => no_file(),
        _ => error,
    })?;
    if !file.metadata()?.is_file() {
        return Err(no_file());
    }
    let before = file.metadata()?.len();
    file.write_all(content).inspect_err(|_| {
        // A disk that is full took a part of it.
        let _ = file.set_len(before);
    })
}
