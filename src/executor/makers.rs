//! Builds the launcher and the rules of a tool file's workers, by the kind of tool.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::value::to_raw_value;

use super::advice;
use super::identity::Identity;
use super::store::Describe;
use super::walls::walls_of;
use crate::config::Environment;
use crate::config::launcher::Launcher as LauncherKind;
use crate::config::needs::PYTHON_PATH;
use crate::config::sandbox::Sandbox;
use crate::config::secrets::SecretSource;
use crate::config::tool::{Protocol, Share, WorkingDirectory};
use crate::config::value::IdleTimeout;
use crate::discovery::Kind;
use crate::environment::{EnvironmentSpec, Environments};
use crate::pool::Rules;
use crate::process::{EnvFilter, UsageLimits, worker_environment};
use crate::protocol::HostMethod;
use crate::registry::{FileEntry, Registry, Serving};
use crate::secrets::CREDENTIALS;
use crate::threads::blocking;
use crate::worker::{Launcher, ProgramLauncher, PythonLauncher, PythonSpec, Shims, Sources, WorkerSpec};

/// What workers are started with.
#[derive(Clone)]
pub struct Makers {
    /// Environments of Python files.
    pub environments: Arc<Environments>,
    /// The shim that loads them.
    pub shims: Shims,
    /// Copies of their source texts.
    pub sources: Sources,
    /// The variables that executables do not inherit.
    pub env_filter: EnvFilter,
    /// The session that all of this belongs to, where each client has its own.
    pub session: Option<u64>,
}

impl Makers {
    /// Everything but the version that a file's workers are made of.
    pub(super) fn identity(&self, entry: &FileEntry) -> Identity {
        let (settings, config, spec) = (&entry.settings, &entry.config, self.worker_spec(entry));
        let mut identity = Identity::default();
        identity.add("settings", format!("{:?} {:?}", rules(entry), entry.serving()));
        identity.add("pack", &spec.pack);
        identity.add("host_access", format!("{:?}", spec.host));
        identity.add("settings", format!("{:?} {:?} {:?}", spec.concurrency, spec.startup_timeout, spec.limits));
        identity.add("serve", format!("{:?}", spec.is_program));
        identity.add("new_privileges", format!("{:?}", spec.new_privileges));
        identity.add("sandbox", format!("{:?}", spec.walls));
        identity.add("launcher", format!("{:?} {:?}", settings.launcher.value, spec.launcher));
        for (name, value) in spec.launcher.iter().flat_map(|launcher| launcher.environment.iter()) {
            identity.add(&format!("launcher {}", name.to_string_lossy()), value.as_encoded_bytes());
        }
        identity.add("[environment]", self.environments.identity());
        if let Some(header) = entry.file.header.as_ref().filter(|_| settings.needs.replace_the_header()) {
            identity.add("dependencies", format!("{:?} {:?}", header.dependencies, header.requires_python));
        }
        let modules = settings.needs.folders(self.env_filter.environment());
        if !modules.is_empty() {
            identity.add("python_path", format!("{modules:?}"));
        }
        if let Some(args) = &settings.needs.args {
            identity.add("args", format!("{:?}", args.value));
        }
        if self.session.is_some() && entry.serving().has_environment() {
            // What uv makes of a header depends on them.
            let of_uv = self.env_filter.environment().iter().filter(|(name, _)| decides_builds(name));
            of_uv.for_each(|(name, value)| identity.add(&name.to_string_lossy(), value.as_encoded_bytes()));
        }
        let directory = directory_of(entry, self.env_filter.environment()).unwrap_or_default();
        identity.add("directory", directory.as_os_str().as_encoded_bytes());
        for (name, value) in self.variables(entry) {
            identity.add(&name.to_string_lossy(), value.as_encoded_bytes());
        }
        if let (Share::Session, Some(session)) = (settings.share.value, self.session) {
            identity.add_of_session("session", session);
        }
        for name in &settings.secrets.value {
            let source = config.secrets.get(name).map(|setting| &setting.value);
            let part = format!("secret {name}");
            identity.add(&part, format!("{source:?}"));
            let variable = match source {
                None => Some(name.as_str()),
                Some(SecretSource::Environment(variable)) => Some(variable.as_str()),
                Some(_) => None,
            };
            match (source, self.session) {
                // Who answers depends on the variables of the session.
                (Some(SecretSource::Command { .. } | SecretSource::Keyring { .. }), Some(session)) => {
                    identity.add_of_session(&part, session);
                }
                (Some(SecretSource::Systemd(_)), _) => {
                    identity.add(&part, format!("{:?}", config.environment.absolute_path(CREDENTIALS)));
                }
                (None, _) => identity.add(&part, format!("{:?}", config.stored_secret(name))),
                _ => {}
            }
            match (variable.and_then(|name| config.environment.text(name)), self.session) {
                (None, _) => {}
                // Not the value: what a worker keeps of it must not outlive a change, nor reach another session.
                (Some(_), Some(session)) => identity.add_of_session(&part, session),
                (Some(value), None) => identity.add(&part, value),
            }
        }
        identity
    }

