//! The environment variables and the working directory that hostler was started with, as a value, and the XDG folders that
//! the variables name.
//!
//! `main` reads them once. Everything else gets them passed in: each session may bring its own, and a secret can be
//! blanked in the process without taking it from the session that owns it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::origin::Origin;

/// Variables by name. Values are not printed: any of them may be a secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    directory: Option<PathBuf>,
}

impl Environment {
    /// The variables of this process. For `main`; a library that reads them anywhere else ignores its caller's.
    pub fn of_process() -> Self {
        std::env::vars_os().collect()
    }

    /// The same variables in this working directory.
    #[must_use]
    pub fn within(mut self, directory: &Path) -> Self {
        let is_other = std::env::current_dir().map_or(true, |current| current != directory);
        self.directory = (is_other && directory.is_dir()).then(|| directory.to_owned());
        self
    }

    /// These variables alone, in the same working directory.
    #[must_use]
    pub fn only(&self, names: &[&str]) -> Self {
        let kept = self.variables.iter().filter(|(name, _)| names.iter().any(|wanted| name.as_os_str() == *wanted));
        let variables = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
        Self { variables, directory: self.directory.clone() }
    }

    /// The working directory, if it is not that of this process.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// A variable as it is, also when it is empty or not UTF-8.
    pub fn raw(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// A variable that is UTF-8 and not empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.raw(name)?.to_str().filter(|value| !value.is_empty())
    }

    /// A variable that is not empty, as a path.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.raw(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// A variable that holds an absolute path.
    pub fn absolute_path(&self, name: &str) -> Option<PathBuf> {
        self.path(name).filter(|path| path.is_absolute())
    }

    /// The home folder.
    pub fn home(&self) -> Option<PathBuf> {
        self.absolute_path("HOME")
    }

    /// Every variable, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// A program: a path, or a name that is looked up in this environment's `PATH`. Both may be relative to its directory.
    pub fn find_program(&self, program: impl AsRef<OsStr>) -> Option<PathBuf> {
        let current = || std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let directory = self.directory.clone().unwrap_or_else(current);
        let folders = self.raw("PATH").map(|path| std::env::split_paths(path).map(|folder| directory.join(folder)));
        which::which_in(program, folders.and_then(|folders| std::env::join_paths(folders).ok()), directory).ok()
    }

    /// `~/tools` as a shell would read it.
    pub fn expand_home(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), self.raw("HOME")) {
            (Ok(rest), Some(home)) => Path::new(home).join(rest),
            _ => path.to_owned(),
        }
    }
}

impl<N: Into<OsString>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables, directory: None }
    }
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.variables.keys()).finish()
    }
}

const NAME: &str = "hostler";

/// The cache: environments, uv's private copy, the worker shim, what was read of tool files. Safe to delete.
pub fn cache(environment: &Environment) -> PathBuf {
    usual_cache(environment).unwrap_or_else(|| homeless(environment).join(NAME))
}

