//! The only place that starts, signals and reaps processes.
//!
//! Every process gets a group of its own, an explicit and complete environment, and pipes on all three
//! streams. Nothing is inherited by accident. Each also gets a Landlock domain of its own, so that it cannot read another.

mod behind;
mod boot;
mod cgroup;
mod child;
mod confinement;
pub mod descriptors;
mod detached;
mod domain;
mod edges;
mod env_filter;
mod exit;
mod hardening;
#[cfg(target_os = "linux")]
mod inherited;
pub mod keeper;
mod ladder;
mod launch;
mod limits;
mod mark;
mod namespaced;
mod outbox;
mod once;
#[cfg(target_os = "linux")]
mod peer;
mod proc_file;
mod process_tree;
mod run;
#[cfg(target_os = "linux")]
mod shared_memory;
mod signals;
mod stray;
mod sweep;
mod table;
mod trim;
mod unread;
mod usage;
#[cfg(not(target_os = "linux"))]
mod unshared;
mod walls;

pub use behind::{CommandLauncher, NoLauncher};
pub use boot::{Moment, boot_id};
pub use child::{Child, Tracked};
pub use confinement::{gains_no_privileges, is_below_hostler, is_below_us, is_marked, own_confinement};
pub use detached::{detach, is_hostler, own_program, start_detached};
pub use domain::is_supported as has_domains;
pub use edges::{arm, edge, is_broken};
pub use env_filter::EnvFilter;
pub use exit::{Exit, PipeEnd};
pub use hardening::harden;
#[cfg(target_os = "linux")]
pub use inherited::{own_inheritance, reset_oom_score};
pub use ladder::{Grace, stop};
pub use launch::{Launch, SpawnError, cannot_run, reaches_workers, spawn_when_written, worker_environment};
pub use limits::{limit_behind, limit_in, too_few_files, without_thread};
pub use once::{Done, End, Once, Stream, USUAL_TAIL, once};
pub use outbox::{Barrier, Outbox, Progress, Writer};
#[cfg(target_os = "linux")]
pub use peer::Peer;
pub use process_tree::reap_orphans;
pub use run::{Finished, last_word, run, shell_word};
#[cfg(target_os = "linux")]
pub use shared_memory::SharedMemory;
pub use signals::{SignalRelay, Signals, signal_name, survive_notices};
pub use stray::end_stray;
pub use sweep::sweep;
pub use table::{processor_time, resident, resident_alone, started};
pub use trim::{keep_trimmed, release_text};
pub use unread::FirstInput;
#[cfg(not(target_os = "linux"))]
pub use unshared::{Peer, SharedMemory, own_inheritance, reset_oom_score};
pub use usage::{CallCount, Excess, UsageLimits, exceeded};
pub use walls::{Layer as WallLayer, Own, Walls, can_record, layers as wall_layers, private_folders_removed};
