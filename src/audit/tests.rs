//! What a log has after writers that die, and what is noticed of changes.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;

use super::head::Head;
use super::log::{AuditLog, WriteError};
use super::record::{Kind, ModeSet};
use super::{Checkpoint, RecordFilter, Verified, key, records, segments, verify};
use crate::config::audit::Keep;

const KEEP: Keep = Keep { time: Duration::from_hours(24), size: 256 << 20 };

fn mode(word: &str) -> Kind {
    let set =
        ModeSet { mode: Some(word.to_owned()), by: "test".into(), reason: None, until_ms: None, counts_for: None };
    Kind::Mode(set)
}

/// A log with some records and checkpoints: begin, a, b, signed, c, d, signed, e.
fn written() -> (TempDir, AuditLog) {
    let folder = tempfile::tempdir().unwrap();
    let log = AuditLog::in_folder(folder.path().join("audit"));
    for word in ["a", "b", "", "c", "d", "", "e"] {
        if word.is_empty() { log.sign(KEEP).unwrap() } else { assert!(log.add(&mode(word), KEEP).is_ok()) }
    }
    (folder, log)
}

fn place(folder: &TempDir) -> std::path::PathBuf {
    folder.path().join("audit")
}

fn found(folder: &Path) -> Verified {
    verify(folder, &[]).unwrap()
}

fn words(folder: &Path) -> Vec<String> {
    let all = records(folder, &RecordFilter { limit: 1000, ..RecordFilter::default() }).unwrap();
    let word = |kind| if let Kind::Mode(set) = kind { set.mode } else { None };
    all.into_iter().rev().filter_map(|record| word(record.kind)).collect()
}

fn lines(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(segments::file(folder, 0)).unwrap();
    text.split_inclusive('\n').map(str::to_owned).collect()
}

#[test]
fn what_was_written_is_as_it_was_written() {
    let (folder, log) = written();
    let place = place(&folder);
    let first = found(&place);
    assert_eq!((first.records, first.checkpoints, first.unsigned, first.findings), (8, 2, 1, vec![]));
    assert_eq!(words(&place), ["a", "b", "c", "d", "e"]);
    // Another process goes on.
    AuditLog::in_folder(place.clone()).add(&mode("f"), KEEP).unwrap();
    log.add(&mode("g"), KEEP).unwrap();
    log.sign(KEEP).unwrap();
    let then = found(&place);
    assert_eq!((then.records, then.unsigned, then.findings), (11, 0, vec![]));
    let kept = first.last_checkpoint.unwrap();
    assert_eq!(verify(&place, std::slice::from_ref(&kept)).unwrap().findings, vec![]);
    let other = Checkpoint { hash: "0".repeat(64), ..kept };
    assert_eq!(verify(&place, &[other]).unwrap().findings.len(), 1, "another log than the one that was signed");
}

#[test]
fn every_change_of_a_line_shows() {
    let (folder, _log) = written();
    let place = place(&folder);
    let lines = lines(&place);
    for at in 0..lines.len() {
        let mut changed = lines.clone();
        changed[at] = changed[at].replacen("at_ms\":1", "at_ms\":2", 1);
        let mut without = lines.clone();
        without.remove(at);
        let mut twice = lines.clone();
        twice.insert(at, lines[at].clone());
        for text in [changed, without, twice] {
            fs::write(segments::file(&place, 0), text.concat()).unwrap();
            assert!(!found(&place).findings.is_empty(), "{at}: {text:?}");
        }
        fs::write(segments::file(&place, 0), lines.concat()).unwrap();
    }
    assert_eq!(found(&place).findings, vec![]);
}

