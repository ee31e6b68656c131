//! One pool for each version of a tool file. A changed file gets a new pool; the old pool finishes its calls, and stops
//! once the new one has a worker.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::identity::PoolKey;
use super::makers::{Makers, describe, environment_spec, rules};
use super::store::{Current, Open, PoolLease, PoolStore, User};
use super::{advice, blocked};
use crate::config::Config;
use crate::config::tool::Effects;
use crate::discovery::{self, SourceId};
use crate::environment::{Environments, Lease, Progress};
use crate::outcome::{Code, Fault, Metadata};
use crate::pool::{Caller, Cancellation, Caps, Job, Listener, Pool, PoolStatus, SessionId, Settled, Usage};
use crate::protocol::TraceContext;
use crate::registry::{Catalogue, FileEntry, Registry, Tool};
use crate::secrets::{CallSecrets, SecretText, Secrets, Unreadable, why_missing};
use crate::telemetry::Audience;
use crate::worker::HostAccess;

/// A validated call for an executor.
pub struct Invocation {
    /// The call's id.
    pub call_id: String,
    /// The caller.
    pub caller: Arc<Caller>,
    /// The call's own span, if it belongs to a trace.
    pub trace: Option<Arc<TraceContext>>,
    /// The arguments, a JSON object.
    pub kwargs: Box<RawValue>,
    /// The time limit.
    pub timeout: Duration,
    /// Whether a running call waits for it.
    pub nested: bool,
    /// Whether it goes on without its client.
    pub background: bool,
    /// Receives its events.
    pub listener: Arc<dyn Listener>,
    /// Answers its requests, if the file has host access.
    pub host: Option<Arc<dyn HostAccess>>,
    /// Signals that the call was cancelled.
    pub cancellation: Cancellation,
}

/// All pools.
pub struct Pools {
    /// Locked only to copy or replace the pointer.
    makers: RwLock<Arc<Makers>>,
    /// Receives type descriptions.
    registry: Arc<Registry>,
    /// Every pool of the process.
    pub(super) store: Arc<PoolStore>,
    /// Locked only to look up or replace an entry.
    pub(super) open: Mutex<Open>,
    nothing: Arc<RawValue>,
    /// The secrets that calls read.
    pub secrets: Arc<Secrets>,
    no_secrets: CallSecrets,
}

/// Where a call goes.
enum Found {
    /// The pool, and the tool's configuration as JSON.
    Pool(Arc<PoolLease>, Arc<RawValue>),
    /// The settings are those of an earlier configuration; these are in force.
    Outdated(Arc<FileEntry>),
    /// No pool starts any more.
    Closed,
}

impl Pools {
    /// No pools yet; each starts with the first call of its tool file.
    pub fn new(registry: Arc<Registry>, makers: Makers, store: Arc<PoolStore>) -> Self {
        let nothing = to_raw_value(&serde_json::Map::new()).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self {
            store,
            makers: RwLock::new(Arc::new(makers)),
            registry,
            open: Mutex::default(),
            nothing: Arc::from(nothing),
            secrets: Arc::default(),
            no_secrets: CallSecrets::default(),
        }
    }

    /// Runs a call in a worker of the tool's file.
    pub async fn call(&self, tool: &Tool, invocation: Invocation) -> Settled {
        let mut entry = Arc::clone(&tool.entry);
        // Again if the configuration changes while a secret is read, which may take long: a worker and what it is sent are of one.
        let (secrets, found) = loop {
            let secrets = invocation.cancellation.or(&tool.name, self.secrets_of(&entry)).await;
            let secrets = match secrets.and_then(|found| found) {
                Ok(secrets) => secrets,
                Err(fault) => return Settled { ended: Err(fault), metadata: Metadata::default() },
            };
            match self.pool(&entry) {
                Found::Outdated(later) => entry = later,
                Found::Pool(pool, config) => break (secrets, Some((pool, config))),
                Found::Closed => break (secrets, None),
            }
        };
        if let Some(host) = &invocation.host {
            host.holds(&secrets.lease);
            host.starts();
        }
        let Some((pool, config)) = found else {
            let fault =
                Fault::new(Code::ShuttingDown, format!("hostler is shutting down and did not call {}", tool.name));
            return Settled { ended: Err(fault), metadata: Metadata::default() };
        };
        let job = Job {
            call_id: invocation.call_id,
            caller: invocation.caller,
            trace: invocation.trace,
            tool: tool.name.clone(),
            function: tool.function().symbol().to_owned(),
            kwargs: invocation.kwargs,
            config,
            secrets: secrets.json,
            live: Arc::clone(&self.secrets.live),
            timeout: invocation.timeout,
            repeatable: tool.settings.effects.value != Effects::Once,
            nested: invocation.nested,
            // What is known of a call that goes on without its client is what is written down.
            begins_at_once: invocation.background && tool.settings.effects.value == Effects::Once,
            output_limit: entry.config.limits.max_output.value.0,
            listener: invocation.listener,
            host: invocation.host,
            audience: Audience::current(),
            cancellation: invocation.cancellation,
        };
        let timeout = job.timeout;
        let mut settled = pool.call(job).await;
        if let Err(fault) = &mut settled.ended {
            advice::complete(fault, tool, timeout, &tool.entry.config);
            Box::pin(blocked::complete(fault, &tool.entry)).await;
        }
        settled
    }

