//! A place beside where a tool is going to lie, in which it is looked at first: what is shown is then what is installed,
//! whatever becomes of its source meanwhile, and it is put in its place by a rename.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::parcel::{Parcel, Piece};

/// Hidden, so that nobody serves what lies there. The number of the process follows, for whoever comes after one that was
/// killed.
const PREFIX: &str = ".install-";

/// Emptied and removed when it is dropped, with every folder that had to be made for it and is still empty.
#[derive(Debug)]
pub(super) struct Staging {
    pub folder: PathBuf,
    target: PathBuf,
    made: Vec<PathBuf>,
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
        let folder = target.join(format!("{PREFIX}{}", std::process::id()));
        let staging = Self { folder, target: target.to_owned(), made };
        DirBuilder::new().mode(0o700).create(&staging.folder).map_err(cannot)?;
        Ok(staging)
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
    pub fn place(&self, parcel: &Parcel, in_the_way: &[PathBuf]) -> Result<(), String> {
        let aside = self.folder.join(".aside");
        let mut moved = Vec::new();
        let placed = (|| {
            fs::create_dir(&aside)?;
            for (number, path) in in_the_way.iter().enumerate() {
                let to = aside.join(number.to_string());
                fs::rename(path, &to)?;
                moved.push((to, path));
            }
            if parcel.is_folder() {
                return fs::rename(self.folder.join(&parcel.top), self.target.join(&parcel.top));
            }
            parcel.pieces.iter().try_for_each(|piece| self.place_one(piece))
        })();
        placed.map_err(|error| {
            for (from, to) in moved.iter().rev() {
                let _ = fs::rename(from, to);
            }
            format!("{} was not installed: {error}; what was there is there still", parcel.source.display())
        })
    }

    fn place_one(&self, piece: &Piece) -> io::Result<()> {
        let to = self.target.join(&piece.at);
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::rename(self.folder.join(&piece.at), to)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
        // Those that hold something stay.
        for folder in &self.made {
            let _ = fs::remove_dir(folder);
        }
    }
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

/// Removes what killed runs left.
fn sweep(target: &Path) {
    for entry in fs::read_dir(target).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse().ok());
        let is_over = pid
            .and_then(rustix::process::Pid::from_raw)
            .is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH));
        if is_over {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
