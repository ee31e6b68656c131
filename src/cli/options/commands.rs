//! The arguments of each command.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::cli::complete;
use crate::config::declared_policy::Mode;
use crate::config::value::{Word, parse_duration};
use crate::registry::KIND_WORDS;

pub(super) const CALL_AFTER: &str = "\
Arguments are converted to the declared types: count=3 becomes a number for an integer. key:=JSON
passes JSON unchanged; a list accepts key=VALUE more than once. The result goes to standard output,
everything else to standard error.

  hostler call text.slug text='Hello there'
  hostler call tables.query sql='select 1' files:='[\"a.csv\"]'
  echo '{\"text\": \"Hello there\"}' | hostler call text.slug --input -

Exit status: 0 success, 1 the tool failed, 2 usage or invalid arguments, 3 no such tool, 4 not
allowed, 5 timeout, 6 busy, 7 environment or start failed, 70 a fault of hostler, 130 cancelled.";

pub(super) const CHECK_AFTER: &str = "\
Without a PATH, the configured tool folders and hostler.toml are checked. `# hostler: ignore[RULE]`
ignores a rule on one line; `ignore = [\"RULE\"]` under [check] in hostler.toml ignores it everywhere.

Exit status: 0 no findings, 1 findings, 2 usage.";

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

pub(super) const NEW_AFTER: &str = "\
Examples:
  hostler new greetings             a Python file: every public function is a tool
  hostler new greet --kind exec     a Python program that answers --schema (standard library only)
  hostler new greet --kind node     the same as an ES module for Node";

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

pub(super) const COMPLETIONS_AFTER: &str = "\
Add one of these lines to your shell's startup file:

  bash:  source <(hostler completions bash)
  zsh:   source <(hostler completions zsh)
  fish:  hostler completions fish | source";

pub(super) const BUILTIN_AFTER: &str = "\
Without a NAME, all built-in tools are listed, with those that are enabled. With a NAME, the tool
reads its arguments as JSON from standard input and prints its result. It may reach the `roots` of
hostler.toml, or the current folder if there are none.

  echo '{\"pattern\": \"*.py\"}' | hostler builtin glob
  hostler builtin --link DIR     a link for each, for hosts that run executables";

/// `hostler builtin`
#[derive(Debug, Args)]
pub(in crate::cli) struct Builtin {
    /// The tool
    pub name: Option<String>,
    /// Print the schema of its arguments and result
    #[arg(long, requires = "name")]
    pub schema: bool,
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
    /// Only tools that may be called in this mode: normal, alert, degraded, lockdown, recovery
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub mode: Option<Mode>,
    /// Only tools of this category
    #[arg(long, value_name = "NAME")]
    pub category: Option<String>,
    /// Only tools with this tag
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,
    /// Only tools of this pack
    #[arg(long, value_name = "PACK")]
    pub pack: Option<String>,
    /// Only tools of this kind: python, internal, executable, worker, builtin
    #[arg(long, value_name = "KIND", value_parser = kind)]
    pub kind: Option<&'static str>,
    /// Read the metadata of every executable again
    #[arg(long)]
    pub refresh: bool,
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
    /// Remove environments that were not used for --unused-for
    #[arg(long)]
    pub prune: bool,
    /// The age of unused environments to remove
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = duration)]
    pub unused_for: Duration,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "expected a duration such as 30s, 5m or 1h".to_owned())
}

fn mode(text: &str) -> Result<Mode, String> {
    let words: Vec<&str> = Mode::WORDS.iter().map(|(word, _)| *word).collect();
    Mode::of(&text.to_lowercase()).ok_or_else(|| format!("expected one of {}", words.join(", ")))
}

fn kind(text: &str) -> Result<&'static str, String> {
    let found = KIND_WORDS.into_iter().find(|word| *word == text);
    found.ok_or_else(|| format!("expected one of {}", KIND_WORDS.join(", ")))
}

fn limit(text: &str) -> Result<Duration, String> {
    let parsed = duration(text)?;
    if parsed.is_zero() { Err("expected more than 0, such as 30s".to_owned()) } else { Ok(parsed) }
}

pub(super) const INSTALL_AFTER: &str = "\
PATH is a Python tool file (installed with the neighbours it imports), a folder NAME with NAME.py
in it, or an executable, which is run with --schema to read its metadata. What the tool offers,
needs and may do is shown first; nothing is installed before you confirm. The folder is
~/.local/share/hostler/tools (below $XDG_DATA_HOME if set); a project's ./tools takes precedence.

  hostler install ./brave.py
  hostler install ./count-words --link       serve it from where it is, with later edits
  hostler install ./brave.py --to ./tools --yes

Exit status: 0 installed or already installed, 2 refused, 130 declined.";

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
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(super) const REMOVE_AFTER: &str = "\
NAME is a tool, a pack or a file. What is removed is shown first: the file with its lock, or the
folder, with all its tools; of a link the link alone. Neighbours that the file imports stay, because
other tools may use them.

  hostler remove brave
  hostler remove count_words --yes

Exit status: 0 removed, 2 refused, 3 no such tool, 130 declined.";

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
