//! `hostler rpc` and `hostler serve --rpc`: the control face for scripts and programs.

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::io::BufReader;
use tokio::task::JoinHandle;

use super::call::Feedback;
use super::options::Rpc;
use super::style::{self, Refusal};
use crate::call::Session;
use crate::config::Environment;
use crate::control::{AtEnd, Client, Control, document, names, needs_session};
use crate::mcp;
use crate::outcome::{Cancelled, Canceller};
use crate::process::{Outbox, Signals, keep_trimmed};
use crate::runtime::{OpenSession, Workspace};
use crate::shared::{CommandSession, Opened, Unanswered};

/// The method whose answer is followed by events, which are printed one a line until the program is interrupted.
const SUBSCRIBE: &str = "events.subscribe";

/// What a stream within this process holds.
const WITHIN: usize = 1 << 16;

impl Rpc {
    /// Whether the method works in a session.
    pub fn needs_session(&self) -> bool {
        self.method.as_deref().and_then(needs_session).unwrap_or(false)
    }

    fn params(&self) -> Result<Value, Refusal> {
        let text = match self.params.as_deref() {
            None => return Ok(json!({})),
            Some("-") => {
                let mut text = String::new();
                let read = std::io::stdin().read_to_string(&mut text);
                read.map_err(|error| Refusal::system("standard input cannot be read", error))?;
                text
            }
            Some(text) => text.to_owned(),
        };
        let read: Value = serde_json::from_str(&text)
            .map_err(|error| Refusal::new(format!("the parameters are not JSON: {error}"), "write an object"))?;
        if read.is_object() || read.is_array() {
            return Ok(read);
        }
        Err(Refusal::new("the parameters must be an object or an array", ""))
    }
}

/// `hostler rpc`, without a session of a shared hostler.
pub(super) async fn run(
    args: &Rpc,
    environment: &Environment,
    open: impl Fn() -> Result<Workspace, Refusal>,
) -> Result<ExitCode, Refusal> {
    let Some(method) = args.method.as_deref() else {
        style::answer_json(&document());
        return Ok(ExitCode::SUCCESS);
    };
    let Some(needs_session) = needs_session(method) else { return Err(unknown(method)) };
    let params = args.params()?;
    if !needs_session {
        let Some(mut connection) = super::shared::own(environment)? else {
            return Err(Refusal::not_found("no shared hostler is running", "a client's `hostler serve` starts one"));
        };
        if method == SUBSCRIBE {
            connection.subscribe(&params).map_err(super::shared::refusal)?;
            let heard = connection.events(Some(rustix::stdio::stdout()), |event| style::part(&format!("{event}\n")));
            return heard.map(|()| ExitCode::SUCCESS).map_err(super::shared::refusal);
        }
        let answer = connection.call::<Value>(method, &params).map_err(super::shared::refusal)?;
        style::answer_json(&answer);
        return Ok(ExitCode::SUCCESS);
    }
    let app = open()?;
    let signals = style::signals()?;
    let (near, far) = tokio::io::duplex(WITHIN);
    let (reader, writer) = tokio::io::split(far);
    let served = Served::of(&app, Outbox::new(Box::new(writer)))?;
    let lines = BufReader::new(reader);
    let serving = served.client.serve(lines, AtEnd::Cancel, std::future::pending());
    let (reader, writer) = tokio::io::split(near);
    let mut session = CommandSession::over(BufReader::new(reader), writer);
    let code = tokio::select! {
        code = ask(&mut session, method, params) => code,
        name = signals.first() => Err(Refusal::cancelled(format!("CANCELLED: interrupted by {name}"))),
        _ = serving => Err(Refusal::new("the method was not answered", "")),
    };
    app.close_hearing(&signals).await;
    code
}

/// The same by the shared hostler.
pub(super) async fn by_shared(opened: Opened, args: &Rpc) -> Result<ExitCode, Refusal> {
    let (method, params) = (args.method.as_deref().unwrap_or_default(), args.params()?);
    let signals = style::signals()?;
    let mut session =
        CommandSession::of(opened).map_err(|error| Refusal::system("the shared hostler did not answer", error))?;
    tokio::select! {
        code = ask(&mut session, method, params) => code,
        name = signals.first() => Err(Refusal::cancelled(format!("CANCELLED: interrupted by {name}"))),
    }
}

