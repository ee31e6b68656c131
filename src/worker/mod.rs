//! One worker: how it is started, its pipes, its errors, its life and its end.

mod answer;
mod death;
mod host;
mod life;
mod link;
mod news;
mod shim;
mod stack;
mod start;
mod stderr;

pub use answer::{error_fault, is_cancelled, oversized_fault};
pub use death::{Death, died_fault, timeout_fault};
pub use host::{Ask, HostAccess};
pub use link::{LinkReader, LinkWriter, start_writer};
pub use news::{Control, LogLine, News, NewsSender, WorkerHandle};
pub use shim::Shims;
pub use stack::Stack;
pub use start::{Launcher, PythonLauncher, StartNote, StartNotes, Starting, WorkerSpec};
