//! Modes that change by themselves: which one should be in force, of what was measured. Pure; the time is passed in.
//!
//! A mode is reached when its thresholds were crossed for a while: at each look at least one. DEGRADED is reached for some time only, and again as
//! long as one is crossed: several hostlers may look, and no one of them ends what another has reason for. From every other mode only a
//! person leads back, and none is ever put in place of what a person has set.

use std::collections::VecDeque;
use std::time::Duration;

use crate::config::automatic::{Automatic, Thresholds};
use crate::config::mode::KnownMode;

/// How far back ended calls are counted.
const WINDOW: Duration = Duration::from_mins(10);

/// Of fewer ended calls, a share says nothing.
const FEWEST: u64 = 10;

/// What was measured. Shares are in percent; `None` where the system does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reading {
    /// The processors' time that is used.
    pub cpu: Option<f64>,
    /// The memory that is in use.
    pub memory: Option<f64>,
    /// The disk that is full.
    pub disk: Option<f64>,
    /// Ended calls since the start.
    pub calls: Calls,
}

/// Ended calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// All of them.
    pub ended: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that were denied.
    pub denied: u64,
}

/// What is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InForce {
    /// NORMAL, by default.
    Normal,
    /// A mode that was reached by itself, and how long it still lasts, if it ends.
    Reached(KnownMode, Option<Duration>),
    /// A mode that a person, or the configuration, has set.
    Set,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Stay,
    /// A mode is put in force, for a reason, and for some time if it ends by itself.
    Reach(KnownMode, String, Option<Duration>),
}

/// The shortest time for which DEGRADED is reached.
const SHORTEST: Duration = Duration::from_secs(1);

/// Which mode should be in force.
#[derive(Debug)]
pub struct AutomaticModes {
    rules: Automatic,
    /// Since when each mode's thresholds are crossed.
    crossed: Vec<Option<Duration>>,
    /// Counts, and when they were read: one that is older than the window, and all since.
    counts: VecDeque<(Duration, Calls)>,
    /// What was in force at the last step.
    last: Option<InForce>,
}

impl AutomaticModes {
    /// By these rules, from now on.
    pub fn new(rules: Automatic) -> Self {
        let crossed = vec![None; rules.modes.len()];
        Self { rules, crossed, counts: VecDeque::new(), last: None }
    }

    /// The rules.
    pub fn rules(&self) -> &Automatic {
        &self.rules
    }

    /// What follows of a reading. `now` is since any moment.
    pub fn step(&mut self, now: Duration, reading: &Reading, in_force: InForce) -> Step {
        let has_been_ended = matches!(self.last, Some(InForce::Reached(..))) && in_force == InForce::Normal;
        let has_been_set = in_force == InForce::Set;
        if has_been_ended || has_been_set {
            // A person knows of all that was.
            self.counts.clear();
            self.crossed.fill(None);
        }
        self.last = Some(in_force);
        let calls = self.counted(now, reading.calls);
        let reasons: Vec<Option<String>> =
            self.rules.modes.iter().map(|(_, thresholds)| reason(thresholds, reading, calls)).collect();
        for (since, reason) in self.crossed.iter_mut().zip(&reasons) {
            *since = reason.as_ref().map(|_| since.unwrap_or(now));
        }
        let has_lasted =
            |since: &Option<Duration>| since.is_some_and(|since| now.saturating_sub(since) >= self.rules.after);
        let reached = self.crossed.iter().position(has_lasted).map(|at| self.rules.modes[at].0);
        let next = match (in_force, reached) {
            (InForce::Normal, Some(mode)) => mode,
            (InForce::Reached(before, _), Some(mode)) if strictness(mode) > strictness(before) => mode,
            (InForce::Reached(KnownMode::Degraded, Some(left)), _) if left < self.lasts() / 2 => KnownMode::Degraded,
            _ => return Step::Stay,
        };
        let at = self.rules.modes.iter().position(|(mode, _)| *mode == next);
        match at.and_then(|at| reasons[at].clone()) {
            Some(reason) => Step::Reach(next, reason, (next == KnownMode::Degraded).then(|| self.lasts())),
            None => Step::Stay,
        }
    }

    /// For how long DEGRADED is reached: it ends when no threshold has been crossed for at least half of that.
    fn lasts(&self) -> Duration {
        (self.rules.after * 2).max(SHORTEST)
    }

    /// The calls that ended within the window.
    fn counted(&mut self, now: Duration, calls: Calls) -> Calls {
        self.counts.push_back((now, calls));
        let is_past = |(at, _): &(Duration, Calls)| now.saturating_sub(*at) >= WINDOW;
        while self.counts.get(1).is_some_and(is_past) {
            self.counts.pop_front();
        }
        let before = self.counts.front().map_or(calls, |(_, calls)| *calls);
        Calls {
            ended: calls.ended.saturating_sub(before.ended),
            failed: calls.failed.saturating_sub(before.failed),
            denied: calls.denied.saturating_sub(before.denied),
        }
    }
}

