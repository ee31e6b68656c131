//! Calls that go on without their client. Each runs in a workspace like that of the client, as long as such calls run in it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::sync::Mutex as AsyncMutex;

use super::{Runtime, Workspace};
use crate::builtin::Builtins;
use crate::call::{CallHandle, CallRequest, Session};
use crate::config::{Config, ConfigError, ConfigOptions, Environment};
use crate::outcome::{Code, Fault};
use crate::threads::blocking;

/// Where a call runs: what a client's hostler is started with.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    directory: PathBuf,
    options: ConfigOptions,
}

/// The same as it is written down: without variables, which may be secrets.
#[derive(Serialize, Deserialize)]
struct Written {
    directory: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    config: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tools: Vec<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
}

impl Place {
    /// That of a client with this configuration.
    pub fn of(config: &Config) -> Self {
        Self { directory: config.directory.clone(), options: config.options().clone() }
    }

    /// As it is written down.
    pub fn written(&self) -> String {
        let ConfigOptions { config, tools, timeout, .. } = &self.options;
        let timeout_ms = timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        let absolute = |path: &PathBuf| self.directory.join(path);
        let written = Written {
            directory: self.directory.clone(),
            config: config.as_ref().map(absolute),
            tools: tools.iter().map(absolute).collect(),
            timeout_ms,
        };
        serde_json::to_string(&written).unwrap_or_default()
    }

    /// As it was written down, with these variables.
    pub fn read(written: Option<&str>, environment: &Arc<Environment>) -> Self {
        let home = || environment.home().unwrap_or_else(|| Path::new("/").to_owned());
        let read: Option<Written> = written.and_then(|written| serde_json::from_str(written).ok());
        let Written { directory, config, tools, timeout_ms } =
            read.unwrap_or_else(|| Written { directory: home(), config: None, tools: Vec::new(), timeout_ms: None });
        let timeout = timeout_ms.map(Duration::from_millis);
        Self { directory, options: ConfigOptions { config, tools, timeout, environment: Arc::clone(environment) } }
    }
}

/// The background calls of a process.
pub struct Background {
    runtime: Weak<Runtime>,
    /// The variables of calls whose client's are not known any more.
    environment: OnceLock<Arc<Environment>>,
    /// Where such calls run. Locked only to look up or to add.
    open: Mutex<Vec<(Place, Weak<Workspace>)>>,
    /// Locked while one is opened: calls of one place share it.
    opening: AsyncMutex<()>,
}

impl Background {
    /// Those of a runtime.
    pub(super) fn of(runtime: Weak<Runtime>) -> Self {
        Self { runtime, environment: OnceLock::new(), open: Mutex::default(), opening: AsyncMutex::default() }
    }

    /// Sets the variables of calls whose client's are not known any more.
    pub fn run_with(&self, environment: Arc<Environment>) {
        let _ = self.environment.set(environment);
    }

    /// The place of a call that was written down.
    pub fn place(&self, written: Option<&str>) -> Place {
        let nothing = || Arc::<Environment>::default();
        Place::read(written, &self.environment.get().cloned().unwrap_or_else(nothing))
    }

    /// Starts a call, which goes on until it ends, whoever leaves. When this returns, it will not be lost.
    pub async fn start(&self, place: Place, request: CallRequest) -> Result<CallHandle, Fault> {
        let Some(runtime) = self.runtime.upgrade() else {
            return Err(Fault::new(Code::ShuttingDown, "hostler is shutting down"));
        };
        let app = self.workspace(&runtime, &place).await?;
        app.calls.registry.asked_for(&request.tool).await;
        let hold = runtime.sessions.hold();
        let session = Session::open(Arc::clone(&app.calls));
        let request = CallRequest { background: true, workspace: Some(place.written()), ..request };
        let handle = session.start(request);
        let observer = handle.observer();
        tokio::spawn(async move {
            let _ = handle.outcome().await;
            drop(session);
            if let Some(app) = Arc::into_inner(app) {
                app.close().await;
            }
            drop(hold);
        });
        if let Err(why) = observer.remembered().await {
            let fault = Fault::new(Code::ResourceExhausted, format!("{why}; a background call must be remembered"));
            return Err(fault);
        }
        Ok(observer)
    }

    async fn workspace(&self, runtime: &Arc<Runtime>, place: &Place) -> Result<Arc<Workspace>, Fault> {
        let _one = self.opening.lock().await;
        let known = {
            let mut open = self.open.lock();
            open.retain(|(_, app)| app.strong_count() > 0);
            open.iter().find(|(known, _)| known == place).and_then(|(_, app)| app.upgrade())
        };
        if let Some(app) = known {
            return Ok(app);
        }
        let (runtime, here, wanted) = (Arc::clone(runtime), Handle::current(), place.clone());
        let opening = blocking(move || {
            let _inside = here.enter();
            let config = Config::load(&wanted.options, &wanted.directory)?;
            let tools = Builtins::of(&config);
            Ok(Workspace::build_in(runtime, config, tools, Vec::new()))
        });
        let failed = |what: String| Fault::new(Code::SystemError, what);
        let opened: Result<Workspace, ConfigError> = opening.map_err(|error| failed(error.to_string()))?.await;
        let app = Arc::new(opened.map_err(|error| Fault::new(Code::InvalidParams, error.to_string()))?);
        app.ask();
        self.open.lock().push((place.clone(), Arc::downgrade(&app)));
        Ok(app)
    }
}
