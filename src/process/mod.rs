//! The only place that starts, signals and reaps processes.
//!
//! Every process gets a group of its own, a complete environment that somebody wrote down, and pipes on all three
//! streams. Nothing is inherited by accident.

mod child;
mod exit;
mod family;
mod household;
pub mod keeper;
mod ladder;
mod last_word;
mod launch;
mod launched;
mod lineage;
mod memory;
mod once;
mod pipe_end;
mod program;
mod run;
mod signals;
mod sweep;
mod table;
mod thread;
mod withheld;
mod word;

pub use child::{Child, Tracked};
pub use exit::Exit;
pub use household::keep_house;
pub use ladder::{Grace, stop};
pub use last_word::last_word;
pub use launch::{Launch, SpawnError, reaches_workers, worker_environment};
pub use memory::{processor_time, resident};
pub use once::{Done, End, Once, Stream, USUAL_TAIL, once};
pub use pipe_end::PipeEnd;
pub use program::{cannot_run, spawn_when_written};
pub use run::{Finished, run};
pub use signals::{Signals, survive_notices};
pub use sweep::sweep;
pub use withheld::Withheld;
pub use word::shell_word;
