//! What the workers of a tool file are made of, by how its calls are made.

use std::sync::Arc;

use serde_json::value::to_raw_value;

use super::advice;
use crate::config::tool::Protocol;
use crate::config::value::IdleTimeout;
use crate::discovery::Kind;
use crate::environment::{EnvironmentSpec, Environments};
use crate::pool::Rules;
use crate::process::Withheld;
use crate::registry::{FileEntry, Registry, Serving};
use crate::worker::{Described, Launcher, ProgramLauncher, PythonLauncher, PythonSpec, Shims, Sources, WorkerSpec};

/// Where workers come from.
pub struct Makers {
    /// Environments of Python files.
    pub environments: Arc<Environments>,
    /// The shim that loads them.
    pub shims: Shims,
    /// Their texts.
    pub sources: Sources,
    /// What executables do not get of hostler's own environment.
    pub withheld: Withheld,
}

impl Makers {
    pub(super) fn launcher(&self, entry: &FileEntry, registry: &Arc<Registry>) -> Arc<dyn Launcher> {
        let spec = Arc::new(worker_spec(entry));
        match entry.serving() {
            Serving::Program(_) => {
                let own = entry.settings.env.iter();
                let env = own.map(|(name, value)| (name.into(), value.value.clone().into())).collect();
                Arc::new(ProgramLauncher { spec, withheld: self.withheld.clone(), env })
            }
            _ => Arc::new(PythonLauncher {
                spec,
                python: Arc::new(python_spec(entry)),
                environments: Arc::clone(&self.environments),
                shims: self.shims.clone(),
                sources: self.sources.clone(),
                described: described(entry, registry),
            }),
        }
    }
}

fn worker_spec(entry: &FileEntry) -> WorkerSpec {
    let (file, settings) = (&entry.file, &entry.settings);
    let host = if settings.host_access.value {
        vec!["call", "tools", "config", "llm", "status", "refresh"]
    } else {
        Vec::new()
    };
    WorkerSpec {
        pack: file.pack.clone(),
        file: file.path.clone(),
        secrets: settings.secrets.value.clone(),
        host,
        concurrency: settings.concurrency.value,
        describe: (!file.open.is_empty()).then(|| to_raw_value(&file.open).ok()).flatten(),
        was_asked: Arc::default(),
        startup_timeout: settings.startup_timeout.value,
        startup_timeout_place: advice::where_to_set_for(entry, &settings.startup_timeout.origin),
        max_memory: settings.max_memory.as_ref().map(|limit| limit.value.0),
        is_bare: entry.serving().is_bare(),
    }
}

fn python_spec(entry: &FileEntry) -> PythonSpec {
    let settings = &entry.settings;
    PythonSpec {
        fingerprint: entry.file.fingerprint,
        environment: environment_spec(entry),
        launcher: settings.launcher.value,
        pass_env: settings.pass_env.value.clone(),
        env: settings.env.iter().map(|(name, value)| (name.clone(), value.value.clone())).collect(),
    }
}

/// Hands on what a worker of a version told of its types. A file is read again for it, which takes a moment.
fn described(entry: &FileEntry, registry: &Arc<Registry>) -> Described {
    let (registry, path, version) = (Arc::clone(registry), entry.file.path.clone(), entry.version);
    Arc::new(move |told| {
        let (registry, path) = (Arc::clone(&registry), path.clone());
        tokio::task::spawn_blocking(move || registry.described(&path, version, told.get()));
    })
}

pub(super) fn environment_spec(entry: &FileEntry) -> EnvironmentSpec {
    let file = &entry.file;
    match (&file.header, file.kind) {
        (Some(header), Kind::Python) => EnvironmentSpec::from_header(&file.pack, &file.path, header),
        _ => EnvironmentSpec::house(&file.pack, &file.path),
    }
}

pub(super) fn rules(entry: &FileEntry) -> Rules {
    let idle = match entry.settings.idle_timeout.value {
        IdleTimeout::After(time) => Some(time),
        IdleTimeout::Never => None,
    };
    let (settings, usual) = (&entry.settings, Rules::default());
    // The shim looks, before each call, whether that was cancelled meanwhile. Others need not be able to.
    let (write_ahead, concurrency) = match entry.serving() {
        Serving::Shim => (usual.write_ahead, settings.concurrency.value),
        Serving::Program(Protocol::V1) => (1, settings.concurrency.value),
        _ => (1, 1),
    };
    Rules {
        min_workers: settings.min_workers.value.min(settings.max_workers.value),
        max_workers: settings.max_workers.value,
        concurrency,
        write_ahead,
        max_queue: settings.max_queue.value.max(1),
        idle,
        max_calls: settings.max_calls.as_ref().map(|most| most.value as u64),
        max_lifetime: settings.max_lifetime.as_ref().map(|most| most.value),
        max_rss: settings.max_rss.as_ref().map(|most| most.value.0),
        // Tools that fail together are not tried together.
        seed: entry.version.iter().fold(0, |seed, byte| (seed << 5) ^ (seed >> 3) ^ u64::from(*byte)),
        ..usual
    }
}
