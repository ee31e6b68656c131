//! The HTTP server: the control face for programs and browsers of this machine, and MCP over Streamable HTTP.
//!
//! `listener` accepts connections, `guard` decides from the head of a request who may go on, `routes` finds what answers it.

mod body;
mod conversation;
mod face;
#[cfg(feature = "grpc")]
mod grpc;
mod guard;
mod listener;
mod mcp;
mod page;
mod reports;
mod routes;
mod seats;
mod tokens;
mod trace;
mod websocket;

pub use face::{Face, Given, House, Opened};
#[cfg(feature = "grpc")]
pub use grpc::{Door, begins_http2, serve as serve_grpc};
pub use listener::Listener;
pub use tokens::token;