    /// Builds the environment of a tool file ahead of its first call.
    pub async fn warm(&self, entry: &FileEntry, said: Progress<'_>) -> Result<Lease, Fault> {
        self.environments().ensure(&environment_spec(entry), said).await
    }

    /// Closes the pools of deleted files once their calls are finished.
    pub fn close_without(&self, catalogue: &Catalogue) {
        let is_gone = |entry: &FileEntry| matches!(entry.file.status, discovery::Status::Missing { .. });
        let there: HashSet<SourceId> =
            catalogue.files.iter().filter(|entry| !is_gone(entry)).map(|entry| entry.file.source()).collect();
        self.open.lock().close_without(|source| there.contains(source));
    }

    /// Starts the minimum workers of a tool file.
    pub fn keep_ready(&self, entry: &FileEntry) {
        if let Found::Pool(pool, _) = self.pool(entry) {
            pool.warm();
        }
    }

    /// A secret as a tool would get it; `None` if it is not set.
    pub async fn secret(&self, name: &str) -> Result<Option<SecretText>, Unreadable> {
        self.secrets.read(name, &self.registry.config()).await
    }

    /// Why a secret is not set, and what to do about it.
    pub fn why_missing(&self, name: &str) -> String {
        why_missing(name, &self.registry.config())
    }

    /// The environments that these pools build.
    pub fn environments(&self) -> Arc<Environments> {
        Arc::clone(&self.makers.read().environments)
    }

    /// Pools that start from here on build these environments. `install` puts the configuration in force that they are of, which
    /// no pool starts in between.
    pub fn build_in(&self, environments: Environments, install: impl FnOnce()) {
        let _no_start = self.open.lock();
        let mut makers = self.makers.write();
        *makers = Arc::new(Makers { environments: Arc::new(environments), ..(**makers).clone() });
        drop(makers);
        install();
    }

    /// Replaces the pools of files whose settings changed. Calls that run there end, others go to the new ones.
    pub fn follow(&self, catalogue: &Catalogue) {
        let changed = |entry: &&Arc<FileEntry>| {
            let open = self.open.lock();
            let current = open.current.get(&entry.file.source());
            current.is_some_and(|current| current.version == entry.version && !current.serves(entry))
        };
        for entry in catalogue.files.iter().filter(changed) {
            self.pool(entry);
        }
    }

    /// The entry of the same version in the catalogue in force, if that is of a later configuration.
    fn later(&self, entry: &FileEntry) -> Option<Arc<FileEntry>> {
        if Arc::ptr_eq(&entry.config, &self.registry.config()) {
            return None;
        }
        let catalogue = self.registry.catalogue();
        let found = catalogue.entry_of(&entry.file.source())?;
        let is_later = found.version == entry.version && !Arc::ptr_eq(&found.config, &entry.config);
        is_later.then(|| Arc::clone(found))
    }

    /// The number of the session that all calls are of, if each workspace belongs to one.
    pub fn session(&self) -> Option<u64> {
        self.makers.read().session
    }

    /// No call of a session follows.
    pub fn session_ended(&self, session: SessionId) {
        self.store.session_ended(session);
    }

    /// Finishes all calls, then stops the workers that no other session uses or may use.
    pub fn close(&self) {
        self.each(|pool| {
            if !pool.leave() {
                pool.close();
            }
        });
    }

    /// Answers all calls with `SHUTTING_DOWN` and kills the workers that no other session uses or may use.
    pub fn end(&self) {
        self.each(|pool| {
            if !pool.leave() {
                pool.end();
            }
        });
    }

    /// Waits until closed or ended pools are empty. They stay registered so that they can still be ended.
    pub async fn emptied(&self) {
        let pools: Vec<Arc<PoolLease>> = {
            let open = self.open.lock();
            open.pools().cloned().collect()
        };
        for pool in pools {
            pool.emptied().await;
        }
    }

    fn each(&self, order: impl Fn(&PoolLease)) {
        let mut open = self.open.lock();
        open.ended = true;
        open.pools().for_each(|pool| order(pool));
    }

