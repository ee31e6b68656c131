//! `WebSocket`s: the handshake, and the control face over one, a message a frame.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{Sink, SinkExt, StreamExt};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{HeaderMap, Request, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde::de::IgnoredAny;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::time::{Instant, interval, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::body::{Answer, bare, longest, refuse};
use super::face::Face;
use super::guard::{PROTOCOL, offers_protocol};
use super::seats::Seat;
use crate::call::Session;
use crate::control::{AtEnd, Client, Scope};
use crate::outcome::{Cancelled, Canceller};
use crate::process::Outbox;

pub type Socket = WebSocketStream<TokioIo<Upgraded>>;
type Sender = SplitSink<Socket, Message>;

/// What the streams between a socket and the control face hold.
pub const WITHIN: usize = 64 << 10;
/// How often a client is asked whether it is there, and how long it may be silent.
const ASK: Duration = Duration::from_secs(20);
const SILENT: Duration = Duration::from_mins(1);
/// How long a client may take to read its last answers.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// The answer to a handshake, and what becomes the socket.
pub fn accept(request: &mut Request<Incoming>) -> Result<(Answer, OnUpgrade), Box<Answer>> {
    let headers = request.headers();
    let has = |name, word: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    let is_handshake = has(UPGRADE, "websocket") && has(CONNECTION, "upgrade") && has(SEC_WEBSOCKET_VERSION, "13");
    let Some(key) = headers.get(SEC_WEBSOCKET_KEY).filter(|_| is_handshake) else {
        let message = "this path is for WebSockets of version 13; requests of JSON-RPC are sent to / by POST";
        return Err(Box::new(refuse(StatusCode::UPGRADE_REQUIRED, "NEEDS_WEBSOCKET", message)));
    };
    let mut answer = bare(StatusCode::SWITCHING_PROTOCOLS);
    let accepted = HeaderValue::from_str(&derive_accept_key(key.as_bytes()));
    let own = HeaderMap::from_iter([
        (UPGRADE, HeaderValue::from_static("websocket")),
        (CONNECTION, HeaderValue::from_static("upgrade")),
        (SEC_WEBSOCKET_ACCEPT, accepted.unwrap_or_else(|_| HeaderValue::from_static(""))),
    ]);
    *answer.headers_mut() = own;
    if offers_protocol(headers) {
        answer.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
    }
    Ok((answer, hyper::upgrade::on(request)))
}

/// The place among the connections that a socket keeps.
pub fn held_by(request: &Request<Incoming>) -> Option<Arc<Seat>> {
    request.extensions().get().cloned()
}

/// The socket, once the handshake is answered. A message of more than these bytes ends it.
pub async fn opened(upgrade: OnUpgrade, longest: usize) -> Option<Socket> {
    let stream = upgrade.await.ok()?;
    let config = WebSocketConfig::default().max_message_size(Some(longest)).max_frame_size(Some(longest));
    Some(WebSocketStream::from_raw_socket(TokioIo::new(stream), Role::Server, Some(config)).await)
}

/// Serves the control face over a socket, in a session of its own.
pub fn serve(face: &Arc<Face>, mut request: Request<Incoming>, scope: Scope) -> Answer {
    let (answer, upgrade) = match accept(&mut request) {
        Ok(accepted) => accepted,
        Err(refused) => return *refused,
    };
    let (face, held) = (Arc::clone(face), held_by(&request));
    tokio::spawn(async move {
        let _held = held;
        if let Some(socket) = opened(upgrade, longest(scope)).await {
            steer(&face, socket, scope).await;
        }
    });
    answer
}

async fn steer(face: &Face, socket: Socket, scope: Scope) {
    let attendance = face.attend().await;
    let session = face.service().await.ok().map(|service| Session::open(Arc::clone(service)));
    let (near, far) = tokio::io::duplex(WITHIN);
    let (reader, writer) = tokio::io::split(far);
    let outbox = Outbox::new(Box::new(writer));
    let client = Client::with_scope(face.control(), session, outbox.clone(), scope);
    let ending = async {
        attendance.ended().await;
        Cancelled::by(Canceller::SessionEnd)
    };
    let serving = async {
        if let Err(error) = client.serve(BufReader::new(reader), AtEnd::Cancel, ending).await {
            tracing::debug!(%error, "the frames of a WebSocket ended");
        }
        let _ = timeout(LAST_WORDS, outbox.caught_up()).await;
    };
    tokio::select! {
        () = serving => {}
        () = carry(socket, near) => {}
    }
}

