//! The command line. Standard output carries answers, standard error everything else.

mod arguments;
mod ask;
mod attach;
mod builtin;
mod call;
mod check;
mod complete;
mod dev;
mod doctor;
mod install;
mod list;
mod new;
mod options;
mod remove;
mod shared;
mod show;
mod status;
mod style;
mod warm;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{CommandFactory, Parser};

use crate::config::{ConfigOptions, Environment};
use crate::mcp;
use crate::process::{self, keep_trimmed, keeper};
use crate::runtime::Workspace;
use crate::shared::Opened;
use crate::telemetry;
use options::{Command, Options};
use style::Refusal;

/// How long hostler may take to end before its keeper kills it. It needs a second, and after a second signal almost nothing.
const PATIENCE: keeper::Limits =
    keeper::Limits { after_first: Some(Duration::from_secs(5)), after_second: Some(Duration::from_secs(1)) };

/// The pause before an invalid configuration is read again.
const LOOK: Duration = Duration::from_millis(200);

/// How long the end waits for a slow reader of standard error.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Runs the program.
pub fn main(environment: Environment) -> ExitCode {
    // Everything below reads the variables from the value.
    process::harden();
    style::heed(&environment);
    process::survive_notices();
    // A shell that asks for completions gets them and nothing else.
    clap_complete::CompleteEnv::with_factory(Options::command).complete();
    let options =
        Options::try_parse_from(builtin::words(std::env::args_os())).unwrap_or_else(|error| options::refuse(&error));
    if let Some(limit) = process::too_few_files() {
        return style::complain(style::SYSTEM, &limit.to_string());
    }
    let mut record = None;
    if let Command::Serve(args) = &options.command {
        match attach::serve(args, &options, &environment) {
            attach::Served::Attached(code) => return code,
            attach::Served::Alone(left) => record = left,
        }
    }
    if matches!(options.command, Command::SharedHost)
        && let Err(refusal) = attach::become_host(&environment)
    {
        return refusal;
    }
    let opened = attach::session(&options, &environment);
    // While there is only one thread: from here on, this is the keeper's child process.
    if options.command.starts_processes()
        && opened.is_none()
        && let Err(error) = keeper::start(PATIENCE)
    {
        style::warn(&format!("if hostler is killed, its processes may survive: {error}"));
    }
    // One thread: a call passes through several tasks, and handing it between threads costs more than the work.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return Refusal::system("cannot start", error).complain(),
    };
    let done = runtime.block_on(run(options, Arc::new(environment), record, opened));
    let code = done.unwrap_or_else(|refusal| refusal.complain());
    // A thread that is blocked reading a terminal is not waited for.
    runtime.shutdown_background();
    keeper::finish();
    telemetry::flush(LAST_WORDS);
    if style::answer_was_lost() { ExitCode::from(style::SYSTEM) } else { code }
}

async fn run(
    options: Options,
    environment: Arc<Environment>,
    record: Option<OwnedFd>,
    opened: Option<Opened>,
) -> Result<ExitCode, Refusal> {
    match (&options.command, opened) {
        (Command::Call(args), Some(opened)) => return call::by_shared(opened, args).await,
        (Command::List(args), Some(opened)) => return list::by_shared(opened, args).await,
        _ => {}
    }
    let asked = options.wanted(&environment);
    if keeper::is_kept() && !matches!(options.command, Command::SharedHost) {
        Workspace::tidy();
    }
    let directory = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    // Some commands must work without a valid configuration.
    let open = || open(&options, &asked, &directory);
    match &options.command {
        Command::Check(args) => check::run(args, &asked, &directory),
        Command::New(args) => new::tool(args, &asked, &directory),
        Command::Init => new::config(&directory),
        Command::Completions(args) => complete::script(args),
        Command::Builtin(args) => builtin::run(args, &asked, &directory).await,
        Command::Dev(args) => dev::run(args, &asked, &directory).await,
        Command::Install(args) => style::unless_interrupted(install::run(args, &asked, &directory)).await,
        Command::Remove(args) => style::unless_interrupted(remove::run(args, &asked, &directory)).await,
        Command::Serve(_) if record.is_some() => serve(&open_for_session(open).await?, record).await,
        Command::Serve(_) => serve(&open()?, record).await,
        Command::SharedHost => attach::host(Arc::clone(&environment)).await,
        Command::Status(args) => shared::status(args, &environment),
        Command::Stop => shared::ask("stop", &environment),
        Command::Drain => shared::ask("drain", &environment),
        Command::List(args) => Ok(list::run(&open()?, args).await),
        Command::Show(args) => show::run(&open()?, args).await,
        Command::Call(args) => call::run(&open()?, args).await,
        Command::Warm(args) => warm::run(&open()?, args).await,
        Command::Doctor(args) => Ok(doctor::run(&open()?, args).await),
    }
}

/// Opens the workspace, starts the log, reports what is wrong with the configuration, and asks executables what they are.
fn open(options: &Options, asked: &ConfigOptions, directory: &Path) -> Result<Workspace, Refusal> {
    let app = Workspace::open(asked, directory)?;
    telemetry::start(options.log_level(&app.config().log.value));
    app.warnings().iter().for_each(|warning| style::warn(warning));
    app.ask();
    Ok(app)
}

/// The same for a session that a killed hostler left: its client goes on once the configuration is valid.
async fn open_for_session(open: impl Fn() -> Result<Workspace, Refusal>) -> Result<Workspace, Refusal> {
    let mut is_said = false;
    loop {
        match open() {
            Err(refusal) if !attach::is_client_gone() => {
                if !std::mem::replace(&mut is_said, true) {
                    style::warn(&format!("this session goes on once this is corrected: {}", refusal.what));
                }
                tokio::time::sleep(LOOK).await;
            }
            opened => return opened,
        }
    }
}

async fn serve(app: &Workspace, record: Option<OwnedFd>) -> Result<ExitCode, Refusal> {
    let signals = style::signals()?;
    if let Some(remedy) = app.calls.registry.catalogue().remedy() {
        style::warn(&format!("no tools found: {remedy}"));
    }
    app.calls.registry.introduce();
    status::on_signal(&app.calls);
    let watching = app.watch();
    let calls = Arc::clone(&app.calls);
    let trimming = tokio::spawn(keep_trimmed(move || Arc::clone(&calls).next_end()));
    let record = record.map(mcp::Record::of).transpose();
    let record = record.map_err(|error| Refusal::system("cannot continue the session", error))?;
    let streams = mcp::Stdio::open(&app.config().environment)
        .map_err(|error| Refusal::system("cannot open standard input and output", error))?;
    mcp::Client::new(Arc::clone(&app.calls), streams, record).serve(signals).await;
    trimming.abort();
    drop(watching);
    app.calls.registry.saved();
    Ok(ExitCode::SUCCESS)
}
