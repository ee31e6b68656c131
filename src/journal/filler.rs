//! The thread that brings a process's spool to the store, a batch at a time. What the store does not take stays in the spool.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::reader::{Read, ReadError, Reader};
use super::retention::{Keep, prune};
use super::spool::{Position, Spool};
use super::state::State;
use super::store::{Batch, LazyStore, Store, StoreError};
use crate::config::{Config, ConfigOptions, Environment};
use crate::process::edge;
use crate::telemetry::unix_ms;

/// How long records are gathered, so that most calls are one row that is written once.
const GATHER: Duration = Duration::from_millis(200);
/// How often a process with open calls shows that it lives (specification 003).
const HEARTBEAT: Duration = Duration::from_secs(30);
/// How long what an open call prints may wait to be written.
const LOOK: Duration = Duration::from_secs(1);
/// The longest pause without anything to do.
const IDLE: Duration = Duration::from_mins(10);
/// The first pause after the store failed; doubled up to the second.
const PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(30)];
/// How often it looks for calls that are kept no longer, and after how many new ones.
const PRUNE: (Duration, usize) = (Duration::from_hours(1), 10_000);
/// How long it removes them before it looks for records again, and how soon it goes on.
const PRUNE_TURN: Duration = Duration::from_millis(500);
/// How often what ended calls have left is overwritten, while no call is open.
const TIDY: Duration = Duration::from_mins(1);
/// How often the log says that the store fails.
const SAY_AGAIN: Duration = Duration::from_mins(1);

/// What the thread has.
pub struct Filler {
    spool: Arc<Spool>,
    reader: Reader,
    store: Arc<LazyStore>,
    /// How often the store had been replaced when the reader was set.
    replaced: u64,
    /// Whether the last batch may be in the store although that did not say so.
    is_in_doubt: bool,
    /// Up to where the store has it.
    at: watch::Sender<Position>,
    asked_to_end: watch::Sender<Vec<String>>,
    /// The calls of this process that have not ended, as the store has them.
    open: HashSet<String>,
    beaten: Instant,
    said: Option<Instant>,
    /// When it last overwrote what ended calls have left, and whether there is more by now.
    tidied: Option<Instant>,
    is_untidy: bool,
    /// When it last looked for calls that are kept no longer.
    pruned: Option<Instant>,
    /// Whether it has not removed all of them.
    prunes_on: bool,
    /// How many calls are new since then.
    new: usize,
    /// Whose settings say what is kept.
    environment: Arc<Environment>,
    /// Set once nothing more comes: what is left is brought to the store at once.
    is_over: Arc<AtomicBool>,
}

impl Filler {
    /// For the spool of this process.
    pub fn new(
        spool: Arc<Spool>,
        store: Arc<LazyStore>,
        at: watch::Sender<Position>,
        asked_to_end: watch::Sender<Vec<String>>,
        environment: Arc<Environment>,
        is_over: Arc<AtomicBool>,
    ) -> Self {
        Self {
            spool,
            reader: Reader::at(Position::default()),
            replaced: store.replaced(),
            is_in_doubt: false,
            store,
            at,
            asked_to_end,
            open: HashSet::new(),
            beaten: Instant::now(),
            said: None,
            tidied: None,
            is_untidy: false,
            pruned: None,
            prunes_on: false,
            new: 0,
            environment,
            is_over,
        }
    }

    /// Runs until the spool has ended. Whether the store has everything and every call has ended; else another process goes on with it.
    pub fn run(mut self) -> bool {
        let mut pause = PAUSES[0];
        loop {
            let goes_on = self.spool.wait(self.reader.position(), self.pause());
            // What calls print is not written with anything else.
            let _ = self.spool.pass();
            if goes_on {
                self.spool.gather(GATHER);
            }
            let done = self
                .bring()
                .and_then(|()| self.hear())
                .and_then(|()| self.beat())
                .and_then(|()| self.prune())
                .and_then(|()| self.tidy());
            match done {
                Ok(()) => pause = PAUSES[0],
                Err(error) => {
                    self.say(&error);
                    if self.is_over.load(Ordering::Acquire) {
                        return false;
                    }
                    self.spool.gather(pause);
                    pause = (pause * 2).min(PAUSES[1]);
                    continue;
                }
            }
            if !goes_on && self.reader.position() >= self.spool.position() {
                let is_done = self.open.is_empty() && self.forget();
                // A store that is open when the process exits leaves its log behind, and removed arguments are still in it.
                self.store.close();
                return is_done;
            }
        }
    }

    /// How long it waits for records.
    fn pause(&self) -> Duration {
        match (self.open.is_empty(), self.is_untidy) {
            _ if self.prunes_on => PRUNE_TURN,
            (false, _) => LOOK,
            (true, true) => TIDY,
            (true, false) => IDLE,
        }
    }

    /// Brings everything that is written to the store.
    fn bring(&mut self) -> Result<(), Failed> {
        if self.reader.position() != Position::default() {
            // Opens it anew if it was set aside.
            self.store.with(|_| Ok(()))?;
        }
        if self.replaced != self.store.replaced() {
            // What another store had is in the spool, as far as it is still there.
            self.replaced = self.store.replaced();
            self.reader = Reader::at(Position::default());
        }
        if std::mem::take(&mut self.is_in_doubt) {
            let known = self.store.with(|store| store.imported(&self.spool.claim().name));
            self.reader = Reader::at(known.inspect_err(|_| self.is_in_doubt = true)?);
            self.at.send_replace(self.reader.position());
        }
        let until = self.spool.position();
        while self.reader.position() < until {
            let read = match self.imported(until) {
                Ok(Some(read)) => read,
                Ok(None) => break,
                Err(error) => {
                    self.is_in_doubt = true;
                    return Err(error);
                }
            };
            self.is_untidy = true;
            edge("filler.after-import");
            self.at.send_replace(self.reader.position());
            self.note(&read.batch);
            self.drop_segments()?;
        }
        Ok(())
    }

