//! The command line's commands and global options.

mod approve;
mod audit;
mod calls;
mod commands;
mod policy;
mod sandbox;
mod secrets;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

pub(super) use self::approve::{Allow, Approve, Listed};
pub(super) use self::audit::{Audit, AuditOf};
pub(super) use self::calls::{Calls, CallsOf, Replay};
pub(super) use self::commands::{
    Builtin, Call, Check, Completions, Dev, Doctor, HttpAddress, Install, List, Logs, New, NewKind, Open, Remove, Rpc,
    Serve, Show, Status, Token, Warm,
};
pub(super) use self::policy::{Policy, PolicyOf, SetMode};
pub(super) use self::sandbox::{Learn, SandboxOf, Sandboxing};
pub(super) use self::secrets::{SecretArgs, SecretsOf};
use super::arguments;
use crate::config::ConfigOptions;
use crate::config::Environment;
use crate::telemetry;

const ABOUT: &str = "Serves Python functions and programs as tools to AI agents, over MCP, from warm workers";

/// A text below the options, without its last line end.
const fn help(text: &'static str) -> &'static str {
    text.trim_ascii_end()
}

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "hostler", version, about = ABOUT, after_help = help(include_str!("../help/all.txt")), max_term_width = 100)]
pub(super) struct Options {
    /// Use this hostler.toml instead of the nearest one in this folder or above
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A folder of tools; may be repeated, and replaces the default folders
    #[arg(long, global = true, value_name = "DIR")]
    pub tools: Vec<PathBuf>,
    /// Log more to standard error; twice logs everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    #[command(subcommand)]
    pub command: Command,
}

/// What `hostler tool` does.
#[derive(Debug, Subcommand)]
pub(super) enum ToolCommand {
    /// The same as `hostler status`
    Status(Status),
}

/// A command.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve MCP on standard input and output (started by an MCP client)
    Serve(Serve),
    /// List all tools
    List(List),
    /// Show one tool: its arguments, its file, its settings and their origin
    Show(Show),
    /// Call a tool and print its result
    #[command(visible_alias = "invoke", after_help = help(include_str!("../help/call.txt")))]
    Call(Call),
    /// Find mistakes in tool files and hostler.toml without running anything
    #[command(after_help = help(include_str!("../help/check.txt")))]
    Check(Check),
    /// Work on one tool file: show its tools and mistakes after each change, call it by hand
    Dev(Dev),
    /// Install a tool into your own tools folder, after showing what it is and what it may do
    #[command(after_help = help(include_str!("../help/install.txt")))]
    Install(Install),
    /// Remove a tool from your own tools folder
    #[command(after_help = help(include_str!("../help/remove.txt")))]
    Remove(Remove),
    /// Write a new tool file from a template
    #[command(after_help = help(include_str!("../help/new.txt")))]
    New(New),
    /// Write a new hostler.toml
    Init,
    /// Print a completion script for commands, tools and their arguments
    #[command(after_help = help(include_str!("../help/completions.txt")))]
    Completions(Completions),
    /// Check what tools need on this machine, and how to fix it
    Doctor(Doctor),
    /// Show the shared hostler: its sessions, workers and memory, and why workers are not shared
    Status(Status),
    /// The same as `hostler status`
    #[command(hide = true, subcommand)]
    Tool(ToolCommand),
    /// List calls, tell what happened to one, cancel it, or read what it prints
    Calls(Calls),
    /// Make a call that has ended again, with its source and arguments, and show what differs
    #[command(after_help = help(include_str!("../help/replay.txt")))]
    Replay(Replay),
    /// Show the rules for tools, and what they decide about a call
    #[command(after_help = help(include_str!("../help/policy.txt")))]
    Policy(Policy),
    /// Approve or deny calls that wait for a person
    #[command(after_help = help(include_str!("../help/approve.txt")))]
    Approve(Approve),
    /// List what rules and people decided about calls, and verify that no record was changed
    #[command(after_help = help(include_str!("../help/audit.txt")))]
    Audit(Audit),
    /// Show the mode that tools are called in, or set another one
    #[command(after_help = help(include_str!("../help/mode.txt")))]
    Mode(SetMode),
    /// Find out what a tool needs of its sandbox
    Sandbox(Sandboxing),
    /// List the secrets that tools need, store them, and try them; never prints one
    #[command(after_help = help(include_str!("../help/secrets.txt")))]
    Secrets(SecretArgs),
    /// Print what the shared hostler logs and what its tools write
    Logs(Logs),
    /// Watch the shared hostler on a terminal: its workers, calls, rates and events; cancel and restart by key
    #[command(after_help = help(include_str!("../help/top.txt")))]
    Top,
    /// Print the address of a page that shows and steers the shared hostler
    #[command(after_help = help(include_str!("../help/open.txt")))]
    Open(Open),
    /// End the shared hostler and its sessions
    Stop,
    /// Let the shared hostler accept no new session and end with the last one
    Drain,
    /// Print a token for the control face over HTTP
    Token(Token),
    /// Call a method of the control face: of your shared hostler, or of none for one call
    #[command(after_help = help(include_str!("../help/rpc.txt")))]
    Rpc(Rpc),
    /// The shared hostler itself; `serve --shared` starts it
    #[command(hide = true, name = crate::shared::COMMAND)]
    SharedHost,
    /// Build environments before the first call
    Warm(Warm),
    /// Run one of hostler's built-in tools, or list them
    #[command(after_help = help(include_str!("../help/builtin.txt")))]
    Builtin(Builtin),
}

