//! The MCP face: `tools/list` and `tools/call` over standard input and output, on rmcp.
#![expect(deprecated, reason = "logging and sampling: later revisions drop them, clients in the field still use them")]

mod answer;
mod changes;
mod content;
mod express;
mod face;
mod hearing;
mod input;
mod listed;
mod llm;
mod outbox;
mod reply;
mod serve;
mod stdio;
mod tools;
mod unreadable;

pub use serve::{Ended, serve};