/// A program that can write to the folder can make the end of a log fit its head, but has no key of an earlier checkpoint.
#[test]
fn a_cut_that_fits_the_head_shows_by_the_key() {
    let (folder, _log) = written();
    let place = place(&folder);
    let cut = lines(&place)[..4].concat();
    fs::write(segments::file(&place, 0), &cut).unwrap();
    fs::remove_file(Head::file(&place)).unwrap();
    let end = segments::lines(fs::File::open(segments::file(&place, 0)).unwrap()).last().unwrap().unwrap();
    let segments::Line::Record(line, record) = end else { panic!("not a record") };
    let head =
        Head { next: record.n + 1, hash: super::record::hash_of(&line), length: cut.len() as u64, ..Head::new() };
    head.write(&Head::open(&place).unwrap()).unwrap();
    let findings = found(&place).findings;
    assert_eq!(
        findings.iter().map(|finding| &finding.file).collect::<Vec<_>>(),
        [&key::current(&place)],
        "{findings:?}"
    );
    // Nor does it help to sign with the key that is there.
    AuditLog::in_folder(place.clone()).add(&mode("x"), KEEP).unwrap();
    AuditLog::in_folder(place.clone()).sign(KEEP).unwrap();
    assert!(!found(&place).findings.is_empty());
}

/// A program that can write to the folder can make all hashes fit a changed record, and no signature.
#[test]
fn a_history_that_is_written_anew_shows_by_the_signatures() {
    let (folder, log) = written();
    log.sign(KEEP).unwrap();
    let place = place(&folder);
    let (mut prev, mut text) = (super::record::no_hash(), String::new());
    for line in lines(&place) {
        let mut record: super::Record = serde_json::from_str(&line).unwrap();
        record.prev = prev;
        if let Kind::Mode(set) = &mut record.kind {
            set.mode = set.mode.take().map(|word| if word == "a" { "z".to_owned() } else { word });
        }
        let line = serde_json::to_string(&record).unwrap();
        prev = super::record::hash_of(line.as_bytes());
        text += &(line + "\n");
    }
    let file = Head::open(&place).unwrap();
    let head = Head { hash: prev, ..Head::read(&file).unwrap().unwrap() };
    head.write(&file).unwrap();
    fs::write(segments::file(&place, 0), &text).unwrap();
    assert_eq!(words(&place)[0], "z");
    let findings = found(&place).findings;
    assert_eq!(findings.len(), 3, "each checkpoint: {findings:?}");
    assert!(findings.iter().all(|finding| finding.what.contains("signature")), "{findings:?}");
}

#[test]
fn what_a_dead_writer_left_is_taken_in() {
    let (folder, log) = written();
    let place = place(&folder);
    let (file, before) = (segments::file(&place, 0), lines(&place));
    let head = fs::read(Head::file(&place)).unwrap();
    log.add(&mode("f"), KEEP).unwrap();
    // It died before the head was written, and another one in the middle of a line.
    fs::write(Head::file(&place), &head).unwrap();
    let mut text = fs::read_to_string(&file).unwrap();
    text.push_str(&before[1][..20]);
    fs::write(&file, &text).unwrap();
    AuditLog::in_folder(place.clone()).add(&mode("g"), KEEP).unwrap();
    assert_eq!((words(&place).concat(), found(&place).findings), ("abcdefg".to_owned(), vec![]));
    // It died between a checkpoint and the change of keys.
    let key_before = fs::read(key::current(&place)).unwrap();
    log.sign(KEEP).unwrap();
    fs::rename(key::current(&place), key::coming(&place)).unwrap();
    fs::write(key::current(&place), key_before).unwrap();
    assert_eq!(found(&place).findings, vec![]);
    log.add(&mode("h"), KEEP).unwrap();
    log.sign(KEEP).unwrap();
    assert_eq!((found(&place).unsigned, found(&place).findings), (0, vec![]));
}

