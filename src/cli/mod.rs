//! The command line. Standard output carries answers, standard error everything else.

mod approve;
mod arguments;
mod ask;
mod audit;
mod attach;
mod builtin;
mod call;
mod calls;
mod check;
mod complete;
mod dev;
mod doctor;
mod events;
mod http;
mod install;
mod kept_calls;
mod list;
mod logs;
mod mode;
mod new;
mod options;
mod policy;
mod prune;
mod remove;
mod replay;
mod replay_test;
mod rpc;
mod sandbox;
mod secrets;
mod shared;
mod show;
mod status;
mod style;
mod top;
mod warm;

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{CommandFactory, Parser};
use tokio::task::JoinHandle;

use crate::config::{ConfigOptions, Environment};
use crate::journal::Claim;
use crate::mcp;
use crate::process::{self, keep_trimmed, keeper};
use crate::runtime::Workspace;
use crate::shared::{Opened, reach_key};
use crate::telemetry;
use options::{Command, Options, SandboxOf, Sandboxing, Serve, ToolCommand};
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
    let [die_at, sabotage, stop_at] =
        ["HOSTLER_DIE_AT", "HOSTLER_SABOTAGE", "HOSTLER_STOP_AT"].map(|name| environment.text(name));
    process::arm(die_at, sabotage, stop_at);
    process::survive_notices();
    process::is_hostler();
    // A shell that asks for completions gets them and nothing else.
    clap_complete::CompleteEnv::with_factory(Options::command).complete();
    let mut options =
        Options::try_parse_from(builtin::words(std::env::args_os())).unwrap_or_else(|error| options::refuse(&error));
    if let Some(limit) = process::too_few_files() {
        return style::complain(style::SYSTEM, &limit.to_string());
    }
    if let Command::Builtin(args) = &options.command
        && args.in_sandbox
    {
        return answered(in_runtime(builtin::in_sandbox(environment)).unwrap_or_else(|refusal| refusal.complain()));
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
    if let Some(input) = options.command.input()
        && let Err(refusal) = arguments::read_input(input)
    {
        return refusal.complain();
    }
    if let Command::Call(args) = &options.command
        && args.background
    {
        let done = attach::session_for_background(&options, &environment).map(|opened| by_shared(opened, &options));
        return answered(done.unwrap_or_else(|refusal| Some(refusal.complain())).unwrap_or(ExitCode::FAILURE));
    }
    if let Some(opened) = attach::session(&options, &environment)
        && let Some(code) = by_shared(opened, &options)
    {
        return answered(code);
    }
    let claim = claim(&options.command, &environment);
    // While there is only one thread: from here on, this is the keeper's child process.
    if options.command.starts_processes()
        && let Err(error) = keeper::start(PATIENCE)
    {
        style::warn(&format!("if hostler is killed, its processes may survive: {error}"));
    }
    let done = in_runtime(run(options, Arc::new(environment), record, claim));
    let code = done.unwrap_or_else(|refusal| refusal.complain());
    telemetry::flush_spans();
    keeper::finish();
    telemetry::flush(LAST_WORDS);
    answered(code)
}

fn answered(code: ExitCode) -> ExitCode {
    if style::answer_was_lost() { ExitCode::from(style::SYSTEM) } else { code }
}

fn in_runtime<T>(work: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
    // One thread: a call passes through several tasks, and handing it between threads costs more than the work.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Refusal::system("cannot start", error))?;
    let done = runtime.block_on(work);
    // A thread that is blocked reading a terminal is not waited for.
    runtime.shutdown_background();
    done
}

/// Does a command's work by the shared hostler; `None` if that ended too early, and this process has to do it.
fn by_shared(opened: Opened, options: &Options) -> Option<ExitCode> {
    let done = in_runtime(async {
        match &options.command {
            Command::Call(args) => call::by_shared(opened, args).await,
            Command::List(args) => Ok(list::by_shared(opened, args).await),
            Command::Rpc(args) => rpc::by_shared(opened, args).await.map(Some),
            _ => Ok(None),
        }
    });
    done.unwrap_or_else(|refusal| Some(refusal.complain()))
}

