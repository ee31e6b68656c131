//! What a walled process can read in any case.

use std::path::PathBuf;

#[cfg(any(target_os = "linux", target_os = "macos"))]
use super::programs::{folder_of, installation_of, needed_by};
#[cfg(any(target_os = "linux", target_os = "macos"))]
use crate::config::Environment;

/// Something that a walled process can read in any case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Own {
    /// A file, or a folder with all that is beneath it.
    Path(PathBuf),
    /// The folder of a file.
    FolderOf(PathBuf),
    /// An installed program with its libraries.
    Installation(PathBuf),
    /// A program: its folder, and its interpreters.
    Program(PathBuf),
}

impl Own {
    /// The files and folders, as they are now.
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    pub(super) fn paths(&self, environment: &Environment) -> Vec<PathBuf> {
        match self {
            Self::Path(path) => vec![path.clone()],
            Self::FolderOf(file) => folder_of(file, environment).into_iter().collect(),
            Self::Installation(program) => installation_of(program, environment.home().as_deref()),
            Self::Program(program) => needed_by(program, environment),
        }
    }
}
