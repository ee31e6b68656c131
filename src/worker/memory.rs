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

/// The memory that there is for all processes, in bytes: the machine's, or what a container may have of it.
pub(super) fn installed() -> Option<usize> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = machine.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"))?;
    let total = total.trim().parse::<usize>().ok()?.checked_mul(1024)?;
    let container = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let most = container.and_then(|text| text.trim().parse::<usize>().ok());
    Some(most.map_or(total, |most| most.min(total)))
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
