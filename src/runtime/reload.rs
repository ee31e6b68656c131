//! Keeps a workspace up to date while clients are served: changed tool files, and a changed configuration.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::Runtime;
use super::workspace::{environments, warnings};
use crate::builtin::Builtins;
use crate::call::CallService;
use crate::config::{Config, ConfigError, environment};
use crate::registry::{Catalogue, Follower, Look, Stamps};
use crate::worker::Sources;

/// What happens in a workspace when files change. It lives on the watching thread.
pub(super) struct Changes {
    service: Weak<CallService>,
    runtime: Arc<Runtime>,
    /// Pools need it.
    tokio: Option<Handle>,
    sources: Sources,
    added: Builtins,
    /// What the configuration files looked like. Locked by the watching thread alone.
    seen: Mutex<Stamps>,
    /// Since when one of them is empty or missing that was not. Locked likewise.
    emptied: Mutex<Option<Instant>>,
}

/// How long a configuration file must stay empty or missing to be taken for it.
const PATIENCE: Duration = Duration::from_secs(1);

impl Changes {
    pub fn of(service: &Arc<CallService>, runtime: &Arc<Runtime>, added: Builtins) -> Self {
        let config = service.config();
        Self {
            service: Arc::downgrade(service),
            runtime: Arc::clone(runtime),
            tokio: Handle::try_current().ok(),
            sources: Sources::in_cache(&environment::cache(&config.environment)),
            added,
            seen: Mutex::new(as_read(&config)),
            emptied: Mutex::default(),
        }
    }

    fn reload(&self, service: &CallService, fresh: Result<Config, ConfigError>) {
        let fresh = match fresh {
            Ok(fresh) => fresh,
            Err(error) => {
                let with_mode = service.config().with_mode_of_now();
                let but = if with_mode.is_some() { ", but for the mode" } else { "" };
                tracing::warn!("the configuration stays as it was{but}: {error}");
                let Some(with_mode) = with_mode else { return };
                with_mode
            }
        };
        self.runtime.limit_again();
        let tools = Builtins::of(&fresh).and(&self.added);
        let environments = environments(&fresh, &service.registry);
        service.reconfigure(fresh, tools, environments);
        tracing::info!("the configuration is in force");
        for warning in warnings(&service.registry) {
            tracing::warn!("{warning}");
        }
    }
}

impl Follower for Changes {
    fn files(&self) -> Vec<PathBuf> {
        self.service.upgrade().map(|service| service.config().watched_files()).unwrap_or_default()
    }

    fn look(&self) -> Look {
        let Some(service) = self.service.upgrade() else { return Look::AtChanges };
        let _inside = self.tokio.as_ref().map(Handle::enter);
        let mut seen = self.seen.lock();
        loop {
            // Stamps are taken before reading, and of other files once others are in force.
            let config = service.config();
            let now = stamps(&config);
            let left = config.mode_left();
            if *seen == now && !left.is_some_and(|left| left.is_zero()) {
                return left.map_or(Look::AtChanges, Look::Within);
            }
            let mut emptied = self.emptied.lock();
            if !config.files.iter().all(|file| is_filled(file))
                && emptied.get_or_insert_with(Instant::now).elapsed() < PATIENCE
            {
                // It is being written: what writes it began with an empty one, or with none.
                return Look::Soon;
            }
            *emptied = None;
            let fresh = config.load_again();
            if stamps(&config) == now {
                *seen = now;
                self.reload(&service, fresh);
            }
        }
    }

    fn follow(&self, catalogue: &Catalogue) {
        // Pools need the tokio runtime; this is another thread.
        let inside = self.tokio.as_ref().map(Handle::enter);
        if let Some(service) = self.service.upgrade().filter(|_| inside.is_some()) {
            service.changed(catalogue);
        }
        // A version that was never called may be the last good one.
        let good = catalogue
            .files
            .iter()
            .filter(|entry| entry.serving().has_environment() && entry.broken().is_none() && entry.stale.is_none());
        good.for_each(|entry| self.sources.keep(&entry.file.path, entry.file.fingerprint));
    }
}

/// Whether a file is there and has contents.
fn is_filled(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|about| about.len() > 0)
}

/// What the files looked like when they were read. What changed since then is seen at the first look.
fn as_read(config: &Config) -> Stamps {
    let now = stamps(config);
    if config.is_as_read() { now } else { Stamps::default() }
}

fn stamps(config: &Config) -> Stamps {
    Stamps::of(config.watched_files().iter().map(PathBuf::as_path))
}
