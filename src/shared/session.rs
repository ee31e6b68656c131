//! One connection to the shared hostler: a session of an attached process, or a control connection.

use std::io::{self, Cursor};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, geteuid};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Chain, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::message::{
    self, ATTACH, Attach, Attached, BEGIN, ENDED, Line, OPEN, Over, PROTOCOL, Refusal, SIGNAL, Signalled,
};
use super::session_log::SessionLog;
use crate::call::Session;
use crate::config::origin::Origin;
use crate::config::tables::Limits;
use crate::config::{Config, ConfigOptions};
use crate::control::{AtEnd, Client, Control};
use crate::http::Face;
#[cfg(feature = "grpc")]
use crate::http::{Door, begins_http2, serve_grpc};
use crate::mcp::{self, ClientInfo, Record, Stdio};
use crate::outcome::{Cancelled, Canceller, Code};
use crate::pool::Usage;
use crate::process::descriptors::receive;
use crate::process::{Outbox, Peer, SignalRelay, Signals, is_below_us, signal_name};
use crate::runtime::{OpenSession, Present, Workspace};
use crate::telemetry::Audience;
use crate::threads::blocking;

/// The longest first line: an environment may be large.
const LONGEST: usize = 4 << 20;
/// How long an accepted process may take to begin its session.
const BEGINNING: Duration = Duration::from_secs(10);
/// JSON-RPC's codes: for an error of the server's own, and for two of its clients.
const REFUSED: i32 = -32000;
const INVALID_REQUEST: i32 = -32600;
const INVALID_PARAMS: i32 = -32602;
/// After this long, a program that calls tools follows changes of its configuration. Most have ended by then.
const LONG: Duration = Duration::from_secs(1);
/// How long an attached process may take to read its last lines.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Serves a connection to its end.
#[cfg_attr(not(feature = "grpc"), expect(unused_variables, reason = "it answers gRPC"))]
pub async fn serve(stream: UnixStream, control: &Arc<Control>, face: &Arc<Face>) -> io::Result<()> {
    let peer = Peer::of(&stream)?;
    if peer.user != geteuid().as_raw() {
        return Err(io::Error::other("a process of another user"));
    }
    let mut link = Link { stream, bytes: Vec::new(), files: Vec::new(), id: RawValue::NULL.to_owned() };
    let Some(first) = link.next_line().await? else { return Ok(()) };
    // Anything else than a request is answered as such, by the face.
    let read: Option<First<'_>> = serde_json::from_slice(&first).ok();
    link.id = read.as_ref().and_then(|first| first.id).unwrap_or(RawValue::NULL).to_owned();
    if let Err(refusal) = admit(&peer) {
        link.refuse(REFUSED, refusal.clone()).await?;
        return Err(io::Error::other(refusal));
    }
    #[cfg(feature = "grpc")]
    if begins_http2(&first) {
        return serve_http2(link, first, face).await;
    }
    let (method, params) = match &read {
        Some(First { method: Some(method), params, .. }) if method == ATTACH || method == OPEN => (method, params),
        _ => {
            let Link { stream, mut bytes, .. } = link;
            let mut lines = first;
            lines.append(&mut bytes);
            return steer(stream, lines, control).await;
        }
    };
    let asked = match serde_json::from_str::<Attach>(params.map_or("{}", RawValue::get)) {
        Ok(asked) => asked,
        Err(error) => return link.refuse(INVALID_PARAMS, format!("invalid parameters: {error}")).await,
    };
    if method == ATTACH {
        return attach(link, asked, peer.pid, control).await;
    }
    command(link, asked, peer.pid, control).await
}

/// Serves RPCs, with the tools that HTTP has.
#[cfg(feature = "grpc")]
async fn serve_http2(link: Link, mut first: Vec<u8>, face: &Arc<Face>) -> io::Result<()> {
    let Link { stream, mut bytes, .. } = link;
    first.append(&mut bytes);
    let (reader, writer) = stream.into_split();
    let stream = tokio::io::join(Cursor::new(first).chain(reader), writer);
    serve_grpc(stream, Door::Socket(Arc::clone(face))).await.map_err(io::Error::other)
}

