//! What the last seconds were like.

use std::collections::VecDeque;

/// The seconds that are kept: more than a terminal is wide.
const KEPT: usize = 240;

/// One figure for each second, the newest last.
#[derive(Debug, Default)]
pub struct Series(VecDeque<u64>);

impl Series {
    pub fn push(&mut self, figure: u64) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(figure);
    }

    /// The last `most` of them.
    pub fn last(&self, most: usize) -> Vec<u64> {
        self.0.iter().skip(self.0.len().saturating_sub(most)).copied().collect()
    }

    pub fn newest(&self) -> u64 {
        self.0.back().copied().unwrap_or_default()
    }
}

/// Calls, faults and times, second by second.
#[derive(Debug, Default)]
pub struct History {
    pub calls: Series,
    pub failures: Series,
    /// The median time of a call in microseconds; 0 where none ended.
    pub median: Series,
    /// The time in microseconds that one call of twenty exceeds.
    pub slow: Series,
    /// Times of this second.
    times: Vec<u64>,
    /// The counts of the last look.
    before: Option<[u64; 2]>,
    /// Those since then that belong to this second.
    now: [u64; 2],
}

impl History {
    /// A call has ended. Of a second with very many calls, the first are enough.
    pub fn ended(&mut self, milliseconds: f64) {
        const ENOUGH: usize = 100_000;
        if self.times.len() < ENOUGH {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "microseconds of a call")]
            self.times.push((milliseconds * 1000.0).max(0.0) as u64);
        }
    }

    /// How many calls have ended so far, and how many of them failed. Another hostler begins anew.
    pub fn counted(&mut self, ended: u64, failed: u64) {
        let counts = [ended, failed];
        if let Some(before) = self.before {
            for (now, (count, before)) in self.now.iter_mut().zip(counts.into_iter().zip(before)) {
                *now += count.saturating_sub(before);
            }
        }
        self.before = Some(counts);
    }

    /// A second is over.
    pub fn second(&mut self) {
        let [calls, failures] = std::mem::take(&mut self.now);
        self.calls.push(calls);
        self.failures.push(failures);
        self.times.sort_unstable();
        let at = |share: usize| self.times.get(self.times.len() * share / 100).copied().unwrap_or_default();
        self.median.push(at(50));
        self.slow.push(at(95));
        self.times.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_its_calls_and_their_times() {
        let mut history = History::default();
        history.counted(1000, 10);
        history.counted(1003, 11);
        (1..=100).for_each(|time| history.ended(f64::from(time)));
        history.second();
        history.second();
        assert_eq!((history.calls.last(9), history.failures.last(9)), (vec![3, 0], vec![1, 0]));
        assert_eq!((history.median.last(9), history.slow.last(9)), (vec![51_000, 0], vec![96_000, 0]));
        // Another hostler counts from 0.
        history.counted(2, 0);
        history.counted(4, 0);
        history.second();
        assert_eq!(history.calls.last(1), [2]);
    }

    #[test]
    fn only_the_last_seconds_are_kept() {
        let mut series = Series::default();
        (0..1000).for_each(|second| series.push(second));
        assert_eq!((series.last(2), series.last(9999).len(), series.newest()), (vec![998, 999], KEPT, 999));
    }
}
