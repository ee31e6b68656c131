//! Where a person's shared hostler is found: a private folder, and in it a socket and two locks for each key.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::config::Environment;
use crate::config::environment::{runtime_folder, state};

/// The longest path of a socket, without the NUL behind it, by the system's definition.
const LONGEST: usize = 107;
/// How long the log of a dead one stays.
const KEPT: Duration = Duration::from_hours(7 * 24);
/// The pause between two attempts to take a lock.
const LOOK: Duration = Duration::from_millis(2);

/// The files of one shared hostler.
#[derive(Debug, Clone)]
pub struct Place {
    folder: PathBuf,
    key: String,
    /// What it logs.
    pub log: PathBuf,
}

/// Why a folder or a socket cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// Others may put a socket there.
    #[error("{folder} is not private to you (mode {mode:o}); run `chmod 700 {folder}`")]
    Open {
        /// The folder.
        folder: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It belongs to another user.
    #[error("{0} belongs to another user; set XDG_RUNTIME_DIR to a folder of your own")]
    Foreign(PathBuf),
    /// The system limits the paths of sockets.
    #[error("{0} is too long for a socket; set XDG_RUNTIME_DIR to a shorter path")]
    TooLong(PathBuf),
    /// It cannot be created or examined.
    #[error("{folder}: {source}")]
    Unusable {
        /// The folder.
        folder: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl Place {
    /// The place of a key. Creates the folder.
    pub fn of(environment: &Environment, key: &str) -> Result<Self, PlaceError> {
        let folder = runtime_folder(environment);
        make_private(&folder)?;
        let log = state(environment).join(format!("shared-{key}.log"));
        let place = Self { folder, key: key.to_owned(), log };
        if place.socket().as_os_str().len() > LONGEST {
            return Err(PlaceError::TooLong(place.socket()));
        }
        Ok(place)
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.file("sock")
    }

    fn file(&self, kind: &str) -> PathBuf {
        self.folder.join(format!("{}.{kind}", self.key))
    }

    /// Removes the files of other keys that no process uses: builds that were replaced, namespaces that are gone.
    pub fn sweep(&self) {
        let names =
            fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| PathBuf::from(entry.file_name()));
        let keys: BTreeSet<String> = names.filter_map(|name| Some(name.file_stem()?.to_str()?.to_owned())).collect();
        for key in keys.into_iter().filter(|key| *key != self.key) {
            let other = Self { key, ..self.clone() };
            // One that starts holds the first, one that runs the second. With both in hand, no other one lives.
            let (Ok(Some(_start)), Ok(Some(_live))) =
                (other.start_lock(Duration::ZERO), other.live_lock(Duration::ZERO))
            else {
                continue;
            };
            for kind in ["sock", "draft", "live", "start"] {
                let _ = fs::remove_file(other.file(kind));
            }
        }
        let logs = self.log.parent().into_iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
        for log in logs.map(|entry| entry.path()).filter(|path| *path != self.log && is_log(path) && is_old(path)) {
            // The process that writes it holds it.
            let file = File::open(&log);
            if file.is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()) {
                let _ = fs::remove_file(&log);
                let _ = fs::remove_file(log.with_extension("log.old"));
            }
        }
    }

    /// Every socket in the folder, of whatever key.
    pub fn sockets(environment: &Environment) -> Vec<PathBuf> {
        let entries = fs::read_dir(runtime_folder(environment)).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_socket(path)).collect();
        found.sort();
        found
    }

    /// The lock of the one process that starts a shared hostler, held until that listens.
    pub fn start_lock(&self, limit: Duration) -> io::Result<Option<Lock>> {
        self.lock("start", limit)
    }

    /// The lock that a shared hostler holds for life. Only its holder may touch the socket.
    pub fn live_lock(&self, limit: Duration) -> io::Result<Option<Lock>> {
        self.lock("live", limit)
    }

    /// `None` if another process holds it for longer than this.
    fn lock(&self, name: &str, limit: Duration) -> io::Result<Option<Lock>> {
        let path = self.file(name);
        let until = Instant::now() + limit;
        let open = || OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let mut file = open()?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_at(&file, &path)? => return Ok(Some(Lock { _file: file })),
                // It was removed as that of a dead one.
                Ok(()) => file = open()?,
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) if Instant::now() < until => std::thread::sleep(LOOK),
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn is_socket(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "sock")
}

fn is_log(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("shared-") && name.ends_with(".log")
}

/// A log is of use for a while after the end that it explains.
fn is_old(path: &Path) -> bool {
    let changed = path.metadata().and_then(|data| data.modified());
    changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > KEPT))
}

/// Whether a path still leads to an open file.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let open = file.metadata()?;
    Ok(path.metadata().is_ok_and(|there| (there.dev(), there.ino()) == (open.dev(), open.ino())))
}

