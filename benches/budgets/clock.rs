//! Time limits for what is measured, and one processor for it where hand-overs between two would be measured as well.

use std::process::exit;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Runs a measurement with all its peers on one processor: which one wakes the other, and how fast, is up to the machine.
#[cfg(target_os = "linux")]
pub fn on_one_processor<T>(measure: impl FnOnce() -> T) -> T {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let Ok(all) = sched_getaffinity(None) else { return measure() };
    let mut one = CpuSet::new();
    if let Some(last) = (0..CpuSet::MAX_CPU).rev().find(|number| all.is_set(*number)) {
        one.set(last);
    }
    // Peers inherit it. Where it is refused, the figures are those of several processors.
    let _ = sched_setaffinity(None, &one);
    let measured = measure();
    let _ = sched_setaffinity(None, &all);
    measured
}

#[cfg(not(target_os = "linux"))]
pub fn on_one_processor<T>(measure: impl FnOnce() -> T) -> T {
    measure()
}

/// Ends the whole program if it is not dropped in time. The peers see their pipes close and leave.
pub fn watchdog(name: &str, patience: Duration) -> Sender<()> {
    let (alive, ended) = channel::<()>();
    let name = name.to_owned();
    std::thread::spawn(move || {
        if ended.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            eprintln!("budgets: {name} hung for {} s; the bench ends here", patience.as_secs());
            exit(1);
        }
    });
    alive
}
