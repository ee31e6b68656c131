//! A journal of a process, from its records to the store.

use std::path::Path;
use std::time::Duration;

use super::store::SqliteStore;
use super::*;
use crate::config::Environment;

fn person(folder: &Path) -> Environment {
    Environment::from_iter([("XDG_STATE_HOME", folder)])
}

fn journal(folder: &Path) -> Arc<Journal> {
    Journal::new(Claim::take(&person(folder), "k").unwrap(), "boot".to_owned(), Arc::new(person(folder)))
}

fn accept(journal: &Journal, id: u8) {
    journal.append(&Record::Accepted(Accepted { id: [id; 16], at_ms: unix_ms(), tool: "a.b", ..Accepted::default() }));
}

fn finish(journal: &Journal, id: u8) {
    journal.append(&Record::Finished(Finished {
        id: [id; 16],
        at_ms: unix_ms(),
        state: "complete",
        ..Finished::default()
    }));
}

fn rows(folder: &Path) -> Vec<CallRow> {
    let store = SqliteStore::open_to_read(&Place::of(&person(folder)).store()).unwrap();
    store.map_or(Vec::new(), |mut store| store.calls(&RowFilter { limit: 9999, ..RowFilter::default() }).unwrap())
}

fn files(folder: &Path) -> usize {
    std::fs::read_dir(Place::of(&person(folder)).spools("k")).unwrap().count()
}

#[tokio::test]
async fn what_ended_is_in_the_store_and_its_spool_is_gone() {
    let base = tempfile::tempdir().unwrap();
    let journal = journal(base.path());
    for id in 0..200 {
        accept(&journal, id);
        journal.pass();
        finish(&journal, id);
    }
    journal.end(Duration::from_secs(10)).await;
    let rows = rows(base.path());
    assert_eq!((rows.len(), files(base.path())), (200, 0));
    assert!(rows.iter().all(|row| row.state == Some(State::Complete)));
}

#[tokio::test]
async fn what_did_not_end_is_left_for_another_process() {
    let base = tempfile::tempdir().unwrap();
    let journal = journal(base.path());
    accept(&journal, 1);
    accept(&journal, 2);
    finish(&journal, 2);
    journal.end(Duration::from_secs(10)).await;
    assert_eq!((rows(base.path()).len(), files(base.path())), (2, 2), "its lock and its file");
}

#[tokio::test]
async fn a_journal_without_records_leaves_nothing() {
    let base = tempfile::tempdir().unwrap();
    let journal = journal(base.path());
    journal.end(Duration::from_secs(10)).await;
    assert_eq!((rows(base.path()).len(), files(base.path())), (0, 0));
    assert!(!Place::of(&person(base.path())).store().exists());
}

#[tokio::test]
async fn many_calls_over_several_segments_are_all_brought() {
    let base = tempfile::tempdir().unwrap();
    let journal = journal(base.path());
    let arguments = "x".repeat(20_000);
    for number in 0..2000_u32 {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&number.to_be_bytes());
        let arguments = &arguments;
        journal.append(&Record::Accepted(Accepted {
            id,
            at_ms: unix_ms(),
            tool: "a.b",
            arguments,
            ..Accepted::default()
        }));
        journal.pass();
        journal.append(&Record::Finished(Finished { id, at_ms: unix_ms(), state: "complete", ..Finished::default() }));
    }
    journal.end(Duration::from_mins(1)).await;
    assert_eq!((rows(base.path()).len(), files(base.path())), (2000, 0));
}

#[tokio::test]
async fn calls_go_on_where_the_store_cannot_be_made_and_are_brought_later() {
    let base = tempfile::tempdir().unwrap();
    let journal = journal(base.path());
    let store = journal.place().store();
    std::fs::create_dir(&store).unwrap();
    accept(&journal, 1);
    finish(&journal, 1);
    journal.pass();
    journal.end(Duration::from_millis(50)).await;
    assert_eq!(files(base.path()), 2);
    std::fs::remove_dir(&store).unwrap();
}

/// A process of the journal that dies: its lock is free, and nothing more is brought to the store.
fn die(journal: Arc<Journal>) {
    let spool = Arc::clone(&journal.spool);
    journal.pass();
    // As if its thread had gone with it.
    std::mem::forget(journal);
    spool.claim().release();
}

fn recover(own: &Claim) -> Recovered {
    let recovered = recover::recover(own, "boot", &LazyStore::new(StoreAddress::File(own.place.store())));
    assert!(recovered.trouble.is_none(), "{:?}", recovered.trouble);
    recovered
}

fn begin(journal: &Journal, id: u8, effects: &'static str, background: bool) {
    journal.append(&Record::Accepted(Accepted {
        id: [id; 16],
        at_ms: 1,
        tool: "a.b",
        arguments: "{}",
        effects,
        background,
        max_retries: if effects == "once" { 0 } else { 3 },
        ..Accepted::default()
    }));
}