    fn pool(&self, entry: &FileEntry) -> Found {
        let source = entry.file.source();
        let mut open = self.open.lock();
        if open.ended {
            return Found::Closed;
        }
        // Under the lock, so that an older configuration never takes the place of a later one.
        if let Some(later) = self.later(entry) {
            return Found::Outdated(later);
        }
        if let Some(current) = open.current.get(&source)
            && current.serves(entry)
        {
            return Found::Pool(Arc::clone(&current.pool), Arc::clone(&current.config));
        }
        let taken_back = open.older.iter().position(|(of, older)| *of == source && older.serves(entry));
        let fresh = match taken_back {
            Some(place) => {
                let back = open.older.swap_remove(place).1;
                back.is_older.store(false, Ordering::Relaxed);
                back
            }
            None => self.start(entry),
        };
        let found = Found::Pool(Arc::clone(&fresh.pool), Arc::clone(&fresh.config));
        open.replace(&source, fresh);
        found
    }

    fn start(&self, entry: &FileEntry) -> Current {
        let (source, makers) = (entry.file.source(), Arc::clone(&self.makers.read()));
        let (effective, parts) = makers.identity(entry).finish();
        let key = PoolKey { source, version: entry.version, effective };
        let user = User { session: makers.session, describe: describe(entry, &self.registry) };
        let start = |describe| {
            let launcher = makers.launcher(entry, describe);
            Pool::start(entry.file.path.clone(), &rules(entry), launcher, Arc::clone(&self.store.broker))
        };
        let pool = Arc::new(self.store.lease(key, parts, user, rules(entry).idle, start));
        let config = as_json(&toml::Value::Table(entry.settings.config.value.clone()));
        let config = to_raw_value(&config).map_or_else(|_| Arc::clone(&self.nothing), Arc::from);
        Current {
            pack: entry.file.pack.clone(),
            version: entry.version,
            configuration: Arc::clone(&entry.config),
            pool,
            config,
            is_older: Arc::default(),
        }
    }

    async fn secrets_of(&self, entry: &FileEntry) -> Result<CallSecrets, Fault> {
        let names = &entry.settings.secrets.value;
        if names.is_empty() {
            return Ok(self.no_secrets.clone());
        }
        let found = self.secrets.of_call(names, &entry.config).await;
        found.map_err(|(name, error)| error.fault_of(&name))
    }
}

/// The limits of everything that shares a process.
pub fn caps(config: &Config) -> Caps {
    let limits = &config.limits;
    Caps {
        running: limits.max_concurrent_calls.value,
        workers: limits.max_workers.value,
        waiting: limits.max_queue.value,
        memory: limits.max_memory.as_ref().map(|limit| limit.value.0),
    }
}

/// The status of all pools.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// The use of the shared resources.
    pub usage: Usage,
    /// All pools by pack; a changed file has two for a while.
    pub pools: Vec<FileStatus>,
}

/// The pool of one version of a tool file.
#[derive(Debug, Clone, Serialize)]
pub struct FileStatus {
    /// The pack.
    pub pack: String,
    /// The tool file.
    pub file: PathBuf,
    /// Whether new calls go to it; an older version only finishes its calls.
    pub current: bool,
    /// The pool's status.
    #[serde(flatten)]
    pub pool: PoolStatus,
}

impl Pools {
    /// The current status. A tool file without calls has no pool.
    pub async fn status(&self) -> Status {
        let known: Vec<(String, SourceId, bool, Arc<PoolLease>)> = {
            let open = self.open.lock();
            let current = open.current.iter().map(|(source, one)| (source, true, one));
            let older = open.older.iter().map(|(source, one)| (source, false, one));
            let named = |(source, is_current, one): (&SourceId, bool, &super::store::Current)| {
                (one.pack.clone(), source.clone(), is_current, Arc::clone(&one.pool))
            };
            current.chain(older).map(named).collect()
        };
        let mut pools = Vec::new();
        for (pack, source, current, pool) in known {
            if let Some(pool) = pool.status().await {
                let file = source.path().map(Path::to_owned).unwrap_or_default();
                pools.push(FileStatus { pack, file, current, pool });
            }
        }
        pools.sort_by(|left, right| (&left.pack, !left.current).cmp(&(&right.pack, !right.current)));
        Status { usage: self.store.broker.usage(), pools }
    }
}

/// A tool's configuration as it is sent: dates as strings, and `null` for numbers that JSON does not have.
fn as_json(value: &toml::Value) -> serde_json::Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(flag) => (*flag).into(),
        toml::Value::Datetime(date) => date.to_string().into(),
        toml::Value::Array(items) => items.iter().map(as_json).collect(),
        toml::Value::Table(table) => table.iter().map(|(key, value)| (key.clone(), as_json(value))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_sent_as_json_that_every_worker_can_read() {
        let table: toml::Table = toml::from_str("a = 1979-05-27\nb = inf\nc = [{ d = 1.5 }]\n").unwrap();
        let sent = as_json(&toml::Value::Table(table));
        assert_eq!(sent, serde_json::json!({"a": "1979-05-27", "b": null, "c": [{"d": 1.5}]}));
    }
}
