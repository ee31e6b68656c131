//! The files below a folder, found on all processors: what `.gitignore` names, hidden ones and links are left out, as a person
//! searching a tree of code wants it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt};
use ignore::{WalkBuilder, WalkState};

use crate::builtin::{Located, Roots, Stop};
use crate::outcome::Fault;

/// Where to look, and at what.
pub(super) struct Walk {
    root: Dir,
    above: PathBuf,
    /// Whether relative paths begin there.
    is_first: bool,
    /// From the root, without links.
    start: PathBuf,
    /// Hidden files too.
    pub hidden: bool,
    /// What ignore files name, too.
    pub ignored: bool,
}

/// What a path is below the one that the walk began at. Every path that is found begins with that.
fn below<'p>(start: &Path, path: &'p Path) -> &'p Path {
    let bytes = path.as_os_str().as_bytes().get(start.as_os_str().len()..).unwrap_or_default();
    Path::new(OsStr::from_bytes(bytes.strip_prefix(b"/").unwrap_or(bytes)))
}

impl Walk {
    /// Begins at a path, which may be a single file.
    pub fn at(roots: &Roots, at: Located) -> Result<Self, Fault> {
        // Links are followed on the way to the start, within the root, and below it no more.
        let start = at.really().map_err(|error| roots.refused(&at.path(), &error))?;
        at.root.metadata(at.inner()).map_err(|error| roots.refused(&at.path(), &error))?;
        let is_first = roots.first() == Some(at.above.as_path());
        Ok(Self { root: at.root, above: at.above, is_first, start, hidden: false, ignored: false })
    }

    fn whole_start(&self) -> PathBuf {
        if self.start.as_os_str().is_empty() { self.above.clone() } else { self.above.join(&self.start) }
    }

    /// Whether it begins at a file.
    pub fn is_file(&self) -> bool {
        !self.start.as_os_str().is_empty() && self.root.metadata(&self.start).is_ok_and(|metadata| metadata.is_file())
    }

    /// Visits every file, on several threads, each with a visitor of its own, which is told the path below the start and the
    /// name.
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
                if stop.is_said() {
                    return WalkState::Quit;
                }
                // A folder that may not be read is passed by.
                if let Ok(entry) = entry
                    && entry.file_type().is_some_and(|kind| kind.is_file())
                {
                    visit(below(start, entry.path()), entry.file_name());
                }
                WalkState::Continue
            })
        });
    }

    /// Opens a file that was found, beneath the root: what it was when it was found may be over.
    pub fn open(&self, below: &Path) -> std::io::Result<File> {
        let path = self.inner(below);
        self.root.open_with(path, OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK))
    }

    /// The path as other tools take it: without its root where that is the first.
    pub fn shown(&self, below: &Path) -> String {
        let inner = self.inner(below);
        let path = if self.is_first { inner } else { self.above.join(inner) };
        path.to_string_lossy().into_owned()
    }

    fn inner(&self, below: &Path) -> PathBuf {
        if below.as_os_str().is_empty() { self.start.clone() } else { self.start.join(below) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_walk_ends_when_nobody_waits() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "").unwrap();
        let roots = Roots::new(vec![folder.path().to_owned()]);
        let walk = Walk::at(&roots, roots.locate(".").unwrap()).unwrap();
        let visited = |stop: &Stop| {
            let count = AtomicUsize::new(0);
            walk.each(stop, || |_: &Path, _: &OsStr| _ = count.fetch_add(1, Ordering::Relaxed));
            count.into_inner()
        };
        let stop = Stop::default();
        assert_eq!(visited(&stop), 1);
        stop.say();
        assert_eq!(visited(&stop), 0);
    }
}
