//! The sliding window: a call is admitted if the one that it would push out of the allowed number is old enough.

use std::collections::VecDeque;
use std::time::Duration;

use crate::policy::Turn;

/// The latest calls, oldest first, in milliseconds since the boot.
#[derive(Debug, Default)]
pub(super) struct Recent {
    made: VecDeque<i64>,
    room: usize,
}

impl Recent {
    /// None yet, and room for this many.
    pub fn with_room(room: usize) -> Self {
        Self { made: VecDeque::new(), room }
    }

    /// Makes room for this many.
    pub fn keep(&mut self, room: usize) {
        self.room = self.room.max(room);
    }

    /// Whether the newest is that old, or there is none.
    pub fn is_older_than(&self, age: Duration, now: i64) -> bool {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        self.made.back().is_none_or(|newest| now.saturating_sub(*newest) > age)
    }

    /// The times, oldest first.
    pub fn times(&self) -> impl Iterator<Item = i64> {
        self.made.iter().copied()
    }

    /// Counts a call. None is older than the one before: the clocks of earlier boots may disagree.
    pub fn add(&mut self, time: i64) {
        let time = self.made.back().map_or(time, |last| time.max(*last));
        if self.made.len() >= self.room {
            self.made.pop_front();
        }
        self.made.push_back(time);
    }

    /// When a limit admits the next call.
    pub fn turn(&self, most: usize, window: Option<Duration>, now: i64) -> Turn {
        if most == 0 {
            return Turn::Never;
        }
        let Some(index) = self.made.len().checked_sub(most) else { return Turn::Now };
        let Some(window) = window else { return Turn::Never };
        // One that seems to come from the future was made just now.
        let age = Duration::from_millis(u64::try_from(now.saturating_sub(self.made[index])).unwrap_or_default());
        match window.checked_sub(age) {
            Some(left) if !left.is_zero() => Turn::After(left),
            _ => Turn::Now,
        }
    }
}
