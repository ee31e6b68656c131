//! The folders that built-in tools may reach. A path is opened beneath one of them, by the system or step by step where that
//! cannot: what is true of the text of a path may be over before it is opened.

use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rustix::fs::Access;

use super::Located;
use crate::outcome::{Code, Fault};
use crate::process::SpawnError;

/// The first root, as tools have it where no path is given.
pub(super) fn here() -> String {
    ".".to_owned()
}

/// The folders, in the order they were named.
#[derive(Debug, Clone, Default)]
pub struct Roots(Arc<Vec<PathBuf>>);

impl Roots {
    /// These.
    pub fn new(folders: Vec<PathBuf>) -> Self {
        Self(Arc::new(folders))
    }

    /// Where relative paths begin.
    pub fn first(&self) -> Option<&Path> {
        self.0.first().map(PathBuf::as_path)
    }

    /// Finds the root that a path lies in, and opens that. What the path leads to is opened beneath it.
    pub fn locate(&self, path: &str) -> Result<Located, Fault> {
        if path.contains('\0') {
            return Err(Fault::new(Code::InvalidParams, "a path holds no NUL character"));
        }
        let asked = Path::new(path);
        let (above, within) = self.split(asked).ok_or_else(|| self.outside(asked))?;
        let root = Dir::open_ambient_dir(&above, ambient_authority()).map_err(|error| {
            let message = format!(
                "{} cannot be opened: {error}; it is one of the `roots` under [builtin] in hostler.toml",
                above.display()
            );
            Fault::new(Code::ToolError, message)
        })?;
        Ok(Located { root, above, within })
    }

    /// The root and what is below it. Only the text is looked at: this finds the root, it holds nobody.
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

    /// Refuses a path of somebody else's, as it really is, that lies outside. What is true of it may be over when it is opened.
    pub fn hold(&self, path: &Path) -> Result<(), Fault> {
        let really = path.canonicalize().map_err(|error| self.refused(path, &error))?;
        let mut roots = self.0.iter().filter_map(|root| root.canonicalize().ok());
        if roots.any(|root| really.starts_with(root)) { Ok(()) } else { Err(self.outside(path)) }
    }

    fn outside(&self, path: &Path) -> Fault {
        let folders: Vec<String> = self.0.iter().map(|root| root.display().to_string()).collect();
        let folders = if folders.is_empty() { "none".to_owned() } else { folders.join(", ") };
        // Its text may well lie in another root; each is opened by itself.
        let climbs = self.0.len() > 1 && path.components().any(|part| part == Component::ParentDir);
        let whole = if climbs { ", written whole, as `..` does not lead from one into another" } else { "" };
        let message = format!(
            "{} lies outside of the folders that built-in tools may reach ({folders}); use a path in one of them{whole}, or let \
             whoever operates hostler add its folder to `roots` under [builtin] in hostler.toml",
            path.display()
        );
        Fault::new(Code::PermissionDenied, message)
    }

    /// What it means that a program could not be started in a folder: the system says the same of a folder that is gone or
    /// closed as of such a program, so the folder is asked.
    pub fn not_started(&self, folder: &Path, error: &SpawnError, otherwise: Code) -> Fault {
        if error.source.kind() == ErrorKind::NotADirectory {
            return Fault::new(Code::ToolError, format!("{} is a file; name its folder", folder.display()));
        }
        match rustix::fs::access(folder, Access::EXEC_OK) {
            Err(reason) => self.refused(folder, &reason.into()),
            Ok(()) => Fault::new(otherwise, error.to_string()),
        }
    }

    /// What the system's refusal to open a path means.
    pub fn refused(&self, path: &Path, error: &io::Error) -> Fault {
        let shown = path.display();
        match error.kind() {
            ErrorKind::NotFound => Fault::new(
                Code::ToolError,
                format!("{shown} does not exist; `list_directory` or `glob` show what there is"),
            ),
            // What cap-std says of a path that leads out, which is no error of the system's.
            ErrorKind::PermissionDenied if error.raw_os_error().is_none() => self.outside(path),
            ErrorKind::PermissionDenied => Fault::new(
                Code::PermissionDenied,
                format!("hostler may not open {shown}: {error}; its owner can let it with `chmod`"),
            ),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Fault::new(
                Code::ResourceExhausted,
                format!("there is no room for {shown}: {error}; make some, or write elsewhere"),
            ),
            _ => Fault::new(Code::ToolError, format!("{shown}: {error}")),
        }
    }
}

/// Without `.`, and without `name/..` at the end of nothing: `..` itself is left to whoever opens, since what it leads to
/// depends on links.
fn clean(path: &Path) -> PathBuf {
    path.components().filter(|part| !matches!(part, Component::CurDir)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_gone_is_not_taken_for_a_folder_that_is() {
        let folder = tempfile::tempdir().unwrap();
        // As of a script whose interpreter is not there.
        let error = SpawnError { program: "bash".to_owned(), source: ErrorKind::NotFound.into() };
        let told = |folder: &Path| Roots::default().not_started(folder, &error, Code::CommandNotFound);
        assert_eq!(told(folder.path()).code, Code::CommandNotFound);
        assert!(told(folder.path()).message.starts_with("bash could not be started"));
        assert!(told(&folder.path().join("gone")).message.contains("gone does not exist"));
    }

    #[test]
    fn a_path_that_climbs_from_one_root_into_another_is_told_to_be_written_whole() {
        let roots = |folders: &[&str]| Roots::new(folders.iter().map(PathBuf::from).collect());
        let told = |roots: &Roots, path: &str| roots.outside(Path::new(path)).message;
        let words = "written whole, as `..` does not lead from one into another";
        assert!(told(&roots(&["/a", "/b"]), "/a/../b/x").contains(words));
        assert!(!told(&roots(&["/a", "/b"]), "/c/x").contains(words));
        assert!(!told(&roots(&["/a"]), "/a/../b/x").contains(words));
    }
}
