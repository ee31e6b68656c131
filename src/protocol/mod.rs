//! The worker protocol, version 1, and the bare protocol: the lines on a worker's pipes. Bytes and values only, no I/O.
//!
//! Newline-delimited JSON-RPC 2.0; `docs/protocol.md` describes it for authors of workers.

mod bare;
#[cfg(test)]
mod both_ways;
mod frame;
mod hello_reply;
mod incoming;
mod parse;
mod trace;

pub use bare::{BareLine, bare_call, may_be_answer, parse_bare};
pub use frame::{
    CallFrame, Hello, cancel_frame, ping_frame, recall_frame, reply_frame, session_ended_frame, shutdown_frame,
};
pub use hello_reply::HelloReply;
pub use incoming::{HostMethod, Incoming, OutputNote, ProgressNote, WireError};
pub use parse::{id_of_answer, invalid_answer, parse, peek_id};
pub use trace::TraceContext;

/// The protocol version of this hostler.
pub const VERSION: u32 = 1;

/// The longest frame that a worker may send, in bytes.
pub const MAX_FRAME: usize = 64 * 1024 * 1024;

/// The request id of `hello`; calls are numbered from 1.
pub const HELLO_ID: u64 = 0;

/// Error codes in a worker's answers.
pub mod wire_code {
    /// The tool raised an exception.
    pub const TOOL_RAISED: i64 = -32_000;
    /// The result cannot become JSON.
    pub const INVALID_OUTPUT: i64 = -32_001;
    /// A declared secret is not set.
    pub const MISSING_SECRET: i64 = -32_002;
    /// The call was cancelled.
    pub const CANCELLED: i64 = -32_003;
    /// The tool ran out of memory, disk space or descriptors.
    pub const EXHAUSTED: i64 = -32_004;
    /// The worker returns a recalled call that it has not begun.
    pub const NOT_BEGUN: i64 = -32_005;
    /// The worker has no such function.
    pub const NO_FUNCTION: i64 = -32_601;
    /// An argument could not be converted.
    pub const BAD_ARGUMENT: i64 = -32_602;
    /// hostler could not answer the worker's request.
    pub const HOST_REFUSED: i64 = -32_020;
}
