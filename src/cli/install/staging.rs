//! Staging: a hidden folder inside the tools folder that files are copied into before they are shown, so that what was shown
//! is what is installed. From there they are renamed into place: nothing that was not shown is overwritten, and every step
//! can be undone.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Error, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, RenameFlags, openat, renameat_with};
use rustix::io::Errno;

use super::conflicts::is_same;
use super::parcel::{Parcel, Piece};
use crate::cli::style;

/// Hidden, so that it is not served. The process id follows, so that a later run can clean up after a killed one.
const PREFIX: &str = ".install-";

/// The same for what is being removed.
pub(in crate::cli) const REMOVING: &str = ".remove-";

/// Removed when it is dropped, with every folder that was created for it and is still empty.
#[derive(Debug)]
pub(super) struct Staging {
    pub folder: PathBuf,
    pub target: PathBuf,
    made: Vec<PathBuf>,
    /// Whether it holds replaced files that could not be put back.
    keeps: bool,
}

impl Staging {
    /// A staging folder in a tools folder, which is created if needed: readable only by its owner when it is the user's own.
    pub fn within(target: &Path, is_own: bool) -> Result<Self, String> {
        let cannot = |error: io::Error| {
            format!("cannot write to {}: {error}; pass another folder with --to DIR", target.display())
        };
        let made: Vec<PathBuf> =
            target.ancestors().take_while(|folder| fs::symlink_metadata(folder).is_err()).map(Path::to_owned).collect();
        let leave = if is_own { 0o700 } else { 0o777 };
        DirBuilder::new().recursive(true).mode(leave).create(target).map_err(cannot)?;
        sweep(target);
        let folder = new_folder(target).inspect_err(|_| remove_empty(&made)).map_err(cannot)?;
        Ok(Self { folder, target: target.to_owned(), made, keeps: false })
    }

    /// Copies or links every file of a parcel here.
    pub fn fill(&self, parcel: &Parcel) -> Result<(), String> {
        parcel.pieces.iter().try_for_each(|piece| {
            let to = self.folder.join(&piece.at);
            copy(piece, &to, parcel).map_err(|error| format!("cannot install {}: {error}", piece.from.display()))
        })
    }

    /// Moves everything into place. Files `in_the_way` are set aside first, and put back if that fails.
    pub fn place(&mut self, parcel: &Parcel, in_the_way: &[PathBuf]) -> Result<(), String> {
        let mut placing = Placing::from(self);
        let Err(error) = placing.all(parcel, in_the_way) else { return Ok(()) };
        let kept = placing.undo();
        self.keeps = !kept.is_empty();
        let state = match kept.as_slice() {
            [] => "nothing was changed".to_owned(),
            kept => format!("replaced files could not be put back and are in {}", kept.join(", ")),
        };
        Err(format!("{} was not installed: {error}; {state}", parcel.source.display()))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if self.keeps {
            return;
        }
        let _ = fs::remove_dir_all(&self.folder);
        remove_empty(&self.made);
    }
}

/// Folders that are not empty stay.
fn remove_empty(folders: &[PathBuf]) {
    for folder in folders {
        let _ = fs::remove_dir(folder);
    }
}

/// A new folder: an earlier run with the same process id may have left files set aside in its own.
fn new_folder(target: &Path) -> io::Result<PathBuf> {
    let own = format!("{PREFIX}{}", std::process::id());
    let others = (1..100).map(|count| format!("{own}-{count}"));
    for name in std::iter::once(own.clone()).chain(others) {
        let folder = target.join(name);
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            done => return done.map(|()| folder),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn copy(piece: &Piece, to: &Path, parcel: &Parcel) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    if parcel.is_link {
        return symlink(&piece.from, to);
    }
    // The file may have been replaced by a pipe, and opening that would block.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut from = File::from(openat(CWD, &piece.from, flags, Mode::empty())?);
    let about = from.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is no longer a regular file"));
    }
    let mut copy = File::create_new(to)?;
    io::copy(&mut from, &mut copy)?;
    // Without set-user-id bits and without write permission for others.
    copy.set_permissions(Permissions::from_mode(about.permissions().mode() & 0o755 | 0o400))?;
    copy.sync_all()
}

/// Removes what killed runs left. Files that they had set aside may exist nowhere else: those stay, with a warning.
pub(in crate::cli) fn sweep(target: &Path) {
    for entry in fs::read_dir(target).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_str().and_then(|name| name.strip_prefix(PREFIX).or(name.strip_prefix(REMOVING)));
        let pid = name.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if !pid.is_some_and(is_over) {
            continue;
        }
        let aside = entry.path().join(ASIDE);
        if fs::read_dir(&aside).is_ok_and(|mut held| held.next().is_some()) {
            let fix = "move back what is missing, then remove that folder";
            style::warn(&format!("{} has files that an interrupted install set aside; {fix}", aside.display()));
        } else {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether the run with this process id is over. Our own id belonged to an earlier run, as in a container, which reuses ids.
fn is_over(pid: u32) -> bool {
    let other = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let is_gone = |pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH);
    pid == std::process::id() || other.is_some_and(is_gone)
}

/// In the staging folder: the files that were in the way.
pub(super) const ASIDE: &str = ".aside";

/// The steps done so far, so that they can be undone.
pub(super) struct Placing<'a> {
    pub staging: &'a Staging,
    /// Files set aside: their place now, and before.
    moved: Vec<(PathBuf, PathBuf)>,
    /// Those of them that stay visible until they are replaced.
    stays: Vec<PathBuf>,
    /// New files.
    put: Vec<PathBuf>,
    /// New folders.
    made: Vec<PathBuf>,
}

