//! Where a file is going to be changed: its folder, opened once, and its name there. Whatever is turned or renamed on the way to it
//! meanwhile, a change ends where it began.

use std::fs::{File, TryLockError};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use cap_std::fs::{Dir, MetadataExt};
use parking_lot::{Mutex, MutexGuard};

use crate::builtin::{Located, Stop};

/// Hostlers hold a folder while they write a file, which is milliseconds for most. Whoever holds it for longer is likely a program
/// of somebody else's.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(1);

pub(super) struct Spot {
    pub folder: Dir,
    /// A single name, or `.` for a root itself.
    pub name: PathBuf,
}

impl Spot {
    /// Where a path's last name stands, be it that of a link.
    pub fn named(at: &Located) -> io::Result<Self> {
        Self::below(&at.root, at.inner())
    }

    /// Where the file lies, or would lie, that a path leads to.
    pub fn led_to(at: &Located) -> io::Result<Self> {
        Self::below(&at.root, &at.really()?)
    }

    fn below(root: &Dir, path: &Path) -> io::Result<Self> {
        let name = path.file_name().unwrap_or(".".as_ref()).into();
        let above = if path.file_name().is_some() { path.parent() } else { Some(path) };
        let above = above.filter(|above| !above.as_os_str().is_empty()).unwrap_or(".".as_ref());
        Ok(Self { folder: root.open_dir(above)?, name })
    }

    /// Keeps others of hostler's own from changing a file at the same time: an edit reads what is there and puts something else
    /// in its place, and what is written between would be lost. Whoever is told that its time is over finds the file as it was:
    /// there is no turn for a call that nobody waits for any more.
    pub fn turn(&self, stop: &Stop) -> io::Result<Turn> {
        let turn = self.turn_with(PATIENCE);
        if stop.is_said() { Err(io::Error::other("nobody waits for it any more")) } else { Ok(turn) }
    }

    fn turn_with(&self, patience: Duration) -> Turn {
        static TURNS: [Mutex<Option<InVain>>; 64] = [const { Mutex::new(None) }; 64];
        // By the folder itself: it is the same by whichever name it is called, and stays when a file is replaced.
        let id = self.folder.dir_metadata().map(|about| (about.dev(), about.ino())).ok();
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(id);
        let asked = Instant::now();
        let mut own = TURNS[usize::try_from(hash % 64).unwrap_or_default()].lock();
        // Who stood behind one that waited in vain has waited along with it. If each waited anew, the last of many would wait
        // until its call's time is over.
        let has_waited = own.as_ref().is_some_and(|vain| vain.folder == id && asked < vain.until);
        let held = self.hold(if has_waited { patience / 20 } else { patience });
        if held.is_none() && !has_waited {
            *own = Some(InVain { folder: id, until: Instant::now() });
        }
        Turn { held, _own: own }
    }

    /// Each client starts a hostler of its own, and several may serve a folder.
    fn hold(&self, patience: Duration) -> Option<File> {
        // To work in a folder is one thing, and to lock it asks for one that may be listed.
        let folder = self.folder.open(".").ok()?.into_std();
        let begun = Instant::now();
        loop {
            match folder.try_lock() {
                Ok(()) => return Some(folder),
                Err(TryLockError::WouldBlock) if begun.elapsed() < patience => thread::sleep(PAUSE),
                // Some file systems lock no folders. An edit's last look at the file is all there is then.
                Err(_) => return None,
            }
        }
    }
}

/// The turn to change what is in a folder.
pub(super) struct Turn {
    held: Option<File>,
    _own: MutexGuard<'static, Option<InVain>>,
}

/// Which folder somebody else's program was waited for in vain, by device and inode, and until when.
struct InVain {
    folder: Option<(u64, u64)>,
    until: Instant,
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Closed, it would be held on by whatever program is being started right now and has a copy.
        if let Some(folder) = &self.held {
            let _ = folder.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;
    use std::sync::Barrier;

    use super::super::place;
    use super::*;

    /// Content that turns a link to another folder while it is written.
    struct Turning<'a>(&'a Path, &'a str, bool);

    impl Read for Turning<'_> {
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
        place::create(&Spot::named(&located(root, "way/a")).unwrap(), Turning(&way, "two", false)).unwrap();
        assert_eq!(
            (names(&root.join("one")), names(&root.join("two"))),
            (vec!["a".to_owned()], vec![]),
            "no draft is left"
        );
        symlink("one/a", root.join("link")).unwrap();
        let spot = Spot::led_to(&located(root, "link")).unwrap();
        place::replace(&spot, Turning(&root.join("link"), "way/a", false), || Ok(())).unwrap();
        assert_eq!((names(&root.join("one")), names(&root.join("two"))), (vec!["a".to_owned()], vec![]));
        assert_eq!(fs::read_link(root.join("link")).unwrap(), Path::new("way/a"), "the link is no file");
    }

    #[test]
    fn other_hostlers_wait_for_a_turn_and_nobody_waits_for_good() {
        let folder = tempfile::tempdir().unwrap();
        let spot = Spot::named(&located(folder.path(), "a")).unwrap();
        // Of another process, it would be the same: the lock is that of an opened folder.
        let other = File::open(folder.path()).unwrap();
        let stop = Stop::default();
        let turn = spot.turn(&stop).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(turn);
        stop.say();
        assert!(spot.turn(&stop).is_err());
        other.try_lock().unwrap();
        assert!(spot.hold(Duration::ZERO).is_none());
    }

    #[test]
    fn those_who_stand_in_a_row_wait_for_somebody_elses_program_together() {
        const PATIENCE: Duration = Duration::from_millis(300);
        let folder = tempfile::tempdir().unwrap();
        let foreign = File::open(folder.path()).unwrap();
        foreign.try_lock().unwrap();
        let all = Barrier::new(10);
        let begun = Instant::now();
        thread::scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|| {
                    let spot = Spot::named(&located(folder.path(), "a")).unwrap();
                    all.wait();
                    assert!(spot.turn_with(PATIENCE).held.is_none());
                });
            }
        });
        assert!(begun.elapsed() < PATIENCE * 6, "{:?}", begun.elapsed());
    }
}
