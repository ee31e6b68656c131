//! The store in a file of its own, for all hostlers of a person.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use rustix::fs::{FlockOperation, flock};

use super::kept;
use super::rows::{COLUMNS, LISTED, apply, number, row, unsigned};
use super::schema::{self, Known, VERSION};
use super::{AT_ONCE, Batch, CallRow, Change, IS_OPEN, RowFilter, Store, StoreError};
use crate::journal::keys::{Claimed, Keyed, REMEMBERED_MS};
use crate::journal::place::Left;
use crate::journal::retention::{Excess, Held};
use crate::journal::spool::Position;
use crate::process::is_broken;

/// How long another process may hold the file, such as a backup.
const PATIENCE: Duration = Duration::from_secs(5);

/// The store of a person.
pub struct SqliteStore {
    connection: Connection,
    path: PathBuf,
    /// The file that was opened: device and inode.
    file: (u64, u64),
}

impl SqliteStore {
    /// Opens it, or makes it. A file that is no store is set aside; one that a later version made is left alone, and another is used
    /// beside it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        match Self::at(path) {
            Ok(Ok(store)) => Ok(store),
            Ok(Err(later)) => {
                let own = path.with_extension(format!("v{VERSION}.db"));
                tracing::warn!(
                    store = %path.display(), version = later, instead = %own.display(),
                    "the store of calls was made by a later version of hostler; this one keeps its own"
                );
                match Self::at(&own)? {
                    Ok(store) => Ok(store),
                    Err(_) => Err(rusqlite::Error::InvalidQuery.into()),
                }
            }
            Err(error) if error.is_damage() => {
                let _one = one_sets_aside(path)?;
                // Unless another process did it meanwhile.
                if let Ok(Ok(store)) = Self::at(path) {
                    return Ok(store);
                }
                set_aside(path)?;
                Self::at(path)?.map_err(|_| rusqlite::Error::InvalidQuery.into())
            }
            Err(error) => Err(error),
        }
    }

    /// The same to read from; `None` if there is none.
    pub fn open_to_read(path: &Path) -> Result<Option<Self>, StoreError> {
        if !path.exists() {
            return Ok(None);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(PATIENCE)?;
        let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let own = path.with_extension(format!("v{VERSION}.db"));
        if version > VERSION && own != path {
            return Self::open_to_read(&own);
        }
        if (1..VERSION).contains(&version) {
            drop(connection);
            return Self::open(path).map(Some);
        }
        Ok((version > 0).then_some(Self {
            connection,
            path: path.to_owned(),
            file: identity(path).unwrap_or_default(),
        }))
    }

    /// The version if it is a later one.
    fn at(path: &Path) -> Result<Result<Self, i64>, StoreError> {
        let failed = |source| StoreError::System { path: path.to_owned(), source };
        // Private from its first byte on; the files beside it get its permissions.
        // Only here it is opened otherwise: to close it would give up the locks that this process has on it.
        match OpenOptions::new().append(true).create_new(true).mode(0o600).open(path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(PATIENCE)?;
        // The arguments of calls that have ended are written over.
        connection.execute_batch(
            "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; \
             PRAGMA secure_delete = ON; PRAGMA journal_size_limit = 8388608; PRAGMA cache_size = -1024;",
        )?;
        match schema::prepare(&mut connection)? {
            Known::Ready => Ok(Ok(Self { connection, path: path.to_owned(), file: identity(path).map_err(failed)? })),
            Known::Later(version) => Ok(Err(version)),
        }
    }

    /// The file that is open: device and inode.
    pub(super) fn file(&self) -> (u64, u64) {
        self.file
    }

    /// Whether its file still has its name.
    pub(super) fn is_in_its_place(&self) -> bool {
        identity(&self.path).is_ok_and(|file| file == self.file)
    }

    /// Sets a store aside in which damage was found, unless another process did that meanwhile.
    pub(super) fn set_aside_if_damaged(store: Self) -> Result<(), StoreError> {
        let _one = one_sets_aside(&store.path)?;
        if !store.is_in_its_place() {
            return Ok(());
        }
        let path = store.path.clone();
        drop(store);
        set_aside(&path)
    }

    #[cfg(test)]
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    fn begin(&mut self) -> rusqlite::Result<Transaction<'_>> {
        self.connection.transaction_with_behavior(TransactionBehavior::Immediate)
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let known = fs::metadata(path)?;
    Ok((known.dev(), known.ino()))
}

/// Held by the one process that sets a store aside.
fn one_sets_aside(path: &Path) -> Result<File, StoreError> {
    let failed = |source| StoreError::System { path: path.to_owned(), source };
    let lock = path.with_extension("lock");
    let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(lock).map_err(failed)?;
    flock(&lock, FlockOperation::LockExclusive).map_err(io::Error::from).map_err(failed)?;
    Ok(lock)
}

/// Gives a damaged store another name, with the files beside it.
fn set_aside(path: &Path) -> Result<(), StoreError> {
    let named = |kind: &str, number: u32| {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".damaged-{number}{kind}"));
        path.with_file_name(name)
    };
    let number = (1..1000).find(|number| !named("", *number).exists()).unwrap_or_default();
    for kind in ["-wal", "-shm", ""] {
        let mut from = path.as_os_str().to_owned();
        from.push(kind);
        match fs::rename(&from, named(kind, number)) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(StoreError::System { path: path.to_owned(), source });
            }
            _ => {}
        }
    }
    let aside = named("", number);
    tracing::warn!(store = %path.display(), aside = %aside.display(), "the store of calls is damaged; it was set aside");
    Ok(())
}

