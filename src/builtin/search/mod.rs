//! Search: file names, file contents, the state of a git repository; all beneath the roots. Here is the walk that finds the files,
//! on all processors; ignored files, hidden ones and links are left out, as someone who searches source code expects.

mod git;
mod glob;
mod grep;
mod matches;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt};
use ignore::{WalkBuilder, WalkState};

use super::{Builtins, Located, Roots, Stop, Unregistered};
use crate::outcome::Fault;

pub(super) fn add(tools: &mut Builtins, roots: &Roots) -> Result<(), Unregistered> {
    tools.register(roots.tool(glob::about, glob::find))?;
    tools.register(roots.tool(grep::about, grep::search))?;
    tools.register(git::GitStatus(roots.clone()))
}

/// Where to search, and what to include.
pub(super) struct Walk {
    root: Dir,
    above: PathBuf,
    /// Whether relative paths start there.
    is_first: bool,
    /// Below the root, with links resolved.
    start: PathBuf,
    /// Include hidden files.
    pub hidden: bool,
    /// Include ignored files.
    pub ignored: bool,
}

/// A path relative to the walk's start, which every path that is found begins with.
fn below<'p>(start: &Path, path: &'p Path) -> &'p Path {
    let bytes = path.as_os_str().as_bytes().get(start.as_os_str().len()..).unwrap_or_default();
    Path::new(OsStr::from_bytes(bytes.strip_prefix(b"/").unwrap_or(bytes)))
}

impl Walk {
    /// A walk from a path, which may be a single file.
    pub fn at(roots: &Roots, at: Located) -> Result<Self, Fault> {
        // Links are followed up to the start, and no more below it.
        let start = at.really().map_err(|error| roots.refused(&at.path(), &error))?;
        at.root.metadata(at.inner()).map_err(|error| roots.refused(&at.path(), &error))?;
        let is_first = roots.first() == Some(at.above.as_path());
        Ok(Self { root: at.root, above: at.above, is_first, start, hidden: false, ignored: false })
    }

    fn whole_start(&self) -> PathBuf {
        if self.start.as_os_str().is_empty() { self.above.clone() } else { self.above.join(&self.start) }
    }

    /// Whether it starts at a file.
    pub fn is_file(&self) -> bool {
        !self.start.as_os_str().is_empty() && self.root.metadata(&self.start).is_ok_and(|metadata| metadata.is_file())
    }

    /// Visits every file on several threads, each with its own visitor. It gets the path below the start, and the file name.
    pub fn each<V>(&self, stop: &Stop, visitor: impl Fn() -> V + Sync)
    where
        V: FnMut(&Path, &OsStr) + Send,
    {
        let start = self.whole_start();
        let mut builder = WalkBuilder::new(&start);
        builder.hidden(!self.hidden).follow_links(false);
        if self.ignored {
            builder.ignore(false).git_ignore(false).git_global(false).git_exclude(false).parents(false);
        }
        builder.filter_entry(|entry| entry.file_name() != ".git");
        builder.build_parallel().run(|| {
            let (start, mut visit) = (&start, visitor());
            Box::new(move |entry| {
                if stop.is_set() {
                    return WalkState::Quit;
                }
                // Unreadable folders are skipped.
                if let Ok(entry) = entry
                    && entry.file_type().is_some_and(|kind| kind.is_file())
                {
                    visit(below(start, entry.path()), entry.file_name());
                }
                WalkState::Continue
            })
        });
    }

    /// Opens a file beneath the root; it may have changed since it was found.
    pub fn open(&self, below: &Path) -> std::io::Result<File> {
        let path = self.inner(below);
        self.root.open_with(path, OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK))
    }

    /// The path as other tools accept it: relative if it is in the first root.
    pub fn shown(&self, below: &Path) -> String {
        let inner = self.inner(below);
        let path = if self.is_first { inner } else { self.above.join(inner) };
        path.to_string_lossy().into_owned()
    }

    fn inner(&self, below: &Path) -> PathBuf {
        if below.as_os_str().is_empty() { self.start.clone() } else { self.start.join(below) }
    }
}