fn dispatch(journal: &Journal, id: u8) {
    journal.append(&Record::Dispatched(Dispatched { id: [id; 16], at_ms: 2, attempt: 1, ..Dispatched::default() }));
}

#[test]
fn what_a_dead_process_left_is_settled_once() {
    let base = tempfile::tempdir().unwrap();
    let dead = journal(base.path());
    for (id, effects, background) in [(1, "once", false), (2, "once", true), (3, "pure", true), (4, "once", true)] {
        begin(&dead, id, effects, background);
    }
    for id in [1, 2, 3] {
        dispatch(&dead, id);
    }
    die(dead);
    let own = Claim::take(&person(base.path()), "k").unwrap();
    let recovered = recover(&own);
    let mut to_run: Vec<(String, u64)> =
        recovered.to_run.iter().map(|row| (row.id[..2].to_owned(), row.retry_count)).collect();
    to_run.sort();
    assert_eq!(to_run, [("03".to_owned(), 1), ("04".to_owned(), 0)]);
    assert_eq!(recovered.ended, 2);
    let codes: Vec<_> = rows(base.path()).into_iter().rev().map(|row| (row.state.unwrap(), row.code)).collect();
    let unknown = || (State::Failed, Some("OUTCOME_UNKNOWN".to_owned()));
    assert_eq!(codes, [unknown(), unknown(), (State::Created, None), (State::Created, None)]);
    assert!(recover(&own).to_run.is_empty(), "they are this process's now");
    // It dies, too, before it has run them.
    own.release();
    let next = Claim::take(&person(base.path()), "k").unwrap();
    assert_eq!(recover(&next).to_run.len(), 2);
}

#[test]
fn a_spool_whose_files_are_gone_is_recovered_from_the_store() {
    let base = tempfile::tempdir().unwrap();
    let dead = journal(base.path());
    begin(&dead, 1, "once", true);
    dead.pass();
    while rows(base.path()).is_empty() {
        std::thread::yield_now();
    }
    let claim = Arc::clone(&dead.spool);
    die(dead);
    claim.claim().clear();
    let own = Claim::take(&person(base.path()), "k").unwrap();
    assert_eq!(recover(&own).to_run.len(), 1);
}

#[test]
fn a_damaged_spool_costs_what_was_damaged_and_one_of_another_version_is_left() {
    let base = tempfile::tempdir().unwrap();
    let dead = journal(base.path());
    for id in 1..=3 {
        begin(&dead, id, "once", true);
    }
    dead.pass();
    let path = dead.spool.path(1);
    die(dead);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    bytes.truncate(bytes.len() - 1);
    std::fs::write(&path, &bytes).unwrap();
    std::fs::remove_file(Place::of(&person(base.path())).store()).ok();
    let own = Claim::take(&person(base.path()), "k").unwrap();
    let ids: Vec<String> = recover(&own).to_run.into_iter().map(|row| row.id).collect();
    assert_eq!(ids, [data_encoding::HEXLOWER.encode(&[1; 16])]);
    let later = own.folder.join("later.00000001");
    std::fs::write(own.folder.join("later.lock"), "").unwrap();
    std::fs::write(&later, "hostler spool 9 boot\nwhat a later version wrote").unwrap();
    assert!(recover(&own).to_run.is_empty());
    assert!(later.exists() && own.folder.join("later.lock").exists());
}

async fn claim(journal: &Journal, key: &str, id: u8) -> Claimed {
    let call = data_encoding::HEXLOWER.encode(&[id; 16]);
    let (tool, key, digest) = ("a.b".to_owned(), key.to_owned(), "same".to_owned());
    journal.claim_key(Keyed { tool, key, digest, call }).await.unwrap()
}

#[tokio::test]
async fn a_key_of_a_dead_process_is_taken_if_its_call_is_in_a_spool_that_nobody_read() {
    let base = tempfile::tempdir().unwrap();
    let dead = journal(base.path());
    for (key, id) in [("written", 1), ("unwritten", 2)] {
        assert!(matches!(claim(&dead, key, id).await, Claimed::First));
    }
    // Its thread does not bring it.
    dead.is_filling.store(true, Ordering::Relaxed);
    begin(&dead, 1, "once", true);
    let living = journal(base.path());
    assert!(matches!(claim(&living, "written", 3).await, Claimed::Known { row: None, .. }), "it lives");
    die(dead);
    let known = claim(&living, "written", 3).await;
    assert!(matches!(&known, Claimed::Known { call, row: Some(_), .. } if call.starts_with("01")), "{known:?}");
    assert!(matches!(claim(&living, "unwritten", 4).await, Claimed::First), "its call was not begun");
    let own = Claim::take(&person(base.path()), "k").unwrap();
    assert_eq!(recover(&own).to_run.len(), 1, "its spool is still there to be recovered");
}

