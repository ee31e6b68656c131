//! Random numbers, and random limits.

use std::time::Duration;

use crate::pool::rules::Rules;

/// xorshift: small and portable.
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn of_seed(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    pub(super) fn few(&mut self, limit: u64) -> usize {
        usize::try_from(self.below(limit)).unwrap()
    }

    pub(super) fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

pub(super) fn rules(chance: &mut Chance) -> Rules {
    let concurrency = if chance.one_in(3) { 2 + chance.few(3) } else { 1 };
    let max_workers = 1 + chance.few(3);
    Rules {
        min_workers: chance.few(1 + max_workers as u64),
        max_workers,
        concurrency,
        max_queue: 1 + chance.few(12),
        write_ahead: 1 + chance.few(8),
        idle: (!chance.one_in(4)).then(|| Duration::from_millis(200)),
        max_calls: chance.one_in(4).then(|| 3 + chance.below(5)),
        max_lifetime: chance.one_in(5).then(|| Duration::from_millis(300)),
        max_rss: chance.one_in(4).then_some(50),
        breaker: 2 + u32::try_from(chance.below(4)).unwrap(),
        seed: chance.below(1_000),
        ..Rules::default()
    }
}
