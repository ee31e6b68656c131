//! How a file is changed: its folder is opened once, so that a change ends where it began whatever is renamed meanwhile; the
//! folder is locked against other hostlers; and the file is replaced whole, so that a reader never finds a part.

use std::fs::{File, TryLockError};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use cap_std::fs::{Dir, Metadata, MetadataExt, OpenOptions};
use cap_tempfile::TempFile;
use parking_lot::{Mutex, MutexGuard};
use rustix::fs::{Access, AtFlags, CWD, linkat};
use rustix::io::Errno;

use crate::builtin::{Located, Stop};

/// A hostler locks a folder while it writes a file, mostly for milliseconds. A longer lock is likely another program's.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(1);

/// An opened folder and the name of a file in it.
pub(super) struct Target {
    pub folder: Dir,
    /// A single name, or `.` for a root itself.
    pub name: PathBuf,
}

impl Target {
    /// The path itself; a link is not followed.
    pub fn unfollowed(at: &Located) -> io::Result<Self> {
        Self::below(&at.root, at.inner())
    }

    /// The file that the path leads to, or would.
    pub fn followed(at: &Located) -> io::Result<Self> {
        Self::below(&at.root, &at.really()?)
    }

    fn below(root: &Dir, path: &Path) -> io::Result<Self> {
        let name = path.file_name().unwrap_or(".".as_ref()).into();
        let above = if path.file_name().is_some() { path.parent() } else { Some(path) };
        let above = above.filter(|above| !above.as_os_str().is_empty()).unwrap_or(".".as_ref());
        Ok(Self { folder: root.open_dir(above)?, name })
    }

    /// Writes a file in the place of an existing one or of none. `last_check` runs when everything is written, right before
    /// the file is put in place.
    pub fn replace(&self, content: impl Read, last_check: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let before = self.folder.symlink_metadata(&self.name).ok();
        if before.as_ref().is_some_and(Metadata::is_dir) {
            return Err(ErrorKind::IsADirectory.into());
        }
        if let Some(before) = &before {
            self.check_writable(before)?;
        }
        let draft = self.draft(content, before.as_ref())?;
        last_check()?;
        draft.replace(&self.name).map_err(explain_busy)
    }

    /// Writes a new file; an existing one is never touched.
    pub fn create(&self, content: impl Read) -> io::Result<()> {
        match self.folder.symlink_metadata(&self.name) {
            Ok(existing) if existing.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Ok(_) => return Err(ErrorKind::AlreadyExists.into()),
            Err(_) => {}
        }
        let draft = self.draft(content, None)?;
        let opened = format!("/proc/self/fd/{}", draft.as_file().as_raw_fd());
        match linkat(CWD, opened, &self.folder, &self.name, AtFlags::SYMLINK_FOLLOW) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(ErrorKind::AlreadyExists.into()),
            // Without /proc or hard links, the name is reserved first.
            Err(_) => {
                self.folder.open_with(&self.name, OpenOptions::new().write(true).create_new(true))?;
                draft.replace(&self.name)
            }
        }
    }

    /// The content in a file without a name, where the system has such, with the permissions of the file that it replaces.
    fn draft(&self, mut content: impl Read, like: Option<&Metadata>) -> io::Result<TempFile<'_>> {
        let mut draft = TempFile::new(&self.folder)?;
        if let Some(like) = like {
            // Before the content: a draft with a name must not be readable by more people than the file.
            draft.as_file().set_permissions(like.permissions())?;
        }
        io::copy(&mut content, draft.as_file_mut())?;
        draft.as_file().sync_all()?;
        Ok(draft)
    }

    /// Whether a file may be written to. To replace it, the system only requires that its folder may.
    fn check_writable(&self, metadata: &Metadata) -> io::Result<()> {
        if metadata.is_symlink() {
            return Err(io::Error::other("a link was put there meanwhile; try again"));
        }
        if !metadata.is_file() {
            return Err(not_a_file());
        }
        // The superuser may write anything, so the file's own permissions count.
        if metadata.permissions().readonly() {
            return Err(Errno::ACCESS.into());
        }
        Ok(rustix::fs::accessat(&self.folder, &self.name, Access::WRITE_OK, AtFlags::empty())?)
    }

    /// Keeps other hostlers, and other calls of this one, from changing files in the folder: an edit reads a file and replaces
    /// it, and what is written in between would be lost. A cancelled call gets no lock.
    pub fn lock(&self, stop: &Stop) -> io::Result<FolderLock> {
        let lock = self.lock_within(PATIENCE);
        if stop.is_set() { Err(io::Error::other("the call was cancelled")) } else { Ok(lock) }
    }

    fn lock_within(&self, patience: Duration) -> FolderLock {
        let (id, asked) = (self.folder_id(), Instant::now());
        let mut gave_up = bucket(id).lock();
        // A call that queued behind one that gave up on the same folder has waited as long.
        let has_waited = gave_up.is_some_and(|(folder, at)| id == Some(folder) && asked < at);
        let held = self.lock_file(if has_waited { patience / 20 } else { patience });
        if held.is_none() {
            *gave_up = id.map(|id| (id, Instant::now()));
        }
        FolderLock { held, _own: gave_up }
    }

    /// The folder's identity is the same under every name, and stays when a file in it is replaced.
    fn folder_id(&self) -> Option<FolderId> {
        self.folder.dir_metadata().map(|about| (about.dev(), about.ino())).ok()
    }

    /// The lock between processes: each client starts its own hostler, and several may serve one folder.
    fn lock_file(&self, patience: Duration) -> Option<File> {
        // Only a folder that is opened for reading can be locked.
        let folder = self.folder.open(".").ok()?.into_std();
        let begun = Instant::now();
        loop {
            match folder.try_lock() {
                Ok(()) => return Some(folder),
                Err(TryLockError::WouldBlock) if begun.elapsed() < patience => thread::sleep(PAUSE),
                // Some file systems cannot lock folders. Then only an edit's last check remains.
                Err(_) => return None,
            }
        }
    }
}

