//! Reads a client's bytes and splits them into lines, as long as the client reads its answers.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use super::message;
use super::session::McpSession;
use crate::call::{CallService, Session};
use crate::outcome::{Cancelled, Canceller};
use crate::process::Outbox;

/// The longest message a client may send, in bytes.
pub(super) const MAX_MESSAGE: usize = 128 << 20;
/// Bytes that the client may leave unread before its requests wait.
pub(super) const MAX_UNREAD_ANSWERS: usize = 64 << 20;
/// How often to check whether the client is gone while its requests wait: the input is not read then.
const LOOK: Duration = Duration::from_millis(50);
const CHUNK: usize = 16 << 10;
/// A larger buffer is given back once its message is processed.
const KEPT_BUFFER: usize = 1 << 20;
/// The part of an overlong message that is kept, to find its id.
const KEPT: usize = 4 << 10;

/// Serves one client on any stream until it closes one of its ends, then cancels its calls. For programs that embed hostler;
/// workers stay for other clients.
pub async fn serve_connection(
    service: Arc<CallService>,
    input: impl AsyncRead + Send + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> io::Result<()> {
    serve_session(Session::open(service), input, output).await
}

/// The same in a session that is open.
pub async fn serve_session(
    session: Session,
    input: impl AsyncRead + Send + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> io::Result<()> {
    let outbox = Outbox::new(Box::new(output));
    let broken = outbox.broken();
    let session = McpSession::new(session, outbox, None);
    let ended = tokio::select! {
        ended = read(input, &session, || false) => ended,
        () = broken.notified() => Ok(()),
    };
    session.end_subscriptions();
    session.cancel_all(&Cancelled::by(Canceller::ClientGone));
    session.drained().await;
    ended
}

/// Passes every line to the session until the input ends. `is_gone` tells whether the client has closed its end while the
/// input is not read.
pub(super) async fn read(
    mut input: impl AsyncRead + Unpin,
    session: &Arc<McpSession>,
    is_gone: impl Fn() -> bool,
) -> io::Result<()> {
    // Of a process that was killed, if there was one.
    let (bytes, is_cut) = session.restore();
    let mut lines = Lines { bytes, is_cut, ..Lines::default() };
    lines.each(session);
    lines.keep_rest(session, 0);
    loop {
        while session.outbox().waiting() > MAX_UNREAD_ANSWERS {
            tokio::select! {
                () = session.outbox().caught_up() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
            if is_gone() {
                return Ok(());
            }
        }
        lines.bytes.reserve(CHUNK);
        let read = match session.recorder() {
            None => input.read_buf(&mut lines.bytes).await,
            Some(recorder) => recorder.read(&mut input, &mut lines.bytes).await,
        };
        match read {
            Ok(count @ 1..) => {
                lines.each(session);
                lines.keep_rest(session, count);
            }
            // The last line may lack its newline.
            Ok(0) => {
                lines.bytes.push(b'\n');
                lines.each(session);
                return Ok(());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Bytes read and not processed: at most the beginning of a line.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    /// The length of the part known to contain no newline.
    searched: usize,
    /// The current line is not read whole: its beginning is kept, the rest is skipped.
    is_cut: Option<Cut>,
}

/// Why a line is not read whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// It is longer than a message may be.
    TooLong,
    /// The process that read its middle was killed.
    Killed,
}

impl Lines {
    fn each(&mut self, session: &Arc<McpSession>) {
        let mut start = 0;
        while let Some(length) = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n') {
            let end = self.searched + length;
            let line = &self.bytes[start..end];
            let begin = &line[..line.len().min(KEPT)];
            match self.is_cut.take() {
                None => session.take(line),
                Some(Cut::TooLong) => session.outbox().send(&message::oversized(begin, MAX_MESSAGE)),
                Some(Cut::Killed) => session.outbox().send(&message::interrupted(begin)),
            }
            if let Some(recorder) = session.recorder() {
                recorder.taken(end + 1 - start);
            }
            start = end + 1;
            self.searched = start;
        }
        self.bytes.drain(..start);
        if self.bytes.capacity() > KEPT_BUFFER && self.bytes.len() < KEPT_BUFFER {
            self.bytes.shrink_to(CHUNK);
        }
        self.searched = self.bytes.len();
        if self.bytes.len() > MAX_MESSAGE || self.is_cut.is_some() {
            self.is_cut.get_or_insert(Cut::TooLong);
            self.bytes.truncate(KEPT);
            self.searched = self.bytes.len();
        }
    }

    /// Records what is left of the bytes that were read last.
    fn keep_rest(&self, session: &McpSession, read: usize) {
        if let Some(recorder) = session.recorder() {
            recorder.keep_rest(read, self.is_cut.map(|_| self.bytes.len()));
        }
    }
}
