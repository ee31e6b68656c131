//! Staging: a hidden folder inside the tools folder that files are copied into before they are shown, so that what was shown
//! is what is installed. From there one rename puts them into place: nothing that was not shown is overwritten, and what was
//! set aside is put back if the rename fails.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Error, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustix::fs::{CWD, Mode, OFlags, RenameFlags, openat, renameat_with};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::conflicts::Existing;
use super::parcel::{Parcel, Piece};
use crate::cli::style::{self, Refusal};

/// In the staging folder: the entries that were in the way.
const ASIDE: &str = ".aside";

/// A hidden name, so that it is not served, for what is being installed or removed. The process id lets a later run clean up
/// after a killed one; the time distinguishes runs that had the same id.
pub(in crate::cli) fn hidden_name() -> String {
    let now = UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
    format!("{PREFIX}{}-{now}", std::process::id())
}

const PREFIX: &str = ".hostler-";

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
    pub fn within(target: &Path, is_own: bool) -> Result<Self, Refusal> {
        let cannot = |error: io::Error| Refusal {
            fix: "pass another folder with --to DIR".to_owned(),
            ..Refusal::io(format!("cannot write to {}", target.display()), error)
        };
        let made: Vec<PathBuf> =
            target.ancestors().take_while(|folder| fs::symlink_metadata(folder).is_err()).map(Path::to_owned).collect();
        let permissions = if is_own { 0o700 } else { 0o777 };
        DirBuilder::new().recursive(true).mode(permissions).create(target).map_err(cannot)?;
        sweep(target);
        let folder = target.join(hidden_name());
        let staging = Self { folder, target: target.to_owned(), made, keeps: false };
        DirBuilder::new().mode(0o700).create(&staging.folder).map_err(cannot)?;
        Ok(staging)
    }

    /// Copies or links every file of a parcel here.
    pub fn fill(&self, parcel: &Parcel) -> Result<(), Refusal> {
        parcel.pieces.iter().try_for_each(|piece| {
            let cannot = |error| Refusal::io(format!("cannot install {}", piece.from.display()), error);
            copy(piece, &self.folder.join(&piece.at), parcel.is_link).map_err(cannot)
        })
    }

    /// Moves everything into place. An entry of the same name is replaced in one step, where the file system can do that. What
    /// else is `in_the_way` is set aside afterwards, so that the tool is never missing, even if this run is killed. If any of it
    /// fails, all is put back.
    pub fn place(&mut self, parcel: &Parcel, in_the_way: &[Existing]) -> Result<(), Refusal> {
        if let Some(changed) = in_the_way.iter().find(|entry| !entry.is_unchanged()) {
            let (source, entry) = (parcel.source.display(), changed.path.display());
            let what = format!("{source} was not installed: {entry} changed meanwhile");
            return Err(Refusal::new(what, "run the command again to see what would be replaced"));
        }
        let in_the_way: Vec<_> = in_the_way.iter().map(|entry| entry.path.clone()).collect();
        self.place_by(&|from, to, flags| renameat_with(CWD, from, CWD, to, flags), parcel, &in_the_way)
    }

    fn place_by(&mut self, rename: Rename<'_>, parcel: &Parcel, in_the_way: &[PathBuf]) -> Result<(), Refusal> {
        let aside = self.folder.join(ASIDE);
        let mut moved = Vec::new();
        let (new, place) = (self.folder.join(&parcel.top), self.target.join(&parcel.top));
        let (mut is_placed, mut is_exchanged) = (false, false);
        let placed = fs::create_dir(&aside).and_then(|()| {
            let mut set_aside = |path: &PathBuf| {
                let to = aside.join(moved.len().to_string());
                rename_new(rename, path, &to)?;
                moved.push((to, path.clone()));
                Ok::<_, Error>(())
            };
            if in_the_way.contains(&place) {
                match rename(&new, &place, RenameFlags::EXCHANGE) {
                    Err(error) if is_unsupported(error) => set_aside(&place)?,
                    done => {
                        done?;
                        is_exchanged = true;
                    }
                }
            }
            if !is_exchanged {
                rename_new(rename, &new, &place)?;
            }
            is_placed = true;
            in_the_way.iter().filter(|path| **path != place).try_for_each(set_aside)
        });
        let Err(error) = placed else { return Ok(()) };
        let is_back = match (is_placed, is_exchanged) {
            (true, true) => rename(&new, &place, RenameFlags::EXCHANGE).is_ok(),
            (true, false) => rename_new(rename, &place, &new).is_ok(),
            (false, _) => true,
        };
        let back = moved.into_iter().rev().filter(|(from, to)| rename_new(rename, from, to).is_err());
        self.keeps = back.count() > 0 || !is_back;
        let state = if self.keeps {
            format!("replaced files could not be put back and are in {}", self.folder.display())
        } else {
            "nothing was changed".to_owned()
        };
        let what = format!("{} was not installed", parcel.source.display());
        Err(Refusal { fix: state, ..Refusal::io(what, error) })
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if self.keeps {
            return;
        }
        let _ = fs::remove_dir_all(&self.folder);
        // Those that are not empty stay.
        for folder in &self.made {
            let _ = fs::remove_dir(folder);
        }
    }
}

