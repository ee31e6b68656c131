//! Where the journal lies: one store for a person, and in a folder for each key the spools of the processes that serve.
//!
//! A process holds the lock of its spool for life, and its keeper holds it as well: the lock is free once the whole family is gone.
//! Whoever takes a lock that was free recovers that spool. Processes of another key, which may do something else than the one that
//! accepted a call, leave it alone.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::READING;
use super::sources::KeptSources;
use super::store::{SqliteStore, Store};
use crate::config::Environment;
use crate::config::environment::state;
use crate::process::is_broken;
use crate::threads::blocking_within;

/// The kinds of file systems, by their numbers, on which locks and shared memory of several machines do not hold what the store and the spool need.
#[cfg(target_os = "linux")]
const OF_OTHERS: [(i64, &str); 4] = [(0x6969, "NFS"), (0xff53_4d42, "CIFS"), (0xfe53_4d42, "SMB"), (0x0102_1997, "9P")];

/// Why there is no journal.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The folder cannot be made or written to.
    #[error("{path}: {source}")]
    System {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Another machine may change it.
    #[error("{folder} is on {kind}, where a journal is not safe; set XDG_STATE_HOME to a folder on a local disk")]
    Remote {
        /// The folder.
        folder: PathBuf,
        /// The kind of file system.
        kind: &'static str,
    },
    /// The system gives no random bytes.
    #[error("the system gives no random bytes")]
    NoRandom,
}

/// The folder of a person's journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place(PathBuf);

impl Place {
    /// That of the person whose variables these are.
    pub fn of(environment: &Environment) -> Self {
        Self(state(environment).join("journal"))
    }

    /// The store.
    pub fn store(&self) -> PathBuf {
        self.0.join("calls.db")
    }

    /// The sources of called tools.
    pub fn sources(&self) -> KeptSources {
        KeptSources::new(self.0.join("sources"))
    }

    /// The spools of a key.
    pub fn spools(&self, key: &str) -> PathBuf {
        self.0.join("spool").join(key)
    }

    /// What there is of the spool of that name.
    pub fn left(&self, name: &str) -> io::Result<Left> {
        let Some(path) = self.lock(name)? else { return Ok(Left::Nothing) };
        let Some(lock) = unless_gone(File::open(path))? else { return Ok(Left::Nothing) };
        let is_free = locked(&lock, FlockOperation::NonBlockingLockShared)?;
        Ok(if is_free { Left::Files } else { Left::Process })
    }

    /// The spool of that name, of whatever key, if its process is gone. It is held by what is returned.
    pub fn abandoned(&self, name: &str) -> io::Result<Option<Claim>> {
        self.lock(name)?.map_or(Ok(None), |path| self.adopt(&path))
    }

