//! The composition root: builds the parts of a workspace, in order, from one configuration.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::reload::Changes;
use super::{Runtime, automatic};
use crate::builtin::Builtins;
use crate::call::{BackgroundCalls, CallService, Layer, OfProcess};
use crate::config::builtin::listed_as;
use crate::config::origin::{Diagnosis, Place, Setting};
use crate::config::recorder::Recorder;
use crate::config::section::nearest;
use crate::config::tables::{Ask, OnSchemaFailure};
use crate::config::tool::ToolLayer;
use crate::config::{Config, ConfigError, ConfigOptions, environment};
use crate::discovery::{Cache, Kind, Status};
use crate::environment::{EnvironmentSettings, Environments};
use crate::executor::{BuiltIns, Makers, OneShots, Pools};
use crate::journal::{Claim, Journal};
use crate::process::{self, Signals};
use crate::registry::{Follower, Registry, Watching, keep_asking};
use crate::telemetry::spawn;
use crate::threads::{blocking, blocking_or_here};
use crate::worker::{Shims, Sources};

/// The time limit for exit handlers of workers after a command.
const FAREWELL: Duration = Duration::from_millis(400);

/// The delay of the search for leftovers of earlier runs, so that it does not slow the start.
const SWEEP: Duration = Duration::from_millis(250);

/// One effective configuration, its catalogue, and what serves it.
pub struct Workspace {
    /// Accepts calls.
    pub calls: Arc<CallService>,
    /// The session that it belongs to, in a runtime where each belongs to one.
    pub session: Option<u64>,
    runtime: Arc<Runtime>,
    /// The built-in tools that no configuration enables: a program added them.
    added: Builtins,
}

impl Workspace {
    /// Reads the configuration and the tool folders. Workers start with the first call.
    pub fn open(wanted: &ConfigOptions, directory: &Path) -> Result<Self, ConfigError> {
        Ok(Self::build(Config::load(wanted, directory)?))
    }

    /// The same, whose calls are written down as the holder of this claim.
    pub fn open_journaled(
        wanted: &ConfigOptions,
        directory: &Path,
        claim: impl FnOnce() -> Option<Claim>,
    ) -> Result<Self, ConfigError> {
        let config = Config::load(wanted, directory)?;
        let tools = Builtins::of(&config);
        let runtime = Runtime::journaled(&config, Journal::for_config(&config, claim()));
        Ok(Self::build_in(runtime, config, tools, Vec::new()))
    }

    /// The same without writing anything down, in which one tool runs without its sandbox and is recorded.
    pub fn open_recording(
        wanted: &ConfigOptions,
        directory: &Path,
        recorder: &Arc<Recorder>,
    ) -> Result<Self, ConfigError> {
        let mut config = Config::load(wanted, directory)?;
        config.recorder = Some(Arc::clone(recorder));
        Ok(Self::build(config))
    }

    /// A workspace in a runtime of its own.
    pub fn build(config: Config) -> Self {
        let tools = Builtins::of(&config);
        Self::build_with(config, tools)
    }

    /// The same, with these built-in tools: [`Builtins::of`] the configuration, and those that a program adds.
    pub fn build_with(config: Config, tools: Builtins) -> Self {
        let runtime = Runtime::new(&config);
        Self::build_in(runtime, config, tools, Vec::new())
    }

    /// A workspace in an existing runtime, with these layers around its calls.
    pub fn build_in(runtime: Arc<Runtime>, config: Config, tools: Builtins, layers: Vec<Arc<dyn Layer>>) -> Self {
        let added = tools.without(&Builtins::of(&config));
        let config = Arc::new(config);
        let cache = environment::cache(&config.environment);
        let registry = Arc::new(Registry::with(Arc::clone(&config), Cache::below(&cache), tools.files()));
        let environments = Arc::new(environments(&config, &registry));
        let (shims, sources) = (Shims::in_cache(&cache), Sources::in_cache(&cache));
        let env_filter = registry.env_filter.clone();
        let session = runtime.next_session();
        let makers = Makers { environments, shims, sources, env_filter: env_filter.clone(), session };
        let broker = Arc::clone(&runtime.pools.broker);
        let pools = Pools::new(Arc::clone(&registry), makers, Arc::clone(&runtime.pools));
        let one_shots = OneShots::new(Arc::clone(&broker), env_filter.clone());
        let built_ins = BuiltIns::new(tools, broker, env_filter, Arc::clone(&pools.secrets));
        let process = OfProcess {
            watch: Arc::clone(&runtime.watch),
            journal: runtime.journal.clone(),
            approvals: Arc::clone(&runtime.approvals),
            signing: runtime.signing.clone(),
        };
        let calls = CallService::new(registry, pools, one_shots, built_ins, layers, process);
        let background: Arc<dyn BackgroundCalls> = Arc::clone(&runtime) as _;
        calls.go_on_by(Arc::downgrade(&background));
        Self { calls, session, runtime, added }
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        self.calls.config()
    }

