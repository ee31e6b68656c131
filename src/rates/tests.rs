//! Counts against a model that remembers every call, and against boots, clocks, other processes and broken files.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::config::declared_policy::DeclaredPolicy;
use crate::config::origin::{Origin, Setting};
use crate::policy::{Rules, Scope};

const HOUR: i64 = 3_600_000;

fn at(since_boot: i64) -> Moment {
    Moment { boot: 1, since_boot, wall: 1_000_000_000_000 + since_boot }
}

fn rate(most: usize, window: Option<Duration>) -> Rate {
    Rate {
        key: "rate_limit_per_hour",
        origin: Origin::Default,
        scope: Scope::Every,
        name: "every".to_owned(),
        unit: Unit::Calls,
        is_of_session: false,
        window,
        most,
    }
}

fn hourly(most: usize) -> Vec<Rate> {
    vec![rate(most, Some(Duration::from_hours(1)))]
}

fn in_folder(folder: &Path) -> Rates {
    Rates::in_folder(folder.join("rates"))
}

fn file(folder: &Path) -> PathBuf {
    folder.join("rates").join(file_name("every"))
}

/// Whether a call is counted.
fn takes(rates: &Rates, of: &[Rate], now: Moment) -> bool {
    rates.count(of, 1, now, Duration::from_secs(9), Purpose::Take).unwrap().iter().all(|turn| *turn == Turn::Now)
}

proptest! {
    #[test]
    fn a_call_is_admitted_if_and_only_if_there_were_fewer_in_the_window(
        steps in prop::collection::vec(0..HOUR / 3, 1..150),
        most in 0..70_usize,
        reopened in prop::collection::vec(prop::bool::weighted(0.1), 150),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut rates = in_folder(folder.path());
        let of = [rate(most, Some(Duration::from_hours(1))), rate(most / 2, Some(Duration::from_mins(10)))];
        let (mut now, mut made) = (0, Vec::<i64>::new());
        for (step, is_reopened) in steps.into_iter().zip(reopened) {
            now += step;
            if is_reopened {
                rates = in_folder(folder.path());
            }
            let within = |window: i64| made.iter().filter(|time| now - **time < window).count();
            let wanted = within(HOUR) < most && within(HOUR / 6) < most / 2;
            prop_assert_eq!(takes(&rates, &of, at(now)), wanted);
            if wanted {
                made.push(now);
            }
        }
    }
}

#[test]
fn the_next_call_is_possible_when_it_is_said_and_no_earlier() {
    let folder = tempfile::tempdir().unwrap();
    let (rates, of) = (in_folder(folder.path()), hourly(2));
    assert!(takes(&rates, &of, at(0)) && takes(&rates, &of, at(1000)));
    let turn = |now| rates.look(&of, 1, at(now), Duration::ZERO).unwrap()[0];
    assert_eq!(turn(2000), Turn::After(Duration::from_secs(3598)));
    assert_eq!((turn(HOUR - 1), turn(HOUR)), (Turn::After(Duration::from_millis(1)), Turn::Now));
    assert!(takes(&rates, &of, at(HOUR)) && !takes(&rates, &of, at(HOUR)));
    assert_eq!(turn(HOUR), Turn::After(Duration::from_secs(1)));
}

#[test]
fn a_refused_call_counts_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let rates = in_folder(folder.path());
    let mut both = hourly(5);
    both.push(Rate { name: "narrow".to_owned(), ..rate(1, Some(Duration::from_mins(1))) });
    assert!(takes(&rates, &both, at(0)));
    for _ in 0..20 {
        assert!(!takes(&rates, &both, at(1)), "the narrow one is full");
    }
    let free = |now| (0..9).filter(|_| takes(&rates, &hourly(5), at(now))).count();
    assert_eq!(free(2), 4);
}

#[test]
fn another_boot_and_a_wall_clock_that_is_set_change_nothing_that_helps() {
    let folder = tempfile::tempdir().unwrap();
    let of = hourly(2);
    assert!(takes(&in_folder(folder.path()), &of, at(HOUR * 9)) && takes(&in_folder(folder.path()), &of, at(HOUR * 9)));
    let back = Moment { wall: 5, ..at(HOUR * 9 + 1) };
    let ahead = Moment { wall: i64::MAX / 2, ..at(HOUR * 9 + 1) };
    for clock in [back, ahead, at(HOUR * 9 + 1)] {
        assert!(!takes(&in_folder(folder.path()), &of, clock), "{clock:?}");
    }
    // Twenty minutes later, after another boot.
    let wall = at(HOUR * 9).wall;
    let booted = |minutes: i64| Moment { boot: 2, since_boot: minutes * 60_000, wall: wall + (20 + minutes) * 60_000 };
    assert!(!takes(&in_folder(folder.path()), &of, booted(39)));
    assert!(takes(&in_folder(folder.path()), &of, booted(40)));
    // A third boot with a clock of the past: as if they were made just now, and not for longer than that.
    let past = |since_boot| Moment { boot: 3, since_boot, wall: 0 };
    assert!(!takes(&in_folder(folder.path()), &of, past(10)));
    assert!(takes(&in_folder(folder.path()), &of, past(10 + HOUR)));
}

