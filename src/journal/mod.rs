//! The journal: what becomes of calls is written down before it happens, and stays known whoever dies.
//!
//! A record is appended to the [`Spool`] of the process, whose one write comes before what it announces: the frame to a worker, the
//! answer to a client. A thread brings the spool to the [`store`], which all hostlers of a person share. Whoever finds the spool of a
//! process that is gone recovers it.

#[cfg(feature = "bench")]
pub mod bench;
mod claims;
mod codec;
mod ends;
mod filler;
mod fold;
mod kept_outcome;
mod keys;
#[cfg(test)]
mod model_tests;
mod place;
mod plan;
mod queue;
mod reader;
mod record;
mod recover;
mod retention;
mod sources;
mod spool;
mod state;
mod store;
mod sync;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot, watch};

use self::ends::Ends;
use self::filler::Filler;
use self::spool::{Position, Spool};
use self::sync::Syncer;
use crate::config::{Config, ConfigOptions, Environment};
use crate::outcome::{Code, Fault};
use crate::process::{Barrier, boot_id};
use crate::telemetry::unix_ms;
use crate::threads::{Unfinished, blocking, blocking_within};

pub use self::ends::CallEnd;
pub use self::keys::{Claimed, Keyed, difference, digest};
pub use self::place::{Claim, Place};
pub use self::queue::Queue;
pub use self::record::{
    Accepted, Cancelling, Detached, Dispatched, Finished, Id, Printed, Record, Retrying, Waiting, id_of,
};
pub use self::recover::{Recovered, ToRun};
pub use self::retention::{Keep, excess, prune};
pub use self::sources::{KeptSources, Source};
pub use self::state::{Created, State};
use self::store::AT_ONCE;
pub use self::store::{CallRow, LazyStore, RowFilter, Store, StoreAddress, StoreError};

/// How long the store is waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// How long the first look at what others left may take, for who waits for it.
const LONGEST_LOOK: Duration = Duration::from_secs(10);
/// How long a server may take to accept a call.
const ACCEPTANCE: Duration = Duration::from_secs(5);
/// How long the store may take for one thing.
const LONGEST_WORK: Duration = Duration::from_secs(10);
/// Who works on a store, and reads one, on a thread: some, so that the next is ready when one is done.
static WORKING: Semaphore = Semaphore::const_new(4);
static READING: Semaphore = Semaphore::const_new(4);

/// The journal of a process.
pub struct Journal {
    spool: Arc<Spool>,
    is_over: Arc<AtomicBool>,
    /// Receives whether everything has ended and is in the store; `None` before the first record. Locked to start the thread, and at the end.
    filling: Mutex<Option<oneshot::Receiver<bool>>>,
    is_filling: AtomicBool,
    /// Whether calls of a process that is gone are this one's.
    has_taken_over: AtomicBool,
    /// Whether calls may be this process's without its knowledge: a store that was asked for them did not answer.
    is_in_doubt: AtomicBool,
    /// Brings it to the disk; started by the first call that wants that. Locked to start it or to copy the pointer.
    syncer: Mutex<Option<Arc<Syncer>>>,
    /// The store. Its thread fills it, keys are taken in it, and recovery works on it.
    store: Arc<LazyStore>,
    /// Another connection to a server, which nothing waits for that is read.
    reading: Option<Arc<LazyStore>>,
    /// What says the ends of other machines' calls.
    ends: Ends,
    /// Up to where the store has the spool.
    at: watch::Sender<Position>,
    /// Calls whose end others have asked for.
    asked_to_end: watch::Sender<Vec<String>>,
    /// Sources that are being kept.
    keeping: Unfinished,
    /// Whose it is.
    environment: Arc<Environment>,
    /// Whether what hostlers that are gone have left was looked at, if that will be.
    has_looked: watch::Sender<bool>,
}

impl Journal {
    /// The journal of this process, which holds the claim, if the configuration wants one.
    pub fn for_config(config: &Config, claim: Option<Claim>) -> Option<Arc<Self>> {
        let claim = claim?;
        if config.journal.enabled.value {
            return Some(Self::new(claim, boot_id(), Arc::clone(&config.environment)));
        }
        claim.clear();
        None
    }

