//! The library's front: one workspace, its calls and its sessions.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::builtin::{Builtin, Builtins, Unregistered};
use crate::call::{CallCounts, CallHandle, CallRequest, Layer, Session};
use crate::config::{Config, ConfigError, ConfigOptions, Environment};
use crate::mcp;
use crate::outcome::Outcome;
use crate::registry::{Tool, Watching};
use crate::runtime::{Runtime, Workspace};
use crate::telemetry::flush_unused_spans;
use crate::threads::blocking_or_here;

/// Tools, their workers, and their calls. See the [crate documentation](crate) for an example.
pub struct Hostler {
    workspace: Workspace,
    session: Session,
}

/// A tool that can be called.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolInfo {
    /// `pack.function`.
    pub name: String,
    /// `pack_function`, the name for models, which do not accept a dot.
    pub mcp_name: String,
    /// Its description.
    pub description: Option<String>,
    /// Its arguments, as JSON Schema.
    pub input_schema: Value,
    /// Its result, as JSON Schema, if the annotation determines it.
    pub output_schema: Option<Value>,
}

/// The reason why hostler cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The configuration cannot be read or is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The name of a built-in tool is invalid or taken.
    #[error(transparent)]
    Builtin(#[from] Unregistered),
}

/// Configures and opens a [`Hostler`].
#[derive(Default)]
pub struct HostlerBuilder {
    options: ConfigOptions,
    directory: Option<PathBuf>,
    environment: Option<Environment>,
    runtime: Option<Arc<Runtime>>,
    builtins: Vec<Register>,
    layers: Vec<Arc<dyn Layer>>,
}

type Register = Box<dyn FnOnce(&mut Builtins) -> Result<(), Unregistered>>;

impl HostlerBuilder {
    /// Adds a tools folder; the folders of the configuration are then ignored.
    #[must_use]
    pub fn tools(mut self, folder: impl Into<PathBuf>) -> Self {
        self.options.tools.push(folder.into());
        self
    }

    /// Sets the configuration file, instead of the `hostler.toml` nearest to the directory.
    #[must_use]
    pub fn config(mut self, file: impl Into<PathBuf>) -> Self {
        self.options.config = Some(file.into());
        self
    }

    /// Sets the directory for relative paths and workers; the current one by default.
    #[must_use]
    pub fn directory(mut self, folder: impl Into<PathBuf>) -> Self {
        self.directory = Some(folder.into());
        self
    }

    /// Sets the environment variables for workers, secrets and uv; those of the process by default.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Shares workers and limits with another hostler in this process.
    #[must_use]
    pub fn runtime(mut self, runtime: &Arc<Runtime>) -> Self {
        self.runtime = Some(Arc::clone(runtime));
        self
    }

    /// Adds a tool written in Rust.
    #[must_use]
    pub fn builtin(mut self, tool: impl Builtin) -> Self {
        self.builtins.push(Box::new(move |tools| tools.register(tool)));
        self
    }

    /// Adds a layer around every call. The first is the outermost.
    #[must_use]
    pub fn layer(mut self, layer: Arc<dyn Layer>) -> Self {
        self.layers.push(layer);
        self
    }

    /// Reads the configuration and the tools folders, and asks executables for their schemas. Workers start with the first
    /// call. Must be called within a tokio runtime.
    pub fn open(mut self) -> Result<Hostler, OpenError> {
        self.options.environment = Arc::new(self.environment.take().unwrap_or_else(Environment::of_process));
        let directory = self.directory.or_else(|| std::env::current_dir().ok()).unwrap_or_else(|| PathBuf::from("."));
        let config = Config::load(&self.options, &directory)?;
        let mut tools = Builtins::of(&config);
        for register in self.builtins {
            register(&mut tools)?;
        }
        let runtime = self.runtime.unwrap_or_else(|| Runtime::new(&config));
        let workspace = Workspace::build_in(runtime, config, tools, self.layers);
        workspace.ask();
        let session = Session::open(Arc::clone(&workspace.calls));
        Ok(Hostler { workspace, session })
    }
}

impl Hostler {
    /// A builder for the tools and the configuration of the current directory.
    pub fn builder() -> HostlerBuilder {
        HostlerBuilder::default()
    }

    /// Accepts a call. It continues if the handle is dropped, and ends with exactly one outcome.
    pub fn start(&self, request: CallRequest) -> CallHandle {
        self.session.start(request)
    }

    /// Runs a call to its end. Dropping the future cancels the call.
    pub async fn call(&self, request: CallRequest) -> Arc<Outcome> {
        self.session.call(request).await
    }

    /// All tools that can be called now, sorted by name.
    pub fn tools(&self) -> Vec<ToolInfo> {
        self.workspace.calls.registry.refresh_if_changed();
        let mut tools: Vec<ToolInfo> =
            self.workspace.calls.registry.catalogue().ready().map(|tool| info(tool)).collect();
        tools.sort_by(|left, right| left.name.cmp(&right.name));
        tools
    }

    /// Waits until every executable has given its schema or failed to.
    pub async fn ready(&self) {
        self.workspace.calls.registry.asked().await;
    }

    /// Opens a session: dropping it cancels its calls and nothing else.
    pub fn session(&self) -> Session {
        Session::open(Arc::clone(&self.workspace.calls))
    }

    /// Serves an MCP client, in a session of its own, until it closes its end.
    pub async fn serve_mcp(
        &self,
        input: impl AsyncRead + Send + Unpin,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> io::Result<()> {
        mcp::serve_connection(Arc::clone(&self.workspace.calls), input, output).await
    }

    /// Watches the tool files until the returned guard is dropped.
    pub fn watch(&self) -> Watching {
        self.workspace.watch()
    }

    /// The number of ended calls since hostler was opened, by their end.
    pub fn counts(&self) -> CallCounts {
        self.workspace.calls.counts()
    }

    /// The runtime, to be shared through [`HostlerBuilder::runtime`].
    pub fn runtime(&self) -> &Arc<Runtime> {
        self.workspace.runtime()
    }

    /// Stops workers that no other hostler uses, and kills those that do not exit within 400 ms. Without `close` they live
    /// until the tokio runtime ends. Spans that wait for a collector which no other hostler uses are sent for at most 800 ms.
    pub async fn close(&self) {
        self.workspace.close().await;
        if self.workspace.calls.close_spans() {
            blocking_or_here(flush_unused_spans).await;
        }
    }
}

fn info(tool: &Tool) -> ToolInfo {
    ToolInfo {
        name: tool.name.clone(),
        mcp_name: tool.mcp_name.clone(),
        description: tool.description().map(str::to_owned),
        input_schema: Value::Object(tool.input_schema().clone()),
        output_schema: tool.promised_schema().cloned().map(Value::Object),
    }
}
