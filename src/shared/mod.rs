//! One hostler for all clients of a person.
//!
//! ```text
//! client ── hostler serve (attached) ─┐ control socket
//!    └── stdin, stdout ───────────────┴─ shared hostler ── workers
//! ```
//!
//! [`mod@attach`] is what a client starts: it passes its streams to the shared hostler ([`host`]) and stays. [`start`] finds
//! or starts one, at the [`place`] of its [`key`].

mod attach;
mod command_session;
mod host;
mod house;
mod key;
mod message;
mod place;
mod session;
mod session_log;
mod start;
mod stderr;

pub use attach::{Alone, Start, Wanted, attach};
pub use command_session::{CommandSession, Hears, Opened, Unanswered, open_or_start, open_session};
pub use host::{open_log, run};
pub use key::{build, own_key, reach_key};
pub use place::Place;
pub use start::{COMMAND, READY, Unshared, find};
