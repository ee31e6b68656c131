//! The escalation against a supervisor that was asked to end, as a pure machine: time is passed in.

use std::time::Duration;

/// How long a supervisor may take to end; `None` means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// After the first signal.
    pub after_first: Option<Duration>,
    /// After the second.
    pub after_second: Option<Duration>,
}

/// The signals received, and the resulting deadline.
#[derive(Debug)]
pub(super) struct Escalation {
    limits: Limits,
    heard: u32,
    /// When to kill it.
    ends: Option<Duration>,
    is_killed: bool,
}

impl Escalation {
    pub fn new(limits: Limits) -> Self {
        Self { limits, heard: 0, ends: None, is_killed: false }
    }

    /// A termination signal was received.
    pub fn heard(&mut self, now: Duration) {
        self.heard = self.heard.saturating_add(1);
        let limit = match self.heard {
            1 => self.limits.after_first,
            2 => self.limits.after_second,
            // A third signal changes nothing.
            _ => return,
        };
        let ends = limit.map(|limit| now + limit);
        // A second signal may only shorten the time.
        self.ends = [self.ends, ends].into_iter().flatten().min();
    }

    /// Whether to kill the supervisor now; true only once.
    pub fn is_due(&mut self, now: Duration) -> bool {
        let is_due = !self.is_killed && self.ends.is_some_and(|ends| ends <= now);
        self.is_killed |= is_due;
        is_due
    }

    /// When to check next.
    pub fn next(&self) -> Option<Duration> {
        self.ends.filter(|_| !self.is_killed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, proptest};

    use super::*;

    const LIMITS: Limits =
        Limits { after_first: Some(Duration::from_secs(5)), after_second: Some(Duration::from_secs(1)) };

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn nothing_is_due_before_a_signal() {
        let mut escalation = Escalation::new(LIMITS);
        assert_eq!((escalation.next(), escalation.is_due(seconds(1000))), (None, false));
    }

    #[test]
    fn the_second_signal_shortens_the_time() {
        let mut escalation = Escalation::new(LIMITS);
        escalation.heard(seconds(10));
        assert_eq!(escalation.next(), Some(seconds(15)));
        escalation.heard(seconds(11));
        assert_eq!(escalation.next(), Some(seconds(12)));
        escalation.heard(seconds(11));
        assert_eq!(escalation.next(), Some(seconds(12)), "a third changes nothing");
        assert!(!escalation.is_due(seconds(11)) && escalation.is_due(seconds(12)));
        assert_eq!((escalation.is_due(seconds(13)), escalation.next()), (false, None), "killed once");
    }

    #[test]
    fn a_second_signal_never_extends_the_time() {
        let mut escalation = Escalation::new(LIMITS);
        escalation.heard(seconds(10));
        escalation.heard(Duration::from_millis(14_900));
        assert_eq!(escalation.next(), Some(seconds(15)));
    }

    #[test]
    fn without_limits_only_the_second_signal_counts() {
        let mut escalation = Escalation::new(Limits { after_first: None, ..LIMITS });
        escalation.heard(seconds(1));
        assert_eq!(escalation.next(), None);
        escalation.heard(seconds(2));
        assert_eq!(escalation.next(), Some(seconds(3)));
    }

    proptest! {
        #[test]
        fn the_kill_is_due_once_and_in_time(gaps in prop::collection::vec(0_u64..8_000, 1..8)) {
            let mut escalation = Escalation::new(LIMITS);
            let mut now = Duration::ZERO;
            let mut due = Vec::new();
            let mut heard = Vec::new();
            for gap in gaps {
                for _ in 0..gap {
                    now += Duration::from_millis(1);
                    due.extend(escalation.is_due(now).then_some(now));
                }
                escalation.heard(now);
                heard.push(now);
            }
            due.extend((0..6_000).filter_map(|step| {
                let now = now + Duration::from_millis(step);
                escalation.is_due(now).then_some(now)
            }));
            assert_eq!(due.len(), 1);
            let first = heard[0] + seconds(5);
            let latest = heard.get(1).map_or(first, |second| first.min(*second + seconds(1)));
            // A second signal after the kill changes nothing.
            assert!(due[0] <= latest + Duration::from_millis(1) && due[0] >= heard[0] + seconds(1), "{heard:?} {due:?}");
        }
    }
}
