//! What benches reach inside of the journal.

use std::path::Path;
use std::time::{Duration, Instant};

use super::fold::Fold;
use super::place::{Claim, Place};
use super::record::{Accepted, Finished, Id, Record};
use super::recover;
use super::spool::Position;
use super::store::{LazyStore, StoreAddress, StoreError};
use crate::config::Environment;

/// So many calls are written at once.
const AT_ONCE: u32 = 1000;

fn person(folder: &Path) -> Environment {
    Environment::from_iter([("XDG_STATE_HOME", folder)])
}

/// Writes down calls that have ended, and then background calls that have not, of a hostler that is gone.
pub fn leave(folder: &Path, ended: u32, open: u32) -> Result<(), StoreError> {
    let place = Place::of(&person(folder));
    let _ = std::fs::create_dir_all(place.folder());
    let store = LazyStore::new(StoreAddress::File(place.store()));
    let all: Vec<u32> = (0..ended + open).collect();
    for some in all.chunks(AT_ONCE as usize) {
        let mut fold = Fold::new("boot");
        for &number in some {
            let mut id = Id::default();
            id[..4].copy_from_slice(&number.to_be_bytes());
            let background = number >= ended;
            let (tool, arguments) = ("bench.add", r#"{"a":1,"b":2}"#);
            fold.add(&Record::Accepted(Accepted { id, at_ms: 1, tool, arguments, background, ..Accepted::default() }));
            if !background {
                fold.add(&Record::Finished(Finished { id, at_ms: 2, state: "complete", ..Finished::default() }));
            }
        }
        store.with(|store| store.import("gone", &fold.finish(Position::default())))?;
    }
    Ok(())
}

/// How long the next hostler takes until it knows what becomes of them, and how many it would run.
pub fn recovery(folder: &Path) -> Option<(Duration, usize)> {
    let own = Claim::take(&person(folder), "bench").ok()?;
    let began = Instant::now();
    let recovered = recover::recover(&own, "boot", &LazyStore::new(StoreAddress::File(own.place.store())));
    let took = began.elapsed();
    own.clear();
    recovered.trouble.is_none().then_some((took, recovered.to_run.len()))
}
