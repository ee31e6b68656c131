//! The control face in lines: JSON-RPC 2.0 on any stream, a message a line.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use jsonrpsee::Methods;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};
use tokio::task::{JoinSet, yield_now};
use tokio::time::timeout;

use super::client::Client;
use super::frames::{INVALID_REQUEST, Notifications, refusal};
use super::methods::methods_of;
use crate::outcome::{Cancelled, Canceller};
use crate::process::Outbox;

/// The longest line of a client: the arguments of a call.
const LONGEST: u64 = 512 << 20;
/// The most requests of a connection without an answer, subscriptions included.
const MOST_OPEN: usize = 1024;
/// Notifications of a subscription wait while this many bytes are unread, and further requests while that many are.
const MOST_UNREAD: usize = 1 << 20;
const FULL: usize = 8 << 20;
/// The buffer that is kept between lines.
const KEPT: usize = 1 << 20;
/// How long calls may take to end when their session ends.
const DRAIN: Duration = Duration::from_millis(500);

/// What the end of a client's input means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtEnd {
    /// The client is gone: its calls end.
    Cancel,
    /// The client has asked all that it wanted: its calls are finished.
    Finish,
}

impl Client {
    /// Answers lines until the client is gone, or something ends its session.
    pub async fn serve(
        self: &Arc<Self>,
        lines: impl AsyncBufRead + Unpin,
        at_end: AtEnd,
        ending: impl Future<Output = Cancelled>,
    ) -> io::Result<()> {
        let Some(outbox) = self.outbox().cloned() else { return Ok(()) };
        let methods = methods_of(self).map_err(io::Error::other)?;
        let mut connection =
            Connection { client: self, methods, outbox, open: JoinSet::new(), notified: JoinSet::new() };
        let why = tokio::select! {
            result = connection.hear(lines, at_end) => {
                result?;
                Cancelled::by(Canceller::ClientGone)
            }
            why = ending => why,
        };
        connection.end(why).await;
        Ok(())
    }
}

struct Connection<'a> {
    client: &'a Arc<Client>,
    methods: Methods,
    outbox: Outbox,
    /// Requests without an answer.
    open: JoinSet<Vec<Notifications>>,
    /// Subscriptions.
    notified: JoinSet<()>,
}

impl Connection<'_> {
    async fn hear(&mut self, lines: impl AsyncBufRead + Unpin, at_end: AtEnd) -> io::Result<()> {
        let mut lines = lines.take(LONGEST);
        let mut line = Vec::new();
        loop {
            lines.set_limit(LONGEST);
            if self.outbox.waiting() > FULL {
                self.outbox.caught_up().await;
            }
            loop {
                tokio::select! {
                    // What is read of a line stays in `line` when another branch is first.
                    read = lines.read_until(b'\n', &mut line) => {
                        read?;
                        break;
                    }
                    Some(answered) = self.open.join_next(), if !self.open.is_empty() => {
                        self.subscribe(answered.unwrap_or_default());
                    }
                }
            }
            if line.last() != Some(&b'\n') {
                if line.len() as u64 >= LONGEST {
                    let text = format!("the line is longer than {LONGEST} bytes");
                    self.outbox.send(&line_of(&refusal(INVALID_REQUEST, &text)));
                } else if !line.trim_ascii().is_empty() {
                    self.answer(&line).await;
                }
                break;
            }
            if !line.trim_ascii().is_empty() {
                self.answer(&line).await;
            }
            line.clear();
            line.shrink_to(KEPT);
        }
        if at_end == AtEnd::Finish {
            let broken = self.outbox.broken();
            tokio::select! {
                () = async { while self.open.join_next().await.is_some() {} } => {}
                () = broken.notified() => {}
            }
        }
        Ok(())
    }

    /// The notifications of what was subscribed, until the connection ends.
    fn subscribe(&mut self, subscriptions: Vec<Notifications>) {
        for notifications in subscriptions {
            self.notified.spawn(forward(notifications, self.outbox.clone()));
        }
        while self.notified.try_join_next().is_some() {}
    }

    /// Begins to answer a line.
    async fn answer(&mut self, line: &[u8]) {
        let frame = match self.client.read_frame(line) {
            Ok(Some(frame)) => frame,
            Ok(None) => return,
            Err(refused) => return self.outbox.send(&line_of(&refused)),
        };
        if self.has_many_open() {
            // Lines that come together are read faster than any is answered: those that need little time are done after this.
            yield_now().await;
            while let Some(answered) = self.open.try_join_next() {
                self.subscribe(answered.unwrap_or_default());
            }
        }
        if self.has_many_open() {
            let text =
                format!("{MOST_OPEN} requests and subscriptions of this connection are open; wait for one to end");
            return frame.refused(&text).iter().for_each(|refused| self.outbox.send(&line_of(refused)));
        }
        let (methods, outbox) = (self.methods.clone(), self.outbox.clone());
        self.open.spawn(async move {
            // Many may have been read while nothing was unread.
            while outbox.waiting() > FULL {
                outbox.caught_up().await;
            }
            let (answer, subscriptions) = frame.answer(&methods).await;
            if let Some(answer) = answer {
                outbox.send_now(&line_of(&answer));
            }
            subscriptions
        });
    }

    fn has_many_open(&self) -> bool {
        self.open.len() + self.notified.len() >= MOST_OPEN
    }

    /// Ends the client's calls and waits a little for their answers to be sent.
    async fn end(mut self, why: Cancelled) {
        self.notified.abort_all();
        let session = self.client.own_session();
        if let Some(session) = session {
            session.cancel_all(&why);
        }
        let _ = timeout(DRAIN, async {
            while self.open.join_next().await.is_some() {}
            if let Some(session) = session {
                session.idle().await;
            }
        })
        .await;
    }
}

/// Passes on the notifications of a subscription, as fast as the client reads.
async fn forward(mut notifications: Notifications, outbox: Outbox) {
    while let Some(notification) = notifications.next().await {
        outbox.send(&line_of(notification.get()));
        if outbox.waiting() > MOST_UNREAD {
            outbox.caught_up().await;
        }
    }
}

fn line_of(text: &str) -> Vec<u8> {
    let mut line = Vec::with_capacity(text.len() + 1);
    line.extend_from_slice(text.as_bytes());
    line.push(b'\n');
    line
}
