//! One connection to the shared hostler: a session of an attached process, or a control connection.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, geteuid};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::descriptors::receive;
use super::message::{self, ATTACH, Attach, Attached, BEGIN, ENDED, Line, Over, PROTOCOL, Refusal, SIGNAL, Signalled};
use super::session_log::SessionLog;
use crate::config::{Config, ConfigOptions};
use crate::control::Control;
use crate::mcp::{self, Record, Stdio};
use crate::process::{Outbox, Peer, SignalRelay, Signals, is_below_us, signal_name};
use crate::runtime::{OpenSession, Workspace};
use crate::telemetry::Audience;
use crate::threads::blocking;

/// The longest first line: an environment may be large.
const LONGEST: usize = 4 << 20;
/// How long the first line may take.
const FIRST_LINE: Duration = Duration::from_secs(10);
/// JSON-RPC's code for an error of the server's own.
const REFUSED: i32 = -32000;
/// How long an attached process may take to read its last lines.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Serves a connection to its end.
pub async fn serve(stream: UnixStream, control: &Arc<Control>) -> io::Result<()> {
    let peer = Peer::of(&stream)?;
    if peer.user != geteuid().as_raw() {
        return Err(io::Error::other("a process of another user"));
    }
    let mut link = Link { stream, bytes: Vec::new(), files: Vec::new() };
    let first = timeout(FIRST_LINE, link.next_line()).await.map_err(|_| io::ErrorKind::TimedOut)?;
    let Some(first) = first? else { return Ok(()) };
    let read: Line<'_> = serde_json::from_slice(&first).map_err(io::Error::other)?;
    let is_attach = read.method.as_deref() == Some(ATTACH);
    if let Err(refusal) = admit(&peer) {
        link.send(&message::response(1, Err::<&Attached, _>(&refusal))).await?;
        return Err(io::Error::other(refusal.message));
    }
    if !is_attach {
        let Link { stream, mut bytes, .. } = link;
        let mut lines = first;
        lines.append(&mut bytes);
        return control.serve(stream, lines).await;
    }
    let asked = read.params.map(|params| serde_json::from_str::<Attach>(params.get())).transpose();
    let asked = asked.ok().flatten().ok_or_else(|| io::Error::other("parameters that cannot be read"))?;
    attach(link, asked, peer.pid, control).await
}

/// Whether a process may be served. Its user was compared before.
fn admit(peer: &Peer) -> Result<(), Refusal> {
    let refuse = |message: String| Err(Refusal { code: REFUSED, message });
    if is_below_us(peer.pid) {
        return refuse("the process was started by this hostler".to_owned());
    }
    match peer.difference() {
        Ok(None) => Ok(()),
        Ok(Some(fact)) => refuse(format!("the process is confined otherwise than this hostler ({fact})")),
        Err(error) => refuse(format!("what the process may reach cannot be seen: {error}")),
    }
}

/// A connection whose first lines are read here.
struct Link {
    stream: UnixStream,
    bytes: Vec<u8>,
    files: Vec<OwnedFd>,
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

    async fn send(&mut self, line: &[u8]) -> io::Result<()> {
        tokio::io::AsyncWriteExt::write_all(&mut self.stream, line).await
    }
}

