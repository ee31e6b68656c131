//! MCP in all published revisions, on rmcp's model types: one session per client, independent of the transport.
//!
//! A connection only frames: [`connection`] turns bytes into lines, [`session`] answers each of them, and an
//! [`Outbox`](crate::process::Outbox) writes. There is no other loop in between: a `tools/call` costs one parse, one task
//! and one write.
#![expect(deprecated, reason = "logging and sampling: later revisions drop them, clients in the field still use them")]

mod answering;
mod arguments;
mod blocks;
mod call;
mod client;
mod connection;
mod files;
mod large;
mod lifecycle;
mod message;
mod notifier;
mod offered;
mod open_requests;
mod params;
mod polled;
mod prompts;
mod reading;
mod resources;
mod record;
mod record_input;
mod recorder;
mod result;
mod round_trips;
mod rounds;
mod serve;
mod session;
mod stdio;
mod stored;
mod subscription;
mod task_questions;
mod tasks;
mod tools;
mod watched;

pub use connection::{serve_connection, serve_session};
pub use lifecycle::is_known_revision;
pub use record::Record;
pub use serve::{Client, ClientInfo};
pub use stdio::{Stdio, can_be_passed};