/// What a connection asks for first. The id is of any type.
#[derive(Deserialize)]
struct First<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// Whether a process may be served. Its user was compared before.
fn admit(peer: &Peer) -> Result<(), String> {
    if is_below_us(peer.pid) {
        return Err("the process was started by this hostler".to_owned());
    }
    match peer.difference() {
        Ok(None) => Ok(()),
        Ok(Some(fact)) => Err(format!("the process is confined otherwise than this hostler ({fact})")),
        Err(error) => Err(format!("what the process may reach cannot be seen: {error}")),
    }
}

/// A connection whose first lines are read here.
struct Link {
    stream: UnixStream,
    bytes: Vec<u8>,
    files: Vec<OwnedFd>,
    /// The id of the request for a session.
    id: Box<RawValue>,
}

impl Link {
    /// The next line with its newline; `None` at the end.
    async fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
                return Ok(Some(self.bytes.drain(..=end).collect()));
            }
            if self.bytes.len() > LONGEST {
                return Err(io::Error::other("a line that is too long"));
            }
            self.stream.readable().await?;
            let mut part = [0; 16 << 10];
            let received = self.stream.try_io(Interest::READABLE, || receive(self.stream.as_fd(), &mut part));
            match received {
                Ok((0, _)) => return Ok(None),
                Ok((count, files)) => {
                    self.bytes.extend_from_slice(&part[..count]);
                    self.files.extend(files);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn refuse(&mut self, code: i32, message: String) -> io::Result<()> {
        let data = (code == INVALID_PARAMS).then(|| json!({"code": Code::InvalidParams.word()}));
        let refusal = Refusal { code, message, data };
        self.send(&message::response(&self.id, Err::<&Attached, _>(&refusal))).await
    }

    async fn send(&mut self, line: &[u8]) -> io::Result<()> {
        tokio::io::AsyncWriteExt::write_all(&mut self.stream, line).await
    }
}

/// What comes from the process of a session.
type Lines = BufReader<Chain<Cursor<Vec<u8>>, OwnedReadHalf>>;

/// A session that was accepted, and that its process waits for.
struct Accepted {
    app: Workspace,
    audience: Audience,
    log: Arc<SessionLog>,
    outbox: Outbox,
    pid: Pid,
    present: Present,
}

/// Opens a session, if this hostler serves such a one; `None` if not, or if its process no longer waits for it.
async fn accept(
    mut peer: Link,
    asked: Attach,
    pid: Pid,
    control: &Arc<Control>,
) -> io::Result<Option<(Accepted, Lines)>> {
    let log = Arc::<SessionLog>::default();
    let (app, audience) = match open(asked, control, &log).await {
        Ok(opened) => opened,
        Err(message) => return peer.refuse(REFUSED, message).await.map(|()| None),
    };
    if control.is_over() {
        return Ok(None);
    }
    let session = app.session.unwrap_or_default();
    // Nothing is awaited since that was asked: with one that was accepted, it does not end for want of sessions.
    let present = control.runtime().sessions.accept(session);
    let accepted = message::response(&peer.id, Ok(&Attached { session, pid: std::process::id() }));
    peer.send(&accepted).await?;
    // Until it says so, it may have given up and serve the client itself.
    match timeout(BEGINNING, peer.next_line()).await {
        Ok(Ok(Some(line))) if is(&line, BEGIN) => {}
        Ok(Ok(Some(line))) => {
            let read: Option<First<'_>> = serde_json::from_slice(&line).ok();
            peer.id = read.and_then(|line| line.id).unwrap_or(RawValue::NULL).to_owned();
            let message = format!("expected the notification `{BEGIN}` after the answer to `{OPEN}`");
            return peer.refuse(INVALID_REQUEST, message).await.map(|()| None);
        }
        _ => return Ok(None),
    }
    if control.is_over() {
        // It ends: the attached process looks for the next one.
        return Ok(None);
    }
    let Link { stream, bytes, .. } = peer;
    let (reader, writer) = stream.into_split();
    let outbox = Outbox::new(Box::new(writer));
    let lines = BufReader::new(Cursor::new(bytes).chain(reader));
    Ok(Some((Accepted { app, audience, log, outbox, pid, present }, lines)))
}

impl Accepted {
    /// Serves it to its end, as one of this hostler's sessions.
    async fn run(
        self,
        relay: SignalRelay,
        view: impl Fn() -> Option<ClientInfo> + Send + 'static,
        serve: impl AsyncFnOnce(&Workspace),
    ) {
        let Self { app, audience, log, outbox, pid, present } = self;
        let session = OpenSession {
            pid: pid.as_raw_pid().unsigned_abs(),
            service: Arc::clone(&app.calls),
            view: Box::new(view),
            relay,
            since: Instant::now(),
        };
        log.open(outbox.clone());
        let number = app.session.unwrap_or_default();
        present.begin(session);
        let warnings = app.warnings().into_iter();
        let limits = ignored_limits(&app.config().limits, &app.runtime().pools.broker.usage());
        for text in warnings.chain(limits) {
            audience.tell(&format!("warning: {text}\n"));
        }
        let served = async {
            app.ask();
            serve(&app).await;
            app.calls.registry.saved();
        };
        audience.of(served).await;
        log.close();
        outbox.send(&message::notification(ENDED, Over { status: 0 }));
        let _ = timeout(LAST_WORDS, outbox.caught_up()).await;
        drop(present);
        tracing::info!(session = number, "session closed");
    }
}

/// Serves the client of an attached process.
async fn attach(mut link: Link, asked: Attach, pid: Pid, control: &Arc<Control>) -> io::Result<()> {
    let Streams { input, output, record } = match Streams::of(std::mem::take(&mut link.files)) {
        Ok(streams) => streams,
        Err(message) => return link.refuse(REFUSED, message).await,
    };
    let Some((accepted, lines)) = accept(link, asked, pid, control).await? else { return Ok(()) };
    let streams = Stdio::of(input.as_fd(), output.as_fd())?;
    drop((input, output));
    let (relay, signals) = Signals::relayed();
    let client = mcp::Client::new(Arc::clone(&accepted.app.calls), streams, Some(record));
    let view = client.view();
    let hearing = tokio::spawn(hear(lines, relay.clone()));
    let audience = accepted.audience.clone();
    let serve = async |app: &Workspace| {
        if let Some(remedy) = app.calls.registry.catalogue().remedy() {
            audience.tell(&format!("warning: no tools found: {remedy}\n"));
        }
        app.calls.registry.introduce();
        let watching = app.watch();
        client.serve(signals).await;
        drop(watching);
    };
    accepted.run(relay, move || view.info(), serve).await;
    hearing.abort();
    Ok(())
}

/// Serves a connection without a session. `first` was read already.
async fn steer(stream: UnixStream, first: Vec<u8>, control: &Arc<Control>) -> io::Result<()> {
    let (reader, writer) = stream.into_split();
    let outbox = Outbox::new(Box::new(writer));
    let client = Client::on_lines(control, None, outbox.clone());
    let lines = BufReader::new(Cursor::new(first).chain(reader));
    client.serve(lines, AtEnd::Finish, std::future::pending()).await?;
    let _ = timeout(LAST_WORDS, outbox.caught_up()).await;
    Ok(())
}

/// Serves a program that calls tools over the control socket: `hostler call`, `hostler list`, or another.
async fn command(link: Link, asked: Attach, pid: Pid, control: &Arc<Control>) -> io::Result<()> {
    let Some((accepted, lines)) = accept(link, asked, pid, control).await? else { return Ok(()) };
    let (relay, signals) = Signals::relayed();
    let session = Session::open(Arc::clone(&accepted.app.calls));
    let client = Client::on_lines(control, Some(session), accepted.outbox.clone());
    let view = client.view();
    let ending = async {
        signals.first().await;
        Cancelled::by(Canceller::SessionEnd)
    };
    let serve = async |app: &Workspace| {
        let watching = async {
            let _watching = app.watch_later(LONG).await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            served = client.serve(lines, AtEnd::Cancel, ending) => {
                if let Err(error) = served {
                    tracing::info!(%error, "the lines of a session ended");
                }
            }
            () = watching => {}
        }
        app.calls.pools.end();
    };
    accepted.run(relay, view, serve).await;
    Ok(())
}

fn is(line: &[u8], method: &str) -> bool {
    serde_json::from_slice::<Line<'_>>(line).is_ok_and(|line| line.method.as_deref() == Some(method))
}

/// What an attached process passes.
struct Streams {
    input: OwnedFd,
    output: OwnedFd,
    record: Record,
}

impl Streams {
    fn of(files: Vec<OwnedFd>) -> Result<Self, String> {
        let files: [OwnedFd; 3] = files.try_into().map_err(|_| "two streams and a record were expected".to_owned())?;
        let [input, output, record] = files;
        let record = Record::of(record).map_err(|error| error.to_string())?;
        Ok(Self { input, output, record })
    }
}

/// The workspace of a session, and who reads its log.
async fn open(asked: Attach, control: &Control, log: &Arc<SessionLog>) -> Result<(Workspace, Audience), String> {
    let is_another = asked.protocol.is_some_and(|protocol| protocol != PROTOCOL)
        || asked.build.is_some_and(|build| build != control.about().build);
    if is_another {
        return Err(format!("the shared hostler is another build ({})", control.about().build));
    }
    if control.is_draining() {
        return Err("the shared hostler ends".to_owned());
    }
    let variables = asked.variables.into_iter().map(|(name, value)| (name.0, value.0));
    // Clients differ in it, and nothing that is started for a session has a terminal.
    let variables = variables.filter(|(name, _)| name != "TERM");
    let options = ConfigOptions {
        config: asked.config.map(Into::into),
        tools: asked.tools.into_iter().map(Into::into).collect(),
        timeout: asked.timeout_ms.map(Duration::from_millis),
        environment: Arc::new(variables.collect()),
    };
    let directory = std::path::PathBuf::from(asked.directory);
    if !directory.is_absolute() {
        return Err("the working directory of the process is not known".to_owned());
    }
    let (runtime, here, log) = (Arc::clone(control.runtime()), Handle::current(), Arc::clone(log));
    // Disks may be slow, and others are being served.
    let opening = blocking(move || {
        let _inside = here.enter();
        let config = Config::load(&options, &directory)?;
        runtime.limit_again();
        let audience = log.audience(asked.verbose, &config);
        let tools = crate::builtin::Builtins::of(&config);
        let app = audience.hear(|| Workspace::build_in(runtime, config, tools, Vec::new()));
        Ok((app, audience))
    });
    let opened: Result<(Workspace, Audience), crate::config::ConfigError> =
        opening.map_err(|error| error.to_string())?.await;
    // Alone, it says what is wrong in its own words.
    opened.map_err(|error| error.to_string())
}

/// Limits of a session's configuration that are not in force, because they are those of all sessions.
fn ignored_limits(limits: &Limits, usage: &Usage) -> Vec<String> {
    let memory = limits.max_memory.as_ref().map(|limit| ("max_memory", limit.value.0, &limit.origin, usage.max_memory));
    let counts = [
        ("max_concurrent_calls", &limits.max_concurrent_calls, usage.max_concurrent_calls),
        ("max_queue", &limits.max_queue, usage.max_queue),
        ("max_workers", &limits.max_workers, usage.max_workers),
    ];
    let counts = counts.map(|(name, set, in_force)| (name, set.value, &set.origin, Some(in_force)));
    let ignored = counts.into_iter().chain(memory).filter(|(_, set, _, in_force)| *in_force != Some(*set));
    let warning = |(name, set, origin, in_force): (&str, usize, &Origin, Option<usize>)| {
        let Origin::File(place) = origin else { return None };
        let in_force = in_force.map_or("none".to_owned(), |value| value.to_string());
        let what = format!("`limits.{name}` is {set} here and {in_force} in the shared hostler, for all sessions");
        Some(format!("{place}: {what}; set it in your own hostler.toml, or use --standalone"))
    };
    ignored.filter_map(warning).collect()
}

/// Passes on what the attached process says. When it is gone, so is its client.
async fn hear(lines: Lines, relay: SignalRelay) {
    let mut lines = lines.take(LONGEST as u64);
    let mut line = Vec::new();
    loop {
        line.clear();
        match lines.read_until(b'\n', &mut line).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => break,
        }
        let read: Result<Line<'_>, _> = serde_json::from_slice(&line);
        let signal = read.ok().filter(|line| line.method.as_deref() == Some(SIGNAL)).and_then(|line| line.params);
        if let Some(Signalled { number }) = signal.and_then(|params| serde_json::from_str(params.get()).ok()) {
            relay.end(signal_name(number));
        }
    }
    relay.end_now("the attached process is gone");
}
