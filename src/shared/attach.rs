//! The attached process: it hands its standard input and output to the shared hostler and stays as what the client may signal
//! or kill. It has one thread and no runtime.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

use super::key::{build, own_key};
use super::message::{
    self, ATTACH, Attach, Attached, BEGIN, ENDED, LOG, Line, Over, PROTOCOL, SIGNAL, Said, Signalled,
};
use super::place::Place;
use super::start::{Unshared, find_or_start};
use super::stderr::Stderr;
use crate::config::Environment;
use crate::mcp::{Record, can_be_passed};
use crate::process::descriptors::send;
use crate::process::{Peer, gains_no_privileges, is_marked, release_text};

/// How long a shared hostler may take to accept a session: it reads the configuration and the tools folders.
const ACCEPTANCE: Duration = Duration::from_secs(5);
/// The pause before one is looked for again that ended meanwhile.
const LOOK: Duration = Duration::from_millis(5);
/// How long it may take to end a session after a signal. It has 500 ms for running calls.
const FAREWELL: Duration = Duration::from_millis(950);
/// How long standard error may take to be read at the end.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// The signals that are passed on to the shared hostler.
const SIGNALS: [i32; 5] = [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1];

/// What a client was started with.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// Its standard input and output.
    pub streams: [BorrowedFd<'a>; 2],
    /// What its session depends on.
    pub start: Start<'a>,
    /// The status of the shared hostler as text, for SIGUSR1.
    pub status: fn(&Environment) -> String,
}

/// What a session depends on.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// The variables of its process.
    pub environment: &'a Environment,
    /// Its working directory.
    pub directory: &'a Path,
    /// `--config`.
    pub config: Option<&'a Path>,
    /// `--tools`.
    pub tools: &'a [std::path::PathBuf],
    /// How often `-v` was given.
    pub verbose: u8,
    /// `--timeout`.
    pub timeout: Option<Duration>,
}

impl Start<'_> {
    /// Where the shared hostler is that may serve this process.
    pub(super) fn place(&self) -> Result<Place, Unshared> {
        if is_marked(self.environment) {
            return Err(Unshared::BelowHostler);
        }
        if gains_no_privileges().map_err(Unshared::Unknown)? {
            return Err(Unshared::Confined);
        }
        let key = own_key(self.environment).map_err(Unshared::Unknown)?;
        Ok(Place::of(self.environment, &key)?)
    }

    fn request(&self, method: &str) -> Result<Vec<u8>, Unshared> {
        let variables = self.environment.iter().map(|(name, value)| (name.into(), value.into()));
        let params = Attach {
            protocol: Some(PROTOCOL),
            build: Some(build().map_err(Unshared::Unknown)?),
            directory: self.directory.into(),
            config: self.config.map(Into::into),
            tools: self.tools.iter().map(Into::into).collect(),
            verbose: self.verbose,
            timeout_ms: self.timeout.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
            variables: variables.collect(),
        };
        Ok(message::request(1, method, params))
    }
}

/// Why a client is served by a hostler of its own, and what a shared one left of its session.
#[derive(Debug)]
pub struct Alone {
    /// Why.
    pub why: Unshared,
    /// The record of the session, if it had begun.
    pub record: Option<OwnedFd>,
}

/// Serves this process's client by the shared hostler until the session is over; returns the exit status. When a shared
/// hostler is killed, the session goes on with the next one.
pub fn attach(wanted: &Wanted<'_>) -> Result<u8, Alone> {
    let mut record = None;
    serve(wanted, &mut record).map_err(|why| Alone { why, record })
}