    /// The same in this boot.
    fn new(claim: Claim, boot: String, environment: Arc<Environment>) -> Arc<Self> {
        let address = StoreAddress::of(&environment);
        Arc::new(Self {
            reading: address.is_shared().then(|| Arc::new(LazyStore::new(address.clone()))),
            ends: Ends::of(&address),
            store: Arc::new(LazyStore::new(address)),
            spool: Arc::new(Spool::new(claim, boot)),
            is_over: Arc::default(),
            filling: Mutex::default(),
            is_filling: AtomicBool::new(false),
            has_taken_over: AtomicBool::new(false),
            is_in_doubt: AtomicBool::new(false),
            syncer: Mutex::default(),
            environment,
            at: watch::Sender::new(Position::default()),
            asked_to_end: watch::Sender::new(Vec::new()),
            keeping: Unfinished::default(),
            has_looked: watch::Sender::new(true),
        })
    }

    /// Appends a record. It is written by the next [`Barrier::pass`]. False if it is lost: nothing could be written for long.
    pub fn append(&self, record: &Record<'_>) -> bool {
        let is_taken = self.spool.append(record);
        if !self.is_filling.swap(true, Ordering::Relaxed) {
            self.fill();
        }
        is_taken
    }

    /// Writes what was appended. Says why that fails.
    pub fn written(&self) -> Result<(), String> {
        self.spool.pass()
    }

    /// Brings what was appended to the disk. Says why that fails.
    pub async fn synced(&self) -> Result<(), String> {
        self.spool.pass()?;
        let syncer = {
            let mut syncer = self.syncer.lock();
            if syncer.is_none() {
                let started = Syncer::start(&self.spool);
                *syncer = Some(started.map_err(|error| format!("there is no thread for the journal: {error}"))?);
            }
            syncer.clone()
        };
        match syncer {
            Some(syncer) => syncer.synced().await,
            None => Err("the journal ended".to_owned()),
        }
    }

    /// Where the person's journal lies.
    pub fn place(&self) -> &Place {
        &self.spool.claim().place
    }

    /// Works on the store, on a thread.
    async fn on_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, String> {
        let store = Arc::clone(&self.store);
        let working = blocking_within(&WORKING, move || store.with(work));
        let done = tokio::time::timeout(LONGEST_WORK, working).await;
        let done = done.map_err(|_| cannot_be_asked(&"it does not answer"))?;
        done.map_err(|error| cannot_be_asked(&error))?.map_err(|error| cannot_be_asked(&error))
    }

    /// A call that is written down, also by a hostler that was killed just before this one was started.
    pub async fn call(&self, id: &str) -> Option<CallRow> {
        let look = |id: String| self.read(move |store| store.call(&id).ok().flatten());
        let has_looked = *self.has_looked.borrow();
        let found = look(id.to_owned()).await;
        if found.is_some() || has_looked {
            return found;
        }
        let looked = async { self.has_looked.subscribe().wait_for(|has_looked| *has_looked).await.is_ok() };
        let _ = tokio::time::timeout(LONGEST_LOOK, looked).await;
        look(id.to_owned()).await
    }

