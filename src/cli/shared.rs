//! `hostler status`, `stop` and `drain`: the person's shared hostler. None of them starts one.

use std::fmt::Write;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};

use super::options::{Open, Status as StatusArgs};
use super::status::usage_line;
use super::style::{self, Refusal};
use crate::call::ToolMetrics;
use crate::config::Environment;
use crate::control::{self, Connection, ControlError, Status};
use crate::outcome::Code;
use crate::runtime::SessionInfo;
use crate::shared::{Place, find, own_key};
use crate::words::plural;

/// How often `--watch` looks.
const LOOK: Duration = Duration::from_secs(1);
/// The most characters of a client's name in a table: what follows is to be seen, too.
pub(super) const CLIENT: usize = 20;

/// `hostler status`
pub(super) fn status(args: &StatusArgs, environment: &Environment) -> Result<ExitCode, Refusal> {
    loop {
        let found = own(environment)?;
        let status = found.map(|mut connection| connection.call::<Value>("status", &json!({}))).transpose();
        let status = status.map_err(refusal)?;
        if args.watch && !args.json {
            style::clear();
        }
        let code = report(args, status, environment);
        if !args.watch {
            return Ok(code);
        }
        std::thread::sleep(LOOK);
        if !style::is_read() {
            return Ok(code);
        }
    }
}

fn report(args: &StatusArgs, status: Option<Value>, environment: &Environment) -> ExitCode {
    let others = others(environment, status.as_ref());
    match status {
        Some(status) if args.json => {
            style::answer_json(&status);
            ExitCode::SUCCESS
        }
        None if args.json => {
            style::answer_json(&json!({"running": false}));
            ExitCode::FAILURE
        }
        Some(status) => {
            match serde_json::from_value::<Status>(status) {
                Ok(status) => style::answer(&as_text(&status, &others, style::terminal_width())),
                Err(error) => style::error(&format!("the answer cannot be read: {error}")),
            }
            ExitCode::SUCCESS
        }
        None => {
            style::note("no shared hostler is running; a client's `hostler serve` starts one");
            for other in others {
                style::note(&other);
            }
            ExitCode::FAILURE
        }
    }
}

/// The status as text, or why there is none.
pub(super) fn as_said(environment: &Environment) -> String {
    let status = own(environment).and_then(|found| {
        let mut connection = found.ok_or_else(|| Refusal::new("no shared hostler is running", ""))?;
        connection.call::<Status>("status", &json!({})).map_err(refusal)
    });
    match status {
        Ok(status) => format!("{}\n", as_text(&status, &[], None)),
        Err(error) => format!("{error:?}\n"),
    }
}

/// `hostler stop` and `hostler drain`
pub(super) fn ask(method: &str, environment: &Environment) -> Result<ExitCode, Refusal> {
    let Some(mut connection) = own(environment)? else {
        style::note("no shared hostler is running");
        return Ok(ExitCode::FAILURE);
    };
    connection.call::<bool>(method, &json!({})).map_err(refusal)?;
    if method == "stop" {
        style::note("the shared hostler ends");
    } else {
        style::note("the shared hostler accepts no new session and ends with the last one");
    }
    Ok(ExitCode::SUCCESS)
}

/// `hostler open`
pub(super) fn open_page(args: &Open, environment: &Environment) -> Result<ExitCode, Refusal> {
    let Some(mut connection) = own(environment)? else {
        return Err(Refusal::not_found("no shared hostler is running", "a client's `hostler serve` starts one"));
    };
    let page: Value = connection.call("page.open", &json!({})).map_err(refusal)?;
    if args.json {
        style::answer_json(&page);
    } else {
        style::answer(page["url"].as_str().unwrap_or_default());
        style::note("open it in a browser within a minute; it is valid once");
    }
    Ok(ExitCode::SUCCESS)
}

fn failed(error: &dyn std::fmt::Display) -> Refusal {
    Refusal::system("the shared hostler cannot be reached", io::Error::other(error.to_string()))
}

/// Where the one is that this process would attach to.
pub(super) fn place(environment: &Environment) -> Result<Place, Refusal> {
    let key = own_key(environment).map_err(|error| failed(&error))?;
    Place::of(environment, &key).map_err(|error| failed(&error))
}

/// The one that this process would attach to.
pub(super) fn own(environment: &Environment) -> Result<Option<Connection>, Refusal> {
    let Some(stream) = find(&place(environment)?).map_err(|error| failed(&error))? else { return Ok(None) };
    Connection::over(stream).map(Some).map_err(|error| failed(&error))
}

pub(super) fn refusal(error: ControlError) -> Refusal {
    match error {
        ControlError::Failed(error) => Refusal::system("the shared hostler did not answer", error),
        ControlError::Refused(answer) => refused(answer),
    }
}

/// A method's error, with the exit status of its code.
pub(super) fn refused(answer: control::Refusal) -> Refusal {
    let status = match answer.data.as_ref().and_then(|data| data["code"].as_str()) {
        Some("NOT_FOUND") => Code::ToolNotFound.exit_status(),
        Some(word) => serde_json::from_value::<Code>(word.into()).map_or(style::SYSTEM, Code::exit_status),
        None => style::SYSTEM,
    };
    Refusal { status, ..Refusal::new(answer.message, "") }
}

