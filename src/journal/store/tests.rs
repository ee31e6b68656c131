use std::time::Duration;

use super::*;
use crate::journal::fold::Fold;
use crate::journal::keys::REMEMBERED_MS;
use crate::journal::record::{Accepted, Dispatched, Finished, Printed, Record, Retrying};
use crate::journal::retention::{Keep, excess, prune};
use crate::journal::sources::KeptSources;

fn store() -> (tempfile::TempDir, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("calls.db")).unwrap();
    (folder, store)
}

fn accepted(id: u8, at_ms: u64) -> Record<'static> {
    Record::Accepted(Accepted {
        id: [id; 16],
        at_ms,
        tool: if id.is_multiple_of(2) { "even.tool" } else { "odd.tool" },
        arguments: r#"{"a":1}"#,
        timeout_ms: 1500,
        tags: vec!["prompt:10", "block:3", "tool_call:5", "x"],
        ..Accepted::default()
    })
}

fn dispatched(id: u8) -> Record<'static> {
    Record::Dispatched(Dispatched { id: [id; 16], at_ms: 1000, attempt: 1, pid: 99, process_started: 7 })
}

fn finished(id: u8, state: &'static str) -> Record<'static> {
    Record::Finished(Finished { id: [id; 16], at_ms: 2000, state, duration_us: 5, ..Finished::default() })
}

fn import(store: &mut SqliteStore, records: &[Record<'_>], offset: u64) {
    let mut fold = Fold::new("boot");
    for record in records {
        fold.add(record);
    }
    store.import("s", &fold.finish(Position { segment: 1, offset })).unwrap();
}

fn id(number: u8) -> String {
    data_encoding::HEXLOWER.encode(&[number; 16])
}

fn state(store: &mut SqliteStore, number: u8) -> Option<State> {
    store.call(&id(number)).unwrap().unwrap().state
}

#[test]
fn sqlite_is_new_enough_for_what_is_promised() {
    assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
}

#[test]
fn calls_go_through_their_states_over_several_batches() {
    let (_folder, mut store) = store();
    import(&mut store, &[accepted(1, 10), accepted(2, 11)], 100);
    assert_eq!(state(&mut store, 1), Some(State::Created));
    import(&mut store, &[dispatched(1)], 200);
    let row = store.call(&id(1)).unwrap().unwrap();
    assert_eq!((row.state, row.pid, row.timeout_at), (Some(State::Running), Some(99), Some(2500)));
    assert_eq!(row.request.as_deref(), Some(r#"{"a":1}"#), "it may have to be run again");
    let retry = Retrying { id: [1; 16], retry: 1, retry_at_ms: 3000, fault: "{}", ..Retrying::default() };
    import(&mut store, &[Record::Retrying(retry)], 300);
    let row = store.call(&id(1)).unwrap().unwrap();
    assert_eq!((row.state, row.retry_count, row.retry_at), (Some(State::Created), 1, Some(3000)));
    assert_eq!(store.open_calls("s").unwrap().len(), 2);
    import(&mut store, &[dispatched(1), finished(1, "complete"), finished(2, "cancelled")], 400);
    let row = store.call(&id(1)).unwrap().unwrap();
    assert_eq!((row.state, row.request, row.retry_at), (Some(State::Complete), None, None));
    assert!(store.open_calls("s").unwrap().is_empty());
    assert_eq!(store.imported("s").unwrap(), Position { segment: 1, offset: 400 });
}

#[test]
fn a_call_that_is_accepted_again_is_as_its_tool_is_by_now() {
    let (_folder, mut store) = store();
    let begun = |effects, level, version, has_secrets, timeout_ms| {
        let id = [1; 16];
        let other =
            Accepted { id, tool: "a.b", effects, level, version, has_secrets, timeout_ms, ..Accepted::default() };
        Record::Accepted(Accepted { max_retries: if effects == "pure" { 3 } else { 0 }, ..other })
    };
    import(&mut store, &[begun("pure", "synced", &[1], true, 1500)], 1);
    import(&mut store, &[begun("once", "kept", &[2], false, 2500), dispatched(1)], 2);
    let row = store.call(&id(1)).unwrap().unwrap();
    assert_eq!((&*row.effects, &*row.level, &*row.tool_version, row.max_retries), ("once", "kept", "02", 0));
    assert_eq!((row.timeout_ms, row.timeout_at), (2500, Some(3500)));
    assert!(row.has_secrets, "its arguments were kept when its tool had some");
    import(&mut store, &[dispatched(1)], 3);
    assert_eq!(store.call(&id(1)).unwrap().unwrap().effects, "once", "what the records do not say stays");
}

#[test]
fn the_pause_before_a_retry_lasts_until_another_state() {
    let (_folder, mut store) = store();
    let retry = Retrying { id: [1; 16], retry: 1, retry_at_ms: 3000, fault: "{}", ..Retrying::default() };
    import(&mut store, &[accepted(1, 10), dispatched(1), Record::Retrying(retry)], 1);
    import(&mut store, &[Record::Printed(Printed { id: [1; 16], text: "late", ..Printed::default() })], 2);
    assert_eq!(store.call(&id(1)).unwrap().unwrap().retry_at, Some(3000));
    import(&mut store, &[dispatched(1)], 3);
    assert_eq!(store.call(&id(1)).unwrap().unwrap().retry_at, None);
}

#[test]
fn the_columns_of_specification_003_are_there() {
    let (folder, mut store) = store();
    import(&mut store, &[accepted(1, 10), dispatched(1)], 1);
    let raw = rusqlite::Connection::open(folder.path().join("calls.db")).unwrap();
    let sql = "SELECT id, prompt_id, block_id, api_tool_call_id, tool_name, state, request, response, error, pid, started_at, \
               timeout_at, retry_count, last_heartbeat, output_stream, max_retries, timeout_seconds, created_at, updated_at FROM tool_calls";
    let (prompt, block, call, seconds): (String, String, String, f64) =
        raw.query_row(sql, [], |row| Ok((row.get(1)?, row.get(2)?, row.get(3)?, row.get(16)?))).unwrap();
    assert_eq!((prompt.as_str(), block.as_str(), call.as_str(), seconds), ("10", "3", "5", 1.5));
}

#[test]
fn lists_are_filtered_and_newest_first() {
    let (_folder, mut store) = store();
    import(&mut store, &(1..=6).map(|id| accepted(id, u64::from(id))).collect::<Vec<_>>(), 1);
    import(&mut store, &[finished(1, "complete"), finished(2, "error")], 2);
    let mut listed = |filter: RowFilter| -> Vec<String> {
        store.calls(&filter).unwrap().into_iter().map(|row| row.id[..2].to_owned()).collect()
    };
    let all = RowFilter { limit: 100, ..RowFilter::default() };
    assert_eq!(listed(all.clone()), ["06", "05", "04", "03", "02", "01"]);
    assert_eq!(listed(RowFilter { limit: 2, ..all.clone() }), ["06", "05"]);
    assert_eq!(listed(RowFilter { tool: Some("odd.tool".into()), ..all.clone() }), ["05", "03", "01"]);
    assert_eq!(listed(RowFilter { states: vec![State::Complete, State::Error], ..all.clone() }), ["02", "01"]);
    assert_eq!(listed(RowFilter { tag: Some("x".into()), id: Some("02".into()), ..all.clone() }), ["02"]);
    assert!(listed(RowFilter { tag: Some("y' OR 1 --".into()), ..all }).is_empty());
}

#[test]
fn output_is_gathered_and_bounded() {
    let (_folder, mut store) = store();
    let text = "ä".repeat(300_000);
    let printed = |text: &'static str| Record::Printed(Printed { id: [1; 16], text, ..Printed::default() });
    import(&mut store, &[accepted(1, 1), printed("a"), printed("b")], 1);
    import(&mut store, &[printed("c")], 2);
    assert_eq!(store.call(&id(1)).unwrap().unwrap().output.as_deref(), Some("abc"));
    for at in 3..6 {
        import(&mut store, &[Record::Printed(Printed { id: [1; 16], text: &text, ..Printed::default() })], at);
    }
    let output = store.call(&id(1)).unwrap().unwrap().output.unwrap();
    assert!(output.len() <= 1 << 20 && output.ends_with('ä') && !output.contains('c'));
}

#[test]
fn a_batch_that_is_read_twice_changes_nothing() {
    let (_folder, mut store) = store();
    for _ in 0..2 {
        import(&mut store, &[accepted(1, 1), dispatched(1), finished(1, "complete")], 5);
    }
    assert_eq!(store.calls(&RowFilter { limit: 9, ..RowFilter::default() }).unwrap().len(), 1);
}

#[test]
fn a_damaged_store_is_set_aside_and_a_later_one_left_alone() {
    let (folder, mut store) = store();
    let path = folder.path().join("calls.db");
    import(&mut store, &[accepted(1, 1)], 5);
    drop(store);
    std::fs::write(&path, "this is no database, though it is long enough to be looked at as if it were one").unwrap();
    let mut store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.call(&id(1)).unwrap(), None);
    let aside = std::fs::read(folder.path().join("calls.db.damaged-1")).unwrap();
    assert!(aside.starts_with(b"this is no database"));
    import(&mut store, &[accepted(2, 1)], 5);
    store.later();
    drop(store);
    let mut own = SqliteStore::open(&path).unwrap();
    import(&mut own, &[accepted(3, 1)], 5);
    assert_eq!(own.call(&id(2)).unwrap(), None);
    drop(own);
    assert!(SqliteStore::open_to_read(&path).unwrap().unwrap().call(&id(3)).unwrap().is_some());
    let version: i64 = rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("SELECT count(*) FROM tool_calls", [], |row| row.get(0))
        .unwrap();
    assert_eq!(version, 1, "nothing was changed there");
}

#[test]
fn a_store_that_another_process_reads_for_long_is_waited_for() {
    let (folder, mut store) = store();
    import(&mut store, &[accepted(1, 1)], 5);
    let other = rusqlite::Connection::open(folder.path().join("calls.db")).unwrap();
    other.execute_batch("BEGIN; SELECT * FROM tool_calls;").unwrap();
    import(&mut store, &[accepted(2, 1)], 6);
    assert!(store.call(&id(2)).unwrap().is_some());
}

#[test]
fn the_arguments_of_an_ended_call_are_in_no_file_any_more() {
    let (folder, mut store) = store();
    let secret = "a-number-that-should-not-stay";
    let arguments = format!("{{\"card\":\"{secret}\"}}");
    let begun = Accepted { id: [9; 16], tool: "a.b", arguments: &arguments, ..Accepted::default() };
    import(&mut store, &[Record::Accepted(begun)], 1);
    import(&mut store, &[finished(9, "complete")], 2);
    store.checkpoint();
    drop(store);
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(secret.len()).any(|some| some == secret.as_bytes()));
    }
}

#[test]
fn a_store_of_the_first_version_becomes_one_of_this_also_for_a_reader() {
    let folder = tempfile::tempdir().unwrap();
    for (name, reads) in [("a.db", true), ("b.db", false)] {
        let path = folder.path().join(name);
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch(schema::STEPS[0]).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        let insert = "INSERT INTO tool_calls (id, tool_name, state, created_at, updated_at) VALUES ('1', 'a.b', 'complete', 1, 2)";
        connection.execute(insert, []).unwrap();
        drop(connection);
        let open = if reads { SqliteStore::open_to_read(&path).map(Option::unwrap) } else { SqliteStore::open(&path) };
        let row = open.unwrap().call("1").unwrap().unwrap();
        assert_eq!((row.state, row.tries), (Some(State::Complete), Vec::new()));
    }
}

impl SqliteStore {
    fn later(&self) {
        self.connection().pragma_update(None, "user_version", 99).unwrap();
    }

    fn checkpoint(&self) {
        self.connection().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    }
}

const KEEP: Keep = Keep { time: Duration::from_secs(100), calls: 1_000_000, bytes: 1 << 40 };
const NOW: u64 = 10_000_000_000;

fn at(id: u8, at_ms: u64, state: &'static str, key: Option<&'static str>) -> [Record<'static>; 2] {
    let begun = Accepted { id: [id; 16], at_ms, tool: "a.b", key, ..Accepted::default() };
    [Record::Accepted(begun), Record::Finished(Finished { id: [id; 16], at_ms, state, ..Finished::default() })]
}

fn left(store: &mut SqliteStore) -> Vec<String> {
    let rows = store.calls(&RowFilter { limit: 1000, ..RowFilter::default() }).unwrap();
    rows.into_iter().rev().map(|row| row.id[..2].to_owned()).collect()
}

#[test]
fn old_calls_go_and_open_ones_and_those_with_a_key_that_counts_stay() {
    let (folder, mut store) = store();
    let lazy = LazyStore::new(StoreAddress::File(folder.path().join("calls.db")));
    let sources = KeptSources::new(folder.path().join("sources"));
    let old = NOW - 100_001;
    import(&mut store, &at(1, old, "complete", None), 1);
    import(&mut store, &[accepted(2, 5)], 2);
    import(&mut store, &at(3, old, "failed", Some("k")), 3);
    import(&mut store, &at(4, NOW - REMEMBERED_MS - 1, "error", Some("l")), 4);
    import(&mut store, &at(5, NOW - 99_999, "complete", None), 5);
    let left_over = excess(store.held().unwrap(), KEEP, NOW);
    assert_eq!(store.count(left_over, NOW).unwrap(), 2);
    assert_eq!(prune(&lazy, &sources, KEEP, NOW, || false).unwrap(), 0, "it was told to stop");
    assert_eq!(prune(&lazy, &sources, KEEP, NOW, || true).unwrap(), 2);
    assert_eq!(left(&mut store), ["02", "03", "05"]);
    assert_eq!(prune(&lazy, &sources, Keep { calls: 0, ..KEEP }, NOW, || true).unwrap(), 1);
    assert_eq!(left(&mut store), ["02", "03"]);
}

#[test]
fn the_first_to_end_go_until_the_rest_is_few_and_small_enough() {
    let (folder, mut store) = store();
    let lazy = LazyStore::new(StoreAddress::File(folder.path().join("calls.db")));
    let sources = KeptSources::new(folder.path().join("sources"));
    for number in 0_u32..2000 {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&number.to_be_bytes());
        let text = "x".repeat(1000);
        let begun = Accepted { id, at_ms: NOW, tool: "a.b", arguments: &text, ..Accepted::default() };
        let ended = Finished { id, at_ms: NOW, state: "failed", keeps_arguments: true, ..Finished::default() };
        import(&mut store, &[Record::Accepted(begun), Record::Finished(ended)], u64::from(number));
    }
    assert_eq!(prune(&lazy, &sources, Keep { calls: 1900, ..KEEP }, NOW, || true).unwrap(), 100);
    let held = store.held().unwrap();
    assert!(held.calls == 1900 && held.bytes > 2_000_000, "{held:?}");
    prune(&lazy, &sources, Keep { bytes: 1_000_000, ..KEEP }, NOW, || true).unwrap();
    let small = store.held().unwrap();
    assert!(small.bytes <= 1_100_000 && small.calls > 500, "{small:?}");
    assert!(
        left(&mut store).last().unwrap() == "00" && store.call("000007cf000000000000000000000000").unwrap().is_some()
    );
    store.synced().unwrap();
    let on_disk = std::fs::metadata(folder.path().join("calls.db")).unwrap().len();
    assert!(on_disk < 1_500_000, "{on_disk}");
}