    /// Reads the store on a thread. `None` if there is none, or it cannot be read.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut dyn Store) -> Option<T> + Send + 'static,
    ) -> Option<T> {
        let Some(reading) = &self.reading else { return self.place().read(read).await };
        let store = Arc::clone(reading);
        let reading = blocking_within(&READING, move || {
            let read = store.with(|store| Ok(read(store)));
            read.inspect_err(|error| tracing::warn!(%error, "the store of calls cannot be read")).ok()?
        });
        tokio::time::timeout(LONGEST_WORK, reading).await.ok()?.ok()?
    }

    /// The queue of the store, if this person's calls are taken from one.
    pub fn queue(&self) -> Option<Queue> {
        let options = ConfigOptions { environment: Arc::clone(&self.environment), ..ConfigOptions::default() };
        let tools = Config::of_person(&options).ok()?.journal.queue.value;
        Queue::open(self.store.address(), tools)
    }

    /// Takes calls that others have enqueued. They belong to this process from then on, so a slow answer is waited for.
    pub async fn take_queued(&self, queue: &Queue, at_most: u64) -> Result<Vec<ToRun>, String> {
        let (store, spool, tools) = (Arc::clone(&self.store), self.spool.claim().name.clone(), queue.tools.clone());
        let taking = blocking(move || store.with(|store| store.take_queued(&spool, &tools, at_most)));
        let taken = taking.map_err(|error| cannot_be_asked(&error))?.await.map_err(|error| {
            self.is_in_doubt.store(true, Ordering::Relaxed);
            cannot_be_asked(&error)
        })?;
        self.has_taken_over.fetch_or(!taken.is_empty(), Ordering::Relaxed);
        Ok(taken)
    }

    /// Whether calls may have become this process's without its knowledge since this was asked last.
    pub fn was_in_doubt(&self) -> bool {
        self.is_in_doubt.swap(false, Ordering::Relaxed)
    }

    /// Calls may have become this process's without its knowledge.
    pub fn doubt(&self) {
        self.is_in_doubt.store(true, Ordering::Relaxed);
    }

    /// The background calls of this process that the store has and that have not begun. The store has everything from before this was
    /// asked.
    pub async fn not_begun(&self) -> Result<Vec<CallRow>, String> {
        self.in_store().await?;
        let spool = self.spool.claim().name.clone();
        let open = self.on_store(move |store| store.open_calls(&spool)).await?;
        if open.len() >= AT_ONCE {
            // There may be more of them.
            self.doubt();
        }
        Ok(open.into_iter().filter(|row| row.background && row.state == Some(State::Created)).collect())
    }

    /// Begins a call that the store has, unless another process has it or its key by now.
    pub async fn begins(&self, id: &str) -> Result<bool, String> {
        let (id, spool) = (id.to_owned(), self.spool.claim().name.clone());
        let boot = self.spool.boot().to_owned();
        self.on_store(move |store| store.begin(&id, &spool, &boot)).await
    }

    /// Whether a call belongs to this process.
    pub fn is_own(&self, row: &CallRow) -> bool {
        row.spool == self.spool.claim().name
    }

    /// Whether other machines use the store as well.
    pub fn is_shared(&self) -> bool {
        self.reading.is_some()
    }

    /// Waits until the store has what was appended so far. Says why that cannot be.
    pub async fn in_store(&self) -> Result<(), String> {
        self.spool.pass()?;
        let (until, mut at) = (self.spool.position(), self.at.subscribe());
        self.spool.hurry();
        let is_there = tokio::time::timeout(ACCEPTANCE, at.wait_for(|at| *at >= until)).await;
        match is_there {
            Ok(Ok(_)) => Ok(()),
            _ => Err(format!("{} does not take it", self.store.address())),
        }
    }

    /// The end of a call that another process runs. Ask for it before you read the call.
    pub fn end_of(&self, id: &str) -> CallEnd {
        self.ends.end(id)
    }

    /// Asks for the end of a call that another process runs. False if it has ended, or that cannot be written down.
    pub async fn ask_end(&self, id: &str, why: String) -> bool {
        let id = id.to_owned();
        self.on_store(move |store| store.ask_end(&id, &why)).await.unwrap_or_default()
    }

    /// Ends a call that is this process's now, and that is not run again.
    pub fn never_begun(&self, row: &CallRow, fault: &Fault) {
        let is_cancelled = fault.code == Code::Cancelled;
        let state = if is_cancelled { Created.cancel().state() } else { Created.orphan().fail().state() };
        self.append(&Record::Finished(Finished {
            id: id_of(&row.id),
            at_ms: unix_ms(),
            state: state.word(),
            code: Some(fault.code.word()),
            fault: serde_json::to_string(fault).ok().as_deref(),
            attempt: row.attempt,
            cancelled: row.cancelled.as_deref(),
            keeps_arguments: !row.has_secrets,
            ..Finished::default()
        }));
        let _ = self.written();
    }

    /// The calls of this process whose end others have asked for, each time there are some.
    pub fn asked_to_end(&self) -> watch::Receiver<Vec<String>> {
        self.asked_to_end.subscribe()
    }

    /// Waits until the store has what was appended so far, unless that takes long.
    pub async fn caught_up(&self) {
        let _ = self.spool.pass();
        let (until, mut at) = (self.spool.position(), self.at.subscribe());
        if *at.borrow_and_update() < until {
            self.spool.hurry();
            let _ = tokio::time::timeout(LONGEST_WAIT, at.wait_for(|at| *at >= until)).await;
        }
    }

    /// From now on, [`Journal::call`] waits for the next [`Journal::recover`].
    pub fn will_recover(&self) {
        self.has_looked.send_replace(false);
    }

    /// Goes on with the spools of processes that are gone. Blocks.
    pub fn recover(&self) -> Recovered {
        if self.is_shared() && self.has_taken_over.load(Ordering::Relaxed) {
            // Calls that wait to be begun have no record yet, with which the heartbeat would begin.
            let shown = self.store.with(|store| store.beat(&self.spool.claim().name, unix_ms()));
            let _ = shown.inspect_err(|error| tracing::debug!(%error, "no sign of life was given"));
        }
        let recovered = recover::recover(self.spool.claim(), self.spool.boot(), &self.store);
        self.has_taken_over.fetch_or(!recovered.to_run.is_empty(), Ordering::Relaxed);
        self.is_in_doubt.fetch_or(self.is_shared() && recovered.trouble.is_some(), Ordering::Relaxed);
        self.has_looked.send_replace(true);
        // A lease is only looked at by who has been connected for as long.
        if !self.is_filling.load(Ordering::Relaxed) && !self.is_shared() {
            self.store.close();
        }
        recovered
    }

    /// Starts the thread that fills the store. Without one, another process does it later.
    fn fill(&self) {
        let filler = Filler::new(
            Arc::clone(&self.spool),
            Arc::clone(&self.store),
            self.at.clone(),
            self.asked_to_end.clone(),
            Arc::clone(&self.environment),
            Arc::clone(&self.is_over),
        );
        let (sender, left) = oneshot::channel();
        let thread = std::thread::Builder::new().name("journal".to_owned());
        match thread.spawn(move || sender.send(filler.run())) {
            Ok(_) => *self.filling.lock() = Some(left),
            Err(error) => tracing::warn!(%error, "calls are kept in the spool: there is no thread to fill the store"),
        }
    }

    /// Keeps the source of a tool, on a thread. Its end waits for that.
    pub fn keep_source(self: &Arc<Self>, source: Source) {
        let journal = Arc::clone(self);
        // Without a thread, the next process keeps it.
        self.keeping.start(move || {
            let file = source.file.display();
            match journal.place().sources().keep(&source) {
                Ok(true) => {}
                Ok(false) => tracing::debug!(%file, "the source is not kept: it is large, elsewhere or changed"),
                Err(error) => tracing::debug!(%file, %error, "the source is not kept"),
            }
        });
    }

    /// Brings what is left to the store, for at most this long.
    pub async fn end(&self, limit: Duration) {
        self.keeping.ended(limit).await;
        self.is_over.store(true, Ordering::Release);
        self.spool.end();
        let filling = self.filling.lock().take();
        let is_done = match filling {
            Some(left) => tokio::time::timeout(limit, left).await.is_ok_and(Result::unwrap_or_default),
            // There was no record, or no thread to bring it.
            None => self.spool.position() == Position::default() && !self.has_taken_over.load(Ordering::Relaxed),
        };
        if is_done {
            self.spool.claim().clear();
        }
    }
}

fn cannot_be_asked(why: &dyn std::fmt::Display) -> String {
    format!("the journal cannot be asked: {why}")
}

impl Barrier for Journal {
    fn pass(&self) {
        // What cannot be written is said in the log, once.
        let _ = self.spool.pass();
    }
}