    fn worker_spec(&self, entry: &FileEntry) -> WorkerSpec {
        let (file, settings) = (&entry.file, &entry.settings);
        let of_host =
            [HostMethod::Call, HostMethod::Tools, HostMethod::Config, HostMethod::Status, HostMethod::Refresh];
        let of_client = [HostMethod::Llm, HostMethod::Elicit, HostMethod::Roots];
        let host = of_host.iter().filter(|_| settings.host_access.value);
        let client = of_client.iter().filter(|_| settings.client_access.value);
        let host = host.chain(client).map(|method| method.word()).collect();
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
            limits: usage_limits(entry),
            new_privileges: settings.new_privileges.value,
            walls: walls_of(entry, self.env_filter.environment()),
            launcher: entry.launcher(self.env_filter.environment()),
            is_bare: entry.serving().is_bare(),
            is_program: settings.serves_program(),
        }
    }

    /// The variables that a file's workers get.
    fn variables(&self, entry: &FileEntry) -> BTreeMap<OsString, OsString> {
        let settings = &entry.settings;
        let mut variables = match entry.serving() {
            Serving::Program(_) => self.env_filter.for_programs(),
            _ => worker_environment(self.env_filter.environment(), &settings.pass_env.value),
        };
        variables.extend(own_variables(entry));
        variables
    }

    pub(super) fn launcher(&self, entry: &FileEntry, describe: Describe) -> Arc<dyn Launcher> {
        let spec = Arc::new(self.worker_spec(entry));
        let directory = directory_of(entry, self.env_filter.environment());
        match entry.serving() {
            Serving::Program(_) => Arc::new(ProgramLauncher {
                spec,
                env_filter: self.env_filter.clone(),
                env: own_variables(entry).collect(),
                directory,
            }),
            _ => Arc::new(PythonLauncher {
                spec,
                python: Arc::new(PythonSpec { directory, ..python_spec(entry, self.env_filter.environment()) }),
                environments: Arc::clone(&self.environments),
                shims: self.shims.clone(),
                sources: self.sources.clone(),
                described: Arc::new(move |types| describe(&types)),
            }),
        }
    }
}

