//! The words of the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use super::install::words::{INSTALL_AFTER, Install, REMOVE_AFTER, Remove};
use super::{complete, typed};
use crate::config::Wanted;
use crate::config::facts::Mode;
use crate::config::value::parse_duration;
use crate::registry::KIND_WORDS;

const ABOUT: &str = "Serves folders of Python files and programs as tools to AI agents, warm, over MCP";

const AFTER: &str = "\
Try it:
  hostler list --tools examples/tools           what there is
  hostler call --tools examples/tools units.convert value=3 unit=mile to=km
  hostler serve --tools examples/tools          what an MCP client runs

A tool is a public function of a Python file; its name is FILE.FUNCTION. Dependencies stand in the
file's `# /// script` header (PEP 723) and install themselves. Programs that answer --schema are
tools, too, and hostler has some of its own (`hostler builtin`). Settings stand in hostler.toml.";

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "hostler", version, about = ABOUT, after_help = AFTER, max_term_width = 100)]
pub(super) struct Options {
    /// Read this hostler.toml instead of the nearest one upwards
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A folder of tools; may be given more than once, and replaces the usual folders
    #[arg(long, global = true, value_name = "DIR")]
    pub tools: Vec<PathBuf>,
    /// Say more on standard error; twice says everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve MCP on standard input and output; an MCP client runs this
    Serve,
    /// Show every tool
    List(List),
    /// Show one tool: what it takes, where it comes from, which settings are in force and why
    Show(Show),
    /// Call a tool and print its result
    #[command(visible_alias = "invoke", after_help = CALL_AFTER)]
    Call(Call),
    /// Find what is wrong with tool files and hostler.toml, without running anything
    #[command(after_help = CHECK_AFTER)]
    Check(Check),
    /// Work on one tool file: see what it offers and what is wrong with it at each change, call it by hand
    Dev(Dev),
    /// Put a tool into your own tools folder, after showing what it is and what it may do
    #[command(after_help = INSTALL_AFTER)]
    Install(Install),
    /// Take a tool out of your own tools folder
    #[command(after_help = REMOVE_AFTER)]
    Remove(Remove),
    /// Write a tool file to start from
    #[command(after_help = NEW_AFTER)]
    New(New),
    /// Write a hostler.toml to start from
    Init,
    /// Print what a shell needs to complete commands, tools and their arguments
    #[command(after_help = COMPLETIONS_AFTER)]
    Completions(Completions),
    /// Look whether everything that tools need works here, and say what to do where it does not
    Doctor(Doctor),
    /// Build the environments of tools ahead of their first call
    Warm(Warm),
    /// Run one of hostler's own tools by itself, or list them
    #[command(after_help = BUILTIN_AFTER)]
    Builtin(Builtin),
}

impl Command {
    /// Whether processes may be started for it: workers, builds, a look at uv, executables that are asked what they are.
    pub fn starts_processes(&self) -> bool {
        match self {
            Self::Serve
            | Self::List(_)
            | Self::Show(_)
            | Self::Call(_)
            | Self::Dev(_)
            | Self::Doctor(_)
            | Self::Warm(_)
            | Self::Builtin(_)
            | Self::Install(_)
            | Self::Remove(_) => true,
            Self::Check(_) | Self::New(_) | Self::Init | Self::Completions(_) => false,
        }
    }
}

const CALL_AFTER: &str = "\
Arguments become what the tool takes: count=3 is a number where it wants one; key:=JSON is taken
as it is. The result goes to standard output, everything else to standard error.

  hostler call text.slug text='Hello there'
  hostler call tables.query sql='select 1' files:='[\"a.csv\"]'
  echo '{\"text\": \"Hello there\"}' | hostler call text.slug --input -

Exit status: 0 done, 1 the tool failed, 2 usage or invalid arguments, 3 no such tool, 4 not allowed,
5 timeout, 6 busy, 7 environment or start failed, 70 a fault of hostler, 130 cancelled.";

