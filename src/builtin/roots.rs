//! The folders that built-in tools may reach. A path is opened beneath one of them by the system, or step by step where it cannot:
//! a check of the path's text alone could be outdated when the path is opened.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rustix::fs::Access;
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{About, Builtin, Call, Stop};
use crate::outcome::{Code, Fault};
use crate::process::{SpawnError, limit_behind};

/// What is said of a file that the system does not open.
pub(crate) const BY_OWNER: &str = "; its owner can allow it with `chmod`";

/// The default path of tools: the first root.
pub(super) fn here() -> String {
    ".".to_owned()
}

/// The folders, in configured order.
#[derive(Debug, Clone, Default)]
pub struct Roots(Arc<Vec<PathBuf>>);

impl Roots {
    /// These folders.
    pub fn new(folders: Vec<PathBuf>) -> Self {
        Self(Arc::new(folders))
    }

    /// Where relative paths start.
    pub fn first(&self) -> Option<&Path> {
        self.0.first().map(PathBuf::as_path)
    }

    /// A tool that runs on a thread of its own.
    pub(super) fn tool<P, A>(&self, about: fn() -> About, run: Run<P, A>) -> OnFiles<P, A> {
        OnFiles { roots: self.clone(), about, run }
    }

    /// Finds and opens the root of a path; the path itself is opened beneath it later.
    pub fn locate(&self, path: &str) -> Result<Located, Fault> {
        if path.contains('\0') {
            return Err(Fault::new(Code::InvalidParams, "a path must not contain a NUL character"));
        }
        let asked = Path::new(path);
        let (above, within) = self.split(asked).ok_or_else(|| self.outside(asked))?;
        let root = Dir::open_ambient_dir(&above, ambient_authority()).map_err(|error| {
            let message = format!(
                "cannot open {}: {error}; it is one of the `roots` under [builtin] in hostler.toml",
                above.display()
            );
            Fault::new(Code::ToolError, message)
        })?;
        Ok(Located { root, above, within })
    }

    /// The root and the rest of the path, by text alone: this finds the root, it is no access check.
    fn split(&self, asked: &Path) -> Option<(PathBuf, PathBuf)> {
        if asked.is_relative() {
            return Some((self.first()?.to_owned(), clean(asked)));
        }
        let mut best: Option<(PathBuf, PathBuf)> = None;
        for root in self.0.iter() {
            let really = root.canonicalize().ok();
            for shown in [Some(root.as_path()), really.as_deref()].into_iter().flatten() {
                if let Ok(within) = asked.strip_prefix(shown)
                    && best.as_ref().is_none_or(|(_, other)| within.components().count() < other.components().count())
                {
                    best = Some((root.clone(), clean(within)));
                }
            }
        }
        best
    }

    /// Refuses a path outside, with links resolved. For paths that another program opens, so it may be outdated by then.
    pub fn hold(&self, path: &Path) -> Result<(), Fault> {
        let really = path.canonicalize().map_err(|error| self.refused(path, &error))?;
        let mut roots = self.0.iter().filter_map(|root| root.canonicalize().ok());
        if roots.any(|root| really.starts_with(root)) { Ok(()) } else { Err(self.outside(path)) }
    }

    fn outside(&self, path: &Path) -> Fault {
        let folders: Vec<String> = self.0.iter().map(|root| root.display().to_string()).collect();
        let folders = if folders.is_empty() { "none".to_owned() } else { folders.join(", ") };
        let message = format!(
            "{} is outside the folders that built-in tools may reach ({folders}); use a path in one of them, without `..`, or ask \
             the operator to add its folder to `roots` under [builtin] in hostler.toml",
            path.display()
        );
        Fault::new(Code::PermissionDenied, message)
    }

    /// The fault of a program that could not be started in a folder. The system reports a missing or closed folder like a missing
    /// program, so the folder is checked.
    pub fn not_started(&self, folder: &Path, error: &SpawnError, otherwise: Code) -> Fault {
        if error.source.kind() == ErrorKind::NotADirectory {
            return Fault::new(Code::ToolError, format!("{} is a file; pass its folder", folder.display()));
        }
        match rustix::fs::access(folder, Access::EXEC_OK) {
            Err(reason) => self.refused(folder, &reason.into()),
            Ok(()) => error.limit().unwrap_or_else(|| Fault::new(otherwise, error.to_string())),
        }
    }

