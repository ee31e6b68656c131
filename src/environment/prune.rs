//! Pruning: what has not been used for long, and what broken builds left. Never what is in use.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::marker::MARKER;
use super::staging::STAGING;

/// A staging folder this old belongs to no build that still runs.
const STALE_STAGING: Duration = Duration::from_hours(24);

/// What pruning did.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Pruned {
    /// Environments removed.
    pub removed: Vec<PathBuf>,
    /// Environments kept.
    pub kept: usize,
}

/// Removes environments that were not used for `unused_for`.
pub(super) fn prune(folder: &Path, unused_for: Duration) -> Pruned {
    let mut pruned = Pruned::default();
    let Ok(entries) = std::fs::read_dir(folder) else { return pruned };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if name.starts_with(STAGING) {
            if age(&path).is_some_and(|age| age > STALE_STAGING) {
                let _ = std::fs::remove_dir_all(&path);
            }
        } else if !name.starts_with('.') && path.is_dir() {
            if removable(&path, unused_for) && std::fs::remove_dir_all(&path).is_ok() {
                tracing::info!(environment = %path.display(), "removed an environment that nobody used");
                pruned.removed.push(path);
            } else {
                pruned.kept += 1;
            }
        }
    }
    pruned
}

fn removable(home: &Path, unused_for: Duration) -> bool {
    let marker = home.join(MARKER);
    if age(&marker).or_else(|| age(home)).is_none_or(|age| age < unused_for) {
        return false;
    }
    // Whoever runs from it holds a shared lock on its marker. Removing the marker first makes it unfindable.
    let Ok(file) = OpenOptions::new().read(true).open(&marker) else { return true };
    file.try_lock().is_ok() && std::fs::remove_file(&marker).is_ok()
}

fn age(path: &Path) -> Option<Duration> {
    let modified = path.metadata().ok()?.modified().ok()?;
    SystemTime::now().duration_since(modified).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(folder: &Path, name: &str) -> PathBuf {
        let home = folder.join(name);
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join(MARKER), "{}").unwrap();
        home
    }

    #[test]
    fn only_what_nobody_uses_goes() {
        let folder = tempfile::tempdir().unwrap();
        let idle = environment(folder.path(), "idle");
        let busy = environment(folder.path(), "busy");
        let held = OpenOptions::new().read(true).open(busy.join(MARKER)).unwrap();
        held.lock_shared().unwrap();
        let pruned = prune(folder.path(), Duration::ZERO);
        assert_eq!((pruned.removed, pruned.kept), (vec![idle], 1));
        assert!(busy.join(MARKER).is_file());
    }

    #[test]
    fn what_was_used_of_late_stays() {
        let folder = tempfile::tempdir().unwrap();
        environment(folder.path(), "fresh");
        assert_eq!(prune(folder.path(), Duration::from_mins(1)).kept, 1);
    }
}
