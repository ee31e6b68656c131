//! Whether anything below the tool folders has changed, told by the file system without reading a file.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a path looked like.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    seen: Option<(i64, i64, u64, u64)>,
}

impl Stamp {
    fn of(path: &Path) -> Self {
        let seen = path.metadata().ok();
        let seen = seen.map(|data| (data.mtime(), data.mtime_nsec(), data.size(), data.ino()));
        Self { path: path.to_owned(), seen }
    }

    fn still_true(&self) -> bool {
        Self::of(&self.path) == *self
    }
}

/// What a set of paths looked like.
#[derive(Debug, Clone, Default)]
pub(super) struct Stamps(Vec<Stamp>);

impl Stamps {
    /// Looks at the paths now. Take the stamps before reading: a change in between is then seen the next time.
    pub fn of<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        Self(paths.into_iter().map(Stamp::of).collect())
    }

    /// Whether every path still looks the same.
    pub fn still_true(&self) -> bool {
        self.0.iter().all(Stamp::still_true)
    }
}

impl Stamps {
    /// Both sets.
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self.0.dedup();
        self
    }
}