/// Serves the client of an attached process.
async fn attach(mut peer: Link, asked: Attach, pid: Pid, control: &Arc<Control>) -> io::Result<()> {
    let refuse = |message: String| Refusal { code: REFUSED, message };
    let log = Arc::<SessionLog>::default();
    let opened = open(&mut peer, asked, control, &log).await;
    let (app, streams, audience) = match opened {
        Ok(opened) => opened,
        Err(message) => {
            peer.send(&message::response(1, Err::<&Attached, _>(&refuse(message)))).await?;
            return Ok(());
        }
    };
    if control.is_over() {
        return Ok(());
    }
    let number = app.session.unwrap_or_default();
    peer.send(&message::response(1, Ok(&Attached { session: number, pid: std::process::id() }))).await?;
    // Until it says so, it may have given up and serve the client itself.
    match timeout(FIRST_LINE, peer.next_line()).await {
        Ok(Ok(Some(line))) if is(&line, BEGIN) => {}
        _ => return Ok(()),
    }
    if control.is_over() {
        // It ends: the attached process looks for the next one.
        return Ok(());
    }
    let Streams { input, output, record } = streams;
    let streams = Stdio::of(input.as_fd(), output.as_fd())?;
    drop((input, output));
    let (relay, signals) = Signals::relayed();
    let Link { stream, bytes, .. } = peer;
    let (reader, writer) = stream.into_split();
    let outbox = Outbox::new(Box::new(writer));
    let client = mcp::Client::new(Arc::clone(&app.calls), streams, Some(record));
    let session = OpenSession {
        pid: pid.as_raw_pid().unsigned_abs(),
        service: Arc::clone(&app.calls),
        view: client.view(),
        relay: relay.clone(),
        since: Instant::now(),
    };
    log.open(outbox.clone());
    let present = control.runtime().sessions.enter(number, session);
    let hearing = tokio::spawn(hear(reader, bytes, relay));
    for text in warnings(&app) {
        audience.tell(&text);
    }
    audience.of(run(&app, client, signals)).await;
    hearing.abort();
    log.close();
    outbox.send(&message::notification(ENDED, Over { status: 0 }));
    let _ = timeout(LAST_WORDS, outbox.caught_up()).await;
    drop(present);
    tracing::info!(session = number, "session closed");
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

/// The workspace of a session, and its client's streams.
async fn open(
    link: &mut Link,
    asked: Attach,
    control: &Control,
    log: &Arc<SessionLog>,
) -> Result<(Workspace, Streams, Audience), String> {
    if asked.protocol != PROTOCOL || asked.build != control.about().build {
        return Err(format!("the shared hostler is another build ({})", control.about().build));
    }
    let files: [OwnedFd; 3] =
        std::mem::take(&mut link.files).try_into().map_err(|_| "two streams and a record were expected".to_owned())?;
    let [input, output, record] = files;
    let record = Record::of(record).map_err(|error| error.to_string())?;
    if control.is_draining() {
        return Err("the shared hostler ends".to_owned());
    }
    let variables = asked.variables.into_iter().map(|(name, value)| (name.0, value.0));
    // Clients differ in it, and nothing that is started for a session has a terminal.
    let variables = variables.filter(|(name, _)| name != "TERM");
    let options = ConfigOptions {
        config: asked.config.map(Into::into),
        tools: asked.tools.into_iter().map(Into::into).collect(),
        timeout: None,
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
        let audience = log.audience(asked.verbose, &config.log.value);
        let tools = crate::builtin::Builtins::of(&config);
        let app = audience.hear(|| Workspace::build_in(runtime, config, tools, Vec::new()));
        Ok((app, audience))
    });
    let opened: Result<(Workspace, Audience), crate::config::ConfigError> =
        opening.map_err(|error| error.to_string())?.await;
    // Alone, it says what is wrong in its own words.
    let (app, audience) = opened.map_err(|error| error.to_string())?;
    Ok((app, Streams { input, output, record }, audience))
}

/// What is wrong with a session's tools and configuration, for its standard error.
fn warnings(app: &Workspace) -> Vec<String> {
    let nothing = app.calls.registry.catalogue().remedy().map(|remedy| format!("no tools found: {remedy}"));
    app.warnings().into_iter().chain(nothing).map(|text| format!("warning: {text}\n")).collect()
}

/// Serves a client until it is gone.
async fn run(app: &Workspace, client: mcp::Client, signals: Signals) {
    app.ask();
    app.calls.registry.introduce();
    let watching = app.watch();
    client.serve(signals).await;
    drop(watching);
    app.calls.registry.saved();
}

/// Passes on what the attached process says. When it is gone, so is its client.
async fn hear(reader: tokio::net::unix::OwnedReadHalf, bytes: Vec<u8>, relay: SignalRelay) {
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

    let mut lines = BufReader::new(std::io::Cursor::new(bytes).chain(reader)).take(LONGEST as u64);
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
