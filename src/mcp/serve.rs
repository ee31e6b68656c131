//! From the first byte of standard input to the last worker gone.

use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{ServerInitializeError, ServiceExt};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::face::Face;
use super::stdio::open_stdio;
use crate::dispatch::Dispatcher;

/// How long calls under way may still take once the client has gone or hostler is told to go.
const DRAIN: Duration = Duration::from_millis(500);
/// How long workers may take to die after that.
const KILL: Duration = Duration::from_millis(400);
/// The longest message a client may send, in bytes.
const MAX_MESSAGE: usize = 128 * 1024 * 1024;

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

/// Serves one client until it goes or `signalled` says so. When this returns, every worker is gone.
pub async fn serve(dispatcher: Arc<Dispatcher>, signalled: Arc<Notify>) -> Ended {
    let (input, output, gone) = open_stdio();
    let transport = AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_MESSAGE);
    let face = Face::new(Arc::clone(&dispatcher));
    let ended = tokio::select! {
        // The loop below may only begin once the client has said hello.
        started = face.serve(transport) => match started {
            Ok(running) => until_over(running, &gone, &signalled).await,
            Err(ServerInitializeError::ConnectionClosed(_)) => Ended::ClientGone,
            Err(error) => Ended::NotMcp(error.to_string()),
        },
        () = signalled.notified() => Ended::Signalled,
    };
    tracing::info!(?ended, "serving ended; stopping workers");
    dispatcher.pools.end();
    if timeout(KILL, dispatcher.pools.emptied()).await.is_err() {
        tracing::warn!("workers were still dying when hostler left");
    }
    ended
}

type Running = rmcp::service::RunningService<rmcp::RoleServer, Face>;

async fn until_over(mut running: Running, gone: &Notify, signalled: &Notify) -> Ended {
    let ended = tokio::select! {
        () = gone.notified() => Ended::ClientGone,
        () = signalled.notified() => Ended::Signalled,
    };
    // rmcp waits for the calls under way and writes their answers, longer than we may; a second signal ends the wait.
    tokio::select! {
        _ = running.close_with_timeout(DRAIN) => {}
        () = signalled.notified() => {}
    }
    ended
}