    /// The fault of a path that could not be opened.
    pub fn refused(&self, path: &Path, error: &io::Error) -> Fault {
        let shown = path.display();
        match error.kind() {
            ErrorKind::NotFound => Fault::new(
                Code::ToolError,
                format!("{shown} does not exist; `list_directory` or `glob` show what exists"),
            ),
            // cap-std reports a path that leads outside without a system error.
            ErrorKind::PermissionDenied if error.raw_os_error().is_none() => self.outside(path),
            ErrorKind::PermissionDenied => {
                Fault::new(Code::PermissionDenied, format!("cannot open {shown}: {error}{BY_OWNER}"))
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Fault::new(
                Code::ResourceExhausted,
                format!("no space left for {shown}: {error}; free some, or write elsewhere"),
            ),
            _ => match limit_behind(error) {
                Some(limit) => Fault::new(Code::ResourceExhausted, format!("{shown}: {limit}")),
                None => Fault::new(Code::ToolError, format!("{shown}: {error}")),
            },
        }
    }
}

/// What a tool on files does.
type Run<P, A> = fn(&Roots, &P, &Stop) -> Result<A, Fault>;

/// A tool beneath the roots.
pub(super) struct OnFiles<P, A> {
    roots: Roots,
    about: fn() -> About,
    run: Run<P, A>,
}

impl<P, A> Builtin for OnFiles<P, A>
where
    P: DeserializeOwned + JsonSchema + Send + 'static,
    A: Serialize + JsonSchema + Send + 'static,
{
    type Params = P;
    type Answer = A;

    fn about(&self) -> About {
        (self.about)()
    }

    async fn call(&self, params: P, call: Call) -> Result<A, Fault> {
        let (roots, run) = (self.roots.clone(), self.run);
        call.blocking(move |stop| run(&roots, &params, stop)).await
    }
}

/// The path without `.`. `..` stays, because what it leads to depends on links.
fn clean(path: &Path) -> PathBuf {
    path.components().filter(|part| !matches!(part, Component::CurDir)).collect()
}

/// The system follows as many links.
const MOST_LINKS: usize = 40;

/// A path beneath a root.
#[derive(Debug)]
pub struct Located {
    /// The root, opened.
    pub root: Dir,
    /// The root's path.
    pub above: PathBuf,
    /// The path below it; empty for the root itself.
    pub within: PathBuf,
}

impl Located {
    /// The whole path.
    pub fn path(&self) -> PathBuf {
        if self.within.as_os_str().is_empty() { self.above.clone() } else { self.above.join(&self.within) }
    }

    /// The path below the root; `.` for the root itself.
    pub fn inner(&self) -> &Path {
        if self.within.as_os_str().is_empty() { Path::new(".") } else { &self.within }
    }

    /// The path below the root with every link resolved; its last part need not exist.
    ///
    /// Links are read one by one. `Dir::canonicalize`, which asks the system for the name of an opened file, returns
    /// `name (deleted)` when the file is replaced meanwhile.
    pub fn really(&self) -> io::Result<PathBuf> {
        let mut left = parts(&self.within);
        let (mut really, mut links) = (PathBuf::new(), 0);
        while let Some(part) = left.pop() {
            if part == ".." {
                if !really.pop() {
                    // The same error as `cap-std` has for a path that leads outside.
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

/// The names of a path in reverse. Links to absolute paths were refused when they were read.
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
    fn every_link_is_followed_and_none_leads_outside() {
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
    fn a_file_keeps_its_name_while_it_is_replaced() {
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

    #[test]
    fn a_missing_program_is_told_apart_from_a_missing_folder() {
        let folder = tempfile::tempdir().unwrap();
        // As for a script whose interpreter does not exist.
        let error = SpawnError { program: "bash".to_owned(), source: ErrorKind::NotFound.into() };
        let fault = |folder: &Path| Roots::default().not_started(folder, &error, Code::CommandNotFound);
        assert_eq!(fault(folder.path()).code, Code::CommandNotFound);
        assert!(fault(folder.path()).message.starts_with("bash could not be started"));
        assert!(fault(&folder.path().join("gone")).message.contains("gone does not exist"));
    }
}
