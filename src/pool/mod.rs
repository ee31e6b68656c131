//! The workers of one tool file and their queue: a pure state machine, and the actor that carries out its effects.

mod actor;
mod admission;
mod alarm;
mod asking;
mod breaker;
mod broker;
mod broker_handle;
mod event;
mod handle;
mod job;
mod machine;
mod open_call;
mod perform;
mod rules;
mod status;
mod worker_state;

#[cfg(test)]
mod beside_tests;
#[cfg(test)]
mod breaker_tests;
#[cfg(test)]
mod harness;
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

pub use admission::{AdmissionQueue, RunPermit};
pub use broker::Caps;
pub use broker_handle::{BrokerHandle, Usage, WorkerObserver};
pub use handle::{Cancellation, Pool};
pub use job::{Caller, Job, Listener, NoopListener, SessionId, Settled};
pub use open_call::busy;
pub use rules::Rules;
pub use status::{PoolStatus, WorkerStatus};
