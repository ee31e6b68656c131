//! `hostler serve` at a shared hostler, and the shared hostler itself.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::options::{Command, Options, Serve};
use super::style::{self, Refusal};
use crate::config::origin::{Origin, Setting};
use crate::config::{Config, Environment};
use crate::journal::Claim;
use crate::process::detach;
use crate::shared::{self, Alone, Opened, Start, Unshared, Wanted};

/// Serves the client by the shared hostler, if that is wanted and possible. Otherwise one line says why not.
pub(super) fn serve(args: &Serve, options: &Options, environment: &Environment) -> Served {
    let directory = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    if args.standalone || args.rpc || args.http.is_some() {
        return Served::Alone(None);
    }
    let is_asked = args.shared || {
        let Some(enabled) = setting(options, environment, &directory).filter(|enabled| enabled.value) else {
            return Served::Alone(None);
        };
        enabled.origin != Origin::Default
    };
    let wanted = Wanted {
        streams: [rustix::stdio::stdin(), rustix::stdio::stdout()],
        start: start(options, environment, &directory),
        status: super::shared::as_said,
    };
    match shared::attach(&wanted) {
        Ok(status) => Served::Attached(ExitCode::from(status)),
        Err(Alone { why, record }) => {
            // At a terminal it is by default as it should be.
            if is_asked || !matches!(why, Unshared::Streams) {
                style::warn(&format!("this client gets a hostler of its own: {why}"));
            }
            Served::Alone(record)
        }
    }
}

fn start<'a>(options: &'a Options, environment: &'a Environment, directory: &'a Path) -> Start<'a> {
    let timeout = options.timeout();
    let (config, tools) = (options.config.as_deref(), &options.tools);
    Start { environment, directory, config, tools, verbose: options.verbose, timeout }
}

/// A session of the shared hostler, for a command that can use one that runs.
pub(super) fn session(options: &Options, environment: &Environment) -> Option<Opened> {
    let is_wanted = match &options.command {
        Command::Call(args) => !args.standalone && !args.help,
        Command::List(args) => !args.standalone && !args.refresh,
        Command::Rpc(args) => !args.standalone && args.needs_session(),
        _ => false,
    };
    if !is_wanted {
        return None;
    }
    let directory = std::env::current_dir().ok()?;
    // Whatever the reason is: the command does its work itself then.
    shared::open_session(&start(options, environment, &directory)).unwrap_or_else(|why| {
        if why.is_of_a_running_one() {
            style::warn(&format!("this command does not use the shared hostler: {why}"));
        }
        None
    })
}

/// A session of the shared hostler for a background call, which needs one: it is started if none runs.
pub(super) fn session_for_background(options: &Options, environment: &Environment) -> Result<Opened, Refusal> {
    let directory = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    shared::open_or_start(&start(options, environment, &directory)).map_err(|why| {
        Refusal::system("a background call needs the shared hostler", std::io::Error::other(why.to_string()))
    })
}

/// Whether the client has closed standard input.
pub(super) fn is_client_gone() -> bool {
    let stdin = rustix::stdio::stdin();
    let mut asked = [PollFd::from_borrowed_fd(stdin, PollFlags::HUP)];
    poll(&mut asked, Some(&Timespec::default())).is_ok_and(|_| asked[0].revents().contains(PollFlags::HUP))
}

/// By what a client is served.
pub(super) enum Served {
    /// A shared hostler, until the session was over.
    Attached(ExitCode),
    /// This process, which goes on with a session if a shared hostler left one.
    Alone(Option<OwnedFd>),
}

/// What the configuration says. An invalid one is reported where the client is served alone.
fn setting(options: &Options, environment: &Environment, directory: &Path) -> Option<Setting<bool>> {
    let wanted = options.wanted(&Arc::new(environment.clone()));
    Config::load(&wanted, directory).ok().map(|config| config.shared.enabled.clone())
}

/// Turns this process into one that outlives its client. What goes wrong is read by the process that started it.
pub(super) fn become_host(environment: &Environment) -> Result<(), ExitCode> {
    let failed = |error: &dyn std::fmt::Display| {
        style::answer(&error.to_string());
        ExitCode::from(style::SYSTEM)
    };
    detach().map_err(|error| failed(&error))?;
    shared::open_log(environment).map_err(|error| failed(&error))
}

/// Runs the shared hostler.
pub(super) async fn host(environment: Arc<Environment>, claim: Option<Claim>) -> Result<ExitCode, Refusal> {
    match shared::run(environment, claim, say_ready).await {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => {
            style::answer(&error.to_string());
            Err(Refusal::system("the shared hostler cannot run", std::io::Error::other(error)))
        }
    }
}

/// The process that started this one waits for these words, and closes its end then.
fn say_ready() {
    style::answer(shared::READY);
    if let Ok(nothing) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&nothing);
    }
}
