//! Private folders for temporary files: one for each walled process, removed when it is gone.
//!
//! What is in them was made by a tool, and another tool may be able to write where they are. So nothing here follows a link, and nothing
//! is reached by a path: a folder is held open from its beginning, and what is in it is reached from there.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, chmod, fchmod, fstat, mkdirat, open, openat, renameat, unlinkat};

use crate::process::mark::{Mark, Run, Standing};
use crate::threads::{Unfinished, blocking};

/// What their names begin with; the mark of the run and the number follow.
const PREFIX: &str = "hostler.";

/// How many names are tried for a folder.
const MOST_NAMES: u32 = 1000;

/// A folder that is removed with everything in it when this is dropped.
#[derive(Debug)]
pub(in crate::process) struct PrivateFolder {
    path: PathBuf,
    /// The folder, and the one that it is in; taken to remove it.
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    above: OwnedFd,
    name: String,
    folder: OwnedFd,
}

impl PrivateFolder {
    /// A new one, which only this user can open.
    pub fn create(within: &Path) -> io::Result<Self> {
        sweep_once(within);
        let mut tries = 0;
        let (path, held) = loop {
            let mark = Mark::next().ok_or_else(|| io::Error::other("the system does not tell processes apart"))?;
            let name = format!("{PREFIX}{}", mark.to_string().replace(':', "."));
            tries += 1;
            match Held::create(within, &name) {
                // Somebody else has made it, and cannot make them all.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < MOST_NAMES => {}
                held => break (within.join(name), held),
            }
        };
        let held = held.map_err(|error| {
            let what = format!(
                "it has no folder for temporary files: {}: {error}; set TMPDIR to a folder that can be written",
                path.display()
            );
            io::Error::other(what)
        })?;
        Ok(Self { path, held: Some(held) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder itself, whatever its path names by now.
    pub fn folder(&self) -> Option<BorrowedFd<'_>> {
        self.held.as_ref().map(|held| held.folder.as_fd())
    }
}

impl Held {
    fn create(within: &Path, name: &str) -> io::Result<Self> {
        let above = open(within, FOLDER, Mode::empty())?;
        mkdirat(&above, name, Mode::RWXU)?;
        let folder = openat(&above, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        Ok(Self { above, name: name.to_owned(), folder })
    }

    fn remove(&self) {
        empty(self.folder.as_fd());
        let _ = unlinkat(&self.above, &self.name, AtFlags::REMOVEDIR);
    }
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        // It may be large. What is not removed now is by a later hostler.
        REMOVING.start(move || held.remove());
    }
}

/// The folders that are being removed.
static REMOVING: LazyLock<Unfinished> = LazyLock::new(Unfinished::default);

/// Waits until the folders of processes that are gone are removed, for at most this long.
pub async fn private_folders_removed(limit: Duration) {
    REMOVING.ended(limit).await;
}

/// Looks in each folder once for what earlier runs left.
fn sweep_once(within: &Path) {
    static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if SWEPT.lock().insert(within.to_owned()) {
        let within = within.to_owned();
        let _ = blocking(move || sweep(&within));
    }
}

/// Removes what ended runs left in a folder for temporary files.
fn sweep(within: &Path) {
    let (Some(own), Ok(above)) = (Run::own(), open(within, FOLDER, Mode::empty())) else { return };
    let user = rustix::process::geteuid().as_raw();
    for name in names_in(above.as_fd()).iter().filter_map(|name| name.to_str().ok()) {
        let mark = name.strip_prefix(PREFIX).and_then(|mark| Mark::parse(&mark.replace('.', ":")));
        if mark.is_none_or(|mark| own.standing_now(&mark.run) != Standing::Over) {
            continue;
        }
        let Some(folder) = opened(above.as_fd(), name) else { continue };
        if fstat(&folder).is_ok_and(|found| found.st_uid == user) {
            empty(folder.as_fd());
            let _ = unlinkat(&above, name, AtFlags::REMOVEDIR);
        }
    }
}

/// The names in a folder.
fn names_in(folder: BorrowedFd<'_>) -> Vec<CString> {
    let entries = Dir::read_from(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_owned());
    names.filter(|name| !matches!(name.to_bytes(), b"." | b"..")).collect()
}

/// A folder in another one, also if its owner may not read it; none if it is something else.
fn opened(above: BorrowedFd<'_>, name: impl rustix::path::Arg + Copy) -> Option<OwnedFd> {
    if let Ok(folder) = openat(above, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()) {
        let _ = fchmod(&folder, Mode::RWXU);
        return Some(folder);
    }
    let closed = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let closed = openat(above, name, closed, Mode::empty()).ok()?;
    chmod(format!("/proc/self/fd/{}", closed.as_raw_fd()), Mode::RWXU).ok()?;
    openat(&closed, c".", FOLDER, Mode::empty()).ok()
}

/// Empties a folder however deep it is: what lies in a folder of it is moved up first, so that nothing recurses and few files are open.
fn empty(folder: BorrowedFd<'_>) {
    let mut moved = 0_u64;
    // A process that escaped may fill it for as long as it lives.
    for _ in 0..MOST_ROUNDS {
        let (before, mut has_removed) = (moved, false);
        for name in names_in(folder) {
            has_removed |= unlinkat(folder, name.as_c_str(), AtFlags::empty()).is_ok()
                || unlinkat(folder, name.as_c_str(), AtFlags::REMOVEDIR).is_ok();
            let Some(inner) = opened(folder, name.as_c_str()) else { continue };
            for name in names_in(inner.as_fd()) {
                if unlinkat(&inner, name.as_c_str(), AtFlags::empty()).is_err() {
                    // A tool may have used such a name: the next round tries another one.
                    let up = format!(".hostler.{}.{moved}", std::process::id());
                    let _ = renameat(&inner, name.as_c_str(), folder, up.as_str());
                    moved += 1;
                }
            }
            has_removed |= unlinkat(folder, name.as_c_str(), AtFlags::REMOVEDIR).is_ok();
        }
        if !has_removed && moved == before {
            return;
        }
    }
}

/// A round removes at least one level of every folder.
const MOST_ROUNDS: u32 = 100_000;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn private(place: &Path) -> PrivateFolder {
        PrivateFolder::create(place).unwrap()
    }

    /// What a test put into it, removed at once.
    fn remove(mut folder: PrivateFolder) {
        folder.held.take().unwrap().remove();
    }

    #[test]
    fn what_lies_deep_or_is_closed_is_removed_and_what_links_lead_to_is_not() {
        let (outside, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("kept"), "").unwrap();
        let folder = private(place.path());
        symlink(outside.path(), folder.path().join("link")).unwrap();
        let mut deep = folder.path().to_owned();
        for _ in 0..300 {
            deep.push("d");
            fs::create_dir(&deep).unwrap();
            fs::write(deep.join("f"), "").unwrap();
            symlink(outside.path(), deep.join("link")).unwrap();
        }
        let taken = folder.path().join(format!(".hostler.{}.0/a/b", std::process::id()));
        fs::create_dir_all(taken).unwrap();
        let closed = folder.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::write(closed.join("f"), "").unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o300)).unwrap();
        let path = folder.path().to_owned();
        remove(folder);
        assert!(!path.exists());
        assert!(outside.path().join("kept").exists());
    }

    #[test]
    fn a_link_in_its_place_leads_nowhere() {
        let (outside, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("kept"), "").unwrap();
        let folder = private(place.path());
        let path = folder.path().to_owned();
        fs::rename(&path, place.path().join("moved")).unwrap();
        symlink(outside.path(), &path).unwrap();
        fs::write(place.path().join("moved/file"), "").unwrap();
        remove(folder);
        assert!(outside.path().join("kept").exists());
        assert!(!place.path().join("moved/file").exists(), "it is emptied wherever it is");
    }

    #[test]
    fn only_what_ended_runs_left_is_swept() {
        let (outside, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("kept"), "").unwrap();
        let own = private(place.path());
        let mark = Mark::next().unwrap();
        let of_nobody = |child: u64| {
            let mark = Mark { child, ..mark.clone() };
            let mark = mark.to_string().replace(&format!(":{}:", mark.run.pid), &format!(":{}:", i32::MAX));
            place.path().join(format!("{PREFIX}{}", mark.replace(':', ".")))
        };
        fs::create_dir(of_nobody(1)).unwrap();
        symlink(outside.path(), of_nobody(2)).unwrap();
        fs::create_dir(place.path().join("hostler.other")).unwrap();
        sweep(place.path());
        assert!(own.path().exists() && place.path().join("hostler.other").exists() && !of_nobody(1).exists());
        assert!(outside.path().join("kept").exists());
    }
}
