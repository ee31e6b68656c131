//! All workers of one tool file, with their queue: a pure state machine and the loop that performs what it says.

mod actor;
mod alarm;
mod desk;
mod event;
mod handle;
mod job;
mod listen;
mod machine;
mod perform;
mod seat;
#[cfg(test)]
mod loop_tests;
#[cfg(test)]
mod machine_tests;
#[cfg(test)]
mod simulation;

pub use event::{CallId, Effect, Event, Manner, Moment, Rules, Verdict, WorkerId};
pub use handle::Pool;
pub use job::{Deaf, Job, Listener, Settled};
pub use machine::Machine;
