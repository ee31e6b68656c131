//! The store: every call of a person, for as long as retention keeps it. It is filled from spools and read by reports; no call waits
//! for it, except those that are accepted in it (background calls with a key).

mod address;
mod kept;
mod lazy;
mod postgres;
mod rows;
mod schema;
mod sqlite;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::keys::{Claimed, Keyed};
use super::place::Left;
use super::recover::ToRun;
use super::retention::{Excess, Held};
use super::spool::Position;
use super::state::State;
use crate::outcome::Attempt;

pub use address::{Server, StoreAddress};
pub use lazy::LazyStore;
pub use postgres::{ENDED, ENQUEUED, PostgresStore};
pub(super) use rows::MOST_OUTPUT;
pub use sqlite::SqliteStore;

/// How many calls change hands at once: others write between.
pub const AT_ONCE: usize = 1000;

/// Calls that have not ended, worded as the indexes are.
const IS_OPEN: &str = "state IN ('created', 'waiting_approval', 'running', 'orphaned', 'stale')";

/// Those that have.
const IS_OVER: &str = "state NOT IN ('created', 'waiting_approval', 'running', 'orphaned', 'stale')";

/// Why the store does not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database says so.
    #[error("{0}")]
    Database(#[from] rusqlite::Error),
    /// The server says so, or cannot be reached.
    #[error("{0}")]
    Server(String),
    /// A later hostler made the tables of the server.
    #[error("the store has the tables of a later hostler (version {version}); use that one, or another database")]
    Later {
        /// Their version.
        version: i32,
    },
    /// The spools cannot be looked at.
    #[error("the spools cannot be looked at: {0}")]
    Spools(#[from] std::io::Error),
    /// A file cannot be used.
    #[error("{path}: {source}")]
    System {
        /// The file.
        path: std::path::PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl From<::postgres::Error> for StoreError {
    fn from(error: ::postgres::Error) -> Self {
        let source = std::error::Error::source(&error).map(ToString::to_string);
        let said = error.as_db_error().map(|said| said.message().to_owned());
        Self::Server(said.or(source).unwrap_or_else(|| error.to_string()))
    }
}

impl StoreError {
    /// Whether its file is no database, or no longer one.
    pub fn is_damage(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        matches!(self, Self::Database(error) if matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase)))
    }
}

/// A call, as the store has it. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CallRow {
    pub id: String,
    pub tool_name: String,
    pub state: Option<State>,
    /// The arguments as JSON.
    pub request: Option<String>,
    /// The result as JSON.
    pub response: Option<String>,
    /// The fault's message.
    pub error: Option<String>,
    /// The fault's code.
    pub code: Option<String>,
    /// The fault as JSON.
    pub fault: Option<String>,
    pub pid: Option<u64>,
    pub process_started: Option<u64>,
    pub boot_id: Option<String>,
    pub started_at: Option<u64>,
    pub timeout_at: Option<u64>,
    pub retry_count: u64,
    pub retry_at: Option<u64>,
    /// Why its tries before have failed, oldest first; in a change, the new ones.
    #[serde(default)]
    pub tries: Vec<Attempt>,
    pub max_retries: u64,
    pub timeout_ms: u64,
    pub last_heartbeat: Option<u64>,
    /// The end of its output.
    pub output: Option<String>,
    pub created_at: u64,
    pub updated_at: u64,
    pub duration_us: Option<u64>,
    pub attempt: u64,
    pub effects: String,
    pub level: String,
    pub background: bool,
    pub session: u64,
    pub client: Option<String>,
    pub tags: Vec<String>,
    pub traceparent: Option<String>,
    pub key: Option<String>,
    pub tool_version: String,
    pub workspace: Option<String>,
    /// Whether its tool declares secrets, which its arguments may hold.
    pub has_secrets: bool,
    pub cancelled: Option<String>,
    pub metadata: Option<String>,
    /// The name of the spool that it is written in.
    pub spool: String,
}

impl CallRow {
    /// Whether its idempotency key stays taken: not once its own process has ended it without its tool having it. What a recovery has
    /// ended, or somebody has cancelled, may have begun.
    pub fn holds_key(&self) -> bool {
        let may_have_begun =
            self.started_at.is_some() || self.pid.is_some() || !self.tries.is_empty() || self.retry_count > 0;
        !matches!(self.state, Some(State::Error | State::Denied)) || may_have_begun || self.code().is_of_tool()
    }
}

/// What some records of a spool change.
#[derive(Debug, Default)]
pub struct Batch {
    /// New calls, and calls that changed, in the order in which they were seen first.
    pub calls: Vec<Change>,
    /// Up to where the spool is in the store with this.
    pub at: Position,
}