#[test]
fn a_limit_that_is_raised_keeps_what_was_counted() {
    let folder = tempfile::tempdir().unwrap();
    let rates = in_folder(folder.path());
    for (now, most) in [3, 100, 1000, 70, 5000].into_iter().enumerate() {
        let now = at(i64::try_from(now).unwrap());
        let made = (0..most + 5).filter(|_| takes(&rates, &hourly(most), now)).count();
        let before = match most {
            3 => 0,
            100 => 3,
            1000 => 100,
            _ => 1000,
        };
        assert_eq!(made, most.saturating_sub(before), "at most {most}");
    }
    assert!(std::fs::metadata(file(folder.path())).unwrap().len() < 300_000);
}

#[test]
fn many_threads_with_files_of_their_own_are_counted_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let of = hourly(500);
    let made: usize = std::thread::scope(|scope| {
        let each = (0..4).map(|_| {
            scope.spawn(|| {
                let rates = in_folder(folder.path());
                (0..300).filter(|_| takes(&rates, &of, at(1))).count()
            })
        });
        each.collect::<Vec<_>>().into_iter().map(|one| one.join().unwrap()).sum()
    });
    assert_eq!(made, 500);
}

#[test]
fn sessions_are_counted_apart_until_they_end() {
    let folder = tempfile::tempdir().unwrap();
    let rates = in_folder(folder.path());
    let of = [Rate { is_of_session: true, ..rate(2, None) }];
    let take = |session| {
        rates.count(&of, session, at(session.cast_signed() * HOUR), Duration::ZERO, Purpose::Take).unwrap()[0]
    };
    assert_eq!([take(1), take(2), take(1), take(1)], [Turn::Now, Turn::Now, Turn::Now, Turn::Never]);
    assert_eq!([take(2), take(2)], [Turn::Now, Turn::Never]);
    rates.session_ended(1);
    assert_eq!([take(1), take(2)], [Turn::Now, Turn::Never]);
    assert!(!folder.path().join("rates").exists(), "what ends with a session is not kept");
}

#[test]
fn seconds_are_counted_once_they_were_spent_and_what_is_left_of_them_is_carried_on() {
    let folder = tempfile::tempdir().unwrap();
    let rates = in_folder(folder.path());
    let second = |is_of_session, window, most| Rate {
        name: "every seconds".to_owned(),
        unit: Unit::Seconds,
        is_of_session,
        ..rate(most, window)
    };
    let day = Some(Duration::from_hours(24));
    let of = [second(false, day, 3), second(true, None, 4), rate(9, day)];
    let look = |rates: &Rates, session, now| rates.look(&of, session, at(now), Duration::ZERO).unwrap();
    let spend = |session, now, milliseconds| {
        let ran = Purpose::Spend(Duration::from_millis(milliseconds));
        rates.count(&of, session, at(now), Duration::ZERO, ran).unwrap();
    };
    assert_eq!(rates.count(&of, 1, at(0), Duration::ZERO, Purpose::Take).unwrap(), [Turn::Now; 3]);
    (0..5).for_each(|_| spend(1, 0, 500));
    assert_eq!(look(&rates, 1, 0), [Turn::Now; 3], "two and a half");
    spend(1, 1000, 500);
    let left = Turn::After(Duration::from_hours(24));
    assert_eq!(look(&rates, 1, 0)[..2], [Turn::After(Duration::from_hours(24)), Turn::Now], "three");
    assert_eq!(look(&in_folder(folder.path()), 2, 0)[..2], [left, Turn::Now], "another process, another session");
    spend(1, 2000, 60_000);
    assert_eq!(look(&rates, 1, 24 * HOUR + 3000), [Turn::Now, Turn::Never, Turn::Now], "a day later");
    rates.session_ended(1);
    assert_eq!(look(&rates, 1, 24 * HOUR + 3000)[1], Turn::Now);
}

#[test]
fn a_file_that_is_removed_or_broken_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (rates, of) = (in_folder(folder.path()), hourly(1));
    assert!(takes(&rates, &of, at(0)) && !takes(&rates, &of, at(0)));
    std::fs::remove_dir_all(folder.path().join("rates")).unwrap();
    assert!(takes(&rates, &of, at(LOOK)));
    assert!(!takes(&in_folder(folder.path()), &of, at(LOOK)), "both count in the one that is there");
    let whole = std::fs::read(file(folder.path())).unwrap();
    let mut much = whole.clone();
    much[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    for broken in [Vec::new(), b"short".to_vec(), vec![0xff; 640], much, whole[..100].to_vec()] {
        std::fs::write(file(folder.path()), &broken).unwrap();
        assert!(takes(&in_folder(folder.path()), &of, at(0)), "{broken:?}");
        assert!(!takes(&in_folder(folder.path()), &of, at(0)), "{broken:?}");
    }
    // Numbers and times that nobody wrote.
    let mut odd = whole;
    odd[32..].fill(0xff);
    std::fs::write(file(folder.path()), &odd).unwrap();
    let rates = in_folder(folder.path());
    assert!(takes(&rates, &of, at(0)) && !takes(&rates, &of, at(0)));
}