    fn lock(&self, name: &str) -> io::Result<Option<PathBuf>> {
        let name = format!("{name}.lock");
        for key in inside(&self.0.join("spool"))? {
            let path = key.join(&name);
            if path.try_exists()? {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// The spool of this lock, if its process is gone.
    pub fn adopt(&self, path: &Path) -> io::Result<Option<Claim>> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_stem().and_then(OsStr::to_str)) else {
            return Ok(None);
        };
        let Some(lock) = unless_gone(OpenOptions::new().write(true).open(path))? else { return Ok(None) };
        if !locked(&lock, FlockOperation::NonBlockingLockExclusive)? && !is_broken("locks-hold") {
            return Ok(None);
        }
        // Another process may have recovered and removed it meanwhile.
        let claim = || Claim { place: self.clone(), folder: folder.to_owned(), name: name.to_owned(), _lock: lock };
        Ok(path.try_exists()?.then(claim))
    }

    /// Reads the store on a thread. `None` if there is none, or it cannot be read.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut dyn Store) -> Option<T> + Send + 'static,
    ) -> Option<T> {
        let path = self.store();
        let reading = blocking_within(&READING, move || {
            let store = SqliteStore::open_to_read(&path);
            let store = store.inspect_err(|error| tracing::warn!(%error, "the store of calls cannot be read")).ok()?;
            read(&mut store?)
        });
        reading.await.ok()?
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Makes the folder for spools of a key. Says why none can be there.
    fn make(&self, key: &str) -> Result<PathBuf, PlaceError> {
        let folder = self.spools(key);
        let failed = |source| PlaceError::System { path: folder.clone(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
        match of_others(&folder).map_err(failed)? {
            Some(kind) => Err(PlaceError::Remote { folder, kind }),
            None => Ok(folder),
        }
    }
}

/// The kind of file system that a folder is on, if other machines may change what is there.
#[cfg(target_os = "linux")]
fn of_others(folder: &Path) -> io::Result<Option<&'static str>> {
    let kind = rustix::fs::statfs(folder)?.f_type;
    Ok(OF_OTHERS.iter().find(|(number, _)| *number == kind).map(|(_, kind)| *kind))
}

/// Other systems number them otherwise.
#[cfg(not(target_os = "linux"))]
fn of_others(_: &Path) -> io::Result<Option<&'static str>> {
    Ok(None)
}

/// What is in a folder; nothing if it is not there.
fn inside(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(entries) = unless_gone(fs::read_dir(folder))? else { return Ok(Vec::new()) };
    entries.map(|entry| Ok(entry?.path())).collect()
}

fn locks(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let all = inside(folder)?.into_iter();
    Ok(all.filter(|path| path.extension().is_some_and(|it| it == "lock")).collect())
}

fn unless_gone<T>(opened: io::Result<T>) -> io::Result<Option<T>> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a lock was free and is held now.
fn locked(lock: &File, how: FlockOperation) -> io::Result<bool> {
    match flock(lock, how) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// What there is of a spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// A process that holds it: the one that writes it, or one that recovers it.
    Process,
    /// Files of a process that is gone.
    Files,
    /// Nothing: all of it is in the store.
    Nothing,
}

/// The name of a spool that this process holds. Take it before the keeper is started, so that it holds it as well.
#[derive(Debug)]
pub struct Claim {
    pub(super) place: Place,
    pub(super) folder: PathBuf,
    pub(super) name: String,
    /// Held as long as this is there.
    _lock: File,
}

impl Claim {
    /// A new one of this key.
    pub fn take(environment: &Environment, key: &str) -> Result<Self, PlaceError> {
        let place = Place::of(environment);
        let folder = place.make(key)?;
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|_| PlaceError::NoRandom)?;
        let name = data_encoding::HEXLOWER.encode(&random);
        let (path, unlocked) = (folder.join(format!("{name}.lock")), folder.join(format!("{name}.unlocked")));
        let failed = |source| PlaceError::System { path: path.clone(), source };
        let mut lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unlocked).map_err(failed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from).map_err(failed)?;
        // Its name comes last: otherwise another process could take it for abandoned before it is locked.
        fs::rename(&unlocked, &path).map_err(failed)?;
        // So that people see whose it is; nothing relies on it.
        let _ = writeln!(lock, "{}", std::process::id());
        Ok(Self { place, folder, name, _lock: lock })
    }

    /// The locks of the other spools of this key.
    pub fn others(&self) -> io::Result<Vec<PathBuf>> {
        let locks = locks(&self.folder)?.into_iter();
        Ok(locks.filter(|path| path.file_stem().is_some_and(|name| name != self.name.as_str())).collect())
    }

    /// The person's journal.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The files of its segments, in order.
    pub fn segments(&self) -> io::Result<Vec<(u64, PathBuf)>> {
        let number = |path: &Path| {
            let (name, number) = path.file_name()?.to_str()?.split_once('.')?;
            (name == self.name).then(|| number.parse().ok()).flatten()
        };
        let mut found: Vec<(u64, PathBuf)> =
            inside(&self.folder)?.into_iter().filter_map(|path| Some((number(&path)?, path))).collect();
        found.sort();
        Ok(found)
    }

    /// As if its process had died.
    #[cfg(test)]
    #[expect(clippy::used_underscore_binding, reason = "otherwise it is only held")]
    pub(super) fn release(&self) {
        flock(&self._lock, FlockOperation::Unlock).unwrap();
    }

    /// The file of a segment.
    pub(super) fn segment(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{}.{number:08}", self.name))
    }

    /// Removes its files, the lock last. What cannot be removed is found by another process.
    pub fn clear(&self) {
        let Ok(segments) = self.segments() else { return };
        let lock = self.folder.join(format!("{}.lock", self.name));
        let _ = segments.into_iter().map(|(_, path)| path).chain([lock]).try_for_each(fs::remove_file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(folder: &Path) -> Environment {
        Environment::from_iter([("XDG_STATE_HOME", folder)])
    }

    #[test]
    fn a_spool_is_adopted_once_its_holder_is_gone_and_by_one() {
        let base = tempfile::tempdir().unwrap();
        let [own, other, stranger] = ["k", "k", "another"].map(|key| Claim::take(&person(base.path()), key).unwrap());
        let adopted = |by: &Claim| -> Vec<Claim> {
            by.others().unwrap().iter().filter_map(|path| by.place.adopt(path).unwrap()).collect()
        };
        assert!(adopted(&own).is_empty(), "all live");
        assert_eq!(own.place.left(&other.name).unwrap(), Left::Process);
        fs::write(other.segment(2), "b").unwrap();
        fs::write(other.segment(1), "a").unwrap();
        let name = other.name.clone();
        let strange = stranger.name.clone();
        drop((other, stranger));
        assert_eq!([&name, &strange].map(|name| own.place.left(name).unwrap()), [Left::Files; 2]);
        let claims = adopted(&own);
        assert!(claims.len() == 1 && claims[0].name == name);
        assert_eq!(claims[0].segments().unwrap().iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2]);
        let third = Claim::take(&person(base.path()), "k").unwrap();
        assert!(adopted(&third).is_empty(), "it is being recovered");
        claims.iter().for_each(Claim::clear);
        drop(claims);
        assert!(adopted(&own).is_empty() && own.place.left(&name).unwrap() == Left::Nothing);
        assert_eq!(own.place.abandoned(&strange).unwrap().unwrap().name, strange);
        assert_eq!(fs::read_dir(&own.folder).unwrap().count(), 2, "the locks of those that live");
    }

    #[test]
    fn what_cannot_be_looked_at_does_not_count_as_gone() {
        let base = tempfile::tempdir().unwrap();
        let own = Claim::take(&person(base.path()), "k").unwrap();
        let folder = own.place.0.join("spool");
        assert_eq!(own.place.left("nobody").unwrap(), Left::Nothing);
        // A loop of links stands for a disk that fails: it is an error for everybody, root included.
        std::os::unix::fs::symlink(folder.join("loop"), folder.join("loop")).unwrap();
        assert!(own.place.left("nobody").is_err());
    }
}