impl Command {
    /// What `--input` says, where arguments are read.
    pub fn input(&mut self) -> Option<&mut String> {
        match self {
            Self::Call(Call { help: false, input, .. })
            | Self::Sandbox(Sandboxing { what: SandboxOf::Learn(Learn { input, .. }) }) => input.as_mut(),
            _ => None,
        }
    }

    /// Whether it may start processes: workers, builds, uv, executables.
    pub fn starts_processes(&self) -> bool {
        let none = matches!(self, Self::Check(_) | Self::New(_) | Self::Init | Self::Mode(_) | Self::Completions(_));
        !none
            && !matches!(
                self,
                Self::Status(_)
                    | Self::Tool(_)
                    | Self::Calls(_)
                    | Self::Approve(_)
                    | Self::Audit(_)
                    | Self::Token(_)
                    | Self::Logs(_)
                    | Self::Top
                    | Self::Open(_)
                    | Self::Stop
                    | Self::Drain
            )
    }
}

/// Ends the program after a usage error. For the arguments of a tool, clap's advice to write `--` before them is wrong.
pub(super) fn refuse(error: &clap::Error) -> ! {
    let is_unknown = error.kind() == ErrorKind::UnknownArgument && error.get(ContextKind::SuggestedArg).is_none();
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg).filter(|_| is_unknown) else {
        error.exit()
    };
    let mut before = std::env::args_os().take_while(|typed| !typed.to_string_lossy().starts_with(word.as_str()));
    let mut after_call =
        before.by_ref().skip_while(|typed| !["call", "invoke", "learn"].iter().any(|word| typed == word)).skip(1);
    if !after_call.any(|typed| !typed.to_string_lossy().starts_with('-')) {
        error.exit()
    }
    super::style::error(&arguments::no_key(word).to_string());
    std::process::exit(i32::from(super::style::USAGE))
}

/// A command's own help, as `--help` prints it.
pub(super) fn help_of(command: &str) -> String {
    let mut whole = Options::command();
    whole.build();
    whole.find_subcommand_mut(command).map(|command| command.render_long_help().to_string()).unwrap_or_default()
}

impl Options {
    /// The configuration that the flags ask for.
    pub fn wanted(&self, environment: &Arc<Environment>) -> ConfigOptions {
        ConfigOptions {
            config: self.config.clone(),
            tools: self.tools.clone(),
            timeout: self.timeout(),
            environment: Arc::clone(environment),
        }
    }

    /// The time limit of the call, if this is one.
    pub fn timeout(&self) -> Option<Duration> {
        match &self.command {
            Command::Call(call) => call.timeout,
            Command::Sandbox(Sandboxing { what: SandboxOf::Learn(learn) }) => learn.timeout,
            _ => None,
        }
    }

    /// The log level, by the flag or the configuration.
    pub fn log_level<'a>(&self, configured: &'a str) -> &'a str {
        telemetry::level(self.verbose, configured)
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
    fn text_below_the_help_fits_the_width() {
        for command in Options::command().get_subcommands() {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let is_whole = text.lines().all(|line| line.chars().count() <= 100) && !text.starts_with(' ');
            assert!(is_whole, "{}: {text}", command.get_name());
        }
    }

    #[test]
    fn the_help_reads_as_in_the_gallery() {
        for words in [
            &[][..],
            &["serve"],
            &["list"],
            &["show"],
            &["rpc"],
            &["calls"],
            &["logs"],
            &["call"],
            &["check"],
            &["dev"],
            &["install"],
            &["remove"],
            &["new"],
            &["init"],
            &["completions"],
            &["doctor"],
            &["status"],
            &["stop"],
            &["drain"],
            &["warm"],
            &["secrets"],
            &["sandbox"],
            &["sandbox", "learn"],
            &["approve"],
            &["builtin"],
        ] {
            insta::assert_snapshot!(format!("help_{}", words.join("_")), help(words));
        }
    }
}
