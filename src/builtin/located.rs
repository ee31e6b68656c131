//! A path that was found to lie in a root, and where it leads.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use cap_std::fs::Dir;
use rustix::io::Errno;

/// As many links as the system itself follows.
const MOST_LINKS: usize = 40;

/// A path within a root.
#[derive(Debug)]
pub struct Located {
    /// The root, opened.
    pub root: Dir,
    /// Where the root is.
    pub above: PathBuf,
    /// The path from there; empty for the root itself.
    pub within: PathBuf,
}

impl Located {
    /// The path as a person would open it.
    pub fn path(&self) -> PathBuf {
        if self.within.as_os_str().is_empty() { self.above.clone() } else { self.above.join(&self.within) }
    }

    /// The path from its root, where the root itself is `.`.
    pub fn inner(&self) -> &Path {
        if self.within.as_os_str().is_empty() { Path::new(".") } else { &self.within }
    }

    /// The path from its root with every link followed, empty for the root itself; the last part need not be there.
    ///
    /// It is read name by name. To open the path and ask the system for the name of what was opened, as
    /// `Dir::canonicalize` does, tells `name (deleted)` of a file that somebody puts another in the place of meanwhile.
    pub fn really(&self) -> io::Result<PathBuf> {
        let mut left = parts(&self.within);
        let (mut really, mut links) = (PathBuf::new(), 0);
        while let Some(part) = left.pop() {
            if part == ".." {
                if !really.pop() {
                    // As `cap-std` says it of a path that leads out.
                    return Err(io::ErrorKind::PermissionDenied.into());
                }
                continue;
            }
            really.push(&part);
            match self.root.read_link(&really) {
                Ok(target) => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(Errno::LOOP.into());
                    }
                    really.pop();
                    left.extend(parts(&target));
                }
                Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound && left.is_empty() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(really)
    }
}

/// The names of a path, the first one last. A link that leads to an absolute path was refused when it was read.
fn parts(path: &Path) -> Vec<OsString> {
    let named = path.components().filter(|part| !matches!(part, Component::CurDir | Component::RootDir));
    let mut parts: Vec<OsString> = named.map(|part| part.as_os_str().to_owned()).collect();
    parts.reverse();
    parts
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn located(above: &Path, within: &str) -> Located {
        let root = Dir::open_ambient_dir(above, cap_std::ambient_authority()).unwrap();
        Located { root, above: above.to_owned(), within: within.into() }
    }

    #[test]
    fn every_link_is_followed_and_none_leads_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/file"), "").unwrap();
        for (target, link) in [
            ("a/b", "down"),
            ("../file", "a/b/up"),
            ("not/there", "dangling"),
            ("new", "to_new"),
            ("x", "y"),
            ("y", "x"),
            ("..", "out"),
            ("/etc", "absolute"),
            (".", "here"),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        let really = |within: &str| located(root, within).really().map_err(|error| error.kind());
        for (within, expected) in [
            ("", ""),
            ("a/b", "a/b"),
            ("down/up", "a/file"),
            ("down/../file", "a/file"),
            ("to_new", "new"),
            ("here/here", ""),
        ] {
            assert_eq!(really(within), Ok(expected.into()), "{within}");
        }
        for (within, expected) in [
            ("out", io::ErrorKind::PermissionDenied),
            ("a/../..", io::ErrorKind::PermissionDenied),
            ("absolute/passwd", io::ErrorKind::PermissionDenied),
            ("dangling", io::ErrorKind::NotFound),
            ("a/file/x", io::ErrorKind::NotADirectory),
        ] {
            assert_eq!(really(within), Err(expected), "{within}");
        }
        let circle = located(root, "x").really().unwrap_err();
        assert_eq!(circle.raw_os_error(), Some(Errno::LOOP.raw_os_error()));
    }

    #[test]
    fn a_file_has_its_name_while_others_are_put_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::write(root.join("a"), "").unwrap();
        symlink("a", root.join("link")).unwrap();
        let (done, at) = (AtomicBool::new(false), located(root, "link"));
        let names: Vec<_> = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    fs::write(root.join("draft"), "").unwrap();
                    fs::rename(root.join("draft"), root.join("a")).unwrap();
                }
            });
            let names = (0..5_000).map(|_| at.really()).collect();
            done.store(true, Ordering::Relaxed);
            names
        });
        for name in names {
            assert_eq!(name.unwrap(), Path::new("a"));
        }
    }
}