#[test]
fn a_spool_is_taken_over_by_one_of_many() {
    let base = tempfile::tempdir().unwrap();
    let dead = journal(base.path());
    for id in 0..50 {
        begin(&dead, id, "once", true);
    }
    dead.pass();
    while rows(base.path()).len() < 50 {
        std::thread::yield_now();
    }
    let claim = Arc::clone(&dead.spool);
    die(dead);
    claim.claim().clear();
    let folder = base.path();
    let owners = std::sync::Mutex::new(Vec::new());
    let claims: Vec<Claim> = (0..4).map(|_| Claim::take(&person(folder), "k").unwrap()).collect();
    std::thread::scope(|scope| {
        for claim in &claims {
            let owners = &owners;
            scope.spawn(move || owners.lock().unwrap().extend(recover(claim).to_run.into_iter().map(|row| row.id)));
        }
    });
    let mut ids = owners.into_inner().unwrap();
    ids.sort();
    let all = ids.len();
    ids.dedup();
    assert_eq!((all, ids.len()), (50, 50), "each by one");
}

#[test]
fn what_was_taken_over_is_left_for_the_next_one() {
    let base = tempfile::tempdir().unwrap();
    let dead = journal(base.path());
    begin(&dead, 1, "once", true);
    die(dead);
    let heir = journal(base.path());
    assert_eq!(heir.recover().to_run.len(), 1);
    // It ends before it has begun the call.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(heir.end(Duration::from_secs(10)));
    die(heir);
    let next = Claim::take(&person(base.path()), "k").unwrap();
    assert_eq!(recover(&next).to_run.len(), 1);
}

#[tokio::test]
async fn nothing_is_left_of_arguments_once_no_call_is_open() {
    let base = tempfile::tempdir().unwrap();
    let journal = journal(base.path());
    let arguments = r#"{"pin":"271828"}"#;
    let begun =
        |id| Record::Accepted(Accepted { id: [id; 16], at_ms: 1, tool: "a.b", arguments, ..Accepted::default() });
    for id in 0..100 {
        assert!(journal.append(&begun(id)));
    }
    journal.pass();
    while rows(base.path()).len() < 100 {
        std::thread::yield_now();
    }
    let folder = journal.place().folder().to_owned();
    let has_some =
        |name: &str| std::fs::read(folder.join(name)).is_ok_and(|bytes| bytes.windows(6).any(|it| it == b"271828"));
    assert!(has_some("calls.db") || has_some("calls.db-wal"), "open calls have theirs");
    (0..100).for_each(|id| finish(&journal, id));
    journal.pass();
    while !journal.spool.claim().segments().unwrap().is_empty() {
        std::thread::yield_now();
    }
    assert!(!has_some("calls.db") && !has_some("calls.db-wal"));
    accept(&journal, 200);
    finish(&journal, 200);
    journal.end(Duration::from_secs(10)).await;
    assert_eq!((rows(base.path()).len(), files(base.path())), (101, 0), "it goes on in another file");
}

#[tokio::test]
async fn a_process_that_ends_leaves_nothing_of_arguments_in_the_log() {
    for is_open_elsewhere in [false, true] {
        let base = tempfile::tempdir().unwrap();
        let journal = journal(base.path());
        let arguments = r#"{"pin":"271828"}"#;
        let begun = Accepted { id: [1; 16], at_ms: 1, tool: "a.b", arguments, ..Accepted::default() };
        assert!(journal.append(&Record::Accepted(begun)));
        journal.caught_up().await;
        let log = journal.place().store().with_extension("db-wal");
        assert!(log.exists(), "the store is open");
        let other = is_open_elsewhere.then(|| {
            let other = LazyStore::new(StoreAddress::File(journal.place().store()));
            other.with(|store| store.held().map(drop)).unwrap();
            other
        });
        finish(&journal, 1);
        journal.end(Duration::from_secs(10)).await;
        let left = std::fs::read(&log).unwrap_or_default();
        assert!(!left.windows(6).any(|it| it == b"271828"), "{is_open_elsewhere}");
        assert_eq!(log.exists(), is_open_elsewhere, "it is closed although the journal is still in use");
        drop((other, journal));
    }
}

#[tokio::test]
async fn a_store_that_takes_the_place_of_another_gets_what_the_spool_still_has() {
    let base = tempfile::tempdir().unwrap();
    let journal = journal(base.path());
    begin(&journal, 1, "once", true);
    journal.caught_up().await;
    let store = journal.place().store();
    std::fs::rename(&store, store.with_extension("aside")).unwrap();
    for _ in 0..2 {
        finish(&journal, 1);
        journal.caught_up().await;
    }
    let row = journal.call(&data_encoding::HEXLOWER.encode(&[1; 16])).await.unwrap();
    assert_eq!((row.tool_name.as_str(), row.background, row.state), ("a.b", true, Some(State::Complete)));
    journal.end(Duration::from_secs(10)).await;
}