/// A lock on a file; it ends with this value or with the process. The file stays, because another process may be waiting for it,
/// until a sweep removes it.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Creates a folder that no other user may enter, or examines the one that is there.
fn make_private(folder: &Path) -> Result<(), PlaceError> {
    let unusable = |source| PlaceError::Unusable { folder: folder.to_owned(), source };
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(unusable(error)),
    }
    let data = folder.symlink_metadata().map_err(unusable)?;
    if !data.is_dir() {
        return Err(unusable(io::ErrorKind::NotADirectory.into()));
    }
    if data.uid() != geteuid().as_raw() {
        return Err(PlaceError::Foreign(folder.to_owned()));
    }
    let mode = data.mode() & 0o777;
    if mode == mode & 0o700 { Ok(()) } else { Err(PlaceError::Open { folder: folder.to_owned(), mode }) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn environment(folder: &Path) -> Environment {
        Environment::from_iter([("XDG_RUNTIME_DIR", folder), ("HOME", folder)])
    }

    #[test]
    fn the_folder_is_made_private_and_refused_when_it_is_open() {
        let base = tempfile::tempdir().unwrap();
        let place = Place::of(&environment(base.path()), "k").unwrap();
        let folder = place.socket().parent().unwrap().to_owned();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
        assert!(matches!(Place::of(&environment(base.path()), "k"), Err(PlaceError::Open { mode: 0o755, .. })));
        fs::remove_dir(&folder).unwrap();
        std::os::unix::fs::symlink("/tmp", &folder).unwrap();
        assert!(matches!(Place::of(&environment(base.path()), "k"), Err(PlaceError::Unusable { .. })));
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let deep = base.path().join("x".repeat(100));
        fs::create_dir(&deep).unwrap();
        assert!(matches!(Place::of(&environment(&deep), "k"), Err(PlaceError::TooLong(_))));
    }

    #[test]
    fn what_dead_ones_left_is_removed_and_nothing_else() {
        let base = tempfile::tempdir().unwrap();
        let at = |key: &str| Place::of(&environment(base.path()), key).unwrap();
        let (own, dead, live, starts) = (at("own"), at("dead"), at("live"), at("starts"));
        fs::create_dir_all(own.log.parent().unwrap()).unwrap();
        let old = std::time::SystemTime::now() - KEPT - Duration::from_mins(1);
        let (mut held, mut logs) = (Vec::new(), Vec::new());
        for place in [&own, &dead, &live, &starts] {
            fs::write(place.socket(), "").unwrap();
            let file = File::create(&place.log).unwrap();
            file.set_modified(old).unwrap();
            logs.push(file);
        }
        fs::write(dead.log.with_extension("log.old"), "").unwrap();
        drop(dead.live_lock(Duration::ZERO).unwrap());
        held.push(own.live_lock(Duration::ZERO).unwrap());
        held.push(live.live_lock(Duration::ZERO).unwrap());
        held.push(starts.start_lock(Duration::ZERO).unwrap());
        flock(&logs[2], FlockOperation::NonBlockingLockShared).unwrap();
        logs[3].set_modified(std::time::SystemTime::now()).unwrap();
        own.sweep();
        let there = |place: &Place| (place.socket().exists(), place.log.exists());
        assert_eq!(
            [&own, &dead, &live, &starts].map(there),
            [(true, true), (false, false), (true, true), (true, true)]
        );
        let left = fs::read_dir(own.log.parent().unwrap()).unwrap().count();
        assert_eq!(left, 3);
        assert!(
            fs::read_dir(&own.folder).unwrap().flatten().all(|entry| !entry
                .file_name()
                .to_str()
                .unwrap()
                .starts_with("dead"))
        );
    }

    #[test]
    fn a_lock_on_a_file_that_was_removed_is_none() {
        let base = tempfile::tempdir().unwrap();
        let place = Place::of(&environment(base.path()), "k").unwrap();
        let held = place.live_lock(Duration::ZERO).unwrap();
        let waiting = std::thread::spawn({
            let place = place.clone();
            move || place.live_lock(Duration::from_mins(1)).unwrap()
        });
        let open =
            || fs::read_dir("/proc/self/fd").unwrap().flatten().filter_map(|link| fs::read_link(link.path()).ok());
        while open().filter(|path| *path == place.file("live")).count() < 2 {
            std::thread::yield_now();
        }
        fs::remove_file(place.file("live")).unwrap();
        drop(held);
        let taken = waiting.join().unwrap();
        assert!(taken.is_some() && place.live_lock(Duration::ZERO).unwrap().is_none());
    }

    #[test]
    fn one_process_holds_a_lock() {
        let base = tempfile::tempdir().unwrap();
        let place = Place::of(&environment(base.path()), "k").unwrap();
        let held = place.live_lock(Duration::ZERO).unwrap();
        assert!(held.is_some() && place.live_lock(Duration::ZERO).unwrap().is_none());
        assert!(place.start_lock(Duration::ZERO).unwrap().is_some(), "another lock");
        drop(held);
        assert!(place.live_lock(Duration::ZERO).unwrap().is_some());
    }
}
