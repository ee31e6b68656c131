//! The tables of the store, and how those of an earlier version become them.

use rusqlite::{Connection, Transaction};

/// The version of the tables below, kept in `user_version`.
pub const VERSION: i64 = 3;

/// The steps from each version to the next. Never change one that was released: add another.
pub(super) const STEPS: &[&str] = &[FIRST, "ALTER TABLE tool_calls ADD COLUMN tries TEXT", APPROVALS];

/// Specification 003 names the columns up to `updated_at`; times are milliseconds since 1970.
const FIRST: &str = "
CREATE TABLE tool_calls (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    prompt_id TEXT,
    block_id TEXT,
    api_tool_call_id TEXT,
    tool_name TEXT NOT NULL,
    state TEXT NOT NULL,
    request TEXT,
    response TEXT,
    error TEXT,
    pid INTEGER,
    started_at INTEGER,
    timeout_at INTEGER,
    retry_count INTEGER NOT NULL DEFAULT 0,
    last_heartbeat INTEGER,
    output_stream TEXT,
    max_retries INTEGER NOT NULL DEFAULT 0,
    timeout_seconds REAL NOT NULL DEFAULT 300,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    code TEXT,
    fault TEXT,
    retry_at INTEGER,
    process_started INTEGER,
    boot_id TEXT,
    duration_us INTEGER,
    attempt INTEGER NOT NULL DEFAULT 0,
    effects TEXT NOT NULL DEFAULT '',
    level TEXT NOT NULL DEFAULT '',
    background INTEGER NOT NULL DEFAULT 0,
    session INTEGER NOT NULL DEFAULT 0,
    client TEXT,
    tags TEXT,
    traceparent TEXT,
    key TEXT,
    tool_version TEXT NOT NULL DEFAULT '',
    workspace TEXT,
    has_secrets INTEGER NOT NULL DEFAULT 0,
    cancelled TEXT,
    metadata TEXT,
    spool TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX tool_calls_open ON tool_calls (spool) WHERE state IN ('created', 'running', 'orphaned', 'stale');
CREATE INDEX tool_calls_ended ON tool_calls (updated_at) WHERE state NOT IN ('created', 'running', 'orphaned', 'stale');
CREATE INDEX tool_calls_by_tool ON tool_calls (tool_name, number);
CREATE TABLE keys (
    tool TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    call_id TEXT NOT NULL,
    spool TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tool, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE spools (
    name TEXT PRIMARY KEY,
    segment INTEGER NOT NULL,
    position INTEGER NOT NULL,
    heartbeat INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// Calls can wait for a person: the indexes know that those have not ended.
const APPROVALS: &str = "
DROP INDEX tool_calls_open;
DROP INDEX tool_calls_ended;
CREATE INDEX tool_calls_open ON tool_calls (spool) WHERE state IN ('created', 'waiting_approval', 'running', 'orphaned', 'stale');
CREATE INDEX tool_calls_ended ON tool_calls (updated_at)
    WHERE state NOT IN ('created', 'waiting_approval', 'running', 'orphaned', 'stale');
";

/// What stands in a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Known {
    /// The tables of this version, made or brought up to date if need be.
    Ready,
    /// Those of a later one.
    Later(i64),
}

/// Makes the tables, or brings those of an earlier version up to date.
pub fn prepare(connection: &mut Connection) -> rusqlite::Result<Known> {
    let version = |connection: &Connection| connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
    match version(connection)? {
        VERSION => return Ok(Known::Ready),
        later if later > VERSION => return Ok(Known::Later(later)),
        _ => {}
    }
    // Another process may do the same.
    let transaction = Transaction::new(connection, rusqlite::TransactionBehavior::Immediate)?;
    let now = version(&transaction)?;
    for (step, number) in STEPS.iter().zip(1..).skip(usize::try_from(now).unwrap_or_default()) {
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", number)?;
    }
    transaction.commit()?;
    Ok(Known::Ready)
}
