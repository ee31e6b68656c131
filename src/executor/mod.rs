//! Which kind of tool runs a call, and with what: here pooled Python workers.

mod advice;
mod modules;
mod newer;
mod pooled;
mod secrets;
mod status;
mod versions;

pub use pooled::{Pools, Prepared};
pub use status::{FileStatus, Status};
