//! The supervisor's side of the pipe to its keeper: a thread that receives forwarded signals and detects the keeper's
//! death, even while the rest of hostler is blocked.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, kill_process};

use super::keep::die_of;
use super::say::{say, summary};
use crate::process::{process_tree, table};

/// Receives forwarded signals.
type Heard = Box<dyn Fn(i32) + Send>;

/// Its process id, 0 without one. It stays known when it is killed.
static KEEPER: AtomicI32 = AtomicI32::new(0);
/// Locked only to set or to call it.
static LISTENER: Mutex<Option<Heard>> = Mutex::new(None);
/// Everything is being killed.
static IS_OVER: AtomicBool = AtomicBool::new(false);
/// Locked while a process is started, and permanently once everything is being killed.
static STARTS: Mutex<()> = Mutex::new(());

/// The wait for a start in progress. After that, its process dies with the thread that started it.
const START: Duration = Duration::from_millis(200);
/// The time limit for cleanup after the keeper's death.
const CLEAN_UP: Duration = Duration::from_millis(1500);
/// The time limit for flushing the log after that.
const LAST_WORDS: Duration = Duration::from_millis(50);
/// The time limit for cleanup in an orderly shutdown; the keeper does the rest.
const FAREWELL: Duration = Duration::from_millis(200);

/// Whether a keeper watches over this process.
pub fn is_kept() -> bool {
    keeper().is_some()
}

/// The keeper that this process was started under, whether it lives or not.
pub fn keeper() -> Option<Pid> {
    Pid::from_raw(KEEPER.load(Ordering::Relaxed))
}

/// Blocks forever once everything is being killed: otherwise callers would receive the deaths of workers as failures
/// just before hostler exits.
pub async fn unless_over() {
    if IS_OVER.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
}

/// Forwards signals to `heard` from now on. Before that they have their default effect.
pub(in crate::process) fn listen(heard: Heard) {
    *LISTENER.lock() = Some(heard);
}

/// Permission to start a process while the guard is held. Denied once everything is being killed.
pub(in crate::process) fn open_for_starts() -> MutexGuard<'static, ()> {
    STARTS.lock()
}

/// Kills all remaining descendants before the process exits. Call it last and only under a keeper: it also kills
/// adopted processes and children of the embedding program.
pub fn finish() {
    if is_kept() {
        close();
        process_tree::end_all(&[], FAREWELL);
    }
}

/// Starts the thread.
pub(super) fn watch(words: OwnedFd, keeper: Pid) -> std::io::Result<()> {
    KEEPER.store(keeper.as_raw_pid(), Ordering::Relaxed);
    let thread = std::thread::Builder::new().name("keeper-watch".to_owned());
    thread.spawn(move || attend(&words, keeper)).map(drop)
}

fn attend(words: &OwnedFd, keeper: Pid) {
    loop {
        let mut word = [0];
        match rustix::io::read(words, &mut word) {
            Ok(1..) => hear(i32::from(word[0])),
            Err(Errno::INTR) => {}
            Ok(0) | Err(_) => break,
        }
    }
    close();
    if table::children(getpid()).is_empty() {
        process_tree::kill_groups();
    }
    let ended = process_tree::end_all(&[], CLEAN_UP);
    crate::telemetry::flush(LAST_WORDS);
    let text = summary(&ended).map(|text| format!("; {text}")).unwrap_or_default();
    say(&format!("the keeper ({keeper}) was killed; hostler exits{text}"));
    // Exits without running handlers that could block; no process reads the status.
    let _ = kill_process(getpid(), Signal::KILL);
}

fn hear(number: i32) {
    if let Some(heard) = &*LISTENER.lock() {
        return heard(number);
    }
    close();
    process_tree::end_all(&[], CLEAN_UP);
    die_of(number);
}

/// From here on nothing is started.
fn close() {
    IS_OVER.store(true, Ordering::SeqCst);
    std::mem::forget(STARTS.try_lock_for(START));
}
