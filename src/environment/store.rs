//! The environments in the cache: found by key, built once for concurrent callers, leased while in use, pruned when unused.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::build::{Build, STAGING};
use super::find;
use super::marker::{MARKER, Marker};
use super::settings::{EnvironmentSettings, Progress};
use super::spec::EnvironmentSpec;
use crate::outcome::{Code, Fault};

/// All environments of one cache folder.
#[derive(Debug)]
pub struct Environments {
    folder: PathBuf,
    pub(super) settings: EnvironmentSettings,
    pub(super) cache: PathBuf,
    uv: OnceCell<PathBuf>,
    /// One lock per environment, so that two first calls build once. The map is only locked to get one of them.
    gates: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// An environment in use. It is not pruned while a lease is held, in this process or another.
#[derive(Debug)]
pub struct Lease {
    /// Its interpreter.
    pub python: PathBuf,
    /// Whether it had to be built.
    pub built: bool,
    _held: File,
}

impl Environments {
    /// The environments below a cache folder.
    pub fn in_cache(cache: &Path, settings: EnvironmentSettings) -> Self {
        Self {
            folder: cache.join("environments"),
            settings,
            cache: cache.to_owned(),
            uv: OnceCell::new(),
            gates: Mutex::default(),
        }
    }

    /// uv, found or downloaded.
    pub async fn uv(&self, progress: Progress<'_>) -> Result<PathBuf, Fault> {
        let search = || async {
            let own_copies = self.cache.join("uv");
            if let Some(found) = find::find_uv(&self.settings, &own_copies)? {
                return Ok(found);
            }
            progress("uv is not installed: downloading a private copy from the package index (once)");
            tracing::info!("uv is not installed; downloading a private copy into {}", own_copies.display());
            find::provision_uv(&own_copies, &self.settings).await
        };
        self.uv.get_or_try_init(search).await.cloned()
    }

    /// The folder that everything is built in.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// A cache folder for `uv run`, which keeps next to nothing there.
    pub fn run_cache(&self) -> PathBuf {
        self.cache.join("uv-run")
    }

    /// The environment for a tool file, built if it does not exist.
    pub async fn ensure(&self, spec: &EnvironmentSpec, progress: Progress<'_>) -> Result<Lease, Fault> {
        let lock = read_lock(spec)?;
        let python = self.settings.python.as_ref().map(|python| python.value.as_str());
        let key = spec.key(lock.as_deref(), python);
        if let Some(lease) = self.lease(&key, false) {
            return Ok(lease);
        }
        let gate = Arc::clone(self.gates.lock().entry(key.clone()).or_default());
        let _passed = gate.lock().await;
        if let Some(lease) = self.lease(&key, false) {
            return Ok(lease);
        }
        let uv = self.uv(progress).await?;
        let build =
            Build { folder: &self.folder, settings: &self.settings, spec, lock: lock.as_deref(), key: &key, uv: &uv };
        build.run(progress).await?;
        let lease = self.lease(&key, true);
        if lease.is_some() {
            self.prune_in_background();
        }
        lease.ok_or_else(|| {
            let place = self.folder.join(&key);
            let text = format!("the environment of {} was built at {} but is not usable", spec.name, place.display());
            Fault::new(Code::EnvironmentFailed, text)
        })
    }

    fn lease(&self, key: &str, built: bool) -> Option<Lease> {
        let home = self.folder.join(key);
        let marker = Marker::read(&home)?;
        if !marker.interpreter_unchanged() {
            return None;
        }
        let held = OpenOptions::new().read(true).open(home.join(MARKER)).ok()?;
        held.try_lock_shared().ok()?;
        // The time of last use, for pruning.
        let _ = held.set_modified(SystemTime::now());
        Some(Lease { python: home.join("bin/python"), built, _held: held })
    }

    fn prune_in_background(&self) {
        let (folder, keep) = (self.folder.clone(), self.settings.keep);
        tokio::task::spawn_blocking(move || prune(&folder, keep));
    }

    /// Removes environments that were not used for `unused_for`, and leftovers of failed builds.
    pub fn prune(&self, unused_for: Duration) -> Pruned {
        prune(&self.folder, unused_for)
    }
}

/// A staging folder this old belongs to no running build.
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
fn prune(folder: &Path, unused_for: Duration) -> Pruned {
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
                tracing::info!(environment = %path.display(), "removed an unused environment");
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
    // Every user holds a shared lock on the marker. Removing the marker first makes the environment unfindable.
    let Ok(file) = OpenOptions::new().read(true).open(&marker) else { return true };
    file.try_lock().is_ok() && std::fs::remove_file(&marker).is_ok()
}

fn age(path: &Path) -> Option<Duration> {
    let modified = path.metadata().ok()?.modified().ok()?;
    SystemTime::now().duration_since(modified).ok()
}

pub(super) fn read_lock(spec: &EnvironmentSpec) -> Result<Option<Vec<u8>>, Fault> {
    let path = spec.lock_file();
    match std::fs::read(&path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let text = format!("cannot read the lock {}: {error}; correct its permissions", path.display());
            Err(Fault::new(Code::EnvironmentFailed, text))
        }
    }
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
    fn an_unused_environment_is_removed_and_a_leased_one_stays() {
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
    fn a_recently_used_environment_stays() {
        let folder = tempfile::tempdir().unwrap();
        environment(folder.path(), "fresh");
        assert_eq!(prune(folder.path(), Duration::from_mins(1)).kept, 1);
    }
}
