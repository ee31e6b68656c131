//! The XDG folders that hostler uses, and the default folders of tools.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::origin::Origin;

const NAME: &str = "hostler";

/// The cache: environments, uv's private copy, the worker shim, what was read of tool files. Safe to delete.
pub fn cache(environment: &Environment) -> PathBuf {
    xdg(environment, "XDG_CACHE_HOME", ".cache")
}

/// The person's own configuration file.
pub fn user_config(environment: &Environment) -> PathBuf {
    xdg(environment, "XDG_CONFIG_HOME", ".config").join("hostler.toml")
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
/// that nobody can put a program of theirs where we look for ours.
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

/// A path in a configuration file: relative to the file's folder, or to the home folder after `~`.
pub(super) fn from_file(origin: &Origin, path: &Path, environment: &Environment) -> PathBuf {
    let folder = origin.place().and_then(|place| place.file.parent()).unwrap_or(Path::new(""));
    folder.join(environment.expand_home(path))
}