impl<'a> Placing<'a> {
    pub fn from(staging: &'a Staging) -> Self {
        Self { staging, moved: Vec::new(), stays: Vec::new(), put: Vec::new(), made: Vec::new() }
    }

    pub fn all(&mut self, parcel: &Parcel, in_the_way: &[PathBuf]) -> io::Result<()> {
        let (from, to) = (&self.staging.folder, &self.staging.target);
        fs::create_dir(from.join(ASIDE))?;
        let is_file = |path: &Path| fs::symlink_metadata(path).is_ok_and(|about| !about.is_dir());
        // A file that is replaced by one of the same name never disappears in between.
        let is_replaced = |path: &Path| {
            !parcel.is_folder() && is_file(path) && parcel.pieces.iter().any(|piece| to.join(&piece.at) == path)
        };
        for path in in_the_way {
            self.set_aside(path, is_replaced(path))?;
        }
        if parcel.is_folder() {
            return rename_new(&from.join(&parcel.top), &to.join(&parcel.top));
        }
        parcel.pieces.iter().try_for_each(|piece| self.put(piece))
    }

    fn set_aside(&mut self, path: &Path, stays: bool) -> io::Result<()> {
        let to = self.staging.folder.join(ASIDE).join(self.moved.len().to_string());
        // A hard link, where the file system has them.
        if stays && fs::hard_link(path, &to).is_ok() {
            self.stays.push(path.to_owned());
        } else {
            fs::rename(path, &to)?;
        }
        self.moved.push((to, path.to_owned()));
        Ok(())
    }

    fn put(&mut self, piece: &Piece) -> io::Result<()> {
        let (from, to) = (self.staging.folder.join(&piece.at), self.staging.target.join(&piece.at));
        if let Some(folder) = to.parent() {
            let absent = folder.ancestors().take_while(|folder| fs::symlink_metadata(folder).is_err());
            self.made.extend(absent.map(Path::to_owned));
            fs::create_dir_all(folder)?;
        }
        if self.stays.contains(&to) {
            return fs::rename(from, to);
        }
        match rename_new(&from, &to) {
            // An identical file is shared.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && is_same(&from, &to) => return Ok(()),
            done => done?,
        }
        self.put.push(to);
        Ok(())
    }

    /// Undoes everything; returns the places of files that could not be put back.
    pub fn undo(mut self) -> Vec<String> {
        for path in self.put {
            let _ = fs::remove_file(path);
        }
        // The innermost first; folders that are not empty stay.
        self.made.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
        for folder in self.made {
            let _ = fs::remove_dir(folder);
        }
        let lost = self.moved.into_iter().rev().filter(|(from, to)| fs::rename(from, to).is_err());
        lost.map(|(from, _)| from.display().to_string()).collect()
    }
}

fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let taken = || Error::new(ErrorKind::AlreadyExists, format!("{} was created meanwhile", to.display()));
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => Err(taken()),
        // Some file systems, such as network ones, cannot check and rename in one step.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if fs::symlink_metadata(to).is_ok() => Err(taken()),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => fs::rename(from, to),
        done => Ok(done?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_killed_runs_are_removed_except_files_set_aside() {
        let target = tempfile::tempdir().unwrap();
        let left = |pid: u32| target.path().join(format!("{PREFIX}{pid}"));
        // No process has such an id.
        let (own, gone, holding) = (std::process::id(), u32::MAX / 2 - 1, u32::MAX / 2);
        for pid in [own, gone, holding] {
            fs::create_dir_all(left(pid).join(ASIDE)).unwrap();
        }
        fs::write(left(holding).join(ASIDE).join("0"), "the only one").unwrap();
        let removing = target.path().join(format!("{REMOVING}{gone}"));
        fs::create_dir_all(removing.join("pack")).unwrap();
        let staging = Staging::within(target.path(), true).unwrap();
        assert!(!removing.exists(), "a removal that was interrupted is completed");
        assert!(!staging.folder.join(ASIDE).exists(), "it is a new folder");
        drop(staging);
        fs::create_dir_all(left(own).join(ASIDE)).unwrap();
        fs::write(left(own).join(ASIDE).join("0"), "the only one").unwrap();
        let first = Staging::within(target.path(), true).unwrap();
        assert_eq!(first.folder, target.path().join(format!("{PREFIX}{own}-1")));
        drop(first);
        fs::create_dir(target.path().join(format!("{PREFIX}{own}-1"))).unwrap();
        let second = Staging::within(target.path(), true).unwrap();
        assert!(second.folder.ends_with(format!("{PREFIX}{own}-1")), "a killed run's was removed");
        drop(second);
        assert!(left(own).join(ASIDE).join("0").exists());
        assert!(!left(gone).exists() && left(holding).join(ASIDE).join("0").exists());
    }
}
