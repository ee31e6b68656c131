//! One worker: how it is started, its pipes, its errors, its life and its end.

mod answer;
mod death;
mod dialect;
mod fresh;
mod host;
mod launch;
mod life;
mod memory;
mod news;
mod program;
mod python;
mod reader;
mod shim;
mod sources;
mod spec;
mod stack;
mod start_fault;
mod stderr;
mod writer;

pub use answer::{error_fault, is_cancelled, oversized_fault};
pub use death::{Death, died_fault, held_up_fault, idle_death_fault, is_sent, timeout_fault};
pub use dialect::Dialect;
pub use host::{Ask, HostAccess};
pub use launch::{Launcher, StartNote, StartNotes, Starting};
pub use memory::Excess;
pub use news::{Control, Flow, LogLine, News, NewsSender, WorkerHandle};
pub use program::ProgramLauncher;
pub use python::{PythonLauncher, PythonSpec};
pub use reader::LinkReader;
pub use shim::Shims;
pub use sources::Sources;
pub use spec::{Described, WorkerSpec};
pub use stack::Stack;
pub use writer::{LinkWriter, start_writer};
