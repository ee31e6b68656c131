//! gRPC, on the port and on the socket of the control face: the methods of specification 000, health and reflection.

mod connection;
mod health;
mod messages;
mod service;

pub use connection::{begins_http2, is_http2, serve};
pub use service::Door;
