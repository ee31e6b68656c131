//! Which calls go when there is too much, and their going.

use std::time::Duration;

use super::sources::KeptSources;
use super::store::{LazyStore, StoreError};
use crate::config::journal::JournalSettings;

/// How many calls go at once: others write between.
const AT_ONCE: u64 = 500;

/// How long and how many calls that have ended are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// How long, from their end.
    pub time: Duration,
    /// How many, with those that have not ended.
    pub calls: u64,
    /// The most bytes of the store.
    pub bytes: u64,
}

impl From<&JournalSettings> for Keep {
    fn from(settings: &JournalSettings) -> Self {
        let number = |value: usize| u64::try_from(value).unwrap_or(u64::MAX);
        let (calls, bytes) = (number(settings.keep_calls.value), number(settings.keep_size.value.0));
        Self { time: settings.keep.value, calls, bytes }
    }
}

/// What the store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// Calls.
    pub calls: u64,
    /// The bytes that are used.
    pub bytes: u64,
}

/// Which calls go, from the oldest on, as far as one of these says so. Only calls that have ended, and never one whose idempotency
/// key still counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Excess {
    /// Those that ended before this, in milliseconds since 1970.
    pub before_ms: u64,
    /// So many.
    pub count: u64,
}

/// Which calls go from a store that has this. Pure.
pub fn excess(held: Held, keep: Keep, now_ms: u64) -> Excess {
    let too_many = held.calls.saturating_sub(keep.calls);
    // As if all were of one size: what is still too much goes the next time.
    let share = |over: u64| u128::from(held.calls) * u128::from(over) / u128::from(held.bytes.max(1));
    let over = held.bytes.saturating_sub(keep.bytes);
    let too_large = u64::try_from(share(over)).unwrap_or(u64::MAX).saturating_add(u64::from(over > 0));
    let time = u64::try_from(keep.time.as_millis()).unwrap_or(u64::MAX);
    Excess { before_ms: now_ms.saturating_sub(time), count: too_many.max(too_large).min(held.calls) }
}

/// Removes them, and the sources that no other call needs, as long as `goes_on` says so. Returns how many calls went.
pub fn prune(
    store: &LazyStore,
    sources: &KeptSources,
    keep: Keep,
    now_ms: u64,
    goes_on: impl Fn() -> bool,
) -> Result<u64, StoreError> {
    let mut left = excess(store.with(|store| store.held())?, keep, now_ms);
    let mut gone = 0;
    while goes_on() {
        let removed = store.with(|store| store.remove(left, AT_ONCE, now_ms))?;
        gone += removed;
        match (removed, left.count) {
            (0, 0) => break,
            // The others may not go.
            (0, _) => left.count = 0,
            _ => left.count = left.count.saturating_sub(removed),
        }
    }
    store.with(|store| store.tidied(now_ms))?;
    if goes_on() {
        let needed = store.with(|store| store.versions())?;
        sources.prune(|version| needed.contains(version));
    }
    Ok(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: Keep = Keep { time: Duration::from_secs(100), calls: 1000, bytes: 1 << 20 };

    #[test]
    fn nothing_goes_that_may_stay() {
        let all = Held { calls: 1000, bytes: 1 << 20 };
        assert_eq!(excess(all, KEEP, 500_000), Excess { before_ms: 400_000, count: 0 });
        assert_eq!(excess(Held::default(), KEEP, 50), Excess { before_ms: 0, count: 0 }, "the clock is set back");
    }

    #[test]
    fn the_oldest_go_by_number_and_by_size() {
        let count = |calls, bytes| excess(Held { calls, bytes }, KEEP, 0).count;
        assert_eq!(count(1007, 1 << 20), 7);
        assert_eq!(count(1000, 4 << 20), 751, "three quarters, and one for what is rounded");
        assert_eq!(count(2, 1 << 40), 2, "two that are too large");
        assert_eq!(count(0, 1 << 40), 0);
        assert_eq!(count(1 << 40, u64::MAX), 1 << 40);
    }
}