fn serve(wanted: &Wanted<'_>, begun: &mut Option<OwnedFd>) -> Result<u8, Unshared> {
    let [stdin, stdout] = wanted.streams;
    if !can_be_passed(stdin) || !can_be_passed(stdout) {
        return Err(Unshared::Streams);
    }
    let place = wanted.start.place()?;
    let record = Record::new().and_then(Record::into_file).map_err(Unshared::Unknown)?;
    // Until here a signal ends this process, as it should.
    let mut link = link(&place, wanted, [stdin, stdout, record.as_fd()], &mut || false)?;
    let record = begun.insert(record);
    let mut signals = deliver().map_err(Unshared::Unknown)?;
    let (mut ends, mut stderr) = (Ends::default(), Stderr::default());
    loop {
        release_text();
        if let Some(status) = link.keep(&mut signals, &mut ends, &mut stderr, wanted) {
            let _ = stderr.flush(LAST_WORDS);
            return Ok(status);
        }
        if ends.is_one_too_many(Instant::now()) {
            let _ = stderr.flush(LAST_WORDS);
            return Err(Unshared::Unsteady);
        }
        stderr.add("warning: the shared hostler was killed; this session goes on with another one\n");
        let mut is_over = || ends.hear(&mut signals);
        link = match self::link(&place, wanted, [stdin, stdout, record.as_fd()], &mut is_over) {
            Ok(link) => link,
            Err(why) => {
                let _ = stderr.flush(LAST_WORDS);
                if matches!(why, Unshared::Interrupted) || is_over() {
                    return Ok(0);
                }
                return Err(why);
            }
        };
    }
}

