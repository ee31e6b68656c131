//! hostler as a library: one workspace, its calls and its sessions.

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

/// Tools, their workers and the way in for calls. See the [crate's front page](crate) for an example.
pub struct Hostler {
    workspace: Workspace,
    session: Session,
}

/// A tool that can be called.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolInfo {
    /// `pack.function`.
    pub name: String,
    /// `pack_function`, the name for models, which accept no dot.
    pub mcp_name: String,
    /// What it does.
    pub description: Option<String>,
    /// What it takes, as JSON Schema.
    pub input_schema: Value,
    /// What it returns, as JSON Schema, where that is certain.
    pub output_schema: Option<Value>,
}

/// Why hostler cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The configuration cannot be read or understood.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A built-in tool has no valid name, or one that is taken.
    #[error(transparent)]
    Builtin(#[from] Unregistered),
}

/// Says where tools and configuration are, and what else hostler has.
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
    /// Adds a tools folder; with one, those of the configuration do not count.
    #[must_use]
    pub fn tools(mut self, folder: impl Into<PathBuf>) -> Self {
        self.options.tools.push(folder.into());
        self
    }

    /// The configuration file, instead of the `hostler.toml` that is nearest to the directory.
    #[must_use]
    pub fn config(mut self, file: impl Into<PathBuf>) -> Self {
        self.options.config = Some(file.into());
        self
    }

    /// The directory in which relative paths begin and workers run; the current one by default.
    #[must_use]
    pub fn directory(mut self, folder: impl Into<PathBuf>) -> Self {
        self.directory = Some(folder.into());
        self
    }

    /// The variables that workers, secrets and uv see; those of the process by default.
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

    /// Adds a tool in Rust to those that the configuration enables.
    #[must_use]
    pub fn builtin(mut self, tool: impl Builtin) -> Self {
        self.builtins.push(Box::new(move |tools| tools.register(tool)));
        self
    }

    /// Adds a layer around every call. The first one that is added is the outermost.
    #[must_use]
    pub fn layer(mut self, layer: Arc<dyn Layer>) -> Self {
        self.layers.push(layer);
        self
    }

    /// Reads the configuration and the tools folders, and asks executables what they are. Workers start with the first
    /// call. To be called within a tokio runtime.
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
    /// hostler with the tools and the configuration of a directory, unless the builder says otherwise.
    pub fn builder() -> HostlerBuilder {
        HostlerBuilder::default()
    }

    /// Accepts a call. It goes on when the handle is dropped, and ends with an outcome that is recorded once.
    pub fn start(&self, request: CallRequest) -> CallHandle {
        self.session.start(request)
    }

    /// Makes a call and waits for its end. Dropping the future cancels the call.
    pub async fn call(&self, request: CallRequest) -> Arc<Outcome> {
        self.session.call(request).await
    }

    /// Every tool that can be called now, in the order of their names.
    pub fn tools(&self) -> Vec<ToolInfo> {
        self.workspace.calls.registry.refresh_if_changed();
        let mut tools: Vec<ToolInfo> =
            self.workspace.calls.registry.catalogue().ready().map(|tool| info(tool)).collect();
        tools.sort_by(|left, right| left.name.cmp(&right.name));
        tools
    }

    /// Waits until every executable has said what it is, or failed to.
    pub async fn ready(&self) {
        self.workspace.calls.registry.asked().await;
    }

    /// Another client of the same tools: its end ends its calls, and nothing else.
    pub fn session(&self) -> Session {
        Session::open(Arc::clone(&self.workspace.calls))
    }

    /// Serves an MCP client, a session of its own, until it closes its end.
    pub async fn serve_mcp(
        &self,
        input: impl AsyncRead + Send + Unpin,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> io::Result<()> {
        mcp::serve_connection(Arc::clone(&self.workspace.calls), input, output).await
    }

    /// Keeps up with edits of tool files while nobody calls, until what this gives is dropped.
    pub fn watch(&self) -> Watching {
        self.workspace.watch()
    }

    /// How many calls ended since hostler was opened, and how.
    pub fn counts(&self) -> CallCounts {
        self.workspace.calls.counts()
    }

    /// What it shares with others that are opened with [`HostlerBuilder::runtime`].
    pub fn runtime(&self) -> &Arc<Runtime> {
        self.workspace.runtime()
    }

    /// Lets workers that nobody else uses leave, and ends those that do not within 400 ms. One that is only dropped leaves
    /// them to the end of the tokio runtime.
    pub async fn close(&self) {
        self.workspace.close().await;
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
