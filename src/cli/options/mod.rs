//! The command line's commands and global options.

mod commands;

use std::path::PathBuf;
use std::sync::Arc;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

use self::commands::{
    BUILTIN_AFTER, CALL_AFTER, CHECK_AFTER, COMPLETIONS_AFTER, INSTALL_AFTER, NEW_AFTER, REMOVE_AFTER,
};
pub(super) use self::commands::{
    Builtin, Call, Check, Completions, Dev, Doctor, Install, List, New, NewKind, Remove, Show, Warm,
};
use super::arguments;
use crate::config::ConfigOptions;
use crate::config::Environment;

const ABOUT: &str = "Serves Python functions and programs as tools to AI agents, over MCP, from warm workers";

const AFTER: &str = "\
Examples:
  hostler list --tools examples/tools           list the tools of a folder
  hostler call --tools examples/tools units.convert value=3 unit=mile to=km
  hostler serve --tools examples/tools          the command for an MCP client

Every public function of a Python file is a tool, named FILE.FUNCTION. Its dependencies are declared
in the file's `# /// script` header (PEP 723) and installed on demand. Programs that answer --schema
are tools as well, and hostler has its own (`hostler builtin`). Settings are in hostler.toml.";

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "hostler", version, about = ABOUT, after_help = AFTER, max_term_width = 100)]
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

/// A command.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve MCP on standard input and output (started by an MCP client)
    Serve,
    /// List all tools
    List(List),
    /// Show one tool: its arguments, its file, its settings and their origin
    Show(Show),
    /// Call a tool and print its result
    #[command(visible_alias = "invoke", after_help = CALL_AFTER)]
    Call(Call),
    /// Find mistakes in tool files and hostler.toml without running anything
    #[command(after_help = CHECK_AFTER)]
    Check(Check),
    /// Work on one tool file: show its tools and mistakes after each change, call it by hand
    Dev(Dev),
    /// Install a tool into your own tools folder, after showing what it is and what it may do
    #[command(after_help = INSTALL_AFTER)]
    Install(Install),
    /// Remove a tool from your own tools folder
    #[command(after_help = REMOVE_AFTER)]
    Remove(Remove),
    /// Write a new tool file from a template
    #[command(after_help = NEW_AFTER)]
    New(New),
    /// Write a new hostler.toml
    Init,
    /// Print a completion script for commands, tools and their arguments
    #[command(after_help = COMPLETIONS_AFTER)]
    Completions(Completions),
    /// Check whether everything that tools need works here, and what to do where it does not
    Doctor(Doctor),
    /// Build environments before the first call
    Warm(Warm),
    /// Run one of hostler's built-in tools, or list them
    #[command(after_help = BUILTIN_AFTER)]
    Builtin(Builtin),
}

impl Command {
    /// Whether it may start processes: workers, builds, uv, executables.
    pub fn starts_processes(&self) -> bool {
        !matches!(self, Self::Check(_) | Self::New(_) | Self::Init | Self::Completions(_))
    }
}

/// Ends the program after a usage error. For the arguments of a tool, clap's advice to write `--` before them is wrong.
pub(super) fn refuse(error: &clap::Error) -> ! {
    let is_unknown = error.kind() == ErrorKind::UnknownArgument && error.get(ContextKind::SuggestedArg).is_none();
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg).filter(|_| is_unknown) else {
        error.exit()
    };
    let mut before = std::env::args_os().take_while(|typed| !typed.to_string_lossy().starts_with(word.as_str()));
    let mut after_call = before.by_ref().skip_while(|typed| typed != "call" && typed != "invoke").skip(1);
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
        let timeout = match &self.command {
            Command::Call(call) => call.timeout,
            _ => None,
        };
        ConfigOptions {
            config: self.config.clone(),
            tools: self.tools.clone(),
            timeout,
            environment: Arc::clone(environment),
        }
    }

    /// The log level, by the flag or the configuration.
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