/// A connection with a session, by a shared hostler that may be started for it. One that is ending still takes connections.
fn link(
    place: &Place,
    wanted: &Wanted<'_>,
    streams: [BorrowedFd<'_>; 3],
    is_over: &mut dyn FnMut() -> bool,
) -> Result<Link, Unshared> {
    let until = Instant::now() + ACCEPTANCE;
    loop {
        let stream = find_or_start(place, wanted.start.environment, is_over)?;
        match Link::open(stream, &wanted.start, ATTACH, &streams) {
            Err(Unshared::Broken) if is_over() => return Err(Unshared::Interrupted),
            Err(Unshared::Broken) if Instant::now() < until => std::thread::sleep(LOOK),
            opened => return opened,
        }
    }
}

/// How often the shared hostler was killed, and whether this process shall end.
#[derive(Debug, Default)]
struct Ends {
    recent: Vec<Instant>,
    /// Until when the session has to be over.
    until: Option<Instant>,
    /// Whether its status was asked for.
    is_asked: bool,
    /// Signals that were not passed on yet.
    unsent: Vec<i32>,
}

/// So many ends in so much time are no accident.
const TOO_MANY: usize = 10;
const RECENT: Duration = Duration::from_secs(10);

impl Ends {
    fn is_one_too_many(&mut self, now: Instant) -> bool {
        self.recent.retain(|end| now - *end < RECENT);
        self.recent.push(now);
        self.recent.len() > TOO_MANY
    }

    /// Takes signals that have arrived. Whether one asks for the end.
    fn hear(&mut self, signals: &mut Signals) -> bool {
        for number in signals.pending() {
            if number == SIGUSR1 {
                self.is_asked = true;
                continue;
            }
            self.until.get_or_insert_with(|| Instant::now() + FAREWELL);
            self.unsent.push(number);
        }
        self.until.is_some()
    }
}

type Signals = SignalDelivery<UnixStream, SignalOnly>;

fn deliver() -> io::Result<Signals> {
    let (read, write) = UnixStream::pair()?;
    SignalDelivery::with_pipe(read, write, SignalOnly, SIGNALS)
}

/// A connection with a session.
pub(super) struct Link {
    pub stream: UnixStream,
    /// What was read and not used.
    pub lines: Vec<u8>,
}

impl Link {
    /// Asks for a session.
    pub fn open(
        stream: UnixStream,
        start: &Start<'_>,
        method: &str,
        files: &[BorrowedFd<'_>],
    ) -> Result<Self, Unshared> {
        let broken = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock => Unshared::Silent,
            _ => Unshared::Broken,
        };
        is_like_us(&stream)?;
        let request = start.request(method)?;
        let mut link = Self { stream, lines: Vec::new() };
        link.stream.set_write_timeout(Some(ACCEPTANCE)).map_err(broken)?;
        send(&link.stream, &request, files).map_err(broken)?;
        let until = Instant::now() + ACCEPTANCE;
        loop {
            if let Some(line) = link.next_line() {
                accepted(&line)?;
                // It reads the client's first byte after this, so that two never do.
                send(&link.stream, &message::notification(BEGIN, ()), &[]).map_err(broken)?;
                return Ok(link);
            }
            if !link.wait(None, &mut Stderr::default(), until).map_err(broken)? {
                if Instant::now() >= until {
                    return Err(Unshared::Silent);
                }
                continue;
            }
            if link.read().map_err(broken)? == 0 {
                return Err(Unshared::Broken);
            }
        }
    }

    /// Passes signals on and texts back until the session is over. `None` if the shared hostler is gone before.
    fn keep(&mut self, signals: &mut Signals, ends: &mut Ends, stderr: &mut Stderr, wanted: &Wanted<'_>) -> Option<u8> {
        loop {
            ends.hear(signals);
            if std::mem::take(&mut ends.is_asked) {
                stderr.add(&(wanted.status)(wanted.start.environment));
            }
            for number in ends.unsent.drain(..) {
                // If it is gone, that is read next.
                let _ = send(&self.stream, &message::notification(SIGNAL, Signalled { number }), &[]);
            }
            while let Some(line) = self.next_line() {
                if let Some(status) = heed(&line, stderr) {
                    return Some(status);
                }
            }
            let far = Instant::now() + Duration::from_hours(24);
            match self.wait(Some(signals.get_read().as_fd()), stderr, ends.until.unwrap_or(far)) {
                Ok(false) if ends.until.is_some_and(|until| Instant::now() >= until) => return Some(0),
                Ok(false) => {}
                Ok(true) => match self.read() {
                    Ok(1..) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(0) | Err(_) => return None,
                },
                Err(_) => return None,
            }
        }
    }

    /// Waits for the connection, for standard error if there is something to write and, if given, for a signal. Whether the
    /// connection can be read.
    fn wait(&self, signals: Option<BorrowedFd<'_>>, stderr: &mut Stderr, until: Instant) -> io::Result<bool> {
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).unwrap_or_default();
        let mut awaited = vec![PollFd::new(&self.stream, PollFlags::IN)];
        awaited.extend(stderr.awaited().map(|stderr| PollFd::from_borrowed_fd(stderr, PollFlags::OUT)));
        let writes = awaited.len() > 1;
        awaited.extend(signals.map(|signals| PollFd::from_borrowed_fd(signals, PollFlags::IN)));
        match poll(&mut awaited, Some(&left)) {
            Ok(_) => {
                let can_be_read = !awaited[0].revents().is_empty();
                if writes && !awaited[1].revents().is_empty() {
                    stderr.write();
                }
                Ok(can_be_read)
            }
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn read(&mut self) -> io::Result<usize> {
        let mut part = [0; 4096];
        let count = self.stream.read(&mut part)?;
        self.lines.extend_from_slice(&part[..count]);
        Ok(count)
    }

    fn next_line(&mut self) -> Option<Vec<u8>> {
        let end = self.lines.iter().position(|byte| *byte == b'\n')?;
        Some(self.lines.drain(..=end).collect())
    }
}

/// Before it gets variables and streams: a process in a sandbox that contains the folder of the socket could listen there.
fn is_like_us(stream: &UnixStream) -> Result<(), Unshared> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Unshared::Broken,
        _ => Unshared::Unknown(error),
    };
    // It may have ended after it was reached.
    let peer = Peer::of(stream).map_err(|_| Unshared::Broken)?;
    let own = rustix::process::geteuid().as_raw();
    let difference = if peer.user == own { peer.difference() } else { Ok(Some("Uid")) };
    match difference {
        Ok(None) => Ok(()),
        Ok(Some(fact)) => Err(Unshared::Foreign(fact)),
        Err(error) => Err(failed(error)),
    }
}

fn accepted(line: &[u8]) -> Result<(), Unshared> {
    let read: Line<'_> = serde_json::from_slice(line)
        .map_err(|error| Unshared::Refused(format!("the shared hostler's answer cannot be read: {error}")))?;
    match (read.result, read.error) {
        (Some(result), _) if serde_json::from_str::<Attached>(result.get()).is_ok() => Ok(()),
        (_, Some(refusal)) => Err(Unshared::Refused(refusal.message)),
        _ => Err(Unshared::Refused("the shared hostler's answer is not one to an attaching process".to_owned())),
    }
}

/// Acts on a message; returns the exit status when the session is over.
fn heed(line: &[u8], stderr: &mut Stderr) -> Option<u8> {
    let read: Line<'_> = serde_json::from_slice(line).ok()?;
    let params = read.params?.get();
    match read.method.as_deref()? {
        LOG => stderr.add(&serde_json::from_str::<Said>(params).ok()?.text),
        ENDED => return Some(serde_json::from_str::<Over>(params).ok()?.status),
        _ => {}
    }
    None
}