/// How one call changed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Change {
    /// The call as far as the records say; what they do not say is empty.
    pub row: CallRow,
    /// Whether it was accepted in these records: then it is new.
    pub is_new: bool,
    /// Whether the arguments that are there stay although it has ended.
    pub keeps_request: bool,
    /// Output behind that which is there.
    pub printed: String,
    /// Whether its key may be used again.
    pub frees_key: bool,
}

/// Which calls are listed, newest first.
#[derive(Debug, Clone, Default)]
pub struct RowFilter {
    /// The beginning of its id.
    pub id: Option<String>,
    pub tool: Option<String>,
    pub tag: Option<String>,
    pub states: Vec<State>,
    pub limit: usize,
}

/// A store. Its methods block: they are called on threads.
pub trait Store: Send {
    /// Applies a batch of a spool, and remembers how far it is: both or neither.
    fn import(&mut self, spool: &str, batch: &Batch) -> Result<(), StoreError>;

    /// Up to where a spool is in the store.
    fn imported(&mut self, spool: &str) -> Result<Position, StoreError>;

    /// Takes a key for a request of the process of a spool, unless another call has it. `left` says what there is of a spool. The name
    /// of one is returned if only that says whether the key is taken.
    fn claim_key(
        &mut self,
        asked: &Keyed,
        spool: &str,
        now_ms: u64,
        left: &dyn Fn(&str) -> std::io::Result<Left>,
    ) -> Result<Result<Claimed, String>, StoreError>;

    /// Gives a key back: its call was never begun by the process of this spool. The key stays if another process has the call by now.
    fn free_key(&mut self, tool: &str, key: &str, call: &str, spool: &str) -> Result<(), StoreError>;

    /// Forgets a spool whose files are gone.
    fn forget(&mut self, spool: &str) -> Result<(), StoreError>;

    /// Notes that the process of a spool lives, and with it its open calls.
    fn beat(&mut self, spool: &str, now_ms: u64) -> Result<(), StoreError>;

    /// The first [`AT_ONCE`] calls of a spool that have not ended.
    fn open_calls(&mut self, spool: &str) -> Result<Vec<CallRow>, StoreError>;

    /// Writes the first [`AT_ONCE`] calls of a spool that have not ended to another one, with what is decided of each: all or none.
    /// Returns how many those were: none if its process has shown itself again, unless it certainly is gone.
    fn take_over(
        &mut self,
        from: &str,
        to: &str,
        is_gone: bool,
        decide: &mut dyn FnMut(&CallRow) -> Change,
    ) -> Result<usize, StoreError>;

    /// Notes that somebody asks for the end of a call. False if it has ended.
    fn ask_end(&mut self, id: &str, why: &str) -> Result<bool, StoreError>;

    /// The calls of a spool whose end was asked for.
    fn asked_to_end(&mut self, spool: &str) -> Result<Vec<String>, StoreError>;

    /// The spools that have such calls of this person.
    fn open_spools(&mut self) -> Result<Vec<String>, StoreError>;

    /// Takes at most so many calls of these packs and tools that others have enqueued, for the process of a spool.
    fn take_queued(&mut self, _spool: &str, _tools: &[String], _at_most: u64) -> Result<Vec<ToRun>, StoreError> {
        Ok(Vec::new())
    }

    /// Notes that the process of a spool begins a call. False if the call or its key is another process's by now, or it has ended. The
    /// calls of a file change hands only with the lock of their spool.
    fn begin(&mut self, _id: &str, _spool: &str, _boot: &str) -> Result<bool, StoreError> {
        Ok(true)
    }

    /// How much there is.
    fn held(&mut self) -> Result<Held, StoreError>;

    /// The versions of tools that its calls are of.
    fn versions(&mut self) -> Result<HashSet<String>, StoreError>;

    /// How many calls go with this.
    fn count(&mut self, excess: Excess, now_ms: u64) -> Result<u64, StoreError>;

    /// Removes at most so many of them: first those that are too many, then those that are too old. Returns how many; none once all
    /// are gone.
    fn remove(&mut self, excess: Excess, at_most: u64, now_ms: u64) -> Result<u64, StoreError>;

    /// Gives back the room of what was removed, if it is much, and forgets keys that count no more.
    fn tidied(&mut self, now_ms: u64) -> Result<(), StoreError>;

    /// Brings everything to the disk. Whether it is there: then what it was made from may go.
    fn synced(&mut self) -> Result<bool, StoreError>;

    /// Overwrites what was removed, unless somebody reads. Whether nothing is left of it.
    fn erased(&mut self) -> Result<bool, StoreError>;

    /// A call.
    fn call(&mut self, id: &str) -> Result<Option<CallRow>, StoreError>;

    /// Calls, newest first: without results and outputs, and with the beginning of arguments.
    fn calls(&mut self, filter: &RowFilter) -> Result<Vec<CallRow>, StoreError>;
}
