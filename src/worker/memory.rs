//! A worker's memory against its limit. Address space says nothing (numpy alone maps a gigabyte), so the pages that are
//! really held are looked at, time and again.

use std::time::Duration;

use crate::process::resident;

/// How often. A tool that fills memory fills about a gigabyte a second.
const LOOK: Duration = Duration::from_millis(100);

/// More memory than a worker may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excess {
    /// What it held, in bytes, its children included.
    pub held: usize,
    /// What it may hold.
    pub limit: usize,
}

/// Waits until a process holds more than its limit; for ever, where it has none.
pub(super) async fn exceeded(pid: u32, limit: Option<usize>) -> Excess {
    let Some(limit) = limit else { return std::future::pending().await };
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Some(held) = resident(pid).filter(|held| *held > limit) {
            return Excess { held, limit };
        }
    }
}
