//! Where hostler keeps things: the XDG folders, and where tools are looked for.

use std::path::{Path, PathBuf};

const NAME: &str = "hostler";

/// The cache: environments, uv's private copy, the worker shim. Safe to delete.
pub fn cache() -> PathBuf {
    xdg("XDG_CACHE_HOME", ".cache")
}

/// The person's own configuration file.
pub fn user_config() -> PathBuf {
    xdg("XDG_CONFIG_HOME", ".config").join("hostler.toml")
}

/// The person's own tools.
pub fn user_tools() -> PathBuf {
    xdg("XDG_DATA_HOME", ".local/share").join("tools")
}

/// Without a home folder, which happens in containers, a folder beneath the temporary one has to do.
fn xdg(variable: &str, below_home: &str) -> PathBuf {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = set(variable).or_else(|| Some(set("HOME")?.join(below_home)));
    base.unwrap_or_else(|| std::env::temp_dir().join(format!("hostler-{}", rustix::process::getuid().as_raw())))
        .join(NAME)
}

/// `~/tools` as a shell would read it.
pub(super) fn expand_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => path.to_owned(),
    }
}