#[test]
fn others_that_went_all_the_way_round_and_others_that_made_room_are_seen() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (in_folder(folder.path()), in_folder(folder.path()));
    let of = hourly(100);
    assert!(takes(&first, &of, at(0)) && takes(&second, &of, at(0)));
    let made = (1..400).filter(|step| takes(&second, &of, at(step * HOUR / 50))).count();
    assert_eq!(made, 399, "fifty in an hour, so all");
    assert!(takes(&first, &of, at(400 * HOUR / 50)));
    let more = (0..60).filter(|_| takes(&first, &of, at(400 * HOUR / 50))).count();
    assert_eq!(more, 50, "with the fifty of the other");
    let more = (0..1000).filter(|_| takes(&second, &hourly(900), at(400 * HOUR / 50))).count();
    assert_eq!(more, 800);
    assert!(!takes(&first, &hourly(900), at(400 * HOUR / 50)), "it has moved");
}

#[test]
fn who_dies_while_it_makes_room_leaves_the_counts_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let (rates, of) = (in_folder(folder.path()), hourly(3));
    assert!(takes(&rates, &of, at(0)) && takes(&rates, &of, at(0)));
    let moved = (u64::MAX / 2 + 1).to_le_bytes();
    let written = std::fs::File::options().write(true).open(file(folder.path())).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&written, &moved, 32 + 2 * 32).unwrap();
    for rates in [rates, in_folder(folder.path())] {
        assert!(rates.look(&of, 1, at(0), Duration::ZERO).unwrap() == [Turn::Now]);
    }
    let rates = in_folder(folder.path());
    assert!(takes(&rates, &of, at(0)) && !takes(&rates, &of, at(0)));
}

#[test]
fn without_a_folder_calls_are_counted_within_the_process() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rates"), "").unwrap();
    let (rates, of) = (in_folder(folder.path()), hourly(2));
    let made = (0..5).filter(|_| takes(&rates, &of, at(0))).count();
    assert_eq!(made, 2);
}

#[test]
fn who_holds_the_lock_is_waited_for_and_then_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (rates, of) = (in_folder(folder.path()), hourly(9));
    assert!(takes(&rates, &of, at(0)));
    let other = std::fs::File::open(folder.path().join("rates/lock")).unwrap();
    rustix::fs::flock(&other, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert!(matches!(rates.count(&of, 1, at(0), Duration::from_millis(5), Purpose::Take), Err(CountError::Busy)));
    let waiting = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| takes(&rates, &of, at(0)));
        drop(other);
        waiting.join().unwrap()
    });
    assert!(waiting);
}

#[test]
fn files_that_are_long_out_of_use_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    assert!(takes(&in_folder(folder.path()), &hourly(1), at(0)));
    let old = std::time::SystemTime::now() - Duration::from_hours(50);
    let one = std::fs::File::options().write(true).open(file(folder.path())).unwrap();
    one.set_modified(old).unwrap();
    let other = [Rate { name: "other".to_owned(), ..rate(1, Some(Duration::from_hours(1))) }];
    assert!(takes(&in_folder(folder.path()), &other, at(47 * HOUR)));
    assert!(file(folder.path()).exists(), "the clock was set, and nothing else");
    assert!(takes(&in_folder(folder.path()), &other, at(49 * HOUR)));
    assert!(!file(folder.path()).exists());
}

#[test]
fn tables_of_tools_categories_and_all_tools_add_up() {
    let mut rules = Rules::default();
    let policy = DeclaredPolicy { rate_limit_per_minute: Some(Setting::declared(3)), ..DeclaredPolicy::default() };
    for (scope, name) in [(Scope::Tool("a".to_owned()), "tool a"), (Scope::Every, "every")] {
        rules.limit(&policy, &scope, |_| name.to_owned());
    }
    let folder = tempfile::tempdir().unwrap();
    let rates = in_folder(folder.path());
    let (of_a, of_all) = (rules.rates(), &rules.rates()[1..]);
    assert!(takes(&rates, of_a, at(0)) && takes(&rates, of_all, at(0)) && takes(&rates, of_all, at(0)));
    assert_eq!(
        rates.count(of_a, 1, at(0), Duration::ZERO, Purpose::Take).unwrap(),
        [Turn::Now, Turn::After(Duration::from_mins(1))]
    );
}
