//! `list_directory`

use std::io;
use std::time::{Duration, SystemTime};

use cap_std::fs::{Dir, DirEntry, FileType};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::builtin::{About, Roots, Stop};
use crate::config::declared_policy::Risk;
use crate::outcome::Fault;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    /// The folder, absolute or relative to the first allowed folder (`.`).
    #[serde(default = "crate::builtin::here")]
    pub path: String,
    /// How many levels deep to list.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 16))]
    pub depth: u32,
    /// The most entries to return.
    #[serde(default = "usual")]
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: usize,
}

fn one() -> u32 {
    1
}

fn usual() -> usize {
    1000
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Listing {
    /// The folder that was listed.
    pub path: String,
    /// Its entries by name; the entries of a folder follow it.
    pub entries: Vec<Entry>,
    /// Whether there are more entries.
    pub more: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Entry {
    /// Its path from the folder that was listed.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// The size of a file in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The time of its last change, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    File,
    Directory,
    Link,
    Other,
}

pub(super) fn about() -> About {
    About::new("list_directory", "List the entries of a folder: name, kind, size, time of the last change.")
        .reads("read_only", Risk::Low)
        .path_argument("path")
        .timeout(Duration::from_secs(30))
}

pub(super) fn list(roots: &Roots, params: &Params, stop: &Stop) -> Result<Listing, Fault> {
    let at = roots.locate(&params.path)?;
    let path = at.path();
    let folder = at.root.open_dir(at.inner()).map_err(|error| {
        if error.kind() == io::ErrorKind::NotADirectory {
            let message = format!("{} is a file; use `read_file`", path.display());
            return Fault::new(crate::outcome::Code::ToolError, message);
        }
        roots.refused(&path, &error)
    })?;
    let mut found = Found { entries: Vec::new(), limit: params.limit.max(1), more: false, stop };
    found.look(&folder, "", params.depth.max(1)).map_err(|error| roots.refused(&path, &error))?;
    Ok(Listing { path: path.display().to_string(), entries: found.entries, more: found.more })
}

struct Found<'a> {
    entries: Vec<Entry>,
    limit: usize,
    more: bool,
    stop: &'a Stop,
}

impl Found<'_> {
    fn look(&mut self, folder: &Dir, above: &str, depth: u32) -> io::Result<()> {
        let mut entries: Vec<DirEntry> = folder.entries()?.collect::<io::Result<_>>()?;
        entries.sort_by_key(DirEntry::file_name);
        for entry in entries {
            if self.entries.len() >= self.limit || self.stop.is_set() {
                self.more = true;
                return Ok(());
            }
            let kind = entry.file_type().map_or(Kind::Other, kind_of);
            let name = format!("{above}{}", entry.file_name().to_string_lossy());
            // An entry that disappears meanwhile is listed without details.
            let metadata = entry.metadata().ok();
            let size = metadata.as_ref().filter(|_| kind == Kind::File).map(cap_std::fs::Metadata::len);
            let modified = metadata.and_then(|metadata| Some(metadata.modified().ok()?.into_std())).map(in_utc);
            self.entries.push(Entry { name: name.clone(), kind, size, modified });
            if depth > 1
                && kind == Kind::Directory
                && let Ok(inner) = entry.open_dir()
            {
                // An unreadable folder is listed without its entries.
                let _ = self.look(&inner, &format!("{name}/"), depth - 1);
            }
        }
        Ok(())
    }
}

fn kind_of(kind: FileType) -> Kind {
    if kind.is_dir() {
        Kind::Directory
    } else if kind.is_file() {
        Kind::File
    } else if kind.is_symlink() {
        Kind::Link
    } else {
        Kind::Other
    }
}

fn in_utc(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}