/// Others that run: of another build, or in another sandbox.
fn others(environment: &Environment, own: Option<&Value>) -> Vec<String> {
    let own = own.and_then(|status| status["key"].as_str());
    let other = |path: std::path::PathBuf| {
        let key = path.file_stem()?.to_string_lossy().into_owned();
        let stream = UnixStream::connect(&path).ok().filter(|_| Some(key.as_str()) != own)?;
        let version = Connection::over(stream).ok()?.call::<Value>("version", &json!({}));
        Some(match version {
            Ok(version) => format!("another runs as process {}: build {}", version["pid"], version["build"]),
            Err(error) => format!("another runs at {}: {error}", path.display()),
        })
    };
    Place::sockets(environment).into_iter().filter_map(other).collect()
}

/// The status as text; its tables are cut to this width.
fn as_text(status: &Status, others: &[String], width: Option<usize>) -> String {
    let megabytes = |bytes: Option<usize>| bytes.map_or("?".to_owned(), |bytes| format!("{} MB", bytes / 1_000_000));
    let mut text = format!(
        "process {}, up {}, {}{}\n{}\nlog: {}\n",
        status.version.pid,
        time(status.up_s),
        megabytes(status.rss),
        if status.draining { "; it accepts no new session" } else { "" },
        usage_line(&status.usage),
        status.log.as_deref().unwrap_or(Path::new("standard error")).display(),
    );
    text.push('\n');
    text.push_str(&style::table(&sessions(&status.sessions), width));
    if !status.pools.is_empty() {
        text.push('\n');
        text.push_str(&style::table(&pools(status, width), width));
    }
    let (called, idle): (Vec<&ToolMetrics>, Vec<&ToolMetrics>) = status.tools.iter().partition(|tool| tool.is_called());
    if !called.is_empty() {
        text.push('\n');
        text.push_str(&style::table(&tools(&called), width));
    }
    if !idle.is_empty() {
        let were = if idle.len() == 1 { "was" } else { "were" };
        let _ = write!(text, "\n{} {were} not called", plural(idle.len(), "tool"));
    }
    for other in others {
        text.push('\n');
        text.push_str(other);
    }
    text
}

fn time(seconds: u64) -> String {
    humantime::format_duration(Duration::from_secs(seconds)).to_string()
}

fn sessions(sessions: &[SessionInfo]) -> Vec<Vec<String>> {
    let head = ["session", "client", "pid", "up", "tools", "running", "calls", "failed", "folder"].map(str::to_owned);
    let row = |session: &SessionInfo| {
        vec![
            session.session.to_string(),
            style::cut(session.client.as_deref().unwrap_or("-"), CLIENT),
            session.pid.to_string(),
            time(session.up_s),
            session.tools.to_string(),
            session.running.to_string(),
            session.calls.ended.to_string(),
            session.calls.failed.to_string(),
            session.directory.display().to_string(),
        ]
    };
    if sessions.is_empty() {
        return vec![vec!["no session is attached".to_owned()]];
    }
    std::iter::once(head.into()).chain(sessions.iter().map(row)).collect()
}

/// The pools. What follows the path of a tool file is to be seen, too: of a long one, the end tells files apart.
fn pools(status: &Status, width: Option<usize>) -> Vec<Vec<String>> {
    let head = ["tool file", "sessions", "workers", "waiting", "calls", "memory", ""].map(str::to_owned);
    let row = |pool: &crate::executor::SharedStatus| {
        let workers = &pool.pool.workers;
        let memory: usize = workers.iter().filter_map(|worker| worker.rss).sum();
        let pids: Vec<String> = workers.iter().filter_map(|worker| Some(worker.pid?.to_string())).collect();
        let users: Vec<String> = pool.sessions.iter().map(u64::to_string).collect();
        let apart = pool.apart.join(", ");
        vec![
            style::end_of(&pool.source, width.map(|width| width * 2 / 5)),
            users.join(", "),
            pids.join(", "),
            pool.pool.waiting.to_string(),
            pool.pool.calls.to_string(),
            format!("{} MB", memory / 1_000_000),
            if apart.is_empty() { String::new() } else { format!("not shared: other {apart}") },
        ]
    };
    std::iter::once(head.into()).chain(status.pools.iter().map(row)).collect()
}

fn tools(tools: &[&ToolMetrics]) -> Vec<Vec<String>> {
    let head = ["tool", "executions", "succeeded", "failed", "mean", "running", "waiting"].map(str::to_owned);
    let row = |tool: &&ToolMetrics| {
        vec![
            tool.tool.clone(),
            tool.executions.to_string(),
            tool.succeeded.to_string(),
            tool.failed.to_string(),
            tool.mean_ms.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.1} ms")),
            tool.active.to_string(),
            tool.queued.to_string(),
        ]
    };
    std::iter::once(head.into()).chain(tools.iter().map(row)).collect()
}
