//! The XDG folders that hostler uses, and the default folders of tools.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

const NAME: &str = "hostler";

/// The cache: environments, the worker shim, results of reading tool files. Safe to delete.
pub fn cache() -> PathBuf {
    xdg("XDG_CACHE_HOME", ".cache")
}

/// The user's configuration file.
pub fn user_config() -> PathBuf {
    xdg("XDG_CONFIG_HOME", ".config").join("hostler.toml")
}

/// The user's tools.
pub fn user_tools() -> PathBuf {
    xdg("XDG_DATA_HOME", ".local/share").join("tools")
}

/// The tools that were installed with this program: `libexec/hostler/tools` below the folder that holds its `bin`, or beside the
/// program itself, as in development.
pub fn system_tools() -> Option<PathBuf> {
    let program = std::env::current_exe().and_then(std::fs::canonicalize).ok()?;
    let beside = program.parent()?;
    let below = |folder: &Path| folder.join("libexec").join(NAME).join("tools");
    [beside.parent().map(below), Some(below(beside))].into_iter().flatten().find(|folder| folder.is_dir())
}

/// Without a home folder, as in some containers, a folder below the temporary one.
fn xdg(variable: &str, below_home: &str) -> PathBuf {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = set(variable).or_else(|| Some(set("HOME")?.join(below_home)));
    base.unwrap_or_else(homeless).join(NAME)
}

/// A private folder below the temporary one. An existing folder is used only if it belongs to this user and no other user
/// can write to it: otherwise another user could place a program there.
fn homeless() -> PathBuf {
    let user = rustix::process::getuid().as_raw();
    let place = std::env::temp_dir().join(format!("hostler-{user}"));
    let _ = DirBuilder::new().mode(0o700).create(&place);
    let is_ours =
        place.symlink_metadata().is_ok_and(|data| data.is_dir() && data.uid() == user && data.mode() & 0o777 == 0o700);
    if is_ours {
        return place;
    }
    let other = std::env::temp_dir().join(format!("hostler-{user}-{}", std::process::id()));
    let _ = DirBuilder::new().mode(0o700).create(&other);
    other
}

/// Expands `~` as a shell does.
pub(super) fn expand_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => path.to_owned(),
    }
}
