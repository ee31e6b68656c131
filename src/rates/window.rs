//! The sliding window: a call is admitted if the one that it would push out of the allowed number is old enough.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::MutexGuard;

use super::CountError;
use super::ring::OpenRing;
use crate::policy::Turn;
use crate::process::Moment;

/// The counted calls of one key, held while they are looked at.
pub(super) enum Counted<'a> {
    Kept(OpenRing<'a>),
    Held(MutexGuard<'a, Recent>),
}

impl Counted<'_> {
    /// When a limit admits the next call.
    pub fn turn(&self, most: usize, window: Option<Duration>, now: Moment) -> Result<Turn, CountError> {
        let pushed_out = match self {
            _ if most == 0 => return Ok(Turn::Never),
            Self::Kept(ring) => ring.newest(most)?,
            Self::Held(recent) => recent.newest(most),
        };
        Ok(turn(pushed_out, window, now.since_boot))
    }

    /// Counts a call.
    pub fn add(&mut self, now: Moment) -> Result<(), CountError> {
        match self {
            Self::Kept(ring) => ring.add(now),
            Self::Held(recent) => {
                recent.add(now.since_boot);
                Ok(())
            }
        }
    }
}

/// When the next call may come, if the last of the allowed ones was made at this time.
fn turn(pushed_out: Option<i64>, window: Option<Duration>, now: i64) -> Turn {
    let (Some(made), Some(window)) = (pushed_out, window) else {
        return if pushed_out.is_none() { Turn::Now } else { Turn::Never };
    };
    // One that seems to come from the future was made just now.
    let age = Duration::from_millis(u64::try_from(now.saturating_sub(made)).unwrap_or_default());
    match window.checked_sub(age) {
        Some(left) if !left.is_zero() => Turn::After(left),
        _ => Turn::Now,
    }
}

/// The latest calls, oldest first, in milliseconds since the boot.
#[derive(Debug, Default)]
pub(super) struct Recent {
    made: VecDeque<i64>,
    most: usize,
}

impl Recent {
    /// Makes room for this many.
    pub fn keep(&mut self, most: usize) {
        self.most = self.most.max(most);
    }

    fn newest(&self, number: usize) -> Option<i64> {
        self.made.len().checked_sub(number).map(|index| self.made[index])
    }

    fn add(&mut self, now: i64) {
        if self.made.len() >= self.most {
            self.made.pop_front();
        }
        self.made.push_back(now);
    }
}