/// Prints the result of a method. Events of a call are shown as `hostler call` shows them.
async fn ask(session: &mut CommandSession, method: &str, params: Value) -> Result<ExitCode, Refusal> {
    let feedback = Feedback::new();
    let answer = session.ask(method, params, &feedback).await;
    feedback.end();
    match answer {
        Ok(result) => {
            let value: Value = serde_json::from_str(result.get()).unwrap_or_default();
            style::answer_json(&value);
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => Err(unanswered(why)),
    }
}

pub(super) fn unanswered(why: Unanswered) -> Refusal {
    match why {
        Unanswered::Lost(error) => Refusal::system("the method was not answered", error),
        Unanswered::Refused(refusal) => super::shared::refused(refusal),
    }
}

fn unknown(method: &str) -> Refusal {
    let known = names();
    let near = crate::config::section::nearest(method, known.iter().map(String::as_str));
    let advice = match near {
        Some(near) => format!("did you mean {near}?"),
        None => "`hostler rpc --openrpc` has all methods".to_owned(),
    };
    Refusal::not_found(format!("there is no method {method}"), advice)
}

/// The control face of this process.
struct Served {
    control: Arc<Control>,
    client: Arc<Client>,
    outbox: Outbox,
}

impl Served {
    fn of(app: &Workspace, outbox: Outbox) -> Result<Self, Refusal> {
        let control = super::http::control_of(app)?;
        let session = Session::open(Arc::clone(&app.calls));
        let client = Client::on_lines(&control, Some(session), outbox.clone());
        Ok(Self { control, client, outbox })
    }
}

/// `hostler serve --rpc`
pub(super) async fn serve(app: &Workspace) -> Result<ExitCode, Refusal> {
    let signals = style::signals()?;
    if let Some(remedy) = app.calls.registry.catalogue().remedy() {
        style::warn(&format!("no tools found: {remedy}"));
    }
    app.calls.registry.introduce();
    super::status::on_signal(&app.calls);
    app.runtime().recover();
    let watching = app.watch();
    let calls = Arc::clone(&app.calls);
    let trimming = tokio::spawn(keep_trimmed(move || Arc::clone(&calls).next_end()));
    let streams = mcp::Stdio::open(&app.config().environment)
        .map_err(|error| Refusal::system("cannot open standard input and output", error))?;
    let Served { control, client, outbox } = Served::of(app, Outbox::new(streams.output))?;
    let http = super::http::beside(app, &control);
    let (relay, ended) = Signals::relayed();
    let present = app.runtime().sessions.accept(ONLY);
    present.begin(OpenSession {
        pid: std::process::id(),
        service: Arc::clone(&app.calls),
        view: Box::new(client.view()),
        relay,
        since: Instant::now(),
    });
    let ending = async {
        tokio::select! {
            _ = signals.first() => Cancelled::by(Canceller::SessionEnd),
            _ = ended.first() => Cancelled::by(Canceller::SessionEnd),
            _ = control.wished() => Cancelled::by(Canceller::SessionEnd),
            () = streams.far_end.closed() => Cancelled::by(Canceller::ClientGone),
        }
    };
    let served = client.serve(BufReader::new(streams.input), AtEnd::Finish, ending).await;
    served.map_err(|error| Refusal::system("standard input cannot be read", error))?;
    tokio::select! {
        () = outbox.caught_up() => {}
        () = streams.far_end.closed() => {}
        _ = signals.second() => {}
    }
    http.inspect(JoinHandle::abort);
    trimming.abort();
    drop((watching, present));
    app.calls.registry.saved();
    app.close_hearing(&signals).await;
    app.runtime().end_journal().await;
    Ok(ExitCode::SUCCESS)
}

/// The number of the session of a process that serves one.
const ONLY: u64 = 1;
