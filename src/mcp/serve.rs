//! One client of `hostler serve`: from its first byte to the last worker that only it used.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rustix::event::PollFlags;
use serde::Serialize;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::connection::read;
use super::record::Record;
use super::recorder::Recorder;
use super::session::McpSession;
use super::stdio::{FarEnd, Reader, Stdio, is_closed};
use crate::call::{CallService, Session};
use crate::outcome::{Cancelled, Canceller};
use crate::process::{Outbox, Signals};
use crate::telemetry::spawn;

/// The time limit for running calls after the client is gone or a signal arrived.
const DRAIN: Duration = Duration::from_millis(500);
/// The time limit for the death of the workers after that.
const KILL: Duration = Duration::from_millis(400);
/// The time limit for the client to read its last answers.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How the client closes its end of standard input.
#[cfg(target_os = "linux")]
const HUNG_UP: PollFlags = PollFlags::HUP.union(PollFlags::RDHUP);
#[cfg(not(target_os = "linux"))]
const HUNG_UP: PollFlags = PollFlags::HUP;

/// Why serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The client closed its end.
    ClientGone,
    /// A signal arrived.
    Signalled,
}

/// A client whose requests can be served.
pub struct Client {
    session: Arc<McpSession>,
    input: Stdin,
    broken: Arc<Notify>,
    far_end: FarEnd,
}

struct Stdin {
    stream: Reader,
    fd: Option<OwnedFd>,
}

/// What is known of a client.
#[derive(Debug, Clone, Serialize)]
pub struct ClientInfo {
    /// Its name and version, once it has said them.
    pub client: Option<String>,
    /// Its calls without an outcome.
    pub running: usize,
}

/// Tells what is known of a client, as long as it is served.
pub struct ClientView(Weak<McpSession>);

impl ClientView {
    /// What is known now; `None` after the end.
    pub fn info(&self) -> Option<ClientInfo> {
        self.0.upgrade().map(|session| session.info())
    }
}

impl Client {
    /// A client on these streams. Nothing is read of it yet. With a record, another process may continue the session, or this
    /// one continues another's.
    pub fn new(service: Arc<CallService>, streams: Stdio, record: Option<Record>) -> Self {
        let Stdio { input, output, input_fd, far_end } = streams;
        let recorder = record.map(Recorder::new);
        let outbox = Outbox::new(match &recorder {
            Some(recorder) => recorder.output(output),
            None => output,
        });
        let broken = outbox.broken();
        let session = McpSession::new(Session::open(service), outbox, recorder);
        Self { session, input: Stdin { stream: input, fd: input_fd }, broken, far_end }
    }

    /// A view of it for reports.
    pub fn view(&self) -> ClientView {
        ClientView(Arc::downgrade(&self.session))
    }

    /// Serves it until it is gone or a signal arrives. When this returns, every worker is gone that no other client uses.
    pub async fn serve(self, signals: Signals) -> Ended {
        let Self { session, input, broken, far_end } = self;
        let is_gone = || input.fd.as_ref().is_some_and(|fd| is_closed(fd, HUNG_UP));
        let unread = async {
            tokio::select! {
                () = broken.notified() => {}
                () = far_end.closed() => {}
            }
        };
        let ended = tokio::select! {
            read = read(input.stream, &session, is_gone) => {
                if let Err(error) = read {
                    tracing::warn!(%error, "standard input cannot be read");
                }
                Ended::ClientGone
            }
            () = unread => {
                tracing::info!("the client no longer reads its answers");
                Ended::ClientGone
            }
            name = signals.first() => {
                let limit = DRAIN.as_millis();
                tracing::warn!("{name}: ending; running calls have {limit} ms, or until a second signal");
                Ended::Signalled
            }
        };
        finish(&session, ended, &signals).await;
        session.outbox().close();
        ended
    }
}

/// Gives running calls a moment, then ends them, and the workers that no other client uses.
async fn finish(session: &Arc<McpSession>, ended: Ended, signals: &Signals) {
    session.end_subscriptions();
    let is_drained = tokio::select! {
        biased;
        drained = timeout(DRAIN, session.drained()) => drained.is_ok(),
        name = signals.second() => {
            tracing::warn!("{name}: the second signal; running calls end now");
            false
        }
    };
    if is_drained {
        tracing::info!(?ended, "serving ended; stopping workers");
    } else {
        tracing::warn!("calls were still running; their workers are killed");
        let by = if ended == Ended::ClientGone { Canceller::ClientGone } else { Canceller::Shutdown };
        session.cancel_all(&Cancelled::by(by));
    }
    let pools = &session.service().pools;
    // Tasks go on. Where the process ends with its client, its end decides what becomes of them.
    let has_tasks = session.service().has_detached();
    if has_tasks {
        let service = Arc::clone(session.call_session().service());
        spawn(async move {
            service.none_detached().await;
            service.pools.end();
        });
    } else {
        pools.end();
    }
    let farewell = async {
        if !has_tasks {
            pools.emptied().await;
        }
        // Unfinished calls are answered, if the client reads.
        if !is_drained && timeout(LAST_WORDS, session.drained()).await.is_err() {
            tracing::warn!("the client left answers unread");
        }
    };
    if timeout(KILL, farewell).await.is_err() {
        tracing::warn!("workers were still dying when serving ended");
    }
}
