//! The workspace that the shared hostler serves over HTTP: the one that a client in the person's home folder would have.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::builtin::Builtins;
use crate::config::{Config, ConfigError, ConfigOptions, Environment};
use crate::http::{House, Opened};
use crate::runtime::{Runtime, Workspace};
use crate::threads::blocking;

/// Opens it.
pub(super) struct OfPerson {
    pub environment: Arc<Environment>,
    pub runtime: Arc<Runtime>,
}

impl House for OfPerson {
    fn open(&self) -> Pin<Box<dyn Future<Output = Result<Opened, String>> + Send + '_>> {
        let (environment, runtime, here) =
            (Arc::clone(&self.environment), Arc::clone(&self.runtime), Handle::current());
        Box::pin(async move {
            let opening = blocking(move || {
                let _inside = here.enter();
                let home = environment.home().unwrap_or_else(|| PathBuf::from("/"));
                let config = Config::load(&ConfigOptions { environment, ..ConfigOptions::default() }, &home)?;
                let tools = Builtins::of(&config);
                Ok(Workspace::build_in(runtime, config, tools, Vec::new()))
            });
            let opened: Result<Workspace, ConfigError> = opening.map_err(|error| error.to_string())?.await;
            let app = opened.map_err(|error| error.to_string())?;
            app.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
            app.ask();
            let watching = app.watch();
            let number = app.session.unwrap_or_default();
            Ok(Opened { service: Arc::clone(&app.calls), number, keep: Box::new((app, watching)) })
        })
    }
}
