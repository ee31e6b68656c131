//! The tools folders.

use std::path::{Path, PathBuf};

use super::environment;
use super::load::{Config, ConfigOptions, project_file};
use super::origin::{Origin, Setting};
use super::section::Section;
use super::tables::Ask;

/// The tools folders, weakest first: those of `--tools`, else those that are configured, else hostler's own.
pub(super) fn tools(top: &Section<'_>, options: &ConfigOptions, directory: &Path) -> Setting<Vec<PathBuf>> {
    let variables = &options.environment;
    let named = top.take::<Vec<PathBuf>>("tools");
    if !options.tools.is_empty() {
        let value = options.tools.iter().map(|path| directory.join(path)).collect();
        return Setting { value, origin: Origin::Flag("--tools") };
    }
    if let Some(Setting { value, origin }) = named {
        let value = value.iter().map(|path| environment::from_file(&origin, path, variables)).collect();
        return Setting { value, origin };
    }
    Setting::default_value(own(options, directory))
}

/// Hostler's own tools folders: the system's, the person's, the project's. Whether they are there or not: one may come while hostler
/// serves, with the first tool that somebody installs.
pub(super) fn own(options: &ConfigOptions, directory: &Path) -> Vec<PathBuf> {
    let project = project_file(options, directory);
    let beside_project = project.as_deref().and_then(Path::parent).unwrap_or(directory).join("tools");
    let users = environment::user_tools(&options.environment);
    environment::system_tools().into_iter().chain([users, beside_project]).collect()
}

impl Config {
    /// Whether all programs of a file's folder are asked for their schema: it is one of hostler's own folders, or `ask = "all"`.
    pub fn asks_all_beside(&self, file: &Path) -> bool {
        self.executables.ask == Ask::All || self.own_tools.iter().any(|folder| file.starts_with(folder))
    }

    /// The tools folders, without those default ones that do not exist.
    pub fn tools_there(&self) -> impl Iterator<Item = &PathBuf> {
        self.tools.value.iter().filter(|folder| self.tools.origin != Origin::Default || folder.is_dir())
    }
}
