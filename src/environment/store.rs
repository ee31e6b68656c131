//! The store of environments in the cache: looked up by name, built once however many ask, leased while in use.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::build::Build;
use super::find;
use super::marker::{MARKER, Marker};
use super::recipe::EnvironmentSpec;
use super::settings::{EnvironmentSettings, Said};
use crate::outcome::{Code, Fault};

/// All environments of one cache folder.
#[derive(Debug)]
pub struct Environments {
    folder: PathBuf,
    pub(super) settings: EnvironmentSettings,
    pub(super) cache: PathBuf,
    uv: OnceCell<PathBuf>,
    /// One gate per environment being looked for, so that two first calls build once. The map is only ever held to
    /// fetch a gate; the gate is what is awaited.
    gates: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// An environment in use. While a lease is held, in this process or another, the environment is not pruned.
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

    /// uv, found or fetched.
    pub async fn uv(&self, said: Said<'_>) -> Result<PathBuf, Fault> {
        let search = || async {
            let own_copies = self.cache.join("uv");
            if let Some(found) = find::find_uv(&self.settings, &own_copies)? {
                return Ok(found);
            }
            said("uv is not installed: fetching a private copy from the package index (once)");
            tracing::info!("uv is not installed; fetching a private copy into {}", own_copies.display());
            find::provision_uv(&own_copies, &self.settings).await
        };
        self.uv.get_or_try_init(search).await.cloned()
    }

    /// A cache folder for `uv run`, which keeps next to nothing there.
    pub fn run_cache(&self) -> PathBuf {
        self.cache.join("uv-run")
    }

    /// The environment for a recipe, built if it is not there.
    pub async fn ensure(&self, spec: &EnvironmentSpec, said: Said<'_>) -> Result<Lease, Fault> {
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
        let uv = self.uv(said).await?;
        let build =
            Build { folder: &self.folder, settings: &self.settings, spec, lock: lock.as_deref(), key: &key, uv: &uv };
        build.run(said).await?;
        let lease = self.lease(&key, true);
        if lease.is_some() {
            self.prune_in_background();
        }
        lease.ok_or_else(|| {
            let place = self.folder.join(&key);
            let text = format!("the environment of {} was built at {} and is not usable", spec.name, place.display());
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
        let _ = held.set_modified(std::time::SystemTime::now());
        Some(Lease { python: home.join("bin/python"), built, _held: held })
    }

    fn prune_in_background(&self) {
        let (folder, keep) = (self.folder.clone(), self.settings.keep);
        tokio::task::spawn_blocking(move || super::prune::prune(&folder, keep));
    }

    /// Removes environments that nobody has used for a while and what broken builds left.
    pub fn prune(&self, unused_for: Duration) -> super::Pruned {
        super::prune::prune(&self.folder, unused_for)
    }
}

pub(super) fn read_lock(spec: &EnvironmentSpec) -> Result<Option<Vec<u8>>, Fault> {
    let path = spec.lock_file();
    match std::fs::read(&path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let text = format!("the lock {} cannot be read: {error}; correct its permissions", path.display());
            Err(Fault::new(Code::EnvironmentFailed, text))
        }
    }
}
