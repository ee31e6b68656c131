//! A place beside where a tool is going to lie, in which it is looked at first: what is shown is then what is installed,
//! whatever becomes of its source meanwhile, and it is put in its place by a rename.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::parcel::{Parcel, Piece};
use super::placing::{ASIDE, Placing};
use crate::cli::style;

/// Hidden, so that nobody serves what lies there. The number of the process follows, for whoever comes after one that was
/// killed.
const PREFIX: &str = ".install-";

/// What is being removed, likewise.
pub(in crate::cli) const REMOVING: &str = ".remove-";

/// Emptied and removed when it is dropped, with every folder that had to be made for it and is still empty.
#[derive(Debug)]
pub(super) struct Staging {
    pub folder: PathBuf,
    pub target: PathBuf,
    made: Vec<PathBuf>,
    /// It holds what was there before and could not be put back.
    keeps: bool,
}

impl Staging {
    /// A staging place within a tools folder, which is made where it is not there: only for its owner when it is one's own.
    pub fn within(target: &Path, is_own: bool) -> Result<Self, String> {
        let cannot = |error: io::Error| {
            format!("{} cannot be written to: {error}; name another with --to DIR", target.display())
        };
        let made: Vec<PathBuf> =
            target.ancestors().take_while(|folder| fs::symlink_metadata(folder).is_err()).map(Path::to_owned).collect();
        let leave = if is_own { 0o700 } else { 0o777 };
        DirBuilder::new().recursive(true).mode(leave).create(target).map_err(cannot)?;
        sweep(target);
        let folder = new_folder(target).inspect_err(|_| remove_empty(&made)).map_err(cannot)?;
        Ok(Self { folder, target: target.to_owned(), made, keeps: false })
    }

    /// Brings everything of a parcel here, as it will lie there.
    pub fn bring(&self, parcel: &Parcel) -> Result<(), String> {
        parcel.pieces.iter().try_for_each(|piece| {
            let to = self.folder.join(&piece.at);
            let brought = bring(piece, &to, parcel);
            brought.map_err(|error| format!("{} cannot be installed: {error}", piece.from.display()))
        })
    }

    /// Puts everything in its place. What is `in_the_way` is set aside before, and put back should that fail.
    pub fn place(&mut self, parcel: &Parcel, in_the_way: &[PathBuf]) -> Result<(), String> {
        let mut placing = Placing::from(self);
        let Err(error) = placing.all(parcel, in_the_way) else { return Ok(()) };
        let kept = placing.undo();
        self.keeps = !kept.is_empty();
        let standing = match kept.as_slice() {
            [] => "what was there is there still".to_owned(),
            kept => format!("what was there could not be put back and lies in {}", kept.join(", ")),
        };
        Err(format!("{} was not installed: {error}; {standing}", parcel.source.display()))
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

/// Those that hold something stay.
fn remove_empty(folders: &[PathBuf]) {
    for folder in folders {
        let _ = fs::remove_dir(folder);
    }
}

/// One that is nobody's: what an earlier run of the same number had set aside may lie where this one's would.
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

fn bring(piece: &Piece, to: &Path, parcel: &Parcel) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    if parcel.is_link {
        return symlink(&piece.from, to);
    }
    // The file may be exchanged for a pipe just now, which would be waited for.
    let mut from = File::from(rustix::fs::open(
        &piece.from,
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?);
    let about = from.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is no regular file any more"));
    }
    let mut copy = File::create_new(to)?;
    io::copy(&mut from, &mut copy)?;
    // Nobody else's leave comes along: neither to run as somebody else, nor for others to write.
    copy.set_permissions(Permissions::from_mode(about.permissions().mode() & 0o755 | 0o400))?;
    copy.sync_all()
}

/// Removes what killed runs left, but for what they had set aside: perhaps it is nowhere else, and who looks for it is told.
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
            let advice = "put it back where it is missing, and remove that folder";
            style::warn(&format!("{} holds what an install that was ended had set aside; {advice}", aside.display()));
        } else {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether a run with this number is over. One's own number was another's before, as in a container, whose numbers begin anew.
fn is_over(pid: u32) -> bool {
    let other = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let is_gone = |pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH);
    pid == std::process::id() || other.is_some_and(is_gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_killed_runs_left_goes_but_for_what_they_had_set_aside() {
        let target = tempfile::tempdir().unwrap();
        let left = |pid: u32| target.path().join(format!("{PREFIX}{pid}"));
        // Numbers of processes do not go so far.
        let (own, gone, holding) = (std::process::id(), u32::MAX / 2 - 1, u32::MAX / 2);
        for pid in [own, gone, holding] {
            fs::create_dir_all(left(pid).join(ASIDE)).unwrap();
        }
        fs::write(left(holding).join(ASIDE).join("0"), "the only one").unwrap();
        let removing = target.path().join(format!("{REMOVING}{gone}"));
        fs::create_dir_all(removing.join("pack")).unwrap();
        let staging = Staging::within(target.path(), true).unwrap();
        assert!(!removing.exists(), "that somebody wanted gone");
        assert!(!staging.folder.join(ASIDE).exists(), "it is a new one");
        drop(staging);
        // What it had set aside is nowhere else.
        fs::create_dir_all(left(own).join(ASIDE)).unwrap();
        fs::write(left(own).join(ASIDE).join("0"), "the only one").unwrap();
        let first = Staging::within(target.path(), true).unwrap();
        assert_eq!(first.folder, target.path().join(format!("{PREFIX}{own}-1")));
        drop(first);
        fs::create_dir(target.path().join(format!("{PREFIX}{own}-1"))).unwrap();
        let second = Staging::within(target.path(), true).unwrap();
        assert!(second.folder.ends_with(format!("{PREFIX}{own}-1")), "a killed run's went");
        drop(second);
        assert!(left(own).join(ASIDE).join("0").exists());
        assert!(!left(gone).exists() && left(holding).join(ASIDE).join("0").exists());
    }
}