fn open_calls(connection: &Connection, spool: &str) -> rusqlite::Result<Vec<CallRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM tool_calls
         WHERE spool = ?1 AND {IS_OPEN} ORDER BY number LIMIT {AT_ONCE}"
    );
    connection.prepare_cached(&sql)?.query_map([spool], row)?.collect()
}

fn free_key(connection: &Connection, tool: &str, key: &str, call: &str) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM keys WHERE tool = ?1 AND key = ?2 AND call_id = ?3", [tool, key, call])?;
    Ok(())
}

impl Store for SqliteStore {
    fn import(&mut self, spool: &str, batch: &Batch) -> Result<(), StoreError> {
        let transaction = self.begin()?;
        for change in &batch.calls {
            apply(&transaction, spool, change)?;
        }
        let Position { segment, offset } = batch.at;
        transaction
            .prepare_cached(
                "INSERT INTO spools (name, segment, position, heartbeat) VALUES (?1, ?2, ?3, 0)
                 ON CONFLICT (name) DO UPDATE SET segment = ?2, position = ?3",
            )?
            .execute(params![spool, number(segment), number(offset)])?;
        Ok(transaction.commit()?)
    }

    fn imported(&mut self, spool: &str) -> Result<Position, StoreError> {
        let mut select = self.connection.prepare_cached("SELECT segment, position FROM spools WHERE name = ?1")?;
        let found =
            select.query_row([spool], |row| Ok(Position { segment: unsigned(row, 0)?, offset: unsigned(row, 1)? }));
        Ok(found.optional()?.unwrap_or_default())
    }

