//! The supervisor's side of the pipe to its keeper: a thread that hears what the keeper passes on and notices its death,
//! also while the rest of hostler is stuck.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, kill_process};

use super::keep::die_of;
use super::say::{say, told};
use crate::process::{process_tree, table};

/// Who is told of signals that the keeper passes on.
type Heard = Box<dyn Fn(i32) + Send>;

static IS_KEPT: AtomicBool = AtomicBool::new(false);
/// Held only to set or to call it.
static LISTENER: Mutex<Option<Heard>> = Mutex::new(None);
/// Everything is being killed.
static IS_OVER: AtomicBool = AtomicBool::new(false);
/// Held while a process is started, and for good by whoever ends everything.
static STARTS: Mutex<()> = Mutex::new(());

/// A start that takes longer is not waited for: what it makes dies with the thread that made it.
const START: Duration = Duration::from_millis(200);
/// How long cleaning up may take once the keeper is gone.
const CLEAN_UP: Duration = Duration::from_millis(1500);
/// How long the log may take then, if somebody reads it.
const LAST_WORDS: Duration = Duration::from_millis(50);
/// How long it may take at an end in order, which leaves the rest to the keeper.
const FAREWELL: Duration = Duration::from_millis(200);

/// Whether a keeper watches over this process.
pub fn is_kept() -> bool {
    IS_KEPT.load(Ordering::Relaxed)
}

/// Waits for ever once everything below is being killed, because the keeper was or because somebody asked twice: whose
/// worker dies then must not be told that it died of itself, in the moment before hostler is gone.
pub async fn unless_over() {
    if IS_OVER.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
}

/// Passes signals on to `heard` from now on. Before that they do what they do by default.
pub(in crate::process) fn listen(heard: Heard) {
    *LISTENER.lock() = Some(heard);
}

/// Leave to start a process, while it is held. There is none once everything has to end.
pub(in crate::process) fn open_for_starts() -> MutexGuard<'static, ()> {
    STARTS.lock()
}

/// Kills what is left below before the process ends. To be called last, under a keeper: what was adopted is killed as
/// well, and children of the embedding program are.
pub fn finish() {
    if is_kept() {
        close();
        process_tree::end_all(&[], FAREWELL);
    }
}

/// Starts the thread.
pub(super) fn watch(words: OwnedFd, keeper: Pid) -> std::io::Result<()> {
    IS_KEPT.store(true, Ordering::Relaxed);
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
    let text = told(&ended).map(|text| format!("; {text}")).unwrap_or_default();
    say(&format!("its keeper ({keeper}) was killed, so hostler ends at once{text}"));
    // Without any of the ways in which an exit can be held up; nobody is left to read a status.
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

/// Nothing is started any more.
fn close() {
    IS_OVER.store(true, Ordering::SeqCst);
    std::mem::forget(STARTS.try_lock_for(START));
}
