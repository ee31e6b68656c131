//! The control face: JSON-RPC 2.0 for programs that call tools, watch and steer hostler.
//!
//! One table of methods (`methods`) is served to every client, in frames: `lines` reads them from a stream, a frame a line.

mod approvals;
mod calls;
mod client;
mod connection;
mod document;
mod events;
mod face;
mod frames;
mod history;
mod itself;
mod lines;
mod message;
mod methods;
mod mode;
mod pages;
mod pools;
mod questions;
mod refusals;
mod run;
mod sessions;
mod started;
mod status;
mod table;
mod text;
mod tools;
#[cfg(feature = "grpc")]
mod typed;

pub use client::{Client, Requests};
pub use connection::{Connection, ControlError};
pub use document::{document, names, needs_session};
pub use face::{About, Control};
pub use history::{info as kept_call, page as call_page, stored as stored_states};
pub use lines::AtEnd;
pub use message::{
    ELICIT, EVENT, Event, LIST, Line, ListParams, Question, RUN, Refusal, RunParams, SHOW, ToolParams, notification,
    request, response,
};
pub use pages::{NoRandom, digest, secret};
pub use status::Status;
pub use table::Scope;
#[cfg(feature = "grpc")]
pub use tools::{Available, Descriptor, Execute, Executed, Schemas};