    /// The runtime that it shares with other workspaces.
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// Asks executables in the tools folders for their schemas, now and whenever one appears. For programs with a keeper, on
    /// the main thread's runtime.
    pub fn ask(&self) {
        spawn(keep_asking(Arc::downgrade(&self.calls.registry)));
    }

    /// The tools of one folder alone, as they would be served: executables are asked for their schemas, and nothing is cached.
    /// Call it where [`Workspace::ask`] may be called.
    pub async fn look_into(&self, folder: &Path) -> Arc<Registry> {
        let registry = self.glance_into(folder);
        // The secrets that tools of either catalogue declare.
        registry.env_filter.add_all_of(&self.calls.registry.env_filter);
        spawn(keep_asking(Arc::downgrade(&registry)));
        registry.asked().await;
        registry
    }

    /// The same without running anything: of executables, only the file names are known.
    pub fn glance_into(&self, folder: &Path) -> Arc<Registry> {
        let mut config = (*self.config()).clone();
        config.tools.value = vec![folder.to_owned()];
        // Programs that a person names are meant.
        config.executables.ask = Ask::All;
        // Includes executables without a schema.
        config.executables.on_schema_failure = OnSchemaFailure::List;
        Arc::new(Registry::open(Arc::new(config)))
    }

    /// Watches the tool files and the configuration until the returned guard is dropped, and what changes the mode by itself.
    pub fn watch(&self) -> Watching {
        let follower = Changes::of(&self.calls, &self.runtime, self.added.clone());
        let watching = Watching::start(&self.calls.registry, Box::new(follower));
        // A program that embeds this may watch before it has a runtime.
        match Handle::try_current() {
            Ok(_) => watching.along(spawn(automatic::follow(Arc::downgrade(&self.calls))).abort_handle()),
            Err(_) => watching,
        }
    }

    /// The same after a while: what changes from now on is noticed then. Most commands have ended by that time.
    pub fn watch_later(&self, wait: Duration) -> impl Future<Output = Watching> + use<> {
        let follower = Changes::of(&self.calls, &self.runtime, self.added.clone());
        let registry = Arc::clone(&self.calls.registry);
        async move {
            tokio::time::sleep(wait).await;
            Watching::start(&registry, Box::new(follower))
        }
    }

    /// Puts a configuration in force that was saved just now, before what watches it has seen that.
    pub async fn catch_up(&self) {
        let changes = Changes::of(&self.calls, &self.runtime, self.added.clone());
        let registry = Arc::clone(&self.calls.registry);
        let look = move || {
            changes.look();
            // What watches it may have seen that, and be about to put it in force.
            registry.settled();
        };
        blocking_or_here(look).await;
    }

    /// What is wrong with the tools folders and with tables of the configuration.
    pub fn warnings(&self) -> Vec<String> {
        warnings(&self.calls.registry)
    }

    /// Tables of the configuration that match no tool.
    pub fn unmatched_settings(&self) -> Vec<(Place, Diagnosis)> {
        unmatched_settings(&self.calls.registry)
    }

    /// Kills what tools leave behind together with their workers, and what killed runs of hostler left behind now. For
    /// programs with a keeper; call it on the main thread's runtime.
    pub fn tidy() {
        tokio::spawn(process::reap_orphans());
        tokio::spawn(async {
            tokio::time::sleep(SWEEP).await;
            match blocking(process::sweep) {
                Ok(swept) => drop(swept.await),
                Err(error) => tracing::warn!(%error, "processes that killed hostlers left behind are not searched for"),
            }
        });
    }

