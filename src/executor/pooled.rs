//! One pool for each version of a tool file. A changed file gets a new pool; the old one finishes what it has,
//! and leaves once the new one has a worker.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::{RawValue, to_raw_value};

use super::advice;
use super::makers::{Makers, environment_spec, rules};
use super::secrets::look_up;
use super::versions::{Current, Open};
use crate::config::Config;
use crate::config::tool::Effects;
use crate::discovery::Status;
use crate::environment::{Environments, Lease, Progress};
use crate::outcome::{Code, Fault, Metadata, Scrub};
use crate::pool::{Caps, Job, Listener, Pool, Settled, Shared};
use crate::registry::{Catalogue, FileEntry, Registry, Tool};
use crate::worker::HostAccess;

/// A call that is ready to run.
pub struct Prepared {
    /// The call's id.
    pub call_id: String,
    /// The arguments, a JSON object.
    pub kwargs: Box<RawValue>,
    /// How long it may run.
    pub timeout: Duration,
    /// Whether a running call waits for it.
    pub nested: bool,
    /// Who hears of it.
    pub listener: Arc<dyn Listener>,
    /// What it may ask.
    pub host: Option<Arc<dyn HostAccess>>,
}

/// All pools.
pub struct Pools {
    config: Arc<Config>,
    makers: Makers,
    /// Who learns what live types tell.
    registry: Arc<Registry>,
    /// What all pools have in common.
    pub shared: Arc<Shared>,
    /// Held only to look up or replace an entry.
    pub(super) open: Mutex<Open>,
    nothing: Arc<RawValue>,
    /// What was sent last to each file that declares secrets. Held only to look up or replace an entry.
    secrets: Mutex<HashMap<PathBuf, Secrets>>,
}

/// The secrets of a call as JSON, and what takes them out of what is told of it.
type Secrets = (Arc<RawValue>, Option<Arc<Scrub>>);

impl Pools {
    /// No pools yet; they start with the first call of their tool file.
    pub fn new(config: Arc<Config>, registry: Arc<Registry>, makers: Makers) -> Self {
        let nothing = to_raw_value(&serde_json::Map::new()).unwrap_or_else(|_| RawValue::NULL.to_owned());
        let shared = Arc::new(Shared::new(caps(&config)));
        Self {
            config,
            shared,
            makers,
            registry,
            open: Mutex::default(),
            nothing: Arc::from(nothing),
            secrets: Mutex::default(),
        }
    }

    /// Makes a call in a worker of the tool's file.
    pub async fn call(&self, tool: &Tool, prepared: Prepared) -> Settled {
        let (secrets, scrub) = match self.secrets(&tool.entry).await {
            Ok(found) => found,
            Err(fault) => return Settled { ended: Err(fault), metadata: Metadata::default() },
        };
        let Some((pool, config)) = self.pool(&tool.entry) else {
            let fault = Fault::new(Code::ShuttingDown, format!("hostler is ending and did not call {}", tool.name));
            return Settled { ended: Err(fault), metadata: Metadata::default() };
        };
        let job = Job {
            call_id: prepared.call_id,
            tool: tool.name.clone(),
            function: tool.function().name.clone(),
            kwargs: prepared.kwargs,
            config,
            secrets,
            timeout: prepared.timeout,
            scrub,
            repeatable: tool.settings.effects.value != Effects::Once,
            nested: prepared.nested,
            output_limit: self.config.limits.max_output.value.0,
            listener: prepared.listener,
            host: prepared.host,
        };
        let timeout = job.timeout;
        let mut settled = pool.call(job).await;
        if let Err(fault) = &mut settled.ended {
            advice::complete(fault, tool, timeout, &self.config);
        }
        settled
    }

    /// Builds the environment of a tool file ahead of its first call.
    pub async fn warm(&self, entry: &FileEntry, said: Progress<'_>) -> Result<Lease, Fault> {
        self.makers.environments.ensure(&environment_spec(entry), said).await
    }

    /// Lets the workers of files leave that are no more, once they have finished what they have.
    pub fn close_without(&self, catalogue: &Catalogue) {
        let is_gone = |entry: &FileEntry| matches!(entry.file.status, Status::Missing { .. });
        let is_there = |path: &Path| catalogue.files.iter().any(|entry| entry.file.path == path && !is_gone(entry));
        self.open.lock().close_without(is_there);
    }