/// `None` if the home folder is read-only, as in some containers and services: a folder beneath the temporary one has to
/// do. A folder that is set is used as it is.
fn usual_cache(environment: &Environment) -> Option<PathBuf> {
    let folder = xdg(environment, "XDG_CACHE_HOME", ".cache");
    let is_set = environment.absolute_path("XDG_CACHE_HOME").is_some();
    let there = folder.ancestors().find(|folder| folder.exists())?;
    let is_writable = rustix::fs::access(there, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok();
    (is_set || is_writable).then_some(folder)
}

/// Where uv keeps its downloads if it cannot use the home folder and no other place is set.
pub fn uv_cache_without_home(environment: &Environment) -> Option<PathBuf> {
    let is_needed = environment.path("UV_CACHE_DIR").is_none() && usual_cache(environment).is_none();
    is_needed.then(|| cache(environment).join("uv-cache"))
}

/// Where a shared hostler and its clients meet. It goes with the person's last login; without one, a folder beneath the
/// temporary one has to do.
pub fn runtime_folder(environment: &Environment) -> PathBuf {
    let of_login = environment.absolute_path("XDG_RUNTIME_DIR").filter(|folder| folder.is_dir());
    of_login.unwrap_or_else(|| homeless(environment)).join(NAME)
}

/// What outlives hostler and may not be deleted without loss: logs.
pub fn state(environment: &Environment) -> PathBuf {
    xdg(environment, "XDG_STATE_HOME", ".local/state")
}

/// The person's own configuration file.
pub fn user_config(environment: &Environment) -> PathBuf {
    xdg(environment, "XDG_CONFIG_HOME", ".config").join("hostler.toml")
}

/// Where `hostler secrets set` stores secrets, a file for each.
pub fn user_secrets(environment: &Environment) -> PathBuf {
    xdg(environment, "XDG_CONFIG_HOME", ".config").join("secrets")
}

/// The person's own tools.
pub fn user_tools(environment: &Environment) -> PathBuf {
    xdg(environment, "XDG_DATA_HOME", ".local/share").join("tools")
}

/// The tools that were installed with this program: `libexec/hostler/tools` below the folder that holds its `bin`, or beside the
/// program itself, as in development.
pub fn system_tools() -> Option<PathBuf> {
    let program = std::env::current_exe().and_then(std::fs::canonicalize).ok()?;
    let beside = program.parent()?;
    let below = |folder: &Path| folder.join("libexec").join(NAME).join("tools");
    [beside.parent().map(below), Some(below(beside))].into_iter().flatten().find(|folder| folder.is_dir())
}

/// Without a home folder, which happens in containers, a folder beneath the temporary one has to do.
fn xdg(environment: &Environment, variable: &str, below_home: &str) -> PathBuf {
    let base = environment.absolute_path(variable).or_else(|| Some(environment.home()?.join(below_home)));
    base.unwrap_or_else(|| homeless(environment)).join(NAME)
}

/// A folder of our own beneath the temporary one, in which everybody may write: it is taken only if it is ours alone, so
/// that no other user can put a program where hostler looks for its own.
fn homeless(environment: &Environment) -> PathBuf {
    let temporary = environment.absolute_path("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp"));
    let user = rustix::process::getuid().as_raw();
    let place = temporary.join(format!("hostler-{user}"));
    let _ = DirBuilder::new().mode(0o700).create(&place);
    let is_ours =
        place.symlink_metadata().is_ok_and(|data| data.is_dir() && data.uid() == user && data.mode() & 0o777 == 0o700);
    if is_ours {
        return place;
    }
    let other = temporary.join(format!("hostler-{user}-{}", std::process::id()));
    let _ = DirBuilder::new().mode(0o700).create(&other);
    other
}

impl Origin {
    /// A path that was written there: relative to the folder of its file.
    pub fn path(&self, path: &Path, environment: &Environment) -> PathBuf {
        from_file(self, path, environment)
    }
}

/// A path in a configuration file: relative to the file's folder, or to the home folder after `~`.
pub(super) fn from_file(origin: &Origin, path: &Path, environment: &Environment) -> PathBuf {
    let folder = origin.place().and_then(|place| place.file.parent()).unwrap_or(Path::new(""));
    folder.join(environment.expand_home(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_names_variables_and_hides_values() {
        let environment = Environment::from_iter([("API_KEY", "k-1")]);
        let shown = format!("{environment:?}");
        assert!(shown.contains("API_KEY") && !shown.contains("k-1"), "{shown}");
    }

    #[test]
    fn empty_and_relative_values_are_no_paths() {
        let environment = Environment::from_iter([("EMPTY", ""), ("HOME", "here"), ("SET", "/x")]);
        assert_eq!((environment.text("EMPTY"), environment.path("EMPTY"), environment.home()), (None, None, None));
        assert_eq!(environment.absolute_path("SET"), Some("/x".into()));
        assert_eq!(environment.expand_home(Path::new("~/a")), Path::new("here/a"));
        assert_eq!(Environment::default().expand_home(Path::new("~/a")), Path::new("~/a"));
    }
}