    fn imported(&mut self, until: Position) -> Result<Option<Read>, Failed> {
        let claim = self.spool.claim();
        let read = self.reader.next(claim, Some(until))?;
        if let Some(read) = &read {
            self.store.with(|store| store.import(&claim.name, &read.batch))?;
        }
        Ok(read)
    }

    fn note(&mut self, batch: &Batch) {
        for change in &batch.calls {
            self.new += usize::from(change.is_new);
            match change.row.state {
                Some(state) if state.is_final() => drop(self.open.remove(&change.row.id)),
                Some(State::Created | State::WaitingApproval | State::Running) => {
                    let _ = self.open.insert(change.row.id.clone());
                }
                _ => {}
            }
        }
    }

    /// Removes segments that the store has.
    fn drop_segments(&mut self) -> Result<(), Failed> {
        let at = self.reader.position().segment;
        let segments = self.spool.claim().segments().map_err(ReadError::from)?;
        let done: Vec<_> = segments.into_iter().filter(|(number, _)| *number < at).collect();
        if done.is_empty() || !self.store.with(|store| store.synced())? {
            return Ok(());
        }
        for (_, path) in done {
            let _ = std::fs::remove_file(path);
        }
        Ok(())
    }

    /// Hears of open calls whose end others ask for.
    fn hear(&mut self) -> Result<(), Failed> {
        if self.open.is_empty() {
            return Ok(());
        }
        let asked = self.store.with(|store| store.asked_to_end(&self.spool.claim().name))?;
        if !asked.is_empty() {
            self.asked_to_end.send_replace(asked);
        }
        Ok(())
    }

    fn beat(&mut self) -> Result<(), Failed> {
        if self.open.is_empty() || self.beaten.elapsed() < HEARTBEAT {
            return Ok(());
        }
        self.store.with(|store| store.beat(&self.spool.claim().name, unix_ms()))?;
        self.beaten = Instant::now();
        Ok(())
    }

    /// Removes calls that are kept no longer, as the person's own settings say: a project does not decide for others.
    fn prune(&mut self) -> Result<(), Failed> {
        let (pause, many) = PRUNE;
        let is_due = self.prunes_on || self.new >= many || self.pruned.is_none_or(|pruned| pruned.elapsed() >= pause);
        if !is_due || self.is_over.load(Ordering::Acquire) || self.reader.position() == Position::default() {
            return Ok(());
        }
        (self.pruned, self.new) = (Some(Instant::now()), 0);
        let options = ConfigOptions { environment: Arc::clone(&self.environment), ..ConfigOptions::default() };
        // Settings that cannot be read say nothing: then everything stays.
        if let Ok(config) = Config::of_person(&options) {
            let keep = Keep::from(&config.journal);
            let sources = self.spool.claim().place().sources();
            let began = Instant::now();
            let goes_on = || !self.is_over.load(Ordering::Acquire) && began.elapsed() < PRUNE_TURN;
            let gone = prune(&self.store, &sources, keep, unix_ms(), goes_on)?;
            self.prunes_on = began.elapsed() >= PRUNE_TURN && gone > 0;
            if gone > 0 {
                tracing::debug!(gone, "calls are kept no longer");
            }
        }
        Ok(())
    }

    /// Leaves nothing of what the store does not keep of calls that have ended: their arguments are in the spool and in the store's log.
    fn tidy(&mut self) -> Result<(), Failed> {
        let is_due = self.is_untidy && self.tidied.is_none_or(|tidied| tidied.elapsed() >= TIDY);
        if !is_due || !self.open.is_empty() || self.is_over.load(Ordering::Acquire) {
            return Ok(());
        }
        self.tidied = Some(Instant::now());
        let at = self.reader.position();
        if self.spool.turn_over(at) && self.store.with(|store| store.erased())? {
            self.reader.close();
            for (_, path) in self.spool.claim().segments().map_err(ReadError::from)? {
                // Records may have come meanwhile: those are in a later one.
                if path <= self.spool.claim().segment(at.segment) {
                    let _ = std::fs::remove_file(path);
                }
            }
            self.is_untidy = false;
        }
        Ok(())
    }

    fn forget(&mut self) -> bool {
        let name = &self.spool.claim().name;
        // Without a store, there was nothing to bring.
        let forget = |store: &mut dyn Store| {
            // Also those that it recovered, and that did not run yet.
            if !(store.open_calls(name)?.is_empty() && store.synced()?) {
                return Ok(false);
            }
            store.forget(name)?;
            // Closing removes the log only if no other process has the store open.
            let _ = store.erased();
            Ok(true)
        };
        self.reader.position() == Position::default() || self.store.with(forget).unwrap_or_default()
    }

    fn say(&mut self, error: &Failed) {
        if self.said.is_none_or(|said| said.elapsed() >= SAY_AGAIN) {
            self.said = Some(Instant::now());
            tracing::warn!(%error, "calls are kept in the spool: the store does not take them");
        }
    }
}

/// Why a batch was not brought.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the spool cannot be read: {0}")]
    Spool(#[from] ReadError),
}
