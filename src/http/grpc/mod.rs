//! gRPC, on the port and on the socket of the control face: the methods of specification 000, health and reflection.

mod arriving;
mod connection;
mod deadline;
mod health;
mod messages;
mod service;
mod unread;

pub use connection::{begins_http2, is_http2, serve};
pub use service::Door;
