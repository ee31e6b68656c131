//! Finds the person's shared hostler, or starts it.
//!
//! One process at a time starts one, under a lock that it holds until the new one listens. It is started only where no
//! process listens: any other error, as in a sandbox that forbids sockets, is no reason to start anything.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect};

use super::key::CERTIFICATES;
use super::place::{Place, PlaceError};
use crate::config::Environment;
use crate::process::{reaches_workers, start_detached};

/// The hidden command of a shared hostler.
pub const COMMAND: &str = "shared-host";
/// What a shared hostler writes when it listens.
pub const READY: &str = "ready";

/// How long finding one may take, with the start.
const LIMIT: Duration = Duration::from_secs(10);
/// The pause between attempts to reach one that is about to end or whose queue is full.
const LOOK: Duration = Duration::from_millis(2);
/// How often to look whether this process shall end.
const PART: Duration = Duration::from_millis(50);
/// The most that is read of what one says before it listens.
const LONGEST: u64 = 4096;
/// How often one is started. It may be killed before it listens, by a user or by a system without memory.
const STARTS: usize = 3;

/// Why a client is not served by a shared hostler. It is served by a hostler of its own then.
#[derive(Debug, thiserror::Error)]
pub enum Unshared {
    /// A terminal or a file cannot be passed: others would share its mode or its position.
    #[error("standard input and output are not both pipes or sockets")]
    Streams,
    /// A sandbox may hold that cannot be seen, as Landlock's.
    #[error("this process may not gain privileges, so it may be in a sandbox that the shared one is not in")]
    Confined,
    /// It would end with the other one's processes.
    #[error("another hostler started this one")]
    BelowHostler,
    /// The system does not show what this process may reach.
    #[error("what this process may reach cannot be seen: {0}")]
    Unknown(#[source] io::Error),
    /// The folder of its socket cannot be used.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// It listens and cannot be reached, or the socket is another's.
    #[error("{path}: {source}")]
    Unreachable {
        /// The socket.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
    /// It may reach other things than this process.
    #[error("the process at the socket is confined otherwise than this one ({0})")]
    Foreign(&'static str),
    /// It was started and does not listen.
    #[error("the shared hostler did not start: {0}")]
    NotStarted(String),
    /// It does not answer.
    #[error("the shared hostler does not answer")]
    Silent,
    /// It ended before it accepted the session.
    #[error("the shared hostler ended")]
    Broken,
    /// It is killed again and again.
    #[error("the shared hostler was killed again and again")]
    Unsteady,
    /// This process shall end.
    #[error("interrupted")]
    Interrupted,
    /// It refused the session.
    #[error("{0}")]
    Refused(String),
}

impl Unshared {
    /// Whether one runs that should have served this process.
    pub fn is_of_a_running_one(&self) -> bool {
        matches!(self, Self::Silent | Self::Foreign(_) | Self::Unreachable { .. })
    }
}

/// Connects to a shared hostler, if one runs.
pub fn find(place: &Place) -> Result<Option<UnixStream>, Unshared> {
    let path = place.socket();
    let unreachable = |source| Unshared::Unreachable { path: path.display().to_string(), source };
    match reach(&path) {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(unreachable(error)),
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Connects to a shared hostler, which is started if none runs.
pub fn find_or_start(
    place: &Place,
    environment: &Environment,
    is_over: &mut dyn FnMut() -> bool,
) -> Result<UnixStream, Unshared> {
    let until = Instant::now() + LIMIT;
    if let Some(stream) = find_soon(place, until)? {
        return Ok(stream);
    }
    let _lock = loop {
        let lock = place.start_lock(PART).map_err(|error| Unshared::NotStarted(error.to_string()))?;
        match lock {
            Some(lock) => break lock,
            None if is_over() => return Err(Unshared::Interrupted),
            None if Instant::now() < until => {}
            None => return Err(Unshared::NotStarted("another process has been starting it for long".to_owned())),
        }
    };
    // The process that held the lock before may have started one.
    if let Some(stream) = find_soon(place, until)? {
        return Ok(stream);
    }
    let start = || start_detached(OsStr::new(COMMAND), variables(environment));
    start_and_find(start, || find_soon(place, until), until, is_over)
}

/// Starts one until it can be reached.
fn start_and_find(
    start: impl Fn() -> io::Result<PipeReader>,
    find: impl Fn() -> Result<Option<UnixStream>, Unshared>,
    until: Instant,
    is_over: &mut dyn FnMut() -> bool,
) -> Result<UnixStream, Unshared> {
    for _ in 0..STARTS {
        let said = start().map_err(|error| Unshared::NotStarted(error.to_string()))?;
        let begun = first_line(said, until, is_over);
        if matches!(begun, Err(Unshared::Interrupted)) {
            return Err(Unshared::Interrupted);
        }
        // Another one may have been faster, whose starter was killed.
        if let Some(stream) = find()? {
            return Ok(stream);
        }
        begun?;
    }
    Err(Unshared::NotStarted(format!("it was started {STARTS} times and could not be reached")))
}

/// Waits while the queue of one that listens is full.
fn find_soon(place: &Place, until: Instant) -> Result<Option<UnixStream>, Unshared> {
    loop {
        match find(place) {
            Err(Unshared::Unreachable { source, .. })
                if source.kind() == io::ErrorKind::WouldBlock && Instant::now() < until =>
            {
                std::thread::sleep(LOOK);
            }
            found => return found,
        }
    }
}

#[cfg(target_os = "linux")]
fn unconnected() -> io::Result<OwnedFd> {
    let flags = rustix::net::SocketFlags::CLOEXEC | rustix::net::SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

#[cfg(not(target_os = "linux"))]
fn unconnected() -> io::Result<OwnedFd> {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(socket)
}

/// Connects without waiting: a stopped process would never accept.
fn reach(path: &std::path::Path) -> io::Result<UnixStream> {
    let socket = unconnected()?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// What a shared hostler needs to find its own files. No secret of the client that happens to start it.
fn variables(environment: &Environment) -> BTreeMap<OsString, OsString> {
    let is_needed = |name: &str| name.starts_with("XDG_") || CERTIFICATES.contains(&name) || reaches_workers(name, &[]);
    let needed = environment.iter().filter(|(name, _)| name.to_str().is_some_and(is_needed));
    needed.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Waits for the first line of a started one: that it listens, or why it does not. One that was killed says nothing.
fn first_line(mut said: PipeReader, until: Instant, is_over: &mut dyn FnMut() -> bool) -> Result<(), Unshared> {
    let mut text = Vec::new();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let part = Timespec::try_from(left.min(PART)).unwrap_or_default();
        match poll(&mut [PollFd::new(&said, PollFlags::IN)], Some(&part)) {
            Ok(0) if is_over() => return Err(Unshared::Interrupted),
            Ok(0) if left.is_zero() => return Err(Unshared::NotStarted("it took too long".to_owned())),
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            _ => {}
        }
        let mut part = [0; 512];
        let count = said.read(&mut part).unwrap_or(0);
        text.extend_from_slice(&part[..count]);
        if count == 0 || text.contains(&b'\n') || text.len() as u64 > LONGEST {
            break;
        }
    }
    match String::from_utf8_lossy(&text).lines().next().unwrap_or_default().trim() {
        READY | "" => Ok(()),
        reason => Err(Unshared::NotStarted(reason.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write;

    use super::*;

    #[test]
    fn the_first_line_says_whether_it_listens() {
        let said = |text: &str| {
            let (reader, mut writer) = io::pipe().unwrap();
            writer.write_all(text.as_bytes()).unwrap();
            drop(writer);
            first_line(reader, Instant::now() + Duration::from_secs(20), &mut || false)
        };
        assert!(said("ready\nmore").is_ok());
        assert!(matches!(said("no disk\n"), Err(Unshared::NotStarted(why)) if why == "no disk"));
        let (reader, _writer) = io::pipe().unwrap();
        assert!(first_line(reader, Instant::now(), &mut || false).is_err(), "it says nothing");
        let (reader, _writer) = io::pipe().unwrap();
        let far = Instant::now() + Duration::from_hours(1);
        assert!(matches!(first_line(reader, far, &mut || true), Err(Unshared::Interrupted)));
    }

    /// Starts those that say this; the last one can be reached if it listens. Returns how many were started.
    fn starts_of(said: &[&str]) -> (usize, Result<UnixStream, Unshared>) {
        let count = Cell::new(0);
        let start = || {
            let (reader, mut writer) = io::pipe()?;
            writer.write_all(said[count.replace(count.get() + 1)].as_bytes())?;
            Ok(reader)
        };
        let find = || {
            let is_there = count.get() == said.len() && said[count.get() - 1] == READY;
            Ok(is_there.then(|| UnixStream::pair().unwrap().0))
        };
        let found = start_and_find(start, find, Instant::now() + Duration::from_secs(20), &mut || false);
        (count.get(), found)
    }

    #[test]
    fn another_one_is_started_where_one_is_killed() {
        assert!(matches!(starts_of(&["", READY]), (2, Ok(_))), "before it listens");
        assert!(matches!(starts_of(&[READY, "", READY]), (3, Ok(_))), "when it listens");
        assert!(
            matches!(starts_of(&["", "no disk\n", READY]), (2, Err(Unshared::NotStarted(why))) if why == "no disk")
        );
        assert!(matches!(starts_of(&[""; 9]), (STARTS, Err(Unshared::NotStarted(_)))), "not for ever");
    }

    #[test]
    fn a_shared_hostler_gets_no_secret() {
        let environment = Environment::from_iter([("HOME", "/h"), ("XDG_RUNTIME_DIR", "/r"), ("API_KEY", "k-1")]);
        let passed: Vec<OsString> = variables(&environment).into_keys().collect();
        assert_eq!(passed, ["HOME", "XDG_RUNTIME_DIR"]);
    }
}
