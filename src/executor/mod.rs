//! Which kind of tool runs a call, and with what: here pooled Python workers.

mod advice;
mod modules;
mod pooled;
mod secrets;

pub use pooled::{Pools, Prepared};
