//! The executors, by kind of tool: pooled workers for Python files and persistent executables, one process per call for
//! other executables, and built-in tools inside hostler.

mod advice;
mod apart;
mod blocked;
mod built_in;
mod identity;
mod makers;
mod one_shot;
mod pooled;
mod seat;
mod store;
mod variables;
mod admission;
mod walls;

pub use built_in::BuiltIns;
pub use makers::Makers;
pub use one_shot::OneShots;
pub use pooled::{FileStatus, Status};
pub use pooled::{Invocation, Pools, caps};
pub use store::{PoolStore, SharedStatus};