const CHECK_AFTER: &str = "\
Without a PATH the configured tool folders and hostler.toml are checked. A line switches a rule off
for itself with `# hostler: ignore[RULE]`; hostler.toml does for everything:
[check] ignore = [\"RULE\"].

Exit status: 0 nothing found, 1 something found, 2 usage.";

/// `hostler check`
#[derive(Debug, Args)]
pub(super) struct Check {
    /// Tool files, folders of them, or a hostler.toml
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Print JSON for programs
    #[arg(long)]
    pub json: bool,
    /// Show every rule and why there is one, instead of checking
    #[arg(long)]
    pub rules: bool,
}

const NEW_AFTER: &str = "\
For example:
  hostler new greetings             a Python file: every public function is a tool
  hostler new greet --kind exec     a program that answers --schema, in Python's own library alone
  hostler new greet --kind node     the same as an ES module for Node";

/// `hostler new`
#[derive(Debug, Args)]
pub(super) struct New {
    /// The tool's name: of a Python file, the pack its functions live under
    pub name: String,
    /// What to write: python, exec or node
    #[arg(long, value_name = "KIND", value_enum, default_value_t = NewKind::Python)]
    pub kind: NewKind,
}

/// What `hostler new` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum NewKind {
    /// A Python tool file
    Python,
    /// An executable in Python, with its standard library alone
    Exec,
    /// An executable ES module for Node
    Node,
}

/// `hostler dev`
#[derive(Debug, Args)]
pub(super) struct Dev {
    /// The tool file
    pub file: PathBuf,
}

const COMPLETIONS_AFTER: &str = "\
Put one of these where your shell reads it at its start:

  bash:  source <(hostler completions bash)
  zsh:   source <(hostler completions zsh)
  fish:  hostler completions fish | source";

const BUILTIN_AFTER: &str = "\
Without a NAME all of them are listed, and which are on. Each is also an executable tool: it prints
what it takes for --schema, else it reads its arguments as JSON from standard input and prints its
result. It reaches the `roots` of hostler.toml, or the folder it is run in where none are named.

  echo '{\"pattern\": \"*.py\"}' | hostler builtin glob
  hostler builtin --link DIR     links each by its name, for hosts that run executables";

/// `hostler builtin`
#[derive(Debug, Args)]
pub(super) struct Builtin {
    /// The tool
    pub name: Option<String>,
    /// Print what it takes and returns
    #[arg(long, requires = "name")]
    pub schema: bool,
    /// Put a link for each of them into a folder, under its own name
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    pub link: Option<PathBuf>,
    /// Print JSON for programs
    #[arg(long)]
    pub json: bool,
}

/// `hostler completions`
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// bash, zsh, fish, elvish or powershell
    pub shell: String,
}

/// `hostler doctor`
#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// Do not ask the package index
    #[arg(long)]
    pub offline: bool,
    /// Print JSON for programs
    #[arg(long)]
    pub json: bool,
}

/// `hostler list`
#[derive(Debug, Args)]
pub(super) struct List {
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
    /// Ask every executable anew what it is, also those that did not answer before
    #[arg(long)]
    pub refresh: bool,
    /// Print JSON for programs
    #[arg(long)]
    pub json: bool,
}

/// `hostler show`
#[derive(Debug, Args)]
pub(super) struct Show {
    /// The tool's name, pack.function (or as MCP clients say it)
    #[arg(add = ArgValueCompleter::new(complete::tools))]
    pub tool: String,
    /// Print JSON for programs
    #[arg(long)]
    pub json: bool,
}

/// `hostler call`
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(super) struct Call {
    /// The tool's name, pack.function (or as MCP clients say it)
    #[arg(required_unless_present = "help", default_value = "", hide_default_value = true)]
    #[arg(add = ArgValueCompleter::new(complete::tools))]
    pub tool: String,
    /// Arguments: key=value, or key:=JSON
    #[arg(value_name = "KEY=VALUE", add = ArgValueCompleter::new(complete::arguments))]
    pub arguments: Vec<String>,
    /// All arguments as one JSON object, or - to read it from standard input
    #[arg(long, value_name = "JSON")]
    pub input: Option<String>,
    /// Give up after this long, such as 10s or 2m; a start before the call has limits of its own,
    /// `startup_timeout` and `build_timeout`
    #[arg(long, value_name = "TIME", value_parser = limit)]
    pub timeout: Option<Duration>,
    /// Print the whole outcome as JSON: result or error, times, worker
    #[arg(long)]
    pub json: bool,
    /// Print whether the tool ran, with its result or error, as one JSON object (`tool_success`)
    #[arg(long, conflicts_with = "json")]
    pub envelope: bool,
    /// Print help; with a TOOL, that tool's own arguments
    #[arg(short, long)]
    pub help: bool,
}

