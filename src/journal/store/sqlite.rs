//! The store in a file of its own, for all hostlers of a person.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use super::schema::{self, Known, VERSION};
use super::{Batch, CallRow, Change, RowFilter, Store, StoreError};
use crate::journal::keys::{Claimed, Keyed, REMEMBERED_MS};
use crate::journal::spool::Position;
use crate::journal::state::State;

/// How long another process may hold the file, such as a backup.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most of a call's output that is kept, the newest.
const MOST_OUTPUT: usize = 1 << 20;

/// The store of a person.
pub struct SqliteStore {
    connection: Connection,
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
                let aside = set_aside(path)?;
                tracing::warn!(store = %path.display(), aside = %aside.display(), %error, "the store of calls is damaged; it was set aside");
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
        Ok((version > 0).then_some(Self { connection }))
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
            Known::Ready => Ok(Ok(Self { connection })),
            Known::Later(version) => Ok(Err(version)),
        }
    }

    #[cfg(test)]
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    fn begin(&mut self) -> rusqlite::Result<Transaction<'_>> {
        self.connection.transaction_with_behavior(TransactionBehavior::Immediate)
    }
}

/// Gives a damaged store another name, with the files beside it.
fn set_aside(path: &Path) -> Result<PathBuf, StoreError> {
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
    Ok(named("", number))
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
        is_held: &dyn Fn(&str) -> bool,
    ) -> Result<Claimed, StoreError> {
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
        {
            let sql = format!("SELECT {COLUMNS} FROM tool_calls WHERE id = ?1");
            let row = transaction.prepare_cached(&sql)?.query_row([&call], row).optional()?;
            // One that died between taking the key and writing its call down has not begun it.
            if row.is_some() || holder == spool || is_held(&holder) {
                return Ok(Claimed::Known { call, is_same: digest == asked.digest, row: row.map(Box::new) });
            }
        }
        transaction
            .prepare_cached("INSERT OR REPLACE INTO keys (tool, key, digest, call_id, spool, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
            .execute(params![asked.tool, asked.key, asked.digest, asked.call, spool, number(now_ms)])?;
        transaction.commit()?;
        Ok(Claimed::First)
    }

    fn free_key(&mut self, tool: &str, key: &str, call: &str) -> Result<(), StoreError> {
        self.connection.execute("DELETE FROM keys WHERE tool = ?1 AND key = ?2 AND call_id = ?3", [tool, key, call])?;
        Ok(())
    }

    fn forget(&mut self, spool: &str) -> Result<(), StoreError> {
        self.connection.execute("DELETE FROM spools WHERE name = ?1", [spool])?;
        Ok(())
    }

    fn beat(&mut self, spool: &str, now_ms: u64) -> Result<(), StoreError> {
        let transaction = self.begin()?;
        transaction.execute("UPDATE spools SET heartbeat = ?2 WHERE name = ?1", params![spool, number(now_ms)])?;
        transaction.execute(
            "UPDATE tool_calls SET last_heartbeat = ?2
             WHERE spool = ?1 AND state = 'running' AND state IN ('created', 'running', 'orphaned', 'stale')", // for its index
            params![spool, number(now_ms)],
        )?;
        Ok(transaction.commit()?)
    }

    fn open_calls(&mut self, spool: &str) -> Result<Vec<CallRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM tool_calls
             WHERE spool = ?1 AND state IN ('created', 'running', 'orphaned', 'stale') ORDER BY number"
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        let rows = select.query_map([spool], row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn open_spools(&mut self) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT DISTINCT spool FROM tool_calls WHERE state IN ('created', 'running', 'orphaned', 'stale')";
        let mut select = self.connection.prepare_cached(sql)?;
        let rows = select.query_map([], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn synced(&mut self) -> Result<(), StoreError> {
        // A checkpoint brings the log to the disk before it is taken over.
        self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        Ok(())
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
        if let Some(tool) = &filter.tool {
            add("tool_name = ?", tool.clone().into());
        }
        if let Some(tag) = &filter.tag {
            add("tags IS NOT NULL AND EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)", tag.clone().into());
        }
        if let Some(before) = filter.before {
            add("created_at < ?", number(before).into());
        }
        if !filter.states.is_empty() {
            let words: Vec<String> = filter.states.iter().map(|state| format!("'{}'", state.word())).collect();
            conditions.push(format!("state IN ({})", words.join(", ")));
        }
        let sql = format!(
            "SELECT {COLUMNS} FROM tool_calls WHERE {} ORDER BY number DESC LIMIT {}",
            conditions.join(" AND "),
            filter.limit
        );
        let mut select = self.connection.prepare(&sql)?;
        let rows = select.query_map(rusqlite::params_from_iter(values), row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

const COLUMNS: &str = "id, tool_name, state, request, response, error, pid, started_at, timeout_at, retry_count, last_heartbeat, \
    output_stream, max_retries, timeout_seconds, created_at, updated_at, code, fault, retry_at, process_started, boot_id, \
    duration_us, attempt, effects, level, background, session, client, tags, traceparent, key, tool_version, workspace, cancelled, \
    metadata, spool, has_secrets";

fn row(row: &Row<'_>) -> rusqlite::Result<CallRow> {
    let tags: Option<String> = row.get(28)?;
    let seconds: f64 = row.get(13)?;
    Ok(CallRow {
        id: row.get(0)?,
        tool_name: row.get(1)?,
        state: State::of(&row.get::<_, String>(2)?),
        request: row.get(3)?,
        response: row.get(4)?,
        error: row.get(5)?,
        pid: optional(row, 6)?,
        started_at: optional(row, 7)?,
        timeout_at: optional(row, 8)?,
        retry_count: unsigned(row, 9)?,
        last_heartbeat: optional(row, 10)?,
        output: row.get(11)?,
        max_retries: unsigned(row, 12)?,
        timeout_ms: Duration::try_from_secs_f64(seconds).unwrap_or_default().as_millis().try_into().unwrap_or(u64::MAX),
        created_at: unsigned(row, 14)?,
        updated_at: unsigned(row, 15)?,
        code: row.get(16)?,
        fault: row.get(17)?,
        retry_at: optional(row, 18)?,
        process_started: optional(row, 19)?,
        boot_id: row.get(20)?,
        duration_us: optional(row, 21)?,
        attempt: unsigned(row, 22)?,
        effects: row.get(23)?,
        level: row.get(24)?,
        background: row.get(25)?,
        session: unsigned(row, 26)?,
        client: row.get(27)?,
        tags: tags.and_then(|tags| serde_json::from_str(&tags).ok()).unwrap_or_default(),
        traceparent: row.get(29)?,
        key: row.get(30)?,
        tool_version: row.get(31)?,
        workspace: row.get(32)?,
        cancelled: row.get(33)?,
        metadata: row.get(34)?,
        spool: row.get(35)?,
        has_secrets: row.get(36)?,
    })
}

/// `SQLite` has signed numbers; ours are below 2^63.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unsigned(row: &Row<'_>, place: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(place).map(|value| u64::try_from(value).unwrap_or_default())
}

fn optional(row: &Row<'_>, place: usize) -> rusqlite::Result<Option<u64>> {
    row.get::<_, Option<i64>>(place).map(|value| value.and_then(|value| u64::try_from(value).ok()))
}

/// The part of a tag behind its name: a caller's own id.
fn tagged<'a>(tags: &'a [String], name: &str) -> Option<&'a str> {
    tags.iter().find_map(|tag| tag.strip_prefix(name)?.strip_prefix(':'))
}

fn apply(transaction: &Transaction<'_>, spool: &str, change: &Change) -> rusqlite::Result<()> {
    // A call that another process goes on with is accepted again, under its id.
    let is_there = !(change.is_new && insert(transaction, spool, change)?);
    if is_there && !update(transaction, spool, change)? {
        // The record of its acceptance is lost, or it has ended before.
        insert(transaction, spool, change)?;
    }
    Ok(())
}

/// Whether there was no such call.
fn insert(transaction: &Transaction<'_>, spool: &str, change: &Change) -> rusqlite::Result<bool> {
    let one = &change.row;
    let tags = (!one.tags.is_empty()).then(|| serde_json::to_string(&one.tags).unwrap_or_default());
    let output = one.output.as_deref().or((!change.printed.is_empty()).then_some(&*change.printed)).map(end);
    #[expect(clippy::cast_precision_loss, reason = "a time limit")]
    let seconds = one.timeout_ms as f64 / 1000.0;
    let inserted = transaction
        .prepare_cached(
            "INSERT OR IGNORE INTO tool_calls (id, prompt_id, block_id, api_tool_call_id, tool_name, state, request, response, error,
                pid, started_at, timeout_at, retry_count, last_heartbeat, output_stream, max_retries, timeout_seconds, created_at,
                updated_at, code, fault, retry_at, process_started, boot_id, duration_us, attempt, effects, level, background,
                session, client, tags, traceparent, key, tool_version, workspace, cancelled, metadata, spool, has_secrets)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24,
                ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, ?39, ?40)",
        )?
        .execute(params![
            one.id,
            tagged(&one.tags, "prompt"),
            tagged(&one.tags, "block"),
            tagged(&one.tags, "tool_call"),
            one.tool_name,
            one.state.unwrap_or(State::Created).word(),
            one.request,
            one.response,
            one.error,
            one.pid.map(number),
            one.started_at.map(number),
            one.timeout_at.map(number),
            number(one.retry_count),
            one.started_at.map(number),
            output,
            number(one.max_retries),
            seconds,
            number(one.created_at),
            number(one.updated_at),
            one.code,
            one.fault,
            one.retry_at.map(number),
            one.process_started.map(number),
            one.boot_id,
            one.duration_us.map(number),
            number(one.attempt),
            one.effects,
            one.level,
            one.background,
            number(one.session),
            one.client,
            tags,
            one.traceparent,
            one.key,
            one.tool_version,
            one.workspace,
            one.cancelled,
            one.metadata,
            spool,
            one.has_secrets,
        ])?;
    Ok(inserted > 0)
}