fn copy(piece: &Piece, to: &Path, is_link: bool) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    if is_link {
        return symlink(&piece.from, to);
    }
    // The file may have been replaced by a pipe, and opening that would block.
    let follow = if piece.may_be_link { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | follow;
    let changed = || Error::other("it is no longer a regular file");
    let opened = openat(CWD, &piece.from, flags, Mode::empty());
    let mut from = File::from(opened.map_err(|error| if error == Errno::LOOP { changed() } else { error.into() })?);
    let about = from.metadata()?;
    if !about.is_file() {
        return Err(changed());
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
        let run = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok());
        if !run.is_some_and(is_over) {
            continue;
        }
        let aside = entry.path().join(ASIDE);
        if fs::read_dir(&aside).is_ok_and(|mut held| held.next().is_some()) {
            let fix = "move back what is missing, then remove that folder";
            style::warn(&format!("{} has files that an interrupted install set aside; {fix}", aside.display()));
        } else {
            let _ = fs::remove_dir_all(entry.path()).or_else(|_| fs::remove_file(entry.path()));
        }
    }
}

/// Whether the run with this process id is over. Our own id belonged to an earlier run, as in a container, which reuses ids.
fn is_over(pid: i32) -> bool {
    let is_gone = |pid| test_kill_process(pid) == Err(Errno::SRCH);
    u32::try_from(pid) == Ok(std::process::id()) || Pid::from_raw(pid).is_some_and(is_gone)
}

/// Tests substitute a file system that cannot exchange two entries.
type Rename<'a> = &'a dyn Fn(&Path, &Path, RenameFlags) -> Result<(), Errno>;

/// Some file systems, such as network ones, cannot exchange, or check and rename in one step.
fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)
}

fn rename_new(rename: Rename<'_>, from: &Path, to: &Path) -> io::Result<()> {
    let taken = || Error::new(ErrorKind::AlreadyExists, format!("{} was created meanwhile", to.display()));
    match rename(from, to, RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => Err(taken()),
        Err(error) if is_unsupported(error) && fs::symlink_metadata(to).is_ok() => Err(taken()),
        Err(error) if is_unsupported(error) => fs::rename(from, to),
        done => Ok(done?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_killed_runs_are_removed_except_files_set_aside() {
        let target = tempfile::tempdir().unwrap();
        // No process has such an id.
        let (own, gone, holding) = (std::process::id(), i32::MAX - 1, i32::MAX);
        let left = [format!("{own}-1"), format!("{gone}-1"), format!("{holding}-1")];
        let left = left.map(|name| target.path().join(format!("{PREFIX}{name}")));
        for folder in &left {
            fs::create_dir_all(folder.join(ASIDE)).unwrap();
        }
        fs::write(left[2].join(ASIDE).join("0"), "the only one").unwrap();
        drop(Staging::within(target.path(), true).unwrap());
        assert!(!left[0].exists() && !left[1].exists() && left[2].join(ASIDE).join("0").exists());
        assert_eq!(fs::read_dir(target.path()).unwrap().count(), 1, "its own is gone too");
    }

    #[test]
    fn a_file_that_was_swapped_for_a_link_is_not_copied() {
        let (work, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let pack = work.path().join("pack");
        fs::create_dir(&pack).unwrap();
        for path in [pack.join("pack.py"), pack.join("data"), work.path().join("secret")] {
            fs::write(path, "").unwrap();
        }
        let parcel = Parcel::of(&pack, false).unwrap();
        fs::remove_file(pack.join("data")).unwrap();
        symlink("../secret", pack.join("data")).unwrap();
        let staging = Staging::within(target.path(), true).unwrap();
        assert!(staging.fill(&parcel).unwrap_err().to_string().contains("no longer a regular file"));
        symlink("pack/pack.py", work.path().join("named.py")).unwrap();
        staging.fill(&Parcel::of(&work.path().join("named.py"), false).unwrap()).unwrap();
        assert!(staging.folder.join("named.py").is_file());
    }

    #[test]
    fn a_replaced_file_that_cannot_be_put_back_is_kept() {
        let (work, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (source, place) = (work.path().join("one.py"), target.path().join("one.py"));
        fs::write(&source, "new").unwrap();
        for is_created_meanwhile in [false, true] {
            fs::write(&place, "mine").unwrap();
            let parcel = Parcel::of(&source, false).unwrap();
            let mut staging = Staging::within(target.path(), true).unwrap();
            staging.fill(&parcel).unwrap();
            let aside = staging.folder.join(ASIDE);
            let rename = |from: &Path, to: &Path, flags: RenameFlags| {
                if flags == RenameFlags::EXCHANGE {
                    return Err(Errno::INVAL);
                }
                renameat_with(CWD, from, CWD, to, flags)?;
                if is_created_meanwhile && *from == place {
                    fs::write(&place, "theirs").unwrap();
                }
                Ok(())
            };
            let placed = staging.place_by(&rename, &parcel, std::slice::from_ref(&place));
            drop(staging);
            let content = fs::read_to_string(&place).unwrap();
            assert_eq!(
                (placed.is_err(), content.as_str()),
                if is_created_meanwhile { (true, "theirs") } else { (false, "new") }
            );
            let kept: Vec<_> = fs::read_dir(aside).into_iter().flatten().flatten().map(|old| old.path()).collect();
            let kept: Vec<_> = kept.iter().map(|old| fs::read_to_string(old).unwrap()).collect();
            assert_eq!(kept, if is_created_meanwhile { vec!["mine"] } else { vec![] });
        }
    }
}
