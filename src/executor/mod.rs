//! Which kind of tool runs a call, and with what: Python files in pooled workers, executables in a process for each call.

mod advice;
mod modules;
mod newer;
mod one_shot;
mod pooled;
mod secrets;
mod status;
mod versions;

pub use one_shot::OneShots;
pub use pooled::{Pools, Prepared};
pub use status::{FileStatus, Status};