/// Whether there is such a call that has not ended, or ends with this. What the records do not say stays, except for what ends with a call or an attempt: its arguments, its fault, its pause.
fn update(transaction: &Transaction<'_>, spool: &str, change: &Change) -> rusqlite::Result<bool> {
    let one = &change.row;
    let drops_request = one.state.is_some_and(State::is_final) && !change.keeps_request;
    let changed = transaction
        .prepare_cached(
            "UPDATE tool_calls SET state = coalesce(?2, state), request = iif(?3, ?4, request), response = coalesce(?5, response),
                error = iif(?6, ?7, error), code = iif(?6, ?8, code), fault = iif(?6, ?9, fault), pid = coalesce(?10, pid),
                process_started = coalesce(?11, process_started), boot_id = coalesce(?12, boot_id),
                started_at = coalesce(?13, started_at), timeout_at = coalesce(CAST(?13 + timeout_seconds * 1000 AS INTEGER), timeout_at),
                retry_count = max(retry_count, ?14), retry_at = ?15, attempt = max(attempt, ?16),
                duration_us = coalesce(?17, duration_us), cancelled = coalesce(?18, cancelled), metadata = coalesce(?19, metadata),
                updated_at = ?20, output_stream = coalesce(?21, output_stream), last_heartbeat = coalesce(?13, last_heartbeat),
                spool = ?22, workspace = coalesce(?23, workspace)
             WHERE id = ?1 AND (state IN ('created', 'running', 'orphaned', 'stale') OR ?24)",
        )?
        .execute(params![
            one.id,
            one.state.map(State::word),
            drops_request,
            one.request,
            one.response,
            one.state.is_some(),
            one.error,
            one.code,
            one.fault,
            one.pid.map(number),
            one.process_started.map(number),
            one.boot_id,
            one.started_at.map(number),
            number(one.retry_count),
            one.retry_at.map(number),
            number(one.attempt),
            one.duration_us.map(number),
            one.cancelled,
            one.metadata,
            number(one.updated_at),
            one.output.as_deref().map(end),
            spool,
            one.workspace,
            one.state.is_some_and(State::is_final),
        ])?;
    if changed == 0 {
        return Ok(false);
    }
    if !change.printed.is_empty() && one.output.is_none() {
        let before: Option<String> = transaction
            .prepare_cached("SELECT output_stream FROM tool_calls WHERE id = ?1")?
            .query_row([&one.id], |row| row.get(0))?;
        let output = before.unwrap_or_default() + &change.printed;
        transaction
            .prepare_cached("UPDATE tool_calls SET output_stream = ?2 WHERE id = ?1")?
            .execute(params![one.id, end(&output)])?;
    }
    Ok(true)
}

/// The end of an output that is kept.
fn end(output: &str) -> &str {
    &output[output.ceil_char_boundary(output.len().saturating_sub(MOST_OUTPUT))..]
}
