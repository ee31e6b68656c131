//! Files that are replaced whole or not at all; most of them only their owner may read.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Puts these bytes into the file, which may exist. Its folder is made if it is missing. When this returns, the file outlives a loss of
/// power.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_as(path, bytes, 0o600)
}

/// The same for a file that others may read: it keeps its permissions, and a link that leads to it stays.
pub fn replace_shared(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let real = path.canonicalize();
    let path = real.as_deref().unwrap_or(path);
    replace_as(path, bytes, path.metadata().map_or(0o644, |about| about.mode() & 0o777))
}

fn replace_as(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".new-{}", std::process::id()));
    let draft = folder.join(name);
    // A dead process with the same id may have left one.
    let _ = std::fs::remove_file(&draft);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let replaced = written.and_then(|()| std::fs::rename(&draft, path)).and_then(|()| File::open(folder)?.sync_all());
    if replaced.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    replaced
}

/// The bytes of a file that only this user can have written. A link, a pipe, a file that others own or may write, and one of more than
/// `most` bytes are errors: what is read decides something.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let about = file.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    if !about.is_file() || about.uid() != own || about.mode() & 0o022 != 0 {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "others may have written it"));
    }
    let mut bytes = Vec::new();
    if file.take(most + 1).read_to_end(&mut bytes)? as u64 > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_stays_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/KEY.pem");
        replace(&path, b"one").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!(
            (std::fs::read(&path).unwrap(), path.metadata().unwrap().permissions().mode() & 0o777),
            (b"two".to_vec(), 0o600)
        );
        assert!(replace(&folder.path().join("new"), b"a folder is in the way").is_err());
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["new"], "no draft stays");
    }

    #[test]
    fn a_shared_file_keeps_its_permissions_and_the_link_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let [path, link] = ["file", "link"].map(|name| folder.path().join(name));
        symlink("file", &link).unwrap();
        replace_shared(&path, b"one").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        replace_shared(&link, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert!(link.symlink_metadata().unwrap().is_symlink());
    }

    #[test]
    fn only_a_file_of_this_user_alone_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        replace(&place("own"), b"12345").unwrap();
        assert_eq!(read(&place("own"), 5).unwrap(), b"12345");
        assert_eq!(read(&place("own"), 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        symlink(place("own"), place("link")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, place("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        replace(&place("open"), b"x").unwrap();
        std::fs::set_permissions(place("open"), PermissionsExt::from_mode(0o620)).unwrap();
        for name in ["link", "pipe", "open", "missing", "."] {
            assert!(read(&place(name), 5).is_err(), "{name}");
        }
    }
}
