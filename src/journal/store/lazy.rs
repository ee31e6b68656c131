//! One connection to the store for everything that a process does there: a second one would wait for the first by polling, and its
//! file would stay open as long as the first (locks of a process are lost with any close).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::address::StoreAddress;
use super::postgres::PostgresStore;
use super::{SqliteStore, Store, StoreError};

/// A connection to a server that was not used for longer may be broken: it is asked first.
const UNSURE: Duration = Duration::from_millis(50);
/// How long others may work on it before: a server that does not answer is not waited for by ever more threads.
const TURN: Duration = Duration::from_secs(10);
/// How long a server that could not be reached is not tried again.
const AWAY: Duration = Duration::from_secs(1);

/// A store that is opened by the first who needs it: making one takes 20 ms, which no start pays.
pub struct LazyStore {
    address: StoreAddress,
    /// Locked while it works, on threads.
    store: Mutex<State>,
    /// How often a file was opened that was not the one before: it was set aside meanwhile.
    replaced: AtomicU64,
    /// Whether a file is left as it is.
    is_for_reading: bool,
}

#[derive(Default)]
struct State {
    open: Option<Open>,
    /// The file that was open last.
    last: Option<(u64, u64)>,
    /// When a server could not be reached, and why.
    away: Option<(Instant, String)>,
}

enum Open {
    File(SqliteStore),
    Server(Box<PostgresStore>, Instant),
}

impl LazyStore {
    /// That of an address, where nothing need be yet.
    pub fn new(address: StoreAddress) -> Self {
        Self { address, store: Mutex::default(), replaced: AtomicU64::new(0), is_for_reading: false }
    }

    /// The same to read from; `None` if no store was made yet.
    pub fn to_read(address: StoreAddress) -> Result<Option<Self>, StoreError> {
        let open = match &address {
            StoreAddress::File(path) => match SqliteStore::open_to_read(path)? {
                Some(store) => Some(Open::File(store)),
                None => return Ok(None),
            },
            StoreAddress::Server(_) => None,
        };
        let state = Mutex::new(State { open, ..State::default() });
        Ok(Some(Self { store: state, is_for_reading: true, ..Self::new(address) }))
    }

    /// Where it is.
    pub fn address(&self) -> &StoreAddress {
        &self.address
    }

    /// Works on it. Blocks; others wait meanwhile. One that fails is opened anew.
    pub fn with<T: Send>(
        &self,
        work: impl FnOnce(&mut dyn Store) -> Result<T, StoreError> + Send,
    ) -> Result<T, StoreError> {
        // A connection to a server has a runtime of its own, which cannot be driven from within another.
        if self.address.is_shared() && tokio::runtime::Handle::try_current().is_ok() {
            let elsewhere = std::thread::scope(|scope| scope.spawn(|| self.work(work)).join());
            return elsewhere.unwrap_or_else(|_| Err(StoreError::Server("the work on it failed".to_owned())));
        }
        self.work(work)
    }

    fn work<T>(&self, work: impl FnOnce(&mut dyn Store) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let busy = || StoreError::Server(format!("{} does not answer", self.address));
        let mut state = self.store.try_lock_for(TURN).ok_or_else(busy)?;
        match self.opened(&mut state)? {
            Open::File(mut store) => match work(&mut store) {
                Ok(done) => {
                    state.open = Some(Open::File(store));
                    Ok(done)
                }
                Err(error) => {
                    if error.is_damage() {
                        SqliteStore::set_aside_if_damaged(store)?;
                    }
                    Err(error)
                }
            },
            Open::Server(mut store, _) => {
                let done = work(&mut *store)?;
                state.open = Some(Open::Server(store, Instant::now()));
                Ok(done)
            }
        }
    }

    fn opened(&self, state: &mut State) -> Result<Open, StoreError> {
        match (&self.address, state.open.take()) {
            (StoreAddress::File(path), open) => {
                let open = match open {
                    // Another process may have set aside what is open here.
                    Some(Open::File(store)) if store.is_in_its_place() => store,
                    _ if self.is_for_reading => SqliteStore::open_to_read(path)?.ok_or_else(gone)?,
                    _ => SqliteStore::open(path)?,
                };
                let before = state.last.replace(open.file());
                if before.is_some_and(|before| before != open.file()) {
                    self.replaced.fetch_add(1, Ordering::Relaxed);
                }
                Ok(Open::File(open))
            }
            (StoreAddress::Server(server), open) => {
                if let Some(Open::Server(mut store, used)) = open
                    && (used.elapsed() < UNSURE || store.answers())
                {
                    return Ok(Open::Server(store, used));
                }
                if let Some((_, why)) = state.away.as_ref().filter(|(since, _)| since.elapsed() < AWAY) {
                    return Err(StoreError::Server(why.clone()));
                }
                let named = |error: StoreError| StoreError::Server(format!("{}: {error}", server.name()));
                let opened = PostgresStore::open(server).map_err(named);
                state.away = opened.as_ref().err().map(|error| (Instant::now(), error.to_string()));
                Ok(Open::Server(Box::new(opened?), Instant::now()))
            }
        }
    }

    /// How often another file took its place: then it has nothing of what it had.
    pub fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Relaxed)
    }

    /// Closes it until it is needed again.
    pub fn close(&self) {
        self.store.lock().open = None;
    }
}

fn gone() -> StoreError {
    StoreError::Spools(std::io::ErrorKind::NotFound.into())
}