    /// Like [`Workspace::close`], but a second signal kills the workers at once.
    pub async fn close_hearing(&self, signals: &Signals) {
        tokio::select! {
            () = self.close() => {}
            name = signals.second() => {
                tracing::warn!("{name}: the second signal; workers are killed");
                self.calls.pools.end();
                let _ = tokio::time::timeout(FAREWELL, self.calls.pools.emptied()).await;
            }
        }
    }

    /// Stops workers gracefully, and kills those that do not exit in time.
    pub async fn close(&self) {
        self.calls.pools.close();
        if tokio::time::timeout(FAREWELL, self.calls.pools.emptied()).await.is_err() {
            self.calls.pools.end();
            let _ = tokio::time::timeout(FAREWELL, self.calls.pools.emptied()).await;
        }
        process::private_folders_removed(FAREWELL).await;
        self.runtime.signing.end(FAREWELL).await;
    }
}

/// What is wrong with the tools folders and with tables of the configuration in force.
pub(super) fn warnings(registry: &Registry) -> Vec<String> {
    let (catalogue, config) = (registry.catalogue(), registry.config());
    let folders = catalogue.problems.iter();
    let folders =
        folders.map(|problem| format!("{}: {}", problem.folder.display(), problem.describe(&config.tools.origin)));
    let tables = unmatched_settings(registry).into_iter().map(|(place, warning)| format!("{place}: {warning}"));
    folders.chain(tables).chain(config.telemetry.unusable.clone()).collect()
}

fn unmatched_settings(registry: &Registry) -> Vec<(Place, Diagnosis)> {
    let (catalogue, config) = (registry.catalogue(), registry.config());
    let packs: Vec<&str> = catalogue.files.iter().map(|entry| entry.file.pack.as_str()).collect();
    let functions = catalogue.tools.iter().chain(&catalogue.resources).chain(&catalogue.prompts);
    let left_out = catalogue.files.iter().flat_map(|entry| &entry.file.left_out).map(|one| one.key.clone());
    let keys: Vec<String> = functions.map(|tool| tool.key()).chain(left_out).collect();
    let tools: Vec<&str> = keys.iter().map(String::as_str).collect();
    let tables = config.packs.iter().map(|table| (table, &packs));
    let functions = config.functions.iter().map(|table| (table, &tools));
    // What a program offers is known once it has answered.
    let is_unknown = |name: &str| {
        let pack = name.split('.').next().unwrap_or_default();
        let entry = catalogue.files.iter().find(|entry| entry.file.pack == pack);
        entry.is_some_and(|entry| entry.file.kind == Kind::Executable && entry.file.status != Status::Ready)
    };
    let unmatched =
        tables.chain(functions).filter(|((name, _), known)| !known.contains(&name.as_str()) && !is_unknown(name));
    let describe = |((name, layer), known): ((&String, &ToolLayer), &Vec<&str>)| {
        let near = listed_as(name).or_else(|| nearest(name, known.iter().copied()));
        let fix = match near {
            // The table's name in headers.
            _ if name == "hostler" => "write [tool] for every tool, or [tool.NAME] for one".to_owned(),
            Some(near) => format!("did you mean {near}?"),
            None => "correct the name, or remove the table".to_owned(),
        };
        let what = format!("no tool is named {name}");
        Some((layer.place.clone()?, Diagnosis::new(what, fix)))
    };
    unmatched.filter_map(describe).collect()
}

/// The environments of a workspace.
pub(super) fn environments(config: &Config, registry: &Registry) -> Environments {
    Environments::in_cache(&environment::cache(&config.environment), environment_settings(config, registry))
}

fn environment_settings(config: &Config, registry: &Registry) -> EnvironmentSettings {
    let mut env = config.build_env.clone();
    if let Some(cache) = environment::uv_cache_without_home(&config.environment) {
        let cache = Setting::default_value(cache.to_string_lossy().into_owned());
        env.entry("UV_CACHE_DIR".to_owned()).or_insert(cache);
    }
    EnvironmentSettings {
        uv: config.uv.clone(),
        python: config.python.clone(),
        env,
        build_timeout: config.build_timeout.value,
        keep: config.keep.value,
        env_filter: registry.env_filter.clone(),
    }
}
