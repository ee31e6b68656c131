//! Files put in their place whole: whoever reads one finds what was there before or what is there now, and never a part.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, Metadata, OpenOptions, OpenOptionsExt, Permissions};
use rustix::fs::{Access, AtFlags};
use rustix::io::Errno;

use super::spot::Spot;

/// Writes a file anew in the place of one that is there or of none. The last word is asked for when all is written and nothing is
/// left but to put it there.
pub(super) fn replace(spot: &Spot, content: impl Read, last_word: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let Spot { folder, name } = spot;
    let before = folder.symlink_metadata(name).ok();
    if before.as_ref().is_some_and(Metadata::is_dir) {
        return Err(ErrorKind::IsADirectory.into());
    }
    if let Some(before) = &before {
        may_be_changed(folder, name, before)?;
    }
    let draft = Draft::write(folder, name, content, before.map(|before| before.permissions()))?;
    last_word()?;
    folder.rename(&draft.name, folder, name).map_err(not_placed)?;
    draft.done();
    Ok(())
}

/// That a place is busy says no more of who it is busy with; who hears that tries again, and nothing changes.
fn not_placed(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::ResourceBusy => io::Error::other(
            "it is mounted by itself, as into a container, so no other file can be put in its place; mount its folder instead",
        ),
        _ => error,
    }
}

/// Whether a file is one that may be written to. To put another in its place, the system asks only whether the folder is.
fn may_be_changed(folder: &Dir, name: &Path, metadata: &Metadata) -> io::Result<()> {
    if metadata.is_symlink() {
        return Err(io::Error::other("somebody put a link there at the same time; try again"));
    }
    if !metadata.is_file() {
        return Err(io::Error::other("it is no file of bytes but a pipe, a socket or a device"));
    }
    // Whoever may do everything is asked by what the file says of itself.
    if metadata.permissions().readonly() {
        return Err(Errno::ACCESS.into());
    }
    Ok(rustix::fs::accessat(folder, name, Access::WRITE_OK, AtFlags::empty())?)
}

/// Writes a file where none is.
pub(super) fn create(spot: &Spot, content: impl Read) -> io::Result<()> {
    let Spot { folder, name } = spot;
    match folder.symlink_metadata(name) {
        Ok(there) if there.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        Ok(_) => return Err(ErrorKind::AlreadyExists.into()),
        Err(_) => {}
    }
    let draft = Draft::write(folder, name, content, None)?;
    match folder.hard_link(&draft.name, folder, name) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        Ok(()) => Ok(()),
        // Some file systems know no second name for a file.
        Err(_) => {
            folder.rename(&draft.name, folder, name)?;
            draft.done();
            Ok(())
        }
    }
}

/// A file under another name in the same folder, removed unless it is put in its place.
struct Draft<'a> {
    folder: &'a Dir,
    name: PathBuf,
    placed: bool,
}

impl<'a> Draft<'a> {
    fn write(folder: &'a Dir, beside: &Path, mut content: impl Read, like: Option<Permissions>) -> io::Result<Self> {
        let mut how = OpenOptions::new();
        how.write(true).create_new(true);
        if like.is_some() {
            // What few may read is read by nobody else meanwhile.
            how.mode(0o600);
        }
        let (name, mut file) = loop {
            let name = Self::name(beside)?;
            match folder.open_with(&name, &how) {
                // Processes of other containers, and those before a restart, have the same number.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => break (name, made?),
            }
        };
        let draft = Self { folder, name, placed: false };
        io::copy(&mut content, &mut file)?;
        if let Some(like) = like {
            file.set_permissions(like)?;
        }
        file.sync_all()?;
        Ok(draft)
    }

    /// Another one each time.
    fn name(beside: &Path) -> io::Result<PathBuf> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut name = OsString::from(".");
        // A long name leaves no room for more.
        let whole = beside.file_name().ok_or(ErrorKind::InvalidInput)?.to_string_lossy().into_owned();
        name.push(whole.chars().take(40).collect::<String>());
        name.push(format!(".{}-{count}.tmp", std::process::id()));
        Ok(name.into())
    }

    fn done(mut self) {
        self.placed = true;
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.placed {
            let _ = self.folder.remove_file(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Content that looks, while it is written, at what lies in the folder: names, modes, sizes.
    struct Looks<'a>(&'a Path, &'a mut Vec<(String, u32, u64)>);

    impl Read for Looks<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if !self.1.is_empty() {
                return Ok(0);
            }
            for entry in fs::read_dir(self.0)? {
                let (name, about) = (entry.as_ref().unwrap().file_name(), entry.unwrap().metadata()?);
                self.1.push((name.into_string().unwrap(), about.permissions().mode() & 0o777, about.len()));
            }
            self.1.sort();
            into[..3].copy_from_slice(b"two");
            Ok(3)
        }
    }

    #[test]
    fn what_few_may_read_is_read_by_nobody_else_while_another_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (root, file) = (folder.path(), folder.path().join("a"));
        let dir = Dir::open_ambient_dir(root, cap_std::ambient_authority()).unwrap();
        let spot = Spot { folder: dir, name: "a".into() };
        fs::write(&file, "before").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        let mut seen = Vec::new();
        replace(&spot, Looks(root, &mut seen), || Ok(())).unwrap();
        assert!(seen[0].0.starts_with(".a."), "{seen:?}");
        assert_eq!((seen[0].1, &seen[1]), (0o600, &("a".to_owned(), 0o640, 6)), "what is there is there until the end");
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn the_last_word_is_heard_when_all_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        fs::write(&file, "before").unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap();
        let spot = Spot { folder: dir, name: "a".into() };
        let mut drafts = Vec::new();
        let no = || {
            let mut looks = Looks(folder.path(), &mut drafts);
            assert_eq!(looks.read(&mut [0; 3])?, 3);
            Err(ErrorKind::ResourceBusy.into())
        };
        assert_eq!(replace(&spot, &b"after"[..], no).unwrap_err().kind(), ErrorKind::ResourceBusy);
        assert_eq!(drafts[0].2, 5, "{drafts:?}");
        assert_eq!(
            (fs::read_to_string(&file).unwrap(), fs::read_dir(folder.path()).unwrap().count()),
            ("before".into(), 1)
        );
    }

    #[test]
    fn a_file_that_is_mounted_is_told_apart_from_one_that_somebody_changed() {
        let told = not_placed(Errno::BUSY.into());
        assert_ne!(told.kind(), ErrorKind::ResourceBusy, "an edit's last word");
        assert!(told.to_string().ends_with("mount its folder instead"));
        assert_eq!(not_placed(Errno::ACCESS.into()).kind(), ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_draft_that_somebody_left_is_in_nobodys_way() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap();
        // By a process that had this one's number. Other tests count on meanwhile.
        let next = Draft::name(Path::new("a")).unwrap().display().to_string();
        let (before, count) = next.strip_suffix(".tmp").unwrap().rsplit_once('-').unwrap();
        let count: u64 = count.parse().unwrap();
        for count in count..count + 100 {
            fs::write(folder.path().join(format!("{before}-{count}.tmp")), "").unwrap();
        }
        create(&Spot { folder: dir, name: "a".into() }, &b"one"[..]).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 101, "they may be somebody's still");
        assert_eq!(fs::read_to_string(folder.path().join("a")).unwrap(), "one");
    }
}
