//! Recent failures of a pool's workers, and how long no worker is started because of them.
//!
//! Failed starts and deaths are counted apart: the start after a failed one will probably fail too,
//! while a worker that died during one call may well serve the next.

use std::time::Duration;

use super::event::Moment;
use super::rules::Rules;

#[derive(Debug)]
pub(super) struct CircuitBreaker {
    /// Failed starts since the last successful one.
    failures: u32,
    /// Deaths since the last answer.
    deaths: u32,
    /// No start before this time.
    retry_at: Moment,
    /// When the last worker died.
    died_at: Option<Moment>,
    /// Failed starts without a waiting call, since the last successful one.
    failed_additions: u32,
    /// No start without a waiting call before this time.
    add_at: Moment,
    chance: u64,
}

impl CircuitBreaker {
    pub fn new(seed: u64) -> Self {
        Self {
            failures: 0,
            deaths: 0,
            retry_at: Moment::ZERO,
            died_at: None,
            failed_additions: 0,
            add_at: Moment::ZERO,
            chance: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
        }
    }

    pub fn retry_at(&self) -> Moment {
        self.retry_at
    }

    pub fn failures(&self) -> u32 {
        self.failures
    }

    pub fn deaths(&self) -> u32 {
        self.deaths
    }

    /// Whether a start may be attempted.
    pub fn is_over(&self, now: Moment) -> bool {
        now >= self.retry_at
    }

    /// The rest of the pause after repeated failed starts.
    pub fn failing(&self, now: Moment) -> Option<Duration> {
        (self.failures > 0 && now < self.retry_at).then(|| self.retry_at.saturating_sub(now))
    }

    /// How long calls are still refused after repeated deaths.
    pub fn open(&self, now: Moment, rules: &Rules) -> Option<Duration> {
        (self.deaths >= rules.breaker && now < self.retry_at).then(|| self.retry_at.saturating_sub(now))
    }

    /// Whether the next call is a trial that runs alone.
    pub fn on_trial(&self, rules: &Rules) -> bool {
        self.deaths >= rules.breaker
    }

    pub fn started(&mut self) {
        self.failures = 0;
        self.failed_additions = 0;
    }

    /// Whether a worker may be started without a waiting call.
    pub fn may_add(&self, now: Moment) -> bool {
        now >= self.add_at
    }

    pub fn add_at(&self) -> Moment {
        self.add_at
    }

    /// A start without a waiting call failed, for any reason. Without a pause it would be repeated endlessly, unseen.
    pub fn addition_failed(&mut self, now: Moment, rules: &Rules) {
        let pause = doubled(rules.first_pause, self.failed_additions).min(rules.longest_pause);
        self.failed_additions += 1;
        self.add_at = now + self.about(pause);
    }

    /// A call was answered. Returns whether that ended a trial.
    pub fn went_well(&mut self, rules: &Rules) -> bool {
        std::mem::take(&mut self.deaths) >= rules.breaker
    }

    /// A start failed because of the file itself.
    pub fn start_failed(&mut self, now: Moment, rules: &Rules) {
        self.failures += 1;
        if self.failures >= 2 {
            let pause = doubled(rules.first_pause, self.failures - 2).min(rules.longest_pause);
            self.retry_at = now + self.about(pause);
        }
    }

    /// A worker died by itself after its hello. Returns how long no worker is started now.
    pub fn died(&mut self, now: Moment, ready_at: Moment, in_a_call: bool, rules: &Rules) -> Duration {
        let died_before = self.died_at.replace(now);
        // Simultaneous deaths, as when the system runs out of memory, count as one.
        if !in_a_call && died_before.is_some_and(|before| ready_at <= before) {
            return Duration::ZERO;
        }
        if now.saturating_sub(ready_at) >= rules.steady {
            self.deaths = 0;
        }
        self.deaths += 1;
        let pause = match self.deaths {
            0 | 1 => Duration::ZERO,
            some if some < rules.breaker => self.about(doubled(rules.first_rest, some - 2)),
            many => self.about(doubled(rules.first_pause, many - rules.breaker).min(rules.longest_pause)),
        };
        self.retry_at = self.retry_at.max(now + pause);
        pause
    }

    /// Three quarters of the pause or more, so that tools that fail together do not retry together.
    fn about(&mut self, pause: Duration) -> Duration {
        // xorshift: small and portable.
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        let percent = 75 + u32::try_from(self.chance % 26).unwrap_or(25);
        pause * percent / 100
    }
}

fn doubled(first: Duration, times: u32) -> Duration {
    first.saturating_mul(1 << times.min(16))
}