/// Whether uv, or a package that it builds, works otherwise with a variable: indexes, credentials, proxies, certificates,
/// compilers.
fn decides_builds(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    let is_of_compilers =
        ["CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "NETRC", "LD_LIBRARY_PATH"].contains(&name.as_str());
    is_of_compilers
        || ["UV_", "PIP_", "SSL_CERT", "PKG_CONFIG"].iter().any(|begin| name.starts_with(begin))
        || name.ends_with("_PROXY")
}

/// The variables that the file's settings add.
fn own_variables(entry: &FileEntry) -> impl Iterator<Item = (OsString, OsString)> {
    entry.settings.env.iter().map(|(name, value)| (name.into(), value.value.clone().into()))
}

/// The working directory of a tool, if it is not hostler's own.
pub(super) fn directory_of(entry: &FileEntry, environment: &Environment) -> Option<PathBuf> {
    match entry.settings.cwd.value {
        WorkingDirectory::Session => environment.directory().map(Path::to_owned),
        WorkingDirectory::Tool => entry.file.path.parent().map(Path::to_owned),
    }
}

/// How much a worker, or the process of a call, may use.
pub(super) fn usage_limits(entry: &FileEntry) -> UsageLimits {
    let settings = &entry.settings;
    UsageLimits {
        memory: settings.max_memory.as_ref().map(|limit| limit.value.0),
        processor: settings.max_cpu.as_ref().map(|limit| limit.value),
    }
}

fn python_spec(entry: &FileEntry, environment: &Environment) -> PythonSpec {
    let settings = &entry.settings;
    let mut env: Vec<(String, String)> =
        settings.env.iter().map(|(name, value)| (name.clone(), value.value.clone())).collect();
    env.extend(python_path(entry, environment).map(|path| (PYTHON_PATH.to_owned(), path)));
    PythonSpec {
        fingerprint: entry.file.fingerprint,
        environment: environment_spec(entry),
        // As in a sandbox: what uv itself reads is not the tool's.
        through_uv: settings.launcher.value == LauncherKind::Uv && !is_recorded(entry),
        pass_env: settings.pass_env.value.clone(),
        directory: None,
        env,
        args: settings.needs.args.as_ref().map(|set| set.value.clone()).unwrap_or_default(),
    }
}

/// The folders of further modules, before those of a variable that the settings have.
fn python_path(entry: &FileEntry, environment: &Environment) -> Option<String> {
    let folders = entry.settings.needs.folders(environment);
    let set = entry.settings.env.get(PYTHON_PATH).map(|value| PathBuf::from(&value.value));
    let all = folders.iter().cloned().chain(set);
    let joined = std::env::join_paths(all).ok().filter(|_| !folders.is_empty())?;
    Some(joined.to_string_lossy().into_owned())
}

/// Passes the type descriptions of a version's worker to the registry, which reads the file again.
pub(super) fn describe(entry: &FileEntry, registry: &Arc<Registry>) -> Describe {
    let (registry, source, version) = (Arc::downgrade(registry), entry.file.source(), entry.version);
    Arc::new(move |types| {
        let Some(registry) = registry.upgrade() else { return };
        let (source, types) = (source.clone(), types.to_owned());
        // The next first worker describes them anew.
        let _ = blocking(move || registry.described(&source, version, types.get()));
    })
}

pub(super) fn environment_spec(entry: &FileEntry) -> EnvironmentSpec {
    let file = &entry.file;
    let spec = match (&file.header, file.kind) {
        (Some(header), Kind::Python) => EnvironmentSpec::from_header(&file.pack, &file.path, header),
        _ => EnvironmentSpec::house(&file.pack, &file.path),
    };
    let is_walled = is_recorded(entry) || entry.settings.sandbox.iter().any(Sandbox::limits_access);
    EnvironmentSpec { wheels_only: is_walled, ..spec }
}

/// Whether what its processes reach is recorded, for a sandbox.
fn is_recorded(entry: &FileEntry) -> bool {
    entry.config.recorder_of(&entry.file.pack).is_some()
}

pub(super) fn rules(entry: &FileEntry) -> Rules {
    let idle = match entry.settings.idle_timeout.value {
        IdleTimeout::After(time) => Some(time),
        IdleTimeout::Never => None,
    };
    let (settings, usual) = (&entry.settings, Rules::default());
    // The shim checks for a cancellation before each call; other workers need not.
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
        max_calls: settings.max_calls.as_ref().map(|limit| limit.value as u64),
        max_lifetime: settings.max_lifetime.as_ref().map(|limit| limit.value),
        max_rss: settings.max_rss.as_ref().map(|limit| limit.value.0),
        // Tools that fail together do not retry together.
        seed: entry.version.iter().fold(0, |seed, byte| (seed << 5) ^ (seed >> 3) ^ u64::from(*byte)),
        ..usual
    }
}
