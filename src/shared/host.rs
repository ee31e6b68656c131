//! The shared hostler: listens, serves sessions and control connections, and exits when no client is attached.

use std::fs::OpenOptions;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::FusedFuture;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::time::timeout;

use super::house::OfPerson;
use super::key::{build, own_key};
use super::place::{Lock, Place, PlaceError};
use super::session;
use crate::config::{Config, ConfigError, ConfigOptions, Environment};
use crate::control::{About, Control};
use crate::http::{Face, Listener};
use crate::journal::{Claim, Journal};
use crate::process::{Signals, keep_trimmed, reset_oom_score};
use crate::runtime::{Runtime, Workspace};
use crate::telemetry::{self, LogFormat};
use crate::threads::blocking;

/// How long a predecessor may take to end.
const PREDECESSOR: Duration = Duration::from_secs(3);
/// How long sessions may take to end when the shared hostler does: each has 500 ms for running calls.
const FAREWELL: Duration = Duration::from_millis(1500);
/// Connections that may wait for being accepted.
const QUEUE: i32 = 128;
/// The level of its own log. What concerns a session goes to that session, at its level; what tools write never goes to a disk.
const LOG: &str = "info,tool=off";

/// Why a shared hostler cannot run.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// What this process may reach is not shown.
    #[error("what this process may reach cannot be seen: {0}")]
    Unknown(#[source] io::Error),
    /// The folder of its socket cannot be used.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// Another one lives and does not listen.
    #[error("another shared hostler is alive and does not end")]
    Taken,
    /// The person's configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file cannot be opened, or no socket created.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The system's reason.
        source: io::Error,
    },
}

impl HostError {
    fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}

/// Sends standard error to the log of the shared hostler, which is kept small. Call it before the keeper starts, so that its
/// words go there too.
pub fn open_log(environment: &Environment) -> Result<(), HostError> {
    let key = own_key(environment).map_err(HostError::Unknown)?;
    let log = Place::of(environment, &key)?.log;
    let failed = |error| HostError::system(log.display().to_string())(error);
    if let Some(folder) = log.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&log).map_err(failed)?;
    rustix::stdio::dup2_stderr(&file).map_err(io::Error::from).map_err(failed)?;
    telemetry::keep_small(&log);
    Ok(())
}

/// Runs it until no client needs it. `ready` is called once it listens.
pub async fn run(environment: Arc<Environment>, claim: Option<Claim>, ready: impl FnOnce()) -> Result<(), HostError> {
    telemetry::start(LOG, LogFormat::Text);
    raise_limits();
    reset_oom_score();
    let key = own_key(&environment).map_err(HostError::Unknown)?;
    let place = Place::of(&environment, &key)?;
    let lock = place.live_lock(PREDECESSOR).map_err(HostError::system("cannot lock its place"))?;
    let lock = lock.ok_or(HostError::Taken)?;
    // The person's own settings: what a project sets is in force for its sessions alone.
    let options = ConfigOptions { environment: Arc::clone(&environment), ..ConfigOptions::default() };
    let config = Config::of_person(&options)?;
    let listener = listen(&place.socket()).map_err(HostError::system(place.socket().display().to_string()))?;
    let signals = Signals::listen().map_err(HostError::system("cannot listen for signals"))?;
    let journal = Journal::for_config(&config, claim);
    let runtime = Runtime::shared(&config, journal);
    runtime.background.run_with(Arc::clone(&environment));
    runtime.recover();
    let about = About { build: build().map_err(HostError::Unknown)?, key: Some(key), log: Some(place.log.clone()) };
    runtime.approvals.open_channel();
    let control = Control::new(Arc::clone(&runtime), about);
    let house = OfPerson { environment: Arc::clone(&environment), runtime: Arc::clone(&runtime) };
    let face = Face::new(Arc::clone(&control), Box::new(house));
    let wants_http = control.wants_http();
    Workspace::tidy();
    ready();
    tracing::info!(pid = std::process::id(), socket = %place.socket().display(), "the shared hostler listens");
    // Disks may be slow. Without a thread, the next one does it.
    let _ = blocking({
        let place = place.clone();
        move || place.sweep()
    });
    let trimming = tokio::spawn(keep_trimmed({
        let runtime = Arc::clone(&runtime);
        move || Arc::clone(&runtime).next_end()
    }));
    let mut http = pin!(serve_http(&config, environment, &face, wants_http).fuse());
    let why = tokio::select! {
        () = accept(&listener, &control, &face) => "it cannot accept connections".to_owned(),
        () = http.as_mut() => "HTTP is no longer served".to_owned(),
        () = unused(&runtime, config.shared.idle_exit.value) => "no client is attached".to_owned(),
        name = signals.first() => name,
        why = control.wished() => why.to_owned(),
    };
    tracing::info!(why, "the shared hostler ends");
    trimming.abort();
    control.close();
    leave(&place, listener, lock);
    runtime.sessions.end_all(&why);
    let gone = runtime.sessions.counted();
    let http = async {
        if !http.is_terminated() {
            http.await;
        }
    };
    let _ = timeout(FAREWELL, async { tokio::join!(emptied(gone), http) }).await;
    runtime.end(FAREWELL).await;
    runtime.end_journal().await;
    Ok(())
}

/// Serves HTTP where the person's configuration says, or at a free port once a page is asked for.
async fn serve_http(
    config: &Config,
    environment: Arc<Environment>,
    face: &Arc<Face>,
    mut wanted: watch::Receiver<bool>,
) {
    let listening = async {
        let address = if let Some(listen) = &config.control.listen {
            listen.value
        } else {
            let _ = wanted.wait_for(|wanted| *wanted).await;
            SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
        };
        Listener::once_free(address, &environment).await
    };
    let listener = tokio::select! {
        listener = listening => listener,
        () = face.control().closed() => return,
    };
    listener.serve(Arc::clone(face), config.control.origins.clone()).await;
}

/// From here on the next one may start. The socket goes first: it is this one's as long as the lock is held.
fn leave(place: &Place, listener: UnixListener, lock: Lock) {
    let _ = std::fs::remove_file(place.socket());
    drop(listener);
    drop(lock);
}

/// A socket that only this user may reach. What is there is a dead one's: the lock says so.
fn listen(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Under another name first: who finds it must be able to connect.
    let draft = path.with_extension("draft");
    let _ = std::fs::remove_file(&draft);
    let listener = std::os::unix::net::UnixListener::bind(&draft)?;
    rustix::net::listen(&listener, QUEUE)?;
    std::fs::set_permissions(&draft, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    std::fs::rename(&draft, path)?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

/// Each session has several open files, each worker too.
fn raise_limits() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

async fn accept(listener: &UnixListener, control: &Arc<Control>, face: &Arc<Face>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let (control, face) = (Arc::clone(control), Arc::clone(face));
                tokio::spawn(async move { serve(stream, &control, &face).await });
            }
            // Too many open files: some will be closed.
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn serve(stream: UnixStream, control: &Arc<Control>, face: &Arc<Face>) {
    if let Err(error) = session::serve(stream, control, face).await {
        tracing::info!(%error, "a connection ended");
    }
}

/// Waits until no client has been attached for this long.
async fn unused(runtime: &Runtime, limit: Duration) {
    let mut count = runtime.sessions.counted();
    loop {
        emptied(count.clone()).await;
        count.mark_unchanged();
        if timeout(limit, count.wait_for(|count| *count > 0)).await.is_err() {
            return;
        }
    }
}

async fn emptied(mut count: tokio::sync::watch::Receiver<usize>) {
    let _ = count.wait_for(|count| *count == 0).await;
}
