//! All workers of one tool file, with their queue: a pure state machine and the loop that performs what it says.

mod actor;
mod alarm;
mod cancellation;
mod commons;
mod desk;
mod event;
mod handle;
mod job;
mod lane;
mod listen;
mod machine;
mod perform;
mod rules;
mod seat;
mod shared;
mod status;
mod tally;
mod trouble;
#[cfg(test)]
mod beside_tests;
#[cfg(test)]
mod growth_tests;
#[cfg(test)]
mod house;
#[cfg(test)]
mod loop_tests;
#[cfg(test)]
mod machine_tests;
#[cfg(test)]
mod replacement_tests;
#[cfg(test)]
mod sharing_tests;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod trouble_tests;

pub use cancellation::Cancellation;
pub use commons::{Caps, Commons, Poke, PoolId};
pub use desk::busy;
pub use event::{CallId, Decision, Effect, Event, Manner, Moment, Need, Verdict, WhyStart, WhyStop, Wish, WorkerId};
pub use handle::Pool;
pub use job::{Job, Listener, NoopListener, Settled};
pub use lane::{Full, Lane, Turn};
pub use machine::{Machine, PoolView, Resting, WorkerState, WorkerView};
pub use rules::Rules;
pub use shared::{Shared, Usage};
pub use tally::{LastExit, PoolStatus, WorkerStatus};