#[test]
fn a_damaged_log_goes_on_and_the_damage_stays_visible() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 6] = [
        ("cut", |place| fs::write(segments::file(place, 0), lines(place)[..2].concat()).unwrap()),
        ("gone", |place| fs::remove_file(segments::file(place, 0)).unwrap()),
        ("longer", |place| fs::write(segments::file(place, 0), lines(place).concat() + "x\n").unwrap()),
        ("head", |place| fs::remove_file(Head::file(place)).unwrap()),
        ("no head", |place| fs::write(Head::file(place), "x").unwrap()),
        ("key", |place| fs::remove_file(key::current(place)).unwrap()),
    ];
    for (name, damage) in damages {
        let (folder, log) = written();
        let place = place(&folder);
        damage(&place);
        assert!(!found(&place).findings.is_empty(), "{name}");
        for log in [&log, &AuditLog::in_folder(place.clone())] {
            log.add(&mode("f"), KEEP).unwrap();
            log.sign(KEEP).unwrap();
        }
        let then = found(&place);
        assert!(!then.findings.is_empty() && then.unsigned == 0, "{name}: {then:?}");
        assert_eq!(words(&place).iter().filter(|word| *word == "f").count(), 2, "{name}");
    }
    // The whole folder is replaced: only what was kept elsewhere shows it.
    let (folder, log) = written();
    let kept = found(&place(&folder)).last_checkpoint.unwrap();
    fs::remove_dir_all(place(&folder)).unwrap();
    log.add(&mode("f"), KEEP).unwrap();
    assert_eq!(found(&place(&folder)).findings, vec![]);
    assert_eq!(verify(&place(&folder), &[kept]).unwrap().findings.len(), 1);
}

#[test]
fn old_files_are_removed_and_the_rest_still_verifies() {
    let folder = tempfile::tempdir().unwrap();
    let (place, keep) = (folder.path().to_owned(), Keep { time: KEEP.time, size: 200 << 10 });
    let log = AuditLog::in_folder(place.clone());
    let text = "x".repeat(1000);
    log.add(&mode("first"), keep).unwrap();
    log.sign(keep).unwrap();
    let kept = found(&place).last_checkpoint.unwrap();
    for number in 0..600 {
        log.add(&mode(&text), keep).unwrap();
        if number % 50 == 0 {
            log.sign(keep).unwrap();
        }
    }
    log.sign(keep).unwrap();
    let all = segments::all(&place).unwrap();
    let size: u64 = all.iter().map(|first| segments::file(&place, *first).metadata().unwrap().len()).sum();
    assert!(all[0] > 0 && size < keep.size + (65 << 10), "{all:?} {size}");
    assert_eq!(found(&place).findings, vec![]);
    let last = found(&place).last_checkpoint.unwrap();
    assert_eq!(verify(&place, &[kept.clone(), last]).unwrap().findings, vec![], "it is older than what is kept");
    assert_eq!(verify(&place, &[kept]).unwrap().findings.len(), 1, "so says the log alone");
    fs::remove_file(segments::file(&place, all[0])).unwrap();
    assert!(!found(&place).findings.is_empty(), "no record says so");
}

#[test]
fn writers_take_turns() {
    let folder = tempfile::tempdir().unwrap();
    let place = Arc::new(folder.path().to_owned());
    let write = |word: usize| {
        let place = Arc::clone(&place);
        std::thread::spawn(move || {
            let log = AuditLog::in_folder((*place).clone());
            for number in 0..50 {
                while matches!(log.add(&mode(&format!("{word}-{number}")), KEEP), Err(WriteError::Busy)) {}
                if number % 10 == word {
                    while matches!(log.sign(KEEP), Err(WriteError::Busy)) {}
                }
            }
        })
    };
    let looks = {
        let place = Arc::clone(&place);
        std::thread::spawn(move || (0..20).all(|_| verify(&place, &[]).unwrap().findings.is_empty()))
    };
    let all: Vec<_> = (0..4).map(write).collect();
    for thread in all {
        thread.join().unwrap();
    }
    assert!(looks.join().unwrap(), "a reader sees nothing wrong meanwhile");
    let then = found(&place);
    assert_eq!((words(&place).len(), then.findings), (200, vec![]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// No byte of a signed log can be another one.
    #[test]
    fn every_changed_byte_shows(at in any::<prop::sample::Index>(), bit in 0..8_u32) {
        let (folder, log) = written();
        log.sign(KEEP).unwrap();
        let place = place(&folder);
        let file = segments::file(&place, 0);
        let mut bytes = fs::read(&file).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        fs::write(&file, bytes).unwrap();
        prop_assert!(!found(&place).findings.is_empty());
    }
}