/// The spool of a process that serves. Its keeper has to hold it as well, so it is taken before there is one.
fn claim(command: &Command, environment: &Environment) -> Option<Claim> {
    let is_remembered = match command {
        Command::Serve(_) | Command::SharedHost => true,
        // A call that runs by itself and is not to be made twice.
        Command::Call(args) => args.key.is_some(),
        _ => false,
    };
    if !is_remembered {
        return None;
    }
    let key = reach_key().unwrap_or_else(|_| "any".to_owned());
    Claim::take(environment, &key).map_err(|error| style::warn(&format!("calls are not written down: {error}"))).ok()
}

async fn run(
    options: Options,
    environment: Arc<Environment>,
    record: Option<OwnedFd>,
    claim: Option<Claim>,
) -> Result<ExitCode, Refusal> {
    let asked = options.wanted(&environment);
    if keeper::is_kept() && !matches!(options.command, Command::SharedHost) {
        Workspace::tidy();
    }
    let directory = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    // Some commands must work without a valid configuration.
    let claim = Cell::new(claim);
    let open = || open(&options, &asked, &directory, || claim.take());
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
        Command::Serve(args) if args.rpc => rpc::serve(&open()?).await,
        Command::Serve(Serve { http: Some(address), .. }) => http::serve(&open()?, *address).await,
        Command::Serve(_) => serve(&open()?, record).await,
        Command::Rpc(args) => rpc::run(args, &environment, open).await,
        Command::SharedHost => attach::host(Arc::clone(&environment), claim.take()).await,
        Command::Status(args) | Command::Tool(ToolCommand::Status(args)) => shared::status(args, &environment),
        Command::Calls(args) => calls::run(args, &environment),
        Command::Replay(args) => {
            let open = |wanted: &ConfigOptions, folder: &Path| self::open(&options, wanted, folder, || None);
            replay::run(args, &environment, &asked, &directory, open).await
        }
        Command::Approve(args) => approve::run(args, &environment),
        Command::Audit(args) => audit::run(args, &asked),
        Command::Mode(args) => mode::run(args, &asked, &directory),
        Command::Secrets(args) => secrets::run(&open()?, args).await,
        Command::Policy(args) => policy::run(&open()?, args, &directory).await,
        Command::Token(args) => http::token(args, &environment),
        Command::Logs(args) => logs::run(args, &environment),
        Command::Top => top::run(&environment).await,
        Command::Open(args) => shared::open_page(args, &environment),
        Command::Stop => shared::ask("stop", &environment),
        Command::Drain => shared::ask("drain", &environment),
        Command::List(args) => Ok(list::run(&open()?, args).await),
        Command::Show(args) => show::run(&open()?, args).await,
        Command::Call(args) => call::run(&open()?, args).await,
        Command::Sandbox(Sandboxing { what: SandboxOf::Learn(args) }) => {
            sandbox::run(args, &asked, &directory, |app| begin(app, &options)).await
        }
        Command::Warm(args) => warm::run(&open()?, args).await,
        Command::Doctor(args) => Ok(doctor::run(&open()?, args).await),
    }
}

/// Opens the workspace, starts the log, reports what is wrong with the configuration, and asks executables what they are.
fn open(
    options: &Options,
    asked: &ConfigOptions,
    directory: &Path,
    claim: impl FnOnce() -> Option<Claim>,
) -> Result<Workspace, Refusal> {
    let app = Workspace::open_journaled(asked, directory, claim)?;
    begin(&app, options);
    Ok(app)
}

/// What every workspace of a command begins with.
fn begin(app: &Workspace, options: &Options) {
    telemetry::start(options.log_level(&app.config().log.value), app.config().log_format);
    app.warnings().iter().for_each(|warning| style::warn(warning));
    app.ask();
    app.runtime().background.run_with(Arc::clone(&app.config().environment));
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
    app.runtime().recover();
    let watching = app.watch();
    let calls = Arc::clone(&app.calls);
    let trimming = tokio::spawn(keep_trimmed(move || Arc::clone(&calls).next_end()));
    let record = record.map(mcp::Record::of).transpose();
    let record = record.map_err(|error| Refusal::system("cannot continue the session", error))?;
    let streams = mcp::Stdio::open(&app.config().environment)
        .map_err(|error| Refusal::system("cannot open standard input and output", error))?;
    let http = http::beside(app, &http::control_of(app)?);
    mcp::Client::new(Arc::clone(&app.calls), streams, record).serve(signals).await;
    http.inspect(JoinHandle::abort);
    trimming.abort();
    drop(watching);
    app.calls.registry.saved();
    app.runtime().end_journal().await;
    Ok(ExitCode::SUCCESS)
}