#[test]
fn a_call_is_found_by_the_beginning_of_its_id() {
    let (_folder, mut store) = store();
    import(&mut store, &[accepted(0xab, 1), accepted(0xac, 2)], 1);
    let mut found = |begin: &str| {
        let filter = RowFilter { id: Some(begin.to_owned()), limit: 2, ..RowFilter::default() };
        store.calls(&filter).unwrap().len()
    };
    assert_eq!([found("a"), found("ab"), found("abab"), found("b"), found("~"), found("%")], [2, 1, 1, 0, 0, 0]);
}

#[test]
fn a_store_in_which_damage_is_found_later_is_set_aside_by_one() {
    let (folder, mut store) = store();
    let path = folder.path().join("calls.db");
    for number in 0..200 {
        import(&mut store, &[accepted(number, 5)], u64::from(number));
    }
    let others = [(); 2].map(|()| LazyStore::new(StoreAddress::File(path.clone())));
    for lazy in &others {
        assert!(lazy.with(|store| store.call("nobody")).unwrap().is_none());
    }
    store.synced().unwrap();
    drop(store);
    // Every page but the first, which says that it is a store.
    let length = std::fs::metadata(&path).unwrap().len();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &vec![0x5a; usize::try_from(length - 4096).unwrap()], 4096)
        .unwrap();
    let list = |lazy: &LazyStore| {
        lazy.with(|store| store.calls(&RowFilter { limit: 1000, ..RowFilter::default() }).map(|rows| rows.len()))
    };
    assert!(list(&others[0]).unwrap_err().is_damage());
    assert_eq!(list(&others[0]).unwrap(), 0);
    others[0].with(|store| store.import("s", &Fold::new("boot").finish(Position::default()))).unwrap();
    assert_eq!(list(&others[1]).unwrap(), 0, "what it had open has another name by now");
    let names: Vec<String> =
        std::fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names.iter().filter(|name| name.ends_with(".damaged-1")).count(), 1, "{names:?}");
    assert!(!names.iter().any(|name| name.contains("damaged-2")), "{names:?}");
}
