//! One worker: its start, pipes, faults, task and end.

mod answer;
mod death;
mod codec;
mod handshake;
mod launch;
mod task;
mod events;
mod program;
mod python;
mod reader;
mod shim;
mod sources;
mod stack;
mod stderr;
mod writer;

pub use answer::{error_fault, is_cancelled, oversized_fault};
pub use death::{Death, died_fault, held_up_fault, idle_death_fault, is_sent, timeout_fault};
pub use events::{Backpressure, Control, EventSender, LogLine, WorkerEvent, WorkerHandle};
#[cfg(test)]
pub use launch::Starting;
pub use launch::WorkerSpec;
pub use launch::{Ask, HostAccess, Waits};
pub use launch::{Launcher, StartNote, StartNotes};
pub use program::ProgramLauncher;
pub use python::{PythonLauncher, PythonSpec};
pub use shim::Shims;
pub use sources::Sources;
pub use stack::Stack;
#[cfg(test)]
pub use writer::LinkWriter;
pub use writer::OpenRequest;
pub use writer::PING_ID;
