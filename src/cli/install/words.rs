//! What can be said to `install` and `remove`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::cli::complete;

pub(in crate::cli) const INSTALL_AFTER: &str = "\
PATH is a Python tool file (the neighbours it imports go along), a folder NAME with NAME.py in it,
or an executable, which is run with --schema to learn what it is. Nothing is installed before you
say yes: what it offers, needs and may do is shown first. The folder is ~/.local/share/hostler/tools
(under $XDG_DATA_HOME where that is set); tools of a project's own folder go before those in it.

  hostler install ./brave.py
  hostler install ./count-words --link       what you edit there is what is served
  hostler install ./brave.py --to ./tools --yes

Exit status: 0 installed, or installed already; 2 refused; 130 not wanted.";

/// `hostler install`
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of a command line")]
pub(in crate::cli) struct Install {
    /// The tool
    pub path: PathBuf,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// Link to it where it lies, instead of copying it
    #[arg(long)]
    pub link: bool,
    /// Another folder than your own
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Replace what is there
    #[arg(long)]
    pub force: bool,
    /// Print JSON for programs
    #[arg(long)]
    pub json: bool,
}

pub(in crate::cli) const REMOVE_AFTER: &str = "\
NAME is a tool, a pack or a file. What goes is shown first: the file or folder with all its
tools (of a link, the link alone), and the neighbours that nothing else there needs or speaks of.

  hostler remove brave
  hostler remove count_words --yes

Exit status: 0 removed; 2 refused; 3 nothing of that name; 130 not wanted.";

/// `hostler remove`
#[derive(Debug, Args)]
pub(in crate::cli) struct Remove {
    /// The tool, its pack, or its file
    #[arg(add = ArgValueCompleter::new(complete::packs))]
    pub name: String,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// Another folder than your own
    #[arg(long, value_name = "DIR")]
    pub from: Option<PathBuf>,
    /// Print JSON for programs
    #[arg(long)]
    pub json: bool,
}