/// `hostler warm`
#[derive(Debug, Args)]
pub(super) struct Warm {
    /// Packs or tools; every one when none is named
    #[arg(value_name = "TOOL", add = ArgValueCompleter::new(complete::packs))]
    pub wanted: Vec<String>,
    /// Remove environments that nobody has used for --unused-for
    #[arg(long)]
    pub prune: bool,
    /// How long an environment must have been unused to be removed
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = duration)]
    pub unused_for: Duration,
    /// Print JSON for programs
    #[arg(long)]
    pub json: bool,
}

/// Ends the program over words that are none of the command line's. Clap's advice for the arguments of a tool, to set `--`
/// before them, leads nowhere.
pub(super) fn refuse(error: &clap::Error) -> ! {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let is_foreign = error.kind() == ErrorKind::UnknownArgument && error.get(ContextKind::SuggestedArg).is_none();
    let named = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(text)) if is_foreign => text.as_str(),
        _ => error.exit(),
    };
    let at = words.iter().position(|word| word.split('=').next() == named.split('=').next()).filter(|at| {
        // After `call` and a tool's name.
        let call = words[..*at].iter().position(|word| word == "call" || word == "invoke");
        call.is_some_and(|call| words[call + 1..*at].iter().any(|word| !word.starts_with('-')))
    });
    let Some(at) = at else { error.exit() };
    let bad = typed::no_argument(&words, at);
    super::style::error(&bad.to_string());
    std::process::exit(i32::from(super::exit::USAGE))
}

/// A command's own help, as `--help` prints it.
pub(super) fn help_of(command: &str) -> String {
    let mut whole = Options::command();
    whole.build();
    whole.find_subcommand_mut(command).map(|command| command.render_long_help().to_string()).unwrap_or_default()
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "write a duration like 30s, 5m or 1h".to_owned())
}

fn mode(text: &str) -> Result<Mode, String> {
    let found = Mode::EVERY.iter().find(|(word, _)| *word == text.to_lowercase());
    found.map(|(_, mode)| *mode).ok_or_else(|| format!("one of {}", Mode::EVERY.map(|(word, _)| word).join(", ")))
}

fn kind(text: &str) -> Result<&'static str, String> {
    let found = KIND_WORDS.into_iter().find(|word| *word == text);
    found.ok_or_else(|| format!("one of {}", KIND_WORDS.join(", ")))
}

fn limit(text: &str) -> Result<Duration, String> {
    let parsed = duration(text)?;
    if parsed.is_zero() { Err("nothing is done in no time; write a duration like 30s".to_owned()) } else { Ok(parsed) }
}

impl Options {
    /// What the flags say about configuration.
    pub fn wanted(&self) -> Wanted {
        let timeout = match &self.command {
            Command::Call(call) => call.timeout,
            _ => None,
        };
        Wanted { config: self.config.clone(), tools: self.tools.clone(), timeout }
    }

    /// How much is logged: the flag, or what the configuration says.
    pub fn log_level(&self, configured: &str) -> String {
        match self.verbose {
            0 => configured.to_owned(),
            1 => "info".to_owned(),
            _ => "debug".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Options;

    fn help(words: &[&str]) -> String {
        let mut command = Options::command().term_width(100);
        command.build();
        let wanted = words.iter().fold(&mut command, |command, word| {
            command.find_subcommand_mut(word).unwrap_or_else(|| panic!("there is no {word}"))
        });
        wanted.render_long_help().to_string()
    }

    #[test]
    fn what_stands_below_the_help_is_not_broken_anew() {
        for command in Options::command().get_subcommands() {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let is_whole = text.lines().all(|line| line.chars().count() <= 100) && !text.starts_with(' ');
            assert!(is_whole, "{}: {text}", command.get_name());
        }
    }

    #[test]
    fn the_help_teaches() {
        for words in [
            &[][..],
            &["serve"],
            &["list"],
            &["show"],
            &["call"],
            &["check"],
            &["dev"],
            &["install"],
            &["remove"],
            &["new"],
            &["init"],
            &["completions"],
            &["doctor"],
            &["warm"],
            &["builtin"],
        ] {
            insta::assert_snapshot!(format!("help_{}", words.join("_")), help(words));
        }
    }
}
