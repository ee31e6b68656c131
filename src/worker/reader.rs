//! The reading half of a worker's pipes: bytes to lines to events.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::codec::Codec;
use super::events::WorkerEvent;
use crate::protocol::MAX_FRAME;

/// The buffer's usual capacity. A longer line extends it temporarily.
const USUAL_ROOM: usize = 16 * 1024;

/// After this many lines without events, others get a turn.
const TURN: u32 = 64;

/// The reading half. Lines are parsed inside the buffer: most are short, and copies would cost more than the rest of
/// the work.
pub struct LinkReader<R> {
    pipe: R,
    buffer: Vec<u8>,
    /// The start of the first unread line.
    start: usize,
    /// The end of the part already searched for a newline.
    searched: usize,
    dropped: Option<Dropped>,
    limit: usize,
    codec: Codec,
}

#[derive(Debug)]
struct Dropped {
    id: Option<u64>,
    bytes: usize,
}

impl<R: AsyncRead + Unpin> LinkReader<R> {
    /// Reads frames from a pipe.
    pub fn new(pipe: R, codec: Codec) -> Self {
        let buffer = Vec::with_capacity(USUAL_ROOM);
        Self { pipe, buffer, start: 0, searched: 0, dropped: None, limit: MAX_FRAME, codec }
    }

    /// The same with another limit on a frame's length.
    #[cfg(test)]
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Waits for the next events; `None` at the end of the pipe. Cancel-safe: the data stays in the buffer.
    pub async fn next(&mut self) -> io::Result<Option<WorkerEvent>> {
        let mut skipped = 0_u32;
        loop {
            while let Some(end) = self.find_end() {
                let dropped = self.dropped.take();
                let events = interpret(&self.buffer[self.start..end], dropped, self.limit, &self.codec);
                self.start = end + 1;
                self.searched = self.start;
                if events.is_some() {
                    return Ok(events);
                }
                // A flood of lines without meaning must not hold up other workers.
                skipped += 1;
                if skipped.is_multiple_of(TURN) {
                    tokio::task::yield_now().await;
                }
            }
            self.make_room();
            if self.pipe.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
            self.shed_overlong();
        }
    }

    fn find_end(&mut self) -> Option<usize> {
        let found = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
        let end = found.map(|offset| self.searched + offset);
        self.searched = end.unwrap_or(self.buffer.len());
        end
    }

    /// Moves the beginning of an unfinished line to the front of the buffer.
    fn make_room(&mut self) {
        if self.start == self.buffer.len() && self.buffer.capacity() > 4 * USUAL_ROOM {
            self.buffer = Vec::with_capacity(USUAL_ROOM);
        } else {
            self.buffer.drain(..self.start);
        }
        self.searched -= self.start;
        self.start = 0;
        if self.buffer.capacity() - self.buffer.len() < USUAL_ROOM / 4 {
            self.buffer.reserve(USUAL_ROOM);
        }
    }

    /// Drops the beginning of a line above the limit; only its length and id are kept.
    fn shed_overlong(&mut self) {
        let whole = self.buffer[self.searched..].contains(&b'\n');
        if whole || self.buffer.len() <= self.limit {
            return;
        }
        let dropped = match &mut self.dropped {
            Some(dropped) => dropped,
            none => none.insert(Dropped { id: self.codec.answers(&self.buffer), bytes: 0 }),
        };
        dropped.bytes += self.buffer.len();
        self.buffer = Vec::with_capacity(USUAL_ROOM);
        self.searched = 0;
    }
}

/// Parses one line. `dropped` is its dropped beginning.
fn interpret(line: &[u8], dropped: Option<Dropped>, limit: usize, codec: &Codec) -> Option<WorkerEvent> {
    if let Some(dropped) = dropped {
        return Some(WorkerEvent::Oversized { id: dropped.id, bytes: dropped.bytes + line.len() });
    }
    if line.len() > limit {
        return Some(WorkerEvent::Oversized { id: codec.answers(line), bytes: line.len() });
    }
    codec.interpret(line)
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::protocol;

    async fn all(bytes: &'static [u8], limit: usize) -> Vec<String> {
        let mut reader = LinkReader::new(bytes, Codec::V1).with_limit(limit);
        let mut seen = Vec::new();
        while let Some(events) = reader.next().await.unwrap() {
            seen.push(match events {
                WorkerEvent::Frame(protocol::Incoming::Reply { id, answer: Ok(result) }) => {
                    format!("{id}={}", result.get())
                }
                WorkerEvent::Oversized { id, bytes } => format!("{id:?} too long: {bytes}"),
                other => format!("{other:?}"),
            });
        }
        seen
    }

    #[tokio::test]
    async fn noise_between_frames_costs_no_frame() {
        let seen = all(b"\nhello\n{\"id\":1,\"result\":1}\n{\"half\n{\"id\":2,\"result\":2}\n{\"id\":3", 1000).await;
        assert_eq!(seen, ["1=1", "2=2"]);
    }

    #[tokio::test]
    async fn a_flood_of_noise_leaves_others_their_turns() {
        const FLOOD: usize = 10_000;
        let lines = [b"noise\n".repeat(FLOOD), b"{\"id\":1,\"result\":1}\n".to_vec()].concat();
        let mut reader = LinkReader::new(&lines[..], Codec::V1);
        let mut turns = 0_u32;
        let others = async {
            loop {
                turns += 1;
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            events = reader.next() => assert!(matches!(events, Ok(Some(_))), "{events:?}"),
            () = others => {}
        }
        assert!(turns as usize >= FLOOD / TURN as usize, "{turns}");
    }

    #[tokio::test]
    async fn an_overlong_frame_is_reported_and_the_next_one_is_read() {
        let line = b"{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}\n{\"id\":6,\"result\":6}\n";
        assert_eq!(all(line, 50).await, ["Some(5) too long: 71", "6=6"]);
    }

    #[tokio::test]
    async fn an_overlong_frame_is_not_kept_in_memory() {
        let (mut host, worker) = tokio::io::duplex(1024);
        let mut reader = LinkReader::new(worker, Codec::V1).with_limit(10_000);
        let feed = async move {
            host.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":\"").await.unwrap();
            for _ in 0..100 {
                host.write_all(&[b'x'; 1000]).await.unwrap();
            }
            host.write_all(b"\"}\n").await.unwrap();
        };
        let (events, ()) = tokio::join!(reader.next(), feed);
        assert!(
            matches!(events, Ok(Some(WorkerEvent::Oversized { id: Some(9), bytes })) if bytes > 100_000),
            "{events:?}"
        );
        assert!(reader.buffer.capacity() < 64 * 1024);
    }
}
