//! All workers of one tool file, with their queue: a pure state machine and the loop that performs what it says.

mod event;
mod machine;
mod seat;

pub use event::{CallId, Effect, Event, Manner, Moment, Rules, Verdict, WorkerId};
pub use machine::Machine;
