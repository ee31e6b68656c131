//! One worker: how it is started, its pipes, its errors, its life and its end.

mod answer;
mod death;
mod host;
mod life;
mod memory;
mod news;
mod reader;
mod shim;
mod sources;
mod stack;
mod start;
mod stderr;
mod writer;

pub use answer::{error_fault, is_cancelled, oversized_fault};
pub use death::{Death, died_fault, held_up_fault, idle_death_fault, is_sent, timeout_fault};
pub use host::{Ask, HostAccess};
pub use memory::Excess;
pub use news::{Control, Flow, LogLine, News, NewsSender, WorkerHandle};
pub use reader::LinkReader;
pub use shim::Shims;
pub use sources::Sources;
pub use stack::Stack;
pub use start::{Described, Launcher, PythonLauncher, StartNote, StartNotes, Starting, WorkerSpec};
pub use writer::{LinkWriter, start_writer};
