//! The calls that a client has started and comes back to: their handles, and what they have printed.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::Notify;

use crate::call::CallHandle;
use crate::outcome::Outcome;
use crate::pool::Listener;

/// The ended calls of a client that are kept, the newest, and the most bytes of their results.
const KEPT: usize = 100;
const MOST_BYTES: usize = 64 << 20;
/// The most bytes of a call's output that are kept, the newest.
const MOST_OUTPUT: usize = 1 << 20;

/// A piece of output.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Chunk {
    /// Its place among those of the call.
    pub number: u64,
    /// `stdout` or `stderr`.
    pub stream: String,
    /// The text.
    pub text: String,
}

/// A call that a client has started.
pub(super) struct StartedCall {
    pub handle: CallHandle,
    pub collected: Arc<Collected>,
}

/// Those of one client.
#[derive(Default)]
pub(super) struct Started {
    /// Oldest first. Locked only to add, to look up or to drop.
    calls: Mutex<VecDeque<Arc<StartedCall>>>,
}

impl Started {
    /// Adds one, and forgets old ones that have ended.
    pub fn add(&self, call: Arc<StartedCall>) {
        let mut calls = self.calls.lock();
        calls.push_back(call);
        let (mut count, mut bytes) = (0, 0);
        let mut kept: VecDeque<_> = VecDeque::with_capacity(calls.len());
        for call in calls.drain(..).rev() {
            if let Some(size) = call.collected.size() {
                (count, bytes) = (count + 1, bytes + size);
                if count > KEPT || bytes > MOST_BYTES {
                    continue;
                }
            }
            kept.push_front(call);
        }
        *calls = kept;
    }

    pub fn get(&self, id: &str) -> Option<Arc<StartedCall>> {
        self.calls.lock().iter().find(|call| call.handle.id() == id).cloned()
    }
}

/// What a call has printed, and whether it has ended.
#[derive(Default)]
pub(super) struct Collected {
    /// Locked only to add or to copy.
    state: Mutex<State>,
    news: Notify,
}

#[derive(Default)]
struct State {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    next: u64,
    /// The size of the result, once there is an outcome.
    ended: Option<usize>,
}

impl Collected {
    /// The bytes of an ended call.
    fn size(&self) -> Option<usize> {
        let state = self.state.lock();
        Some(state.ended? + state.bytes)
    }

    /// The chunks from a number on, how many before them are lost, the next number, and whether it is the last.
    pub fn since(&self, from: u64) -> (Vec<Chunk>, u64, u64, bool) {
        let state = self.state.lock();
        let chunks: Vec<Chunk> = state.chunks.iter().filter(|chunk| chunk.number >= from).cloned().collect();
        let first = chunks.first().map_or(state.next, |chunk| chunk.number);
        (chunks, first.saturating_sub(from), state.next, state.ended.is_some())
    }

    /// Waits for the chunk of this number, or for the end.
    pub async fn reaches(&self, number: u64) {
        loop {
            let news = self.news.notified();
            {
                let state = self.state.lock();
                if state.next > number || state.ended.is_some() {
                    return;
                }
            }
            news.await;
        }
    }
}

impl Listener for Collected {
    fn output(&self, stream: &str, text: &str) {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.bytes += text.len();
        state.chunks.push_back(Chunk { number, stream: stream.to_owned(), text: text.to_owned() });
        while state.bytes > MOST_OUTPUT {
            let Some(oldest) = state.chunks.pop_front() else { break };
            state.bytes -= oldest.text.len();
        }
        drop(state);
        self.news.notify_waiters();
    }

    fn ended(&self, outcome: &Arc<Outcome>) {
        self.state.lock().ended = Some(outcome.ended.as_ref().map_or(0, |result| result.get().len()));
        self.news.notify_waiters();
    }
}
