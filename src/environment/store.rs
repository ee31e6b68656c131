//! The environments in the cache: found by key, built once for concurrent callers, leased while in use, pruned when unused. What a finished
//! one shows without uv or a lease: that it is complete, its interpreter, its modules.

use std::collections::{BTreeSet, HashMap};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout_at};

use super::build::Build;
use super::find;
use super::settings::{EnvironmentSettings, Progress};
use super::spec::EnvironmentSpec;
use super::staging::STAGING;
use super::turn::REMIND;
use crate::outcome::{Code, Fault};
use crate::process::limit_behind;
use crate::threads::blocking;

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
        let key = spec.key(lock.as_deref(), self.settings.asked_python().as_deref());
        if let Some(lease) = self.lease(&key, false) {
            return Ok(lease);
        }
        let gate = Arc::clone(self.gates.lock().entry(key.clone()).or_default());
        let until = Instant::now() + self.settings.build_timeout;
        let _passed = waiting(&spec.name, gate.lock(), progress).await;
        if let Some(lease) = self.lease(&key, false) {
            return Ok(lease);
        }
        let uv = self.uv(progress).await?;
        let build = Build {
            folder: &self.folder,
            settings: &self.settings,
            spec,
            lock: lock.as_deref(),
            key: &key,
            uv: &uv,
            until,
        };
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
        // What is not removed now is after the next build.
        let _ = blocking(move || prune(&folder, keep));
    }

    /// Removes environments that were not used for `unused_for`, and leftovers of failed builds.
    pub fn prune(&self, unused_for: Duration) -> Pruned {
        prune(&self.folder, unused_for)
    }
}

/// Waits for another call's build of the same environment, which has a time limit of its own.
async fn waiting<T>(name: &str, gate: impl Future<Output = T>, progress: Progress<'_>) -> T {
    let mut gate = std::pin::pin!(gate);
    let mut said = Instant::now();
    loop {
        match timeout_at(said, &mut gate).await {
            Ok(passed) => return passed,
            Err(_) => progress(&format!("another call is building the environment of {name}")),
        }
        said = Instant::now() + REMIND;
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

pub(super) fn age(path: &Path) -> Option<Duration> {
    let modified = path.metadata().ok()?.modified().ok()?;
    SystemTime::now().duration_since(modified).ok()
}

pub(super) fn read_lock(spec: &EnvironmentSpec) -> Result<Option<Vec<u8>>, Fault> {
    let path = spec.lock_file();
    match std::fs::read(&path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let path = path.display();
            if let Some(limit) = limit_behind(&error) {
                return Err(Fault::new(Code::ResourceExhausted, format!("cannot read the lock {path}: {limit}")));
            }
            let text = format!("cannot read the lock {path}: {error}; correct its permissions");
            Err(Fault::new(Code::EnvironmentFailed, text))
        }
    }
}

/// The file that marks an environment as complete. A lock on it marks it as in use, its time is the last use.
pub(super) const MARKER: &str = "hostler-environment.json";

/// What is recorded of a finished environment.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Marker {
    format: u32,
    header: String,
    interpreter: PathBuf,
    interpreter_modified_ms: u64,
}

impl Marker {
    pub(super) fn read(home: &Path) -> Option<Self> {
        let marker: Self = serde_json::from_slice(&std::fs::read(home.join(MARKER)).ok()?).ok()?;
        (marker.format == 1).then_some(marker)
    }

    /// Whether the environment's base interpreter is still the one it was built on.
    pub(super) fn interpreter_unchanged(&self) -> bool {
        modified_ms(&self.interpreter) == Some(self.interpreter_modified_ms)
    }

    /// The marker of an environment that uv has just built.
    pub(super) fn of(home: &Path, header: &str) -> Option<Self> {
        let interpreter = home.join("bin/python").canonicalize().ok()?;
        let interpreter_modified_ms = modified_ms(&interpreter)?;
        Some(Self { format: 1, header: header.to_owned(), interpreter, interpreter_modified_ms })
    }
}

fn modified_ms(path: &Path) -> Option<u64> {
    let modified = path.metadata().ok()?.modified().ok()?;
    u64::try_from(modified.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// The top-level modules of the environment for a tool file, if it is built and its modules all lie in it.
pub fn installed_modules(cache: &Path, spec: &EnvironmentSpec, python: Option<&str>) -> Option<BTreeSet<String>> {
    let key = spec.key(read_lock(spec).ok()?.as_deref(), python);
    let home = cache.join("environments").join(key);
    Marker::read(&home)?;
    let versions = std::fs::read_dir(home.join("lib")).ok()?.flatten();
    let mut packages = versions.map(|version| version.path().join("site-packages")).filter(|folder| folder.is_dir());
    modules_in(&packages.next()?)
}

fn modules_in(folder: &Path) -> Option<BTreeSet<String>> {
    let mut modules = BTreeSet::new();
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        // A `.pth` file adds folders to the path, whose modules are not known here.
        let (module, end) = name.split_once('.').unwrap_or((&name, ""));
        if end == "pth" && !["_virtualenv", "distutils-precedence"].contains(&module) {
            return None;
        }
        let is_module = end.is_empty() || end == "py" || end.ends_with("so") || end == "pyc";
        if is_module && !module.contains('-') {
            modules.insert(module.to_owned());
        }
    }
    Some(modules)
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

    #[test]
    fn modules_are_source_files_packages_and_compiled_files() {
        let folder = tempfile::tempdir().unwrap();
        for file in [
            "six.py",
            "_cffi_backend.cpython-311-x86_64-linux-gnu.so",
            "_virtualenv.pth",
            "distutils-precedence.pth",
            "barn.pyc",
            "a-script.py",
        ] {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        for name in ["bson", "pymongo-4.0.dist-info"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let modules = modules_in(folder.path()).unwrap();
        assert_eq!(modules.iter().collect::<Vec<_>>(), ["_cffi_backend", "barn", "bson", "six"]);
        std::fs::write(folder.path().join("__editable__.pth"), "/elsewhere").unwrap();
        assert_eq!(modules_in(folder.path()), None);
    }
}
