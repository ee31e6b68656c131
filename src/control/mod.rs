//! The control face: JSON-RPC 2.0 for programs that steer hostler, one message a line.

mod client;
mod face;
mod status;

pub use client::{Connection, ControlError};
pub use face::{About, Control};
pub use status::Status;
