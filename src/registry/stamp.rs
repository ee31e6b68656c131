//! Whether a file has changed, told by the file system without reading it.

use std::path::{Path, PathBuf};

use crate::discovery;

/// What a path looked like.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    seen: Option<discovery::Stamp>,
}

impl Stamp {
    fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), seen: discovery::Stamp::of(path) }
    }

    fn still_true(&self) -> bool {
        Self::of(&self.path) == *self
    }
}

/// What a set of paths looked like, sorted by path.
#[derive(Debug, Clone, Default)]
pub struct Stamps(Vec<Stamp>);

impl Stamps {
    /// Looks at the paths now.
    pub(super) fn of<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let mut stamps: Vec<Stamp> = paths.into_iter().map(Stamp::of).collect();
        stamps.sort_by(|left, right| left.path.cmp(&right.path));
        Self(stamps)
    }

    /// What these paths looked like in an earlier look, and now where that did not know them.
    pub(super) fn as_seen_at<'p>(&self, paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let earlier = |path: &Path| self.0.binary_search_by(|stamp| stamp.path.as_path().cmp(path)).ok();
        let stamp = |path: &Path| earlier(path).map_or_else(|| Stamp::of(path), |place| self.0[place].clone());
        Self(paths.into_iter().map(stamp).collect())
    }

    /// Whether every path still looks the same.
    pub(super) fn still_true(&self) -> bool {
        self.0.iter().all(Stamp::still_true)
    }
}