type FolderId = (u64, u64);

/// The folder on which a call last gave up waiting for the lock between processes, and when. Several folders share a bucket.
type GaveUp = Option<(FolderId, Instant)>;

/// The lock between calls of this process.
fn bucket(id: Option<FolderId>) -> &'static Mutex<GaveUp> {
    static LOCKS: [Mutex<GaveUp>; 64] = [const { Mutex::new(None) }; 64];
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(id);
    &LOCKS[usize::try_from(hash % 64).unwrap_or_default()]
}

/// The exclusive right to change files in a folder.
pub(super) struct FolderLock {
    held: Option<File>,
    _own: MutexGuard<'static, GaveUp>,
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Only closed, it would live on in a process that is being started right now and has a copy of it.
        if let Some(folder) = &self.held {
            let _ = folder.unlock();
        }
    }
}

pub(super) fn not_a_file() -> io::Error {
    io::Error::other("it is not a regular file but a pipe, a socket or a device")
}

/// A mount point cannot be replaced; "busy" alone would suggest to try again.
fn explain_busy(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::ResourceBusy => io::Error::other("it is a mount point, as in a container; mount its folder instead"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::Barrier;

    use super::*;

    /// Content that replaces a link by one to another folder while it is read.
    struct Relinking<'a>(&'a Path, &'a str, bool);

    impl Read for Relinking<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if std::mem::replace(&mut self.2, true) {
                return Ok(0);
            }
            fs::remove_file(self.0)?;
            symlink(self.1, self.0)?;
            into[..3].copy_from_slice(b"new");
            Ok(3)
        }
    }

    /// Content during whose reading the target appears.
    struct Appearing<'a>(&'a Path);
    impl Read for Appearing<'_> {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            fs::write(self.0, "theirs")?;
            Ok(0)
        }
    }

    fn located(above: &Path, within: &str) -> Located {
        let root = Dir::open_ambient_dir(above, cap_std::ambient_authority()).unwrap();
        Located { root, above: above.to_owned(), within: within.into() }
    }

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_change_ends_in_the_folder_in_which_it_began() {
        let folder = tempfile::tempdir().unwrap();
        let (root, way) = (folder.path(), folder.path().join("way"));
        fs::create_dir(root.join("one")).unwrap();
        fs::create_dir(root.join("two")).unwrap();
        symlink("one", &way).unwrap();
        Target::unfollowed(&located(root, "way/a")).unwrap().create(Relinking(&way, "two", false)).unwrap();
        assert_eq!((names(&root.join("one")), names(&root.join("two"))), (vec!["a".to_owned()], vec![]));
        symlink("one/a", root.join("link")).unwrap();
        let target = Target::followed(&located(root, "link")).unwrap();
        target.replace(Relinking(&root.join("link"), "way/a", false), || Ok(())).unwrap();
        assert_eq!((names(&root.join("one")), names(&root.join("two"))), (vec!["a".to_owned()], vec![]));
        assert_eq!(fs::read_link(root.join("link")).unwrap(), Path::new("way/a"), "the link is not replaced");
    }

    #[test]
    fn a_replaced_file_keeps_its_permissions_and_is_whole_until_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        fs::write(&file, "before").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let target = Target::unfollowed(&located(folder.path(), "a")).unwrap();
        let refused = target.replace(&b"after"[..], || Err(ErrorKind::ResourceBusy.into()));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ResourceBusy);
        assert_eq!((fs::read_to_string(&file).unwrap(), names(folder.path()).len()), ("before".into(), 1));
        target.replace(&b"after"[..], || Ok(())).unwrap();
        assert_eq!((fs::read_to_string(&file).unwrap(), names(folder.path()).len()), ("after".into(), 1));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_new_file_never_overwrites_one_that_appears_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let target = Target::unfollowed(&located(folder.path(), "a")).unwrap();
        assert_eq!(target.create(Appearing(&path)).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
    }

    #[test]
    fn a_mount_point_is_not_mistaken_for_a_file_that_changed() {
        assert_ne!(explain_busy(Errno::BUSY.into()).kind(), ErrorKind::ResourceBusy);
        assert_eq!(explain_busy(Errno::ACCESS.into()).kind(), ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_folder_is_locked_against_other_processes_and_not_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let target = Target::unfollowed(&located(folder.path(), "a")).unwrap();
        // The lock belongs to an opened folder, so this is as good as another process.
        let other = File::open(folder.path()).unwrap();
        let stop = Stop::default();
        let lock = target.lock(&stop).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(lock);
        stop.set();
        assert!(target.lock(&stop).is_err());
        other.try_lock().unwrap();
        assert!(target.lock_file(Duration::ZERO).is_none());
    }

    #[test]
    fn giving_up_on_a_folder_shortens_no_wait_for_another() {
        const PATIENCE: Duration = Duration::from_millis(300);
        let folder = tempfile::tempdir().unwrap();
        let mut numbers = 0..;
        let mut next = || {
            let path = folder.path().join(numbers.next().unwrap().to_string());
            fs::create_dir(&path).unwrap();
            (Target::unfollowed(&located(&path, "a")).unwrap(), File::open(path).unwrap())
        };
        let bucket_of = |target: &Target| bucket(target.folder_id());
        let (first, first_foreign) = next();
        // With 64 buckets, one of a few hundred folders shares that of the first.
        let shares = |other: &(Target, File)| std::ptr::eq(bucket_of(&other.0), bucket_of(&first));
        let (second, second_foreign) = std::iter::repeat_with(next).take(5000).find(shares).unwrap();
        first_foreign.try_lock().unwrap();
        second_foreign.try_lock().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| assert!(first.lock_within(PATIENCE).held.is_none()));
            while !bucket_of(&first).is_locked() {
                thread::yield_now();
            }
            let begun = Instant::now();
            assert!(second.lock_within(PATIENCE * 2).held.is_none());
            assert!(begun.elapsed() >= PATIENCE * 2, "{:?}", begun.elapsed());
        });
    }

    #[test]
    fn queued_calls_wait_for_a_foreign_lock_together() {
        const PATIENCE: Duration = Duration::from_millis(300);
        let folder = tempfile::tempdir().unwrap();
        let foreign = File::open(folder.path()).unwrap();
        foreign.try_lock().unwrap();
        let all = Barrier::new(10);
        let begun = Instant::now();
        thread::scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|| {
                    let target = Target::unfollowed(&located(folder.path(), "a")).unwrap();
                    all.wait();
                    assert!(target.lock_within(PATIENCE).held.is_none());
                });
            }
        });
        assert!(begun.elapsed() < PATIENCE * 10, "one after the other: {:?}", begun.elapsed());
    }
}
