use super::super::codec::{Found, read};
use super::super::record::Dispatched;
use super::*;
use crate::config::Environment;

fn spool(folder: &std::path::Path) -> Spool {
    let person = Environment::from_iter([("XDG_STATE_HOME", folder)]);
    Spool::new(Claim::take(&person, "k").unwrap(), "boot".to_owned())
}

fn record(number: u64) -> Record<'static> {
    Record::Dispatched(Dispatched { id: [1; 16], attempt: number, ..Dispatched::default() })
}

fn read_back(spool: &Spool) -> Vec<u64> {
    let mut attempts = Vec::new();
    for (_, path) in spool.claim.segments().unwrap() {
        let bytes = std::fs::read(path).unwrap();
        let mut rest = bytes.strip_prefix(format!("{HEAD}boot\n").as_bytes()).unwrap();
        while let Found::Record(Some(Record::Dispatched(one)), length) = read(rest, true) {
            attempts.push(one.attempt);
            rest = &rest[length..];
        }
        assert!(rest.is_empty());
    }
    attempts
}

#[test]
fn what_was_appended_is_in_the_file_once_it_has_passed() {
    let base = tempfile::tempdir().unwrap();
    let spool = spool(base.path());
    spool.pass().unwrap();
    assert!(spool.claim.segments().unwrap().is_empty(), "nothing is made for nothing");
    assert!((1..=3).all(|number| spool.append(&record(number))));
    assert!(spool.claim.segments().unwrap().is_empty());
    spool.pass().unwrap();
    spool.append(&record(4));
    spool.pass().unwrap();
    assert_eq!(read_back(&spool), [1, 2, 3, 4]);
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(spool.path(1)).unwrap());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_full_segment_is_followed_by_another() {
    let base = tempfile::tempdir().unwrap();
    let spool = spool(base.path());
    spool.append(&record(1));
    spool.pass().unwrap();
    spool.state.lock().at.offset = SEGMENT + 1;
    spool.append(&record(2));
    spool.pass().unwrap();
    assert_eq!((spool.position().segment, read_back(&spool)), (2, vec![1, 2]));
}

#[test]
fn few_files_are_held_open_after_a_sync() {
    let base = tempfile::tempdir().unwrap();
    let spool = spool(base.path());
    for number in 1..100 {
        spool.append(&record(number));
        spool.pass().unwrap();
        if number == 1 {
            spool.sync().unwrap();
        }
        assert!(spool.turn_over(spool.position()));
        let state = spool.state.lock();
        assert!(state.full.len() <= MOST_HELD);
        assert!(number > 5 || (state.full.len() as u64 == number && state.disk == Disk::Content));
    }
    spool.sync().unwrap();
    assert_eq!(spool.state.lock().disk, Disk::Names);
}

#[test]
fn a_sync_that_fails_is_followed_by_one_of_everything() {
    let base = tempfile::tempdir().unwrap();
    let spool = spool(base.path());
    let folder = spool.claim.folder.clone();
    for number in 1..=2 {
        spool.append(&record(number));
        spool.pass().unwrap();
        spool.sync().unwrap();
        assert!(spool.turn_over(spool.position()));
    }
    let away = base.path().join("away");
    std::fs::rename(&folder, &away).unwrap();
    assert!(spool.sync().is_err());
    std::fs::rename(&away, &folder).unwrap();
    assert_eq!(spool.state.lock().disk, Disk::Unknown);
    spool.sync().unwrap();
    assert_eq!(spool.state.lock().disk, Disk::Names);
}

#[test]
fn what_cannot_be_written_is_written_later_and_bounded() {
    let base = tempfile::tempdir().unwrap();
    let spool = spool(base.path());
    let folder = spool.claim.folder.clone();
    let away = base.path().join("away");
    std::fs::rename(&folder, &away).unwrap();
    spool.append(&record(1));
    assert!(spool.pass().is_err() && spool.pass().is_err());
    for number in 2.. {
        let is_taken = spool.append(&record(number));
        let state = spool.state.lock();
        assert_eq!(is_taken, state.dropped == 0);
        if state.dropped > 3 {
            assert!(state.buffer.len() < MOST_UNWRITTEN + 100);
            break;
        }
    }
    std::fs::rename(&away, &folder).unwrap();
    spool.state.lock().trouble.as_mut().unwrap().again = Instant::now();
    spool.pass().unwrap();
    assert_eq!(read_back(&spool)[..3], [1, 2, 3]);
    assert!(spool.state.lock().trouble.is_none());
}
