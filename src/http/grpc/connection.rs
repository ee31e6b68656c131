//! Connections that speak HTTP/2, which gRPC needs: known by their first bytes, on the port and on the socket.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::service::{Door, Service};
use super::unread::Unread;

/// What such a connection begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The first line of that.
const FIRST_LINE: &[u8] = b"PRI * HTTP/2.0\r\n";
/// How long those bytes may take to arrive.
const FIRST: Duration = Duration::from_secs(15);
/// The pause before they are looked at again, where only some have arrived.
const AGAIN: Duration = Duration::from_millis(10);
/// RPCs of one connection at once.
const MOST_STREAMS: u32 = 256;
/// The longest head of a request.
const LONGEST_HEAD: u32 = 64 << 10;
/// The most bytes of an answer that are on their way.
const ON_THE_WAY: usize = 64 << 10;
/// After so long without a frame, a client is asked whether it is there, and has this long to answer.
const SILENCE: Duration = Duration::from_secs(30);

/// Whether the first bytes of a connection are those of HTTP/2. They are not taken from it.
pub async fn is_http2(stream: &TcpStream) -> io::Result<bool> {
    let mut seen = [0; PREFACE.len()];
    let look = async {
        loop {
            let count = stream.peek(&mut seen).await?;
            if count == PREFACE.len() || count == 0 || !PREFACE.starts_with(&seen[..count]) {
                return Ok(seen[..count] == *PREFACE);
            }
            sleep(AGAIN).await;
        }
    };
    timeout(FIRST, look).await.unwrap_or_else(|late| Err(late.into()))
}

/// Whether a connection whose first line this is speaks HTTP/2.
pub fn begins_http2(first_line: &[u8]) -> bool {
    first_line == FIRST_LINE
}

/// Serves a connection to its end.
pub async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    door: Door,
) -> Result<(), hyper::Error> {
    let (unread, control) = (Unread::new(), Arc::clone(door.face().control()));
    let service = Arc::new(Service::new(door, Arc::clone(&unread)));
    let answer = service_fn(move |request: Request<Incoming>| {
        let service = Arc::clone(&service);
        async move { Ok::<_, Infallible>(service.answer(request).await) }
    });
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .max_header_list_size(LONGEST_HEAD)
        .max_send_buf_size(ON_THE_WAY)
        .keep_alive_interval(SILENCE)
        .keep_alive_timeout(SILENCE);
    let mut serving = pin!(http.serve_connection(TokioIo::new(stream), answer));
    let mut is_ending = false;
    loop {
        tokio::select! {
            ended = serving.as_mut() => return ended,
            () = unread.is_given_up() => {
                tracing::debug!("a connection is closed: its client has taken nothing of its answers for a minute");
                return Ok(());
            }
            () = control.closed(), if !is_ending => {
                is_ending = true;
                // What is being answered is answered.
                serving.as_mut().graceful_shutdown();
            }
        }
    }
}