fn strictness(mode: KnownMode) -> u8 {
    match mode {
        KnownMode::Normal | KnownMode::Recovery => 0,
        KnownMode::Degraded => 1,
        KnownMode::Alert => 2,
        KnownMode::Lockdown => 3,
    }
}

/// The first threshold that is crossed.
fn reason(thresholds: &Thresholds, reading: &Reading, calls: Calls) -> Option<String> {
    let shares = [
        ("of the processors' time is used", thresholds.cpu, reading.cpu),
        ("of the memory is in use", thresholds.memory, reading.memory),
        ("of the disk is full", thresholds.disk, reading.disk),
    ];
    let of_machine = shares.into_iter().find_map(|(what, most, found)| {
        let (most, found) = (most?, found?);
        (found >= f64::from(most)).then(|| format!("{found:.0}% {what}"))
    });
    let has_failed = |most: u8| calls.ended >= FEWEST && calls.failed * 100 >= calls.ended * u64::from(most);
    let of_failed = || {
        let Calls { ended, failed, .. } = calls;
        thresholds.failed.is_some_and(has_failed).then(|| format!("{failed} of {ended} calls failed in 10 minutes"))
    };
    let of_denied = || {
        let is_crossed = thresholds.denied.is_some_and(|most| calls.denied >= most as u64);
        is_crossed.then(|| format!("{} calls were denied in 10 minutes", calls.denied))
    };
    of_machine.or_else(of_failed).or_else(of_denied)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const AFTER: Duration = Duration::from_secs(30);

    fn rules() -> Automatic {
        let degraded = Thresholds { disk: Some(95), failed: Some(50), ..Thresholds::default() };
        let alert = Thresholds { denied: Some(20), ..Thresholds::default() };
        Automatic { after: AFTER, modes: vec![(KnownMode::Alert, alert), (KnownMode::Degraded, degraded)] }
    }

    fn disk(full: f64) -> Reading {
        Reading { disk: Some(full), ..Reading::default() }
    }

    fn denied(denied: u64) -> Reading {
        Reading { calls: Calls { ended: denied, denied, failed: 0 }, disk: Some(1.0), ..Reading::default() }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn reached(mode: KnownMode) -> InForce {
        InForce::Reached(mode, None)
    }

    fn degraded(left: u64) -> InForce {
        InForce::Reached(KnownMode::Degraded, Some(at(left)))
    }

    /// The mode that is reached, and for how long.
    fn mode_of(step: &Step) -> Option<(KnownMode, Option<u64>)> {
        match step {
            Step::Stay => None,
            Step::Reach(mode, _, lasts) => Some((*mode, lasts.map(|lasts| lasts.as_secs()))),
        }
    }

    #[test]
    fn a_mode_is_reached_after_a_while_and_only_degraded_ends() {
        let mut modes = AutomaticModes::new(rules());
        assert_eq!(modes.step(at(0), &disk(96.0), InForce::Normal), Step::Stay);
        assert_eq!(modes.step(at(20), &disk(94.9), InForce::Normal), Step::Stay, "it was not so all the time");
        assert_eq!(modes.step(at(40), &disk(96.0), InForce::Normal), Step::Stay);
        let step = modes.step(at(70), &disk(96.0), InForce::Normal);
        assert_eq!(mode_of(&step), Some((KnownMode::Degraded, Some(60))));
        assert_eq!(modes.step(at(80), &disk(96.0), degraded(50)), Step::Stay);
        assert_eq!(modes.step(at(105), &disk(50.0), degraded(25)), Step::Stay, "it is left to end");
        let step = modes.step(at(110), &disk(96.0), degraded(20));
        assert_eq!(mode_of(&step), Some((KnownMode::Degraded, Some(60))), "it goes on");
        assert_eq!(modes.step(at(200), &denied(0), InForce::Normal), Step::Stay);
        assert_eq!(modes.step(at(210), &denied(20), InForce::Normal), Step::Stay);
        let step = modes.step(at(240), &denied(20), degraded(50));
        assert_eq!(mode_of(&step), Some((KnownMode::Alert, None)), "it is stricter");
        for later in [1000, 2000, 3000] {
            assert_eq!(modes.step(at(later), &denied(20), reached(KnownMode::Alert)), Step::Stay, "only a person");
        }
    }

    #[test]
    fn a_mode_without_a_rule_any_more_is_not_replaced_by_a_milder_one() {
        let only = Automatic {
            modes: rules().modes.into_iter().filter(|(mode, _)| *mode == KnownMode::Degraded).collect(),
            ..rules()
        };
        let mut modes = AutomaticModes::new(only);
        for seconds in [0, 40, 80] {
            assert_eq!(modes.step(at(seconds), &disk(99.0), reached(KnownMode::Alert)), Step::Stay);
        }
        // One that sees no reason does not end what another hostler has reached.
        assert_eq!(modes.step(at(120), &disk(1.0), degraded(1)), Step::Stay);
    }

    #[test]
    fn what_a_person_ended_or_set_is_not_reached_again_for_the_same_calls() {
        for person in [InForce::Normal, InForce::Set] {
            let mut modes = AutomaticModes::new(rules());
            modes.step(at(0), &denied(0), InForce::Normal);
            modes.step(at(1), &denied(25), InForce::Normal);
            assert!(mode_of(&modes.step(at(31), &denied(25), InForce::Normal)).is_some());
            modes.step(at(32), &denied(25), reached(KnownMode::Alert));
            for later in [40, 80, 120] {
                assert_eq!(modes.step(at(later), &denied(30), person), Step::Stay);
            }
            modes.step(at(121), &denied(30), InForce::Normal);
            modes.step(at(122), &denied(50), InForce::Normal);
            assert!(mode_of(&modes.step(at(160), &denied(50), InForce::Normal)).is_some(), "others");
        }
    }

    #[test]
    fn calls_are_counted_for_ten_minutes_and_few_failures_say_nothing() {
        let calls = |ended, failed| Reading { calls: Calls { ended, failed, denied: 0 }, ..Reading::default() };
        let mut modes = AutomaticModes::new(rules());
        modes.step(at(0), &calls(100, 100), InForce::Normal);
        modes.step(at(10), &calls(109, 109), InForce::Normal);
        assert_eq!(modes.step(at(60), &calls(109, 109), InForce::Normal), Step::Stay, "nine calls");
        modes.step(at(61), &calls(120, 110), InForce::Normal);
        assert!(mode_of(&modes.step(at(100), &calls(120, 110), InForce::Normal)).is_some());
        assert!(mode_of(&modes.step(at(400), &calls(120, 110), degraded(1))).is_some());
        assert_eq!(modes.step(at(731), &calls(120, 110), degraded(1)), Step::Stay, "they are long ago");
    }

    proptest! {
        #[test]
        fn no_mode_replaces_a_persons_or_a_stricter_one(
            steps in prop::collection::vec((0_u64..60, 0.0_f64..100.0, 0_u64..30, 0_u64..10, 0_u8..20), 1..200),
            has_alert in prop::bool::ANY,
        ) {
            let mut rules = rules();
            rules.modes.retain(|(mode, _)| has_alert || *mode == KnownMode::Degraded);
            let mut modes = AutomaticModes::new(rules);
            let (mut now, mut calls, mut in_force) = (Duration::ZERO, Calls::default(), InForce::Normal);
            let (mut until, mut first) = (Duration::ZERO, None);
            for (seconds, full, denied, failed, person) in steps {
                now += at(seconds);
                calls = Calls {
                    ended: calls.ended + denied + failed + 5,
                    failed: calls.failed + failed,
                    denied: calls.denied + denied,
                };
                in_force = match (person, in_force) {
                    (0, _) => InForce::Normal,
                    (1, _) => InForce::Set,
                    (2, _) => reached(KnownMode::Alert),
                    (_, InForce::Reached(KnownMode::Degraded, _)) if until <= now => InForce::Normal,
                    (_, InForce::Reached(KnownMode::Degraded, _)) => {
                        InForce::Reached(KnownMode::Degraded, Some(until.saturating_sub(now)))
                    }
                    (_, same) => same,
                };
                let step = modes.step(now, &Reading { disk: Some(full), calls, ..Reading::default() }, in_force);
                // What is seen for the first time, or first since a person has set a mode, has not lasted.
                first = first.filter(|_| in_force != InForce::Set).or(Some(now));
                if let Step::Reach(mode, _, lasts) = step {
                    prop_assert_ne!(in_force, InForce::Set);
                    prop_assert_ne!(in_force, reached(KnownMode::Alert), "nothing is stricter here");
                    prop_assert_eq!(lasts.is_some(), mode == KnownMode::Degraded);
                    if in_force == InForce::Normal {
                        prop_assert!(first.is_some_and(|first| now.saturating_sub(first) >= AFTER));
                    }
                    until = now + lasts.unwrap_or_default();
                    in_force = InForce::Reached(mode, lasts);
                }
            }
        }
    }
}
