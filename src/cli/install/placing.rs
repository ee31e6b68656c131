//! From the staging place into the tools folder: nothing that was not seen is written over, and every step can be undone.

use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::parcel::{Parcel, Piece};
use super::staging::Staging;
use super::standing::is_same;

/// Within the staging place: what was in the way.
pub(super) const ASIDE: &str = ".aside";

/// What has been done so far.
pub(super) struct Placing<'a> {
    pub staging: &'a Staging,
    /// What was set aside: where it lies now, and where it lay.
    moved: Vec<(PathBuf, PathBuf)>,
    /// Of that, what is there still, until another takes its place.
    stays: Vec<PathBuf>,
    /// What was put where nothing was.
    put: Vec<PathBuf>,
    /// The folders that were made for it.
    made: Vec<PathBuf>,
}

impl<'a> Placing<'a> {
    pub fn from(staging: &'a Staging) -> Self {
        Self { staging, moved: Vec::new(), stays: Vec::new(), put: Vec::new(), made: Vec::new() }
    }

    pub fn all(&mut self, parcel: &Parcel, in_the_way: &[PathBuf]) -> Result<()> {
        let (from, to) = (&self.staging.folder, &self.staging.target);
        fs::create_dir(from.join(ASIDE))?;
        let is_file = |path: &Path| fs::symlink_metadata(path).is_ok_and(|about| !about.is_dir());
        // A file that another takes the place of is there all the time.
        let is_replaced = |path: &Path| {
            !parcel.is_folder() && is_file(path) && parcel.pieces.iter().any(|piece| to.join(&piece.at) == path)
        };
        for path in in_the_way {
            self.set_aside(path, is_replaced(path))?;
        }
        if parcel.is_folder() {
            return put_where_nothing_is(&from.join(&parcel.top), &to.join(&parcel.top));
        }
        parcel.pieces.iter().try_for_each(|piece| self.put(piece))
    }

    fn set_aside(&mut self, path: &Path, stays: bool) -> Result<()> {
        let to = self.staging.folder.join(ASIDE).join(self.moved.len().to_string());
        // A second name for it, where the file system knows such.
        if stays && fs::hard_link(path, &to).is_ok() {
            self.stays.push(path.to_owned());
        } else {
            fs::rename(path, &to)?;
        }
        self.moved.push((to, path.to_owned()));
        Ok(())
    }

    fn put(&mut self, piece: &Piece) -> Result<()> {
        let (from, to) = (self.staging.folder.join(&piece.at), self.staging.target.join(&piece.at));
        if let Some(folder) = to.parent() {
            let absent = folder.ancestors().take_while(|folder| fs::symlink_metadata(folder).is_err());
            self.made.extend(absent.map(Path::to_owned));
            fs::create_dir_all(folder)?;
        }
        if self.stays.contains(&to) {
            return fs::rename(from, to);
        }
        match put_where_nothing_is(&from, &to) {
            // What is there as it is wanted is shared.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && is_same(&from, &to) => return Ok(()),
            done => done?,
        }
        self.put.push(to);
        Ok(())
    }

    /// Undoes everything, and says where that lies which could not be put back.
    pub fn undo(mut self) -> Vec<String> {
        for path in self.put {
            let _ = fs::remove_file(path);
        }
        // The innermost first; what holds something else by now stays.
        self.made.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
        for folder in self.made {
            let _ = fs::remove_dir(folder);
        }
        let lost = self.moved.into_iter().rev().filter(|(from, to)| fs::rename(from, to).is_err());
        lost.map(|(from, _)| from.display().to_string()).collect()
    }
}

fn put_where_nothing_is(from: &Path, to: &Path) -> Result<()> {
    let taken =
        || Error::new(ErrorKind::AlreadyExists, format!("{} has come to be there meanwhile; look at it", to.display()));
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => Err(taken()),
        // Some file systems, those on a network for one, cannot look and rename at once.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if fs::symlink_metadata(to).is_ok() => Err(taken()),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => fs::rename(from, to),
        done => Ok(done?),
    }
}
