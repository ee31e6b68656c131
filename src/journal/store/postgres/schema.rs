//! The tables in a server, and how those of an earlier version become them.

use std::time::Duration;

use postgres::Client;

use super::super::StoreError;

/// The version of the tables below, kept in `hostler.settings`.
const VERSION: i32 = 1;

/// The steps from each version to the next. Never change one that was released: add another.
const STEPS: &[&str] = &[FIRST];

/// Any number that no other program locks.
const LOCK: i64 = 0x686f_7374_6c65_7231;

/// Specification 003 names the columns of `tool_calls` up to `updated_at`; times are milliseconds since 1970. Leases are in the server's
/// own time.
const FIRST: &str = "
CREATE TABLE hostler.tool_calls (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    prompt_id TEXT,
    block_id TEXT,
    api_tool_call_id TEXT,
    tool_name TEXT NOT NULL,
    state TEXT NOT NULL,
    request TEXT,
    response TEXT,
    error TEXT,
    pid BIGINT,
    started_at BIGINT,
    timeout_at BIGINT,
    retry_count BIGINT NOT NULL DEFAULT 0,
    last_heartbeat BIGINT,
    output_stream TEXT,
    max_retries BIGINT NOT NULL DEFAULT 0,
    timeout_seconds DOUBLE PRECISION NOT NULL DEFAULT 300,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    code TEXT,
    fault TEXT,
    retry_at BIGINT,
    process_started BIGINT,
    boot_id TEXT,
    duration_us BIGINT,
    attempt BIGINT NOT NULL DEFAULT 0,
    effects TEXT NOT NULL DEFAULT '',
    level TEXT NOT NULL DEFAULT '',
    background BOOLEAN NOT NULL DEFAULT false,
    session BIGINT NOT NULL DEFAULT 0,
    client TEXT,
    tags TEXT[],
    traceparent TEXT,
    key TEXT,
    tool_version TEXT NOT NULL DEFAULT '',
    workspace TEXT,
    has_secrets BOOLEAN NOT NULL DEFAULT false,
    cancelled TEXT,
    metadata TEXT,
    spool TEXT NOT NULL DEFAULT '',
    origin TEXT NOT NULL DEFAULT ''
);
CREATE INDEX tool_calls_open ON hostler.tool_calls (spool) WHERE state IN ('created', 'running', 'orphaned', 'stale');
CREATE INDEX tool_calls_ended ON hostler.tool_calls (origin, updated_at)
    WHERE state NOT IN ('created', 'running', 'orphaned', 'stale');
CREATE INDEX tool_calls_by_tool ON hostler.tool_calls (tool_name, number);
CREATE TABLE hostler.keys (
    tool TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    call_id TEXT NOT NULL,
    spool TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (tool, key)
);
CREATE TABLE hostler.spools (
    name TEXT PRIMARY KEY,
    segment BIGINT NOT NULL DEFAULT 0,
    position BIGINT NOT NULL DEFAULT 0,
    heartbeat TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);
";

/// How long a process counts as living without a sign of it: the same for all who use the tables.
pub fn lease(client: &mut Client) -> Result<Duration, StoreError> {
    let seconds: i32 = client.query_one("SELECT max(lease_seconds) FROM hostler.settings", &[])?.get(0);
    Ok(Duration::from_secs(seconds.max(1).unsigned_abs().into()))
}

/// Makes the tables, or brings those of an earlier version up to date.
pub fn prepare(client: &mut Client) -> Result<(), StoreError> {
    if version(client)? == Some(VERSION) {
        return Ok(());
    }
    let mut transaction = client.transaction()?;
    // Another process may do the same.
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK])?;
    transaction.batch_execute(
        "CREATE SCHEMA IF NOT EXISTS hostler;
         CREATE TABLE IF NOT EXISTS hostler.settings (
             version INTEGER NOT NULL,
             lease_seconds INTEGER NOT NULL DEFAULT 90 CONSTRAINT three_heartbeats CHECK (lease_seconds >= 90)
         )",
    )?;
    let now: i32 = transaction.query_one("SELECT coalesce(max(version), 0) FROM hostler.settings", &[])?.get(0);
    if now == 0 {
        transaction.execute("INSERT INTO hostler.settings VALUES (0)", &[])?;
    }
    if now > VERSION {
        return Err(StoreError::Later { version: now });
    }
    for (step, number) in STEPS.iter().zip(1_i32..).skip(usize::try_from(now).unwrap_or_default()) {
        transaction.batch_execute(step)?;
        transaction.execute("UPDATE hostler.settings SET version = $1", &[&number])?;
    }
    Ok(transaction.commit()?)
}

/// The version of the tables, if there are some.
fn version(client: &mut Client) -> Result<Option<i32>, StoreError> {
    let is_there: bool = client.query_one("SELECT to_regclass('hostler.settings') IS NOT NULL", &[])?.get(0);
    if !is_there {
        return Ok(None);
    }
    let number: Option<i32> = client.query_one("SELECT max(version) FROM hostler.settings", &[])?.get(0);
    match number {
        Some(number) if number > VERSION => Err(StoreError::Later { version: number }),
        number => Ok(number),
    }
}
