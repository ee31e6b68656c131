//! `list_directory`

use std::io;
use std::time::{Duration, SystemTime};

use cap_std::fs::{Dir, DirEntry, FileType};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::builtin::{About, Builtin, Call, Roots, Stop};
use crate::config::declared_policy::Risk;
use crate::config::tool::Effects;
use crate::outcome::Fault;

pub(super) struct ListDirectory(pub Roots);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// The folder; relative paths begin at the first folder that tools may reach, which `.` is.
    #[serde(default = "crate::builtin::here")]
    pub path: String,
    /// How many levels deep to look.
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
    /// What is in it, in the order of names; folders below it come after it.
    pub entries: Vec<Entry>,
    /// Whether there is more than was asked for.
    pub more: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Entry {
    /// Its path from the folder that was listed.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Its size in bytes, where it is a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// When it was last changed, in UTC.
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

impl Builtin for ListDirectory {
    type Params = Wanted;
    type Answer = Listing;

    fn about(&self) -> About {
        About::new("list_directory", "List what is in a folder: names, kinds, sizes, times of the last change.")
            .effects(Effects::Pure)
            .risk("read_only", Risk::Low)
            .timeout(Duration::from_secs(30))
    }

    async fn call(&self, wanted: Wanted, call: Call) -> Result<Listing, Fault> {
        let roots = self.0.clone();
        call.blocking(move |stop| list(&roots, &wanted, stop)).await
    }
}

fn list(roots: &Roots, wanted: &Wanted, stop: &Stop) -> Result<Listing, Fault> {
    let at = roots.locate(&wanted.path)?;
    let path = at.path();
    let folder = at.root.open_dir(at.inner()).map_err(|error| {
        if error.kind() == io::ErrorKind::NotADirectory {
            let message = format!("{} is a file; `read_file` reads it", path.display());
            return Fault::new(crate::outcome::Code::ToolError, message);
        }
        roots.refused(&path, &error)
    })?;
    let mut found = Found { entries: Vec::new(), limit: wanted.limit.max(1), more: false, stop };
    found.look(&folder, "", wanted.depth.max(1)).map_err(|error| roots.refused(&path, &error))?;
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
            if self.entries.len() >= self.limit || self.stop.is_said() {
                self.more = true;
                return Ok(());
            }
            let kind = entry.file_type().map_or(Kind::Other, kind_of);
            let name = format!("{above}{}", entry.file_name().to_string_lossy());
            // What goes between being listed and being looked at is listed all the same.
            let metadata = entry.metadata().ok();
            let size = metadata.as_ref().filter(|_| kind == Kind::File).map(cap_std::fs::Metadata::len);
            let modified = metadata.and_then(|metadata| Some(metadata.modified().ok()?.into_std())).map(in_utc);
            self.entries.push(Entry { name: name.clone(), kind, size, modified });
            if depth > 1
                && kind == Kind::Directory
                && let Ok(inner) = entry.open_dir()
            {
                // One that may not be read is listed, and nothing in it.
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
