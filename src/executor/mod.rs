//! Which kind of tool runs a call, and with what: Python files and executables that stay in pooled workers, other executables
//! in a process for each call, built-in ones right here.

mod advice;
mod built_in;
mod makers;
mod one_shot;
mod pooled;
mod secrets;
mod store;
mod admission;

pub use built_in::BuiltIns;
pub use makers::Makers;
pub use one_shot::OneShots;
pub use pooled::{FileStatus, Status};
pub use pooled::{Invocation, Pools, caps};
pub use secrets::{named_itself, trouble_of_secret};
pub use store::{PoolKey, PoolStore};
