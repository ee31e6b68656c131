//! The arguments of each command.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap_complete::engine::ArgValueCompleter;

use crate::cli::complete;
use crate::config::control::local_address;
use crate::config::sandbox::Preset;
use crate::config::value::{Word, parse_duration};
use crate::control::Scope;
use crate::registry::KIND_WORDS;

/// `hostler serve`
#[derive(Debug, Args)]
pub(in crate::cli) struct Serve {
    /// Attach to your shared hostler, whatever hostler.toml says; it is started if none runs
    #[arg(long, conflicts_with = "standalone")]
    pub shared: bool,
    /// Serve this client alone, whatever hostler.toml says
    #[arg(long)]
    pub standalone: bool,
    /// Serve the control face instead of MCP: JSON-RPC 2.0, a message a line (`hostler rpc --openrpc` has the methods)
    #[arg(long, conflicts_with = "shared")]
    pub rpc: bool,
    /// Serve HTTP instead, until interrupted: the control face, MCP and metrics, on this machine alone [default: 127.0.0.1:7411]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "", value_parser = address)]
    #[arg(conflicts_with_all = ["shared", "rpc"])]
    pub http: Option<HttpAddress>,
}

/// Where HTTP is served.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) enum HttpAddress {
    /// Where the configuration says, or at the usual place.
    Usual,
    /// Here.
    At(SocketAddr),
}

fn scopes() -> impl TypedValueParser<Value = Scope> {
    let words = PossibleValuesParser::new(Scope::ALL.map(Scope::word));
    words.try_map(|word| Scope::ALL.into_iter().find(|scope| scope.word() == word).ok_or(Expected("a scope")))
}

fn address(text: &str) -> Result<HttpAddress, Expected> {
    match text {
        "" => Ok(HttpAddress::Usual),
        text => local_address(text)
            .map(HttpAddress::At)
            .ok_or(Expected("a loopback address and a port, such as 127.0.0.1:7411")),
    }
}

/// `hostler token`
#[derive(Debug, Args)]
pub(in crate::cli) struct Token {
    /// What its holder may do: look, also call tools, or also end calls, workers and hostler
    #[arg(value_parser = scopes(), default_value = "call")]
    pub scope: Scope,
    /// Make a new one; the old one is refused within a second
    #[arg(long)]
    pub renew: bool,
}

/// `hostler open`
#[derive(Debug, Args)]
pub(in crate::cli) struct Open {
    /// Print JSON: `url`, and `valid_s`, how many seconds it is valid
    #[arg(long)]
    pub json: bool,
}

/// `hostler rpc`
#[derive(Debug, Args)]
pub(in crate::cli) struct Rpc {
    /// The method, such as tools.list
    #[arg(required_unless_present = "openrpc")]
    pub method: Option<String>,
    /// Its parameters as JSON; `-` reads them from standard input
    #[arg(value_name = "JSON")]
    pub params: Option<String>,
    /// Print all methods as an OpenRPC document
    #[arg(long, conflicts_with = "method")]
    pub openrpc: bool,
    /// Do not use your shared hostler, should one run
    #[arg(long)]
    pub standalone: bool,
}

/// `hostler logs`
#[derive(Debug, Args)]
pub(in crate::cli) struct Logs {
    /// Only calls of this tool, by its full name
    pub tool: Option<String>,
    /// Go on with what happens, until the shared hostler ends
    #[arg(long, short)]
    pub follow: bool,
    /// At most so many of the last lines
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 50)]
    pub lines: usize,
    /// Print JSON, an object for each line
    #[arg(long)]
    pub json: bool,
}

/// `hostler status`
#[derive(Debug, Args)]
pub(in crate::cli) struct Status {
    /// Show it again every second
    #[arg(long)]
    pub watch: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `hostler check`
#[derive(Debug, Args)]
pub(in crate::cli) struct Check {
    /// Tool files, folders of tools, or a hostler.toml
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// List every rule and its reason
    #[arg(long)]
    pub rules: bool,
}

/// `hostler new`
#[derive(Debug, Args)]
pub(in crate::cli) struct New {
    /// The tool's name; for a Python file, the prefix of its tools' names
    pub name: String,
    /// The kind of tool
    #[arg(long, value_name = "KIND", value_enum, default_value_t = NewKind::Python)]
    pub kind: NewKind,
}

/// What `hostler new` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum NewKind {
    /// A Python tool file
    Python,
    /// An executable in Python (standard library only)
    Exec,
    /// An executable ES module for Node
    Node,
}

/// `hostler dev`
#[derive(Debug, Args)]
pub(in crate::cli) struct Dev {
    /// The tool file
    pub file: PathBuf,
}

