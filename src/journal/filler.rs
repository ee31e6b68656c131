//! The thread that brings a process's spool to the store, a batch at a time. What the store does not take stays in the spool.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::reader::{ReadError, Reader};
use super::spool::{Position, Spool};
use super::state::State;
use super::store::{Batch, SqliteStore, Store, StoreError};
use crate::process::edge;
use crate::telemetry::unix_ms;

/// How long records are gathered, so that most calls are one row that is written once.
const GATHER: Duration = Duration::from_millis(200);
/// How often a process with open calls shows that it lives (specification 003).
const HEARTBEAT: Duration = Duration::from_secs(30);
/// The longest pause without anything to do.
const IDLE: Duration = Duration::from_mins(10);
/// The first pause after the store failed; doubled up to the second.
const PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(30)];
/// How often the log says that the store fails.
const SAY_AGAIN: Duration = Duration::from_mins(1);

/// What the thread has.
pub struct Filler {
    spool: Arc<Spool>,
    reader: Reader,
    store: Option<SqliteStore>,
    /// The calls of this process that have not ended, as the store has them.
    open: HashSet<String>,
    beaten: Instant,
    said: Option<Instant>,
    /// Set once nothing more comes: what is left is brought to the store at once.
    is_over: Arc<AtomicBool>,
}

/// How a spool was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The store has everything, and every call has ended.
    Nothing,
    /// Another process will go on with it.
    Something,
}

impl Filler {
    /// For the spool of this process.
    pub fn new(spool: Arc<Spool>, is_over: Arc<AtomicBool>) -> Self {
        Self {
            spool,
            reader: Reader::at(Position::default()),
            store: None,
            open: HashSet::new(),
            beaten: Instant::now(),
            said: None,
            is_over,
        }
    }

    /// Runs until the spool has ended.
    pub fn run(mut self) -> Left {
        let mut pause = PAUSES[0];
        loop {
            let goes_on = self.spool.wait(self.reader.position(), if self.open.is_empty() { IDLE } else { HEARTBEAT });
            if goes_on {
                self.spool.gather(GATHER);
            }
            let done = self.bring().and_then(|()| self.beat());
            match done {
                Ok(()) => pause = PAUSES[0],
                Err(error) => {
                    self.say(&error);
                    if self.is_over.load(Ordering::Acquire) {
                        return Left::Something;
                    }
                    self.store = None;
                    self.spool.gather(pause);
                    pause = (pause * 2).min(PAUSES[1]);
                    continue;
                }
            }
            if !goes_on && self.reader.position() >= self.spool.position() {
                return if self.open.is_empty() { self.forget() } else { Left::Something };
            }
        }
    }

    /// Brings everything that is written to the store.
    fn bring(&mut self) -> Result<(), Failed> {
        let until = self.spool.position();
        while self.reader.position() < until {
            let claim = self.spool.claim();
            // Read again after a failure: the batch was not kept.
            let before = self.reader.position();
            let Some(read) = self.reader.next(claim, Some(until))? else { break };
            let result = store(&mut self.store, &claim.place.store())
                .and_then(|store| store.import(&claim.name, &read.batch).map_err(Failed::from));
            if let Err(error) = result {
                self.reader = Reader::at(before);
                return Err(error);
            }
            edge("filler.after-import");
            self.note(&read.batch);
            self.drop_segments()?;
        }
        Ok(())
    }

    fn note(&mut self, batch: &Batch) {
        for change in &batch.calls {
            match change.row.state {
                Some(state) if state.is_final() => drop(self.open.remove(&change.row.id)),
                Some(State::Created | State::Running) => drop(self.open.insert(change.row.id.clone())),
                _ => {}
            }
        }
    }

    /// Removes segments that the store has.
    fn drop_segments(&mut self) -> Result<(), Failed> {
        let at = self.reader.position().segment;
        let done: Vec<_> = self.spool.claim().segments().into_iter().filter(|(number, _)| *number < at).collect();
        if !done.is_empty() {
            store(&mut self.store, &self.spool.claim().place.store())?.synced()?;
        }
        for (_, path) in done {
            let _ = std::fs::remove_file(path);
        }
        Ok(())
    }

    fn beat(&mut self) -> Result<(), Failed> {
        if self.open.is_empty() || self.beaten.elapsed() < HEARTBEAT {
            return Ok(());
        }
        let claim = self.spool.claim();
        store(&mut self.store, &claim.place.store())?.beat(&claim.name, unix_ms())?;
        self.beaten = Instant::now();
        Ok(())
    }

    fn forget(&mut self) -> Left {
        let name = &self.spool.claim().name;
        // Without a store, there was nothing to bring.
        let forget = |store: &mut SqliteStore| {
            // Also those that it recovered, and that did not run yet.
            let is_empty = store.open_calls(name)?.is_empty();
            store.synced()?;
            if is_empty { store.forget(name).map(|()| true) } else { Ok(false) }
        };
        let is_done = self.store.as_mut().is_none_or(|store| forget(store).unwrap_or_default());
        if is_done { Left::Nothing } else { Left::Something }
    }

    fn say(&mut self, error: &Failed) {
        if self.said.is_none_or(|said| said.elapsed() >= SAY_AGAIN) {
            self.said = Some(Instant::now());
            tracing::warn!(%error, "calls are kept in the spool: the store does not take them");
        }
    }
}

/// The store, opened if need be: making one takes 20 ms, which no start pays.
fn store<'s>(store: &'s mut Option<SqliteStore>, path: &Path) -> Result<&'s mut SqliteStore, Failed> {
    if store.is_none() {
        *store = Some(SqliteStore::open(path)?);
    }
    store.as_mut().ok_or(Failed::Gone)
}

/// Why a batch was not brought.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the spool cannot be read: {0}")]
    Spool(#[from] ReadError),
    #[error("the store is gone")]
    Gone,
}
