//! Medians, and rounds in which two or more sides take turns.

use std::time::Duration;

/// The middle of some numbers; the upper one of two.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The middle of some times, in microseconds.
pub fn p50(times: &[Duration]) -> f64 {
    median(times.iter().map(|time| time.as_secs_f64() * 1e6).collect())
}

/// What several sides measured, round by round.
#[derive(Debug, Default)]
pub struct Rounds<const SIDES: usize>(Vec<[f64; SIDES]>);

impl<const SIDES: usize> Rounds<SIDES> {
    pub fn new() -> Self {
        Self(Vec::new())
    }

    pub fn push(&mut self, round: [f64; SIDES]) {
        self.0.push(round);
    }

    /// The median of one side.
    pub fn of(&self, side: usize) -> f64 {
        median(self.0.iter().map(|round| round[side]).collect())
    }

    /// The median of one side divided by another, each within its round.
    pub fn ratio(&self, side: usize, by: usize) -> f64 {
        median(self.0.iter().map(|round| round[side] / round[by]).collect())
    }

    /// The median of one side less another, each within its round.
    pub fn difference(&self, side: usize, less: usize) -> f64 {
        median(self.0.iter().map(|round| round[side] - round[less]).collect())
    }
}
