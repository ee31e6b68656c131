//! The workers of one tool file and their queue: a pure state machine, and the actor that carries out its effects.

mod actor;
mod alarm;
mod broker;
mod open_call;
mod event;
mod handle;
mod job;
mod admission;
mod machine;
mod perform;
mod rules;
mod worker_state;
mod broker_handle;
mod status;
mod breaker;
#[cfg(test)]
mod beside_tests;
#[cfg(test)]
mod growth_tests;
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
#[cfg(test)]
mod breaker_tests;

pub use admission::{AdmissionQueue, RunPermit};
pub use broker::Caps;
pub use broker_handle::{BrokerHandle, Usage};
pub use handle::Cancellation;
pub use handle::Pool;
pub use job::{Caller, Job, Listener, NoopListener, SessionId, Settled};
pub use open_call::busy;
pub use rules::Rules;
pub use status::{PoolStatus, WorkerStatus};