/// `hostler builtin`
#[derive(Debug, Args)]
pub(in crate::cli) struct Builtin {
    /// The tool
    pub name: Option<String>,
    /// Print the schema of its arguments and result
    #[arg(long, requires = "name")]
    pub schema: bool,
    /// Make one call that hostler sends, in this process
    #[arg(long, requires = "name", hide = true)]
    pub in_sandbox: bool,
    /// Create a link for each tool in a folder
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    pub link: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `hostler completions`
#[derive(Debug, Args)]
pub(in crate::cli) struct Completions {
    /// bash, zsh, fish, elvish or powershell
    pub shell: String,
}

/// `hostler doctor`
#[derive(Debug, Args)]
pub(in crate::cli) struct Doctor {
    /// Do not ask the package index
    #[arg(long)]
    pub offline: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `hostler list`
#[derive(Debug, Args)]
pub(in crate::cli) struct List {
    /// Only tools that may be called in this mode
    #[arg(long, value_name = "MODE", add = ArgValueCompleter::new(complete::modes))]
    pub mode: Option<String>,
    /// Only tools of this category
    #[arg(long, value_name = "NAME")]
    pub category: Option<String>,
    /// Only tools with this tag
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,
    /// Only tools of this pack
    #[arg(long, value_name = "PACK")]
    pub pack: Option<String>,
    /// Only tools of this kind
    #[arg(long, value_name = "KIND", value_parser = KIND_WORDS)]
    pub kind: Option<String>,
    /// Read the metadata of every executable again
    #[arg(long)]
    pub refresh: bool,
    /// Do not use your shared hostler, should one run
    #[arg(long)]
    pub standalone: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `hostler show`
#[derive(Debug, Args)]
pub(in crate::cli) struct Show {
    /// The tool's name: pack.function, or its MCP name
    #[arg(add = ArgValueCompleter::new(complete::tools))]
    pub tool: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `hostler call`
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(in crate::cli) struct Call {
    /// The tool's name: pack.function, or its MCP name
    #[arg(required_unless_present = "help", default_value = "", hide_default_value = true)]
    #[arg(add = ArgValueCompleter::new(complete::tools))]
    pub tool: String,
    /// Arguments: key=value, or key:=JSON
    #[arg(value_name = "KEY=VALUE", add = ArgValueCompleter::new(complete::arguments))]
    pub arguments: Vec<String>,
    /// All arguments as one JSON object, or - to read it from standard input
    #[arg(long, value_name = "JSON")]
    pub input: Option<String>,
    /// The time limit of the call, such as 10s or 2m; starting a worker and building its environment
    /// have their own limits, `startup_timeout` and `build_timeout`
    #[arg(long, value_name = "TIME", value_parser = limit)]
    pub timeout: Option<Duration>,
    /// Print the whole outcome as JSON: result or error, times, worker
    #[arg(long)]
    pub json: bool,
    /// Print a JSON object with `tool_success` and the result or error
    #[arg(long, conflicts_with = "json")]
    pub envelope: bool,
    /// Start the call in your shared hostler, print its id, and leave; `hostler calls wait ID` waits for it
    #[arg(long, conflicts_with_all = ["standalone", "envelope"])]
    pub background: bool,
    /// Make the call once for this key, however often it is asked for within a day
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// How often a background call is tried again after a fault that may not come again
    #[arg(long, value_name = "COUNT", requires = "background")]
    pub max_retries: Option<u32>,
    /// Do not use your shared hostler, should one run
    #[arg(long)]
    pub standalone: bool,
    /// Print help; with a TOOL, that tool's own arguments
    #[arg(short, long)]
    pub help: bool,
}

/// `hostler warm`
#[derive(Debug, Args)]
pub(in crate::cli) struct Warm {
    /// Packs or tools; all if none is given
    #[arg(value_name = "TOOL", add = ArgValueCompleter::new(complete::packs))]
    pub names: Vec<String>,
    /// Remove environments unused for longer than --unused-for
    #[arg(long)]
    pub prune: bool,
    /// The age of unused environments to remove
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = duration)]
    pub unused_for: Duration,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("expected {0}")]
pub(super) struct Expected(&'static str);

pub(super) fn duration(text: &str) -> Result<Duration, Expected> {
    parse_duration(text).ok_or(Expected("a duration such as 30s, 5m or 1h"))
}

pub(super) fn limit(text: &str) -> Result<Duration, Expected> {
    duration(text).and_then(|time| if time.is_zero() { Err(Expected("more than 0, such as 30s")) } else { Ok(time) })
}

fn presets() -> impl TypedValueParser<Value = Preset> {
    let words = PossibleValuesParser::new(Preset::WORDS.iter().map(|(word, _)| *word));
    words.try_map(|word| Preset::of(&word).ok_or(Expected("a preset")))
}

/// `hostler install`
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of a command line")]
pub(in crate::cli) struct Install {
    /// The tool file, folder or executable
    pub path: PathBuf,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,
    /// Link to it instead of copying it
    #[arg(long)]
    pub link: bool,
    /// Use this folder instead of your own
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
    /// What it may reach: pure, reader, network or full (docs/sandbox.md); kept in your own hostler.toml
    #[arg(long, value_name = "PRESET", value_parser = presets())]
    pub sandbox: Option<Preset>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `hostler remove`
#[derive(Debug, Args)]
pub(in crate::cli) struct Remove {
    /// The tool, its pack, or its file
    #[arg(add = ArgValueCompleter::new(complete::packs))]
    pub name: String,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,
    /// Use this folder instead of your own
    #[arg(long, value_name = "DIR")]
    pub from: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
