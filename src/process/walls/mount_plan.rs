//! Which mounts of its own a process needs, by the files and folders as they are when it starts.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access as Right, access};

use super::Walls;
use super::own_mounts::OwnMounts;

/// What the mounts are made for.
pub(super) struct MountPlan<'a> {
    pub walls: &'a Walls,
    /// What the process needs to run, which cannot be hidden from it.
    pub own: &'a [PathBuf],
    /// Its folder for temporary files.
    pub private: Option<&'a Path>,
    pub directory: &'a Path,
    /// Whether the attributes of what it may not write to are to be kept.
    pub seals: bool,
}

impl MountPlan<'_> {
    /// Those mounts, if some are needed.
    pub fn mounts(&self) -> io::Result<Option<OwnMounts>> {
        let Self { walls, private, directory, .. } = *self;
        let writable = walls.writable();
        let sealed = writable.clone().filter(|_| self.seals);
        if sealed.is_none() && walls.hidden.is_empty() {
            return Ok(None);
        }
        let hidden = self.hidden(writable.as_deref())?;
        let pinned = pinned(&hidden, writable.as_deref());
        let private = private.and_then(|private| private.canonicalize().ok());
        let sealed = sealed.map(|folders| folders.into_iter().chain(private).collect::<Vec<_>>());
        let mounts = OwnMounts::new(&hidden, &pinned, sealed.as_deref(), directory);
        mounts.map(Some).ok_or_else(|| io::ErrorKind::InvalidFilename.into())
    }

    /// What is hidden and exists, without what lies in something hidden.
    fn hidden(&self, writable: Option<&[PathBuf]>) -> io::Result<Vec<PathBuf>> {
        let mut found = BTreeSet::new();
        for written in &self.walls.hidden {
            let real = match written.canonicalize() {
                Ok(real) => real,
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                    continue;
                }
                Err(error) => {
                    let what = format!("its sandbox hides {}, which cannot be looked at: {error}", written.display());
                    return Err(io::Error::other(what));
                }
            };
            if let Some(link) = links_in(written).find(|link| is_changeable(link, writable)) {
                let (path, link) = (written.display(), link.display());
                let what = format!(
                    "its sandbox hides {path} by the link {link}, which it could change; name the place itself"
                );
                return Err(io::Error::other(what));
            }
            found.insert(real);
        }
        let mut needed = self.own.iter().map(PathBuf::as_path).chain(self.private);
        let is_hidden =
            |path: &&Path| path.canonicalize().is_ok_and(|real| real.ancestors().any(|one| found.contains(one)));
        if let Some(needed) = needed.find(is_hidden) {
            let what = format!("its sandbox hides {}, which it needs to run; hide less", needed.display());
            return Err(io::Error::other(what));
        }
        let is_outermost = |path: &&PathBuf| !path.ancestors().skip(1).any(|above| found.contains(above));
        Ok(found.iter().filter(is_outermost).cloned().collect())
    }
}

/// The folders above hidden ones that the process could rename, and what is hidden with them: a mount keeps its name, what is above it does
/// not.
fn pinned(hidden: &[PathBuf], writable: Option<&[PathBuf]>) -> Vec<PathBuf> {
    let above = hidden.iter().flat_map(|path| path.ancestors().skip(1));
    let renamed = above.filter(|folder| folder.parent().is_some() && is_changeable(folder, writable));
    renamed.map(Path::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whether the process could put something else in the place of a path.
fn is_changeable(path: &Path, writable: Option<&[PathBuf]>) -> bool {
    let Some(folder) = path.parent().and_then(|folder| folder.canonicalize().ok()) else { return false };
    let may_write = writable.is_none_or(|all| all.iter().any(|one| folder.starts_with(one)));
    may_write && access(&folder, Right::WRITE_OK).is_ok()
}

/// The links among the folders of a path, and itself.
fn links_in(path: &Path) -> impl Iterator<Item = &Path> {
    path.ancestors().filter(|part| part.symlink_metadata().is_ok_and(|about| about.is_symlink()))
}