    /// Starts the workers of a tool file that should always be there.
    pub fn keep_ready(&self, entry: &FileEntry) {
        if let Some((pool, _)) = self.pool(entry) {
            pool.warm();
        }
    }

    /// A secret as a tool would get it; `None` when it is not set.
    pub async fn secret(&self, name: &str) -> Result<Option<String>, Fault> {
        look_up(name, self.config.layer.secrets.get(name).map(|setting| &setting.value)).await
    }

    /// Why a secret is not set, and what to do about it.
    pub fn why_missing(&self, name: &str) -> String {
        advice::why_missing(name, &self.config)
    }

    /// The environments these pools build.
    pub fn environments(&self) -> &Environments {
        &self.makers.environments
    }

    /// Lets every call inside finish and every worker leave.
    pub fn close(&self) {
        self.each(Pool::close);
    }

    /// Answers every call inside with `SHUTTING_DOWN` and kills every worker.
    pub fn end(&self) {
        self.each(Pool::end);
    }

    /// Waits until closed or ended pools are empty. They stay known, so that whoever loses patience can end them.
    pub async fn emptied(&self) {
        let pools: Vec<Arc<Pool>> = {
            let open = self.open.lock();
            open.pools().cloned().collect()
        };
        for pool in pools {
            pool.emptied().await;
        }
    }

    fn each(&self, order: impl Fn(&Pool)) {
        let mut open = self.open.lock();
        open.ended = true;
        open.pools().for_each(|pool| order(pool));
    }

    fn pool(&self, entry: &FileEntry) -> Option<(Arc<Pool>, Arc<RawValue>)> {
        let file = &entry.file;
        let mut open = self.open.lock();
        if open.ended {
            return None;
        }
        if let Some(current) = open.current.get(&file.path)
            && current.serves(entry)
        {
            return Some((Arc::clone(&current.pool), Arc::clone(&current.config)));
        }
        let taken_back = open.older.iter().position(|(path, older)| *path == file.path && older.serves(entry));
        let fresh = match taken_back {
            Some(place) => {
                let back = open.older.swap_remove(place).1;
                back.is_older.store(false, Ordering::Relaxed);
                back
            }
            None => self.start(entry),
        };
        let given = (Arc::clone(&fresh.pool), Arc::clone(&fresh.config));
        open.replace(&file.path, fresh);
        Some(given)
    }

    fn start(&self, entry: &FileEntry) -> Current {
        let pool = Arc::new(Pool::start(
            entry.file.path.clone(),
            &rules(entry),
            self.makers.launcher(entry, &self.registry),
            Arc::clone(&self.shared),
        ));
        let config = to_raw_value(&entry.settings.config.value).map_or_else(|_| Arc::clone(&self.nothing), Arc::from);
        Current { pack: entry.file.pack.clone(), version: entry.version, pool, config, is_older: Arc::default() }
    }

    async fn secrets(&self, entry: &FileEntry) -> Result<Secrets, Fault> {
        let names = &entry.settings.secrets.value;
        if names.is_empty() {
            return Ok((Arc::clone(&self.nothing), None));
        }
        let mut found = serde_json::Map::new();
        for name in names {
            let source = self.config.layer.secrets.get(name).map(|setting| &setting.value);
            if let Some(value) = look_up(name, source).await? {
                found.insert(name.clone(), value.into());
            }
        }
        let values = to_raw_value(&found).map_or_else(|_| Arc::clone(&self.nothing), Arc::from);
        // Looked up for every call, and hardly ever another.
        let mut known = self.secrets.lock();
        if let Some(secrets) = known.get(&entry.file.path).filter(|(known, _)| known.get() == values.get()) {
            return Ok(secrets.clone());
        }
        let texts = found.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
        let secrets = (values, Scrub::of(texts));
        known.insert(entry.file.path.clone(), secrets.clone());
        Ok(secrets)
    }
}

fn caps(config: &Config) -> Caps {
    let limits = &config.limits;
    Caps {
        running: limits.max_concurrent_calls.value,
        workers: limits.max_workers.value,
        waiting: limits.max_queue.value,
        memory: limits.max_memory.as_ref().map(|most| most.value.0),
    }
}