/// Carries frames to a stream of lines and back, until either ends. When the client goes, so does the stream.
pub async fn carry(socket: Socket, stream: impl AsyncRead + AsyncWrite) {
    let (mut sender, receiver) = socket.split();
    let (reader, writer) = tokio::io::split(stream);
    let heard = Mutex::new(Instant::now());
    let ended = tokio::select! {
        ended = incoming(receiver, writer, &heard) => ended,
        ended = outgoing(&mut sender, reader, &heard) => ended,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a WebSocket ended");
    }
    let _ = timeout(LAST_WORDS, sender.close()).await;
}

/// One frame is one line.
async fn incoming(
    mut receiver: SplitStream<Socket>,
    mut lines: impl AsyncWrite + Unpin,
    heard: &Mutex<Instant>,
) -> Result<(), Error> {
    while let Some(message) = receiver.next().await {
        *heard.lock() = Instant::now();
        let bytes = match message? {
            Message::Text(text) => Bytes::from(text),
            Message::Binary(bytes) => bytes,
            Message::Close(_) => break,
            _ => continue,
        };
        lines.write_all(&as_line(bytes)).await?;
        lines.write_all(b"\n").await?;
    }
    Ok(())
}

/// A frame without line ends. In JSON they stand between values only; in anything else, it stays no JSON.
fn as_line(bytes: Bytes) -> Bytes {
    if !bytes.contains(&b'\n') {
        return bytes;
    }
    let instead = if serde_json::from_slice::<IgnoredAny>(&bytes).is_ok() { b' ' } else { 1 };
    bytes.iter().map(|byte| if *byte == b'\n' { instead } else { *byte }).collect::<Vec<u8>>().into()
}

/// One line is one frame. In between, the client is asked whether it is there.
async fn outgoing(sender: &mut Sender, lines: impl AsyncRead + Unpin, heard: &Mutex<Instant>) -> Result<(), Error> {
    let mut lines = BufReader::new(lines);
    let mut line = Vec::new();
    let mut pings = interval(ASK);
    loop {
        tokio::select! {
            // What is read of a line stays in `line` when a ping is first.
            read = lines.read_until(b'\n', &mut line) => {
                if read? == 0 {
                    return Ok(());
                }
                line.pop_if(|last| *last == b'\n');
                let text = Utf8Bytes::try_from(Bytes::from(std::mem::take(&mut line)));
                send(sender, Message::Text(text.map_err(io::Error::other)?)).await?;
            }
            _ = pings.tick() => {
                if heard.lock().elapsed() > SILENT {
                    return Err(Error::ConnectionClosed);
                }
                send(sender, Message::Ping(Bytes::new())).await?;
            }
        }
    }
}

/// A client that does not read is not there either.
async fn send(sender: &mut (impl Sink<Message, Error = Error> + Unpin), message: Message) -> Result<(), Error> {
    timeout(SILENT, sender.send(message)).await.unwrap_or(Err(Error::ConnectionClosed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_given_up() {
        let (near, _far) = tokio::io::duplex(16);
        let mut socket = WebSocketStream::from_raw_socket(near, Role::Server, None).await;
        let began = Instant::now();
        assert!(matches!(send(&mut socket, Message::text("x".repeat(99))).await, Err(Error::ConnectionClosed)));
        assert_eq!(began.elapsed(), SILENT);
    }

    #[test]
    fn a_frame_is_one_line_and_stays_what_it_was() {
        assert_eq!(as_line(Bytes::from_static(b"{\"a\":1}")), "{\"a\":1}");
        assert_eq!(as_line(Bytes::from_static(b"{\n \"a\": 1\n}")), "{  \"a\": 1 }");
        let broken = as_line(Bytes::from_static(b"{\"a\":\"x\ny\"}"));
        assert!(!broken.contains(&b'\n') && serde_json::from_slice::<IgnoredAny>(&broken).is_err());
    }
}
