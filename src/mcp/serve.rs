//! From the first byte of standard input to the last worker gone.

use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{ServerInitializeError, ServiceExt};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::time::timeout;

use super::changes::tell_unasked;
use super::express::Express;
use super::face::{Face, Handler};
use super::listed::Listed;
use super::outbox::Stream;
use super::stdio::{Stdio, has_lane, open_stdio};
use crate::call::CallService;
use crate::process::Signals;

/// How long calls under way may still take once the client has gone or hostler is told to go.
const DRAIN: Duration = Duration::from_millis(500);
/// How long workers may take to die after that.
const KILL: Duration = Duration::from_millis(400);
/// How long the client may take to read what is then still to be said.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// The longest message a client may send, in bytes.
pub(super) const MAX_MESSAGE: usize = 128 * 1024 * 1024;

/// Why serving ended.
#[derive(Debug)]
pub enum Ended {
    /// The client closed its end.
    ClientGone,
    /// A signal asked for it.
    Signalled,
    /// What came was not MCP.
    NotMcp(String),
}

/// Serves one client until it goes or a signal asks for the end. When this returns, every worker is gone.
pub async fn serve(dispatcher: Arc<CallService>, signals: Signals) -> Ended {
    let Stdio { input, outbox, ended: gone, hang_up } = open_stdio(&dispatcher.config.environment);
    let face = Arc::new(Face::new(Arc::clone(&dispatcher), outbox.clone()));
    let lane = Express::new(Arc::clone(&face), outbox.clone());
    let (reader, writer) = (input.offer_to(Arc::clone(&lane)), Stream::into(outbox.clone()));
    let transport = AsyncRwTransport::new_server(reader, writer).with_max_line_length(MAX_MESSAGE);
    let transport = Listed::new(transport, Arc::clone(&face), outbox.clone());
    let (ended, running) = tokio::select! {
        // The loop below may only begin once the client has said hello.
        started = Handler(Arc::clone(&face)).serve(transport) => match started {
            Ok(running) => {
                tell_unasked(running.peer().clone(), face.changes());
                if has_lane(&dispatcher.config.environment) {
                    lane.open(running.peer().clone());
                }
                tokio::select! {
                () = gone.notified() => (Ended::ClientGone, Some(running)),
                name = signals.first() => (told(&name), Some(running)),
            }}
            Err(ServerInitializeError::ConnectionClosed(_)) => (Ended::ClientGone, None),
            Err(error) => (Ended::NotMcp(error.to_string()), None),
        },
        name = signals.first() => (told(&name), None),
    };
    face.end();
    // Without input rmcp only waits for the calls under way and writes their answers, longer than we may.
    let _ = hang_up.send(());
    let mut drained = tokio::spawn(async move {
        lane.idle().await;
        if let Some(running) = running {
            let _ = running.waiting().await;
        }
        outbox.caught_up().await;
    });
    let over = tokio::select! {
        ended = timeout(DRAIN, &mut drained) => ended.is_ok(),
        name = signals.second() => {
            tracing::warn!("{name}: the second signal; calls under way are ended at once");
            false
        }
    };
    if over {
        tracing::info!(?ended, "serving ended; stopping workers");
    } else {
        tracing::warn!("calls were still under way; their workers are killed");
    }
    dispatcher.pools.end();
    let farewell = async {
        dispatcher.pools.emptied().await;
        // Those whose calls were not finished are told so, if they read.
        if !over && timeout(LAST_WORDS, drained).await.is_err() {
            tracing::warn!("the client left answers unread");
        }
    };
    if timeout(KILL, farewell).await.is_err() {
        tracing::warn!("workers were still dying when hostler left");
    }
    ended
}

/// The first signal's step.
fn told(name: &str) -> Ended {
    let limit = DRAIN.as_millis();
    tracing::warn!("{name}: ending; calls under way have {limit} ms, or until a second signal");
    Ended::Signalled
}
