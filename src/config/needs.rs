//! What the operator says that a Python file needs: packages and interpreters, in force over its header, folders of modules, and a
//! command line.

use std::path::{Path, PathBuf};

use toml::de::DeValue;

use super::Environment;
use super::environment::from_file;
use super::origin::{Diagnosis, Setting};
use super::section::Section;
use super::value::FromToml;

/// What a Python file needs, by `[tool.NAME]`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Needs {
    /// The packages (PEP 508), instead of its header's.
    pub dependencies: Option<Setting<Vec<String>>>,
    /// The interpreters (a PEP 440 version specifier), instead of its header's.
    pub requires_python: Option<Setting<String>>,
    /// Folders of further modules, relative to the file that sets them.
    pub python_path: Option<Setting<Vec<PathBuf>>>,
    /// The command line of its program, without the program's name: `sys.argv[1:]`.
    pub args: Option<Setting<Vec<String>>>,
}

/// The variable that Python reads folders of modules from; the shim does it in its place.
pub const PYTHON_PATH: &str = "PYTHONPATH";

/// Folders for a variable that separates them by colons.
fn folders(value: &DeValue<'_>) -> Result<Vec<PathBuf>, Diagnosis> {
    let folders = Vec::<PathBuf>::from_toml(value)?;
    match folders.iter().find(|folder| folder.to_string_lossy().contains(':')) {
        Some(folder) => {
            let what = format!("{} contains `:`, which separates the folders of PYTHONPATH", folder.display());
            Err(Diagnosis::new(what, "rename the folder, or link to it under another name"))
        }
        None => Ok(folders),
    }
}

/// A command line for a worker.
fn command_line(value: &DeValue<'_>) -> Result<Vec<String>, Diagnosis> {
    let args = Vec::<String>::from_toml(value)?;
    match args.iter().find(|arg| arg.contains('\0')) {
        Some(arg) => Err(Diagnosis::new(format!("{arg:?} contains a NUL character"), "remove it")),
        None => Ok(args),
    }
}

impl Needs {
    pub(super) fn read(section: &Section<'_>) -> Self {
        Self {
            dependencies: section.take("dependencies"),
            requires_python: section.take("requires-python"),
            python_path: section.take_as("python_path", folders),
            args: section.take_as("args", command_line),
        }
    }

    #[must_use]
    pub fn under(self, over: Self) -> Self {
        Self {
            dependencies: over.dependencies.or(self.dependencies),
            requires_python: over.requires_python.or(self.requires_python),
            python_path: over.python_path.or(self.python_path),
            args: over.args.or(self.args),
        }
    }

    /// Whether something of its header does not count.
    pub fn replace_the_header(&self) -> bool {
        self.dependencies.is_some() || self.requires_python.is_some()
    }

    /// What decides which code runs, as one text; empty if nothing is set. An approval is bound to it.
    pub fn reach(&self) -> String {
        let parts = [
            self.dependencies.as_ref().map(|set| format!(" dependencies {:?}", set.value)),
            self.requires_python.as_ref().map(|set| format!(" requires-python {:?}", set.value)),
            self.python_path.as_ref().map(|set| format!(" python_path {:?}", set.value)),
            self.args.as_ref().map(|set| format!(" args {:?}", set.value)),
        ];
        parts.into_iter().flatten().collect()
    }

    /// The folders of further modules. A configuration file that was opened by a relative path is below the working directory.
    pub fn folders(&self, environment: &Environment) -> Vec<PathBuf> {
        let Some(set) = &self.python_path else { return Vec::new() };
        let here = environment.directory().unwrap_or(Path::new(""));
        set.value.iter().map(|path| here.join(from_file(&set.origin, path, environment))).collect()
    }
}
