//! `hostler serve` on standard input and output: from the first byte to the last worker gone.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::time::timeout;

use super::connection::read;
use super::session::McpSession;
use super::stdio::{self, Stdio};
use crate::call::CallService;
use crate::outcome::{Cancelled, Canceller};
use crate::process::{Outbox, Signals};

/// The time limit for running calls after the client is gone or a signal arrived.
const DRAIN: Duration = Duration::from_millis(500);
/// The time limit for the death of the workers after that.
const KILL: Duration = Duration::from_millis(400);
/// The time limit for the client to read its last answers.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Why serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The client closed its end.
    ClientGone,
    /// A signal arrived.
    Signalled,
}

/// Serves one client until it is gone or a signal arrives. When this returns, every worker is gone. Fails if standard
/// input or output cannot be opened.
pub async fn serve(service: Arc<CallService>, signals: Signals) -> io::Result<Ended> {
    let Stdio { input, output, input_fd } = stdio::open(&service.config.environment)?;
    let outbox = Outbox::new(output);
    let broken = outbox.broken();
    let session = McpSession::new(Arc::clone(&service), outbox);
    let ended = tokio::select! {
        read = read(input, &session, || input_fd.as_ref().is_some_and(is_closed)) => {
            if let Err(error) = read {
                tracing::warn!(%error, "standard input cannot be read");
            }
            Ended::ClientGone
        }
        () = broken.notified() => {
            tracing::info!("the client no longer reads its answers");
            Ended::ClientGone
        }
        name = signals.first() => {
            let limit = DRAIN.as_millis();
            tracing::warn!("{name}: ending; running calls have {limit} ms, or until a second signal");
            Ended::Signalled
        }
    };
    session.end_subscriptions();
    let is_drained = tokio::select! {
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
    service.pools.end();
    let farewell = async {
        service.pools.emptied().await;
        // Unfinished calls are answered, if the client reads.
        if !is_drained && timeout(LAST_WORDS, session.drained()).await.is_err() {
            tracing::warn!("the client left answers unread");
        }
    };
    if timeout(KILL, farewell).await.is_err() {
        tracing::warn!("workers were still dying when hostler ended");
    }
    Ok(ended)
}

/// Whether the other end of a pipe or socket is closed, even if unread bytes remain.
fn is_closed(stream: &OwnedFd) -> bool {
    #[cfg(target_os = "linux")]
    let closed = PollFlags::HUP | PollFlags::RDHUP;
    #[cfg(not(target_os = "linux"))]
    let closed = PollFlags::HUP;
    let mut asked = [PollFd::new(stream, closed)];
    poll(&mut asked, Some(&Timespec::default())).is_ok_and(|_| asked[0].revents().intersects(closed))
}
