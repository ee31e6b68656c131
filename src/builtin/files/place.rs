//! Files put in their place whole: whoever reads one finds what was there before or what is there now, and never a part.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, OpenOptions, Permissions};

/// Writes a file anew in the place of one that is there or of none. Through a link, what it leads to is replaced.
pub(super) fn replace(root: &Dir, path: &Path, content: &[u8]) -> io::Result<()> {
    let target = match root.canonicalize(path) {
        Ok(target) => target,
        Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    let before = root.metadata(&target).ok();
    if before.as_ref().is_some_and(cap_std::fs::Metadata::is_dir) {
        return Err(ErrorKind::IsADirectory.into());
    }
    let draft = Draft::write(root, &target, content, before.map(|before| before.permissions()))?;
    root.rename(&draft.path, root, &target)?;
    draft.done();
    Ok(())
}

/// Writes a file where none is.
pub(super) fn create(root: &Dir, path: &Path, content: &[u8]) -> io::Result<()> {
    if root.symlink_metadata(path).is_ok() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    let draft = Draft::write(root, path, content, None)?;
    match root.hard_link(&draft.path, root, path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        Ok(()) => Ok(()),
        // Some file systems know no second name for a file.
        Err(_) => {
            root.rename(&draft.path, root, path)?;
            draft.done();
            Ok(())
        }
    }
}

/// A file under another name, removed unless it is put in its place.
struct Draft<'a> {
    root: &'a Dir,
    path: PathBuf,
    placed: bool,
}

impl<'a> Draft<'a> {
    fn write(root: &'a Dir, beside: &Path, content: &[u8], like: Option<Permissions>) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut name = OsString::from(".");
        // A long name leaves no room for more.
        let whole = beside.file_name().ok_or(ErrorKind::InvalidInput)?.to_string_lossy().into_owned();
        name.push(whole.chars().take(40).collect::<String>());
        name.push(format!(".{}-{count}.tmp", std::process::id()));
        let path = beside.with_file_name(name);
        let mut file = root.open_with(&path, OpenOptions::new().write(true).create_new(true))?;
        let draft = Self { root, path, placed: false };
        file.write_all(content)?;
        if let Some(like) = like {
            file.set_permissions(like)?;
        }
        file.sync_all()?;
        Ok(draft)
    }

    fn done(mut self) {
        self.placed = true;
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.placed {
            let _ = self.root.remove_file(&self.path);
        }
    }
}
