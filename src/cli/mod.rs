//! The command line. Standard output carries answers, standard error everything else.

mod arguments;
mod builtin;
mod call;
mod check;
mod complete;
mod dev;
mod doctor;
mod feedback;
mod install;
mod list;
mod new;
mod options;
mod remove;
mod result;
mod show;
mod status;
mod style;
mod warm;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{CommandFactory, Parser};

use crate::config::Environment;
use crate::mcp;
use crate::process::{self, Signals, keeper};
use crate::runtime::Workspace;
use crate::telemetry;
use options::{Command, Options};

/// How long hostler may take to end before its keeper kills it. It needs a second, and after a second signal almost nothing.
const PATIENCE: keeper::Limits =
    keeper::Limits { after_first: Some(Duration::from_secs(5)), after_second: Some(Duration::from_secs(1)) };

/// How long the end waits for a slow reader of standard error.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Runs the program.
pub fn main(environment: Environment) -> ExitCode {
    style::heed(&environment);
    process::survive_notices();
    // A shell that asks for completions gets them and nothing else.
    clap_complete::CompleteEnv::with_factory(Options::command).complete();
    let options =
        Options::try_parse_from(builtin::words(std::env::args_os())).unwrap_or_else(|error| options::refuse(&error));
    // While there is only one thread: from here on, this is the keeper's child process.
    if options.command.starts_processes()
        && let Err(error) = keeper::start(PATIENCE)
    {
        style::warn(&format!("if hostler is killed, its processes may survive: {error}"));
    }
    // One thread: a call passes through several tasks, and handing it between threads costs more than the work.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return style::complain(style::SYSTEM, &format!("cannot start: {error}")),
    };
    let code = runtime.block_on(run(options, Arc::new(environment)));
    // A thread that is blocked reading a terminal is not waited for.
    runtime.shutdown_background();
    keeper::finish();
    telemetry::flush(LAST_WORDS);
    if style::answer_was_lost() { ExitCode::from(style::SYSTEM) } else { code }
}

async fn run(options: Options, environment: Arc<Environment>) -> ExitCode {
    let asked = options.wanted(&environment);
    if keeper::is_kept() {
        Workspace::tidy();
    }
    let directory = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    // Commands that must work without a valid configuration.
    match &options.command {
        Command::Check(wanted) => return check::run(wanted, &asked, &directory),
        Command::New(wanted) => return new::tool(wanted, &asked, &directory),
        Command::Init => return new::config(&directory),
        Command::Completions(wanted) => return complete::script(wanted),
        Command::Builtin(wanted) => return builtin::run(wanted, &asked, &directory).await,
        Command::Dev(wanted) => return dev::run(wanted, &asked, &directory).await,
        Command::Install(wanted) => {
            return style::unless_interrupted(install::run(wanted, &asked, &directory)).await;
        }
        Command::Remove(wanted) => {
            return style::unless_interrupted(remove::run(wanted, &asked, &directory)).await;
        }
        _ => {}
    }
    let app = match Workspace::open(&asked, &directory) {
        Ok(app) => app,
        Err(error) => return style::complain(style::USAGE, &error.to_string()),
    };
    telemetry::start(&options.log_level(&app.config.log.value));
    for problem in &app.calls.registry.catalogue().problems {
        let reason = problem.describe(&app.config.tools.origin);
        style::warn(&format!("{}: {reason}", problem.folder.display()));
    }
    for (place, warning) in app.unmatched_settings() {
        style::warn(&format!("{place}: {warning}"));
    }
    app.ask();
    match options.command {
        Command::Serve => serve(&app).await,
        Command::List(wanted) => {
            list::ask(&app, &wanted).await;
            list::run(&app, &wanted)
        }
        Command::Show(wanted) => {
            app.calls.registry.asked().await;
            show::run(&app, &wanted)
        }
        Command::Call(wanted) => call::run(&app, wanted).await,
        Command::Warm(wanted) => warm::run(&app, &wanted).await,
        Command::Doctor(wanted) => doctor::run(&app, &wanted).await,
        // These returned above.
        Command::Check(_)
        | Command::New(_)
        | Command::Init
        | Command::Completions(_)
        | Command::Builtin(_)
        | Command::Install(_)
        | Command::Remove(_)
        | Command::Dev(_) => ExitCode::SUCCESS,
    }
}

async fn serve(app: &Workspace) -> ExitCode {
    let signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return style::complain(style::SYSTEM, &format!("cannot listen for signals: {error}")),
    };
    if let Some(remedy) = app.calls.registry.catalogue().remedy() {
        style::warn(&format!("no tools found: {remedy}"));
    }
    app.calls.registry.introduce();
    status::on_signal(&app.calls);
    let watching = app.watch();
    let ended = mcp::serve(Arc::clone(&app.calls), signals).await;
    drop(watching);
    app.calls.registry.saved();
    match ended {
        mcp::Ended::ClientGone | mcp::Ended::Signalled => ExitCode::SUCCESS,
    }
}
