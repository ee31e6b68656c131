//! The only place that starts, signals and reaps processes.
//!
//! Every process gets a group of its own, an explicit and complete environment, and pipes on all three
//! streams. Nothing is inherited by accident.

mod child;
mod exit;
mod process_tree;
pub mod keeper;
mod ladder;
mod launch;
mod mark;
mod once;
mod run;
mod signals;
mod table;
mod trim;
mod env_filter;
mod word;

pub use child::{Child, Tracked};
pub use env_filter::EnvFilter;
pub use exit::Exit;
pub use exit::PipeEnd;
pub use ladder::{Grace, stop};
pub use launch::{Launch, SpawnError, reaches_workers, worker_environment};
pub use launch::{cannot_run, spawn_when_written};
pub use mark::sweep;
pub use once::{Done, End, Once, Stream, USUAL_TAIL, once};
pub use process_tree::reap_orphans;
pub use run::last_word;
pub use run::{Finished, run};
pub use signals::{Signals, survive_notices};
pub use table::{processor_time, resident};
pub use trim::keep_trimmed;
pub use word::shell_word;
