//! The environment variables that hostler was started with, as a value.
//!
//! `main` reads them once. Everything else gets them passed in: each session may bring its own, and a secret can be
//! blanked in the process without taking it from the session that owns it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Variables by name. Values are not printed: any of them may be a secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The variables of this process. For `main`; a library that reads them anywhere else ignores its caller's.
    pub fn of_process() -> Self {
        std::env::vars_os().collect()
    }

    /// A variable as it is, also when it is empty or not UTF-8.
    pub fn raw(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
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
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// A program: a path, or a name that is looked up in this environment's `PATH`.
    pub fn find_program(&self, program: impl AsRef<OsStr>) -> Option<PathBuf> {
        let directory = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        which::which_in(program, self.raw("PATH"), directory).ok()
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
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
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
