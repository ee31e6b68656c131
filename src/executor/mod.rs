//! Which kind of tool runs a call, and with what: here pooled Python workers.

mod advice;
mod pooled;
mod secrets;
mod versions;

pub use pooled::{Pools, Prepared};