    fn claim_key(
        &mut self,
        asked: &Keyed,
        spool: &str,
        now_ms: u64,
        left: &dyn Fn(&str) -> io::Result<Left>,
    ) -> Result<Result<Claimed, String>, StoreError> {
        let transaction = self.begin()?;
        let known = transaction
            .prepare_cached("SELECT digest, call_id, spool, created_at FROM keys WHERE tool = ?1 AND key = ?2")?
            .query_row([&asked.tool, &asked.key], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?, unsigned(row, 3)?))
            })
            .optional()?;
        if let Some((digest, call, holder, since)) = known
            && call != asked.call
            && now_ms.saturating_sub(since) < REMEMBERED_MS
            && !is_broken("keys-are-taken-once")
        {
            let sql = format!("SELECT {COLUMNS} FROM tool_calls WHERE id = ?1");
            let row = transaction.prepare_cached(&sql)?.query_row([&call], row).optional()?;
            let left = match &row {
                Some(row) if !row.holds_key() => Left::Nothing,
                None if holder != spool => left(&holder)?,
                _ => Left::Process,
            };
            match left {
                Left::Process => {
                    let row = row.map(Box::new);
                    return Ok(Ok(Claimed::Known { call, is_same: digest == asked.digest, row }));
                }
                Left::Files => return Ok(Err(holder)),
                // It ended or died before it was begun.
                Left::Nothing => {}
            }
        }
        transaction
            .prepare_cached("INSERT OR REPLACE INTO keys (tool, key, digest, call_id, spool, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
            .execute(params![asked.tool, asked.key, asked.digest, asked.call, spool, number(now_ms)])?;
        transaction.commit()?;
        Ok(Ok(Claimed::First))
    }

    fn free_key(&mut self, tool: &str, key: &str, call: &str, _spool: &str) -> Result<(), StoreError> {
        Ok(free_key(&self.connection, tool, key, call)?)
    }

    fn forget(&mut self, spool: &str) -> Result<(), StoreError> {
        self.connection.execute("DELETE FROM spools WHERE name = ?1", [spool])?;
        Ok(())
    }

    fn beat(&mut self, spool: &str, now_ms: u64) -> Result<(), StoreError> {
        let transaction = self.begin()?;
        transaction.execute("UPDATE spools SET heartbeat = ?2 WHERE name = ?1", params![spool, number(now_ms)])?;
        // The second condition is for its index.
        let sql =
            format!("UPDATE tool_calls SET last_heartbeat = ?2 WHERE spool = ?1 AND state = 'running' AND {IS_OPEN}");
        transaction.execute(&sql, params![spool, number(now_ms)])?;
        Ok(transaction.commit()?)
    }

    fn open_calls(&mut self, spool: &str) -> Result<Vec<CallRow>, StoreError> {
        Ok(open_calls(&self.connection, spool)?)
    }

    fn take_over(
        &mut self,
        from: &str,
        to: &str,
        _is_gone: bool,
        decide: &mut dyn FnMut(&CallRow) -> Change,
    ) -> Result<usize, StoreError> {
        let transaction = self.begin()?;
        let open = open_calls(&transaction, from)?;
        for row in &open {
            let change = decide(row);
            if let (true, Some(key)) = (change.frees_key, &row.key) {
                free_key(&transaction, &row.tool_name, key, &row.id)?;
            }
            apply(&transaction, to, &change)?;
        }
        transaction.commit()?;
        Ok(open.len())
    }

    fn ask_end(&mut self, id: &str, why: &str) -> Result<bool, StoreError> {
        let sql = format!("UPDATE tool_calls SET cancelled = ?2 WHERE id = ?1 AND {IS_OPEN}");
        Ok(self.connection.execute(&sql, [id, why])? > 0)
    }

    fn asked_to_end(&mut self, spool: &str) -> Result<Vec<String>, StoreError> {
        let sql = format!("SELECT id FROM tool_calls WHERE spool = ?1 AND {IS_OPEN} AND cancelled IS NOT NULL");
        let mut select = self.connection.prepare_cached(&sql)?;
        let ids = select.query_map([spool], |row| row.get(0))?;
        Ok(ids.collect::<rusqlite::Result<_>>()?)
    }

    fn open_spools(&mut self) -> Result<Vec<String>, StoreError> {
        let sql = format!("SELECT DISTINCT spool FROM tool_calls WHERE {IS_OPEN}");
        let mut select = self.connection.prepare_cached(&sql)?;
        let rows = select.query_map([], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn held(&mut self) -> Result<Held, StoreError> {
        Ok(kept::held(&self.connection)?)
    }

    fn versions(&mut self) -> Result<HashSet<String>, StoreError> {
        let mut found = self.connection.prepare_cached("SELECT DISTINCT tool_version FROM tool_calls")?;
        let versions = found.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(versions)
    }

    fn count(&mut self, excess: Excess, now_ms: u64) -> Result<u64, StoreError> {
        Ok(kept::count(&self.connection, excess, now_ms)?)
    }

    fn remove(&mut self, excess: Excess, at_most: u64, now_ms: u64) -> Result<u64, StoreError> {
        Ok(kept::remove(&self.connection, excess, at_most, now_ms)?)
    }

    fn tidied(&mut self, now_ms: u64) -> Result<(), StoreError> {
        Ok(kept::tidy(&self.connection, now_ms)?)
    }

    fn synced(&mut self) -> Result<bool, StoreError> {
        // A checkpoint brings the log to the disk before it is taken over. One that a reader holds up may have done neither.
        let pages = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
        let (busy, logged, taken) = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], pages)?;
        Ok(busy == 0 && logged == taken)
    }

    fn erased(&mut self) -> Result<bool, StoreError> {
        // What was removed is still in the log, until that is cut off.
        self.connection.busy_timeout(Duration::ZERO)?;
        let cut = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
        self.connection.busy_timeout(PATIENCE)?;
        Ok(cut? == 0)
    }

    fn call(&mut self, id: &str) -> Result<Option<CallRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM tool_calls WHERE id = ?1");
        Ok(self.connection.prepare_cached(&sql)?.query_row([id], row).optional()?)
    }

    fn calls(&mut self, filter: &RowFilter) -> Result<Vec<CallRow>, StoreError> {
        let (mut conditions, mut values) = (vec!["1".to_owned()], Vec::new());
        let mut add = |condition: &str, value: Sql| {
            values.push(value);
            conditions.push(condition.replace('?', &format!("?{}", values.len())));
        };
        if let Some(begin) = &filter.id {
            add("id >= ?", begin.clone().into());
            // Behind every id that begins so.
            add("id < ?", format!("{begin}~").into());
        }
        if let Some(tool) = &filter.tool {
            add("tool_name = ?", tool.clone().into());
        }
        if let Some(tag) = &filter.tag {
            add("tags IS NOT NULL AND EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)", tag.clone().into());
        }
        if !filter.states.is_empty() {
            let words: Vec<String> = filter.states.iter().map(|state| format!("'{}'", state.word())).collect();
            conditions.push(format!("state IN ({})", words.join(", ")));
        }
        let sql = format!(
            "SELECT {LISTED} FROM tool_calls WHERE {} ORDER BY number DESC LIMIT {}",
            conditions.join(" AND "),
            filter.limit
        );
        let mut select = self.connection.prepare(&sql)?;
        let rows = select.query_map(rusqlite::params_from_iter(values), row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
