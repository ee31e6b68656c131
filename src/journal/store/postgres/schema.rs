//! The tables in a server, and how those of an earlier version become them.

use std::time::Duration;

use postgres::Client;

use super::super::StoreError;

/// The version of the tables below, kept in `hostler.settings`.
const VERSION: i32 = 2;

/// The steps from each version to the next. Never change one that was released: add another.
const STEPS: &[&str] = &[FIRST, APPROVALS];

/// Any number that no other program locks.
const LOCK: i64 = 0x686f_7374_6c65_7231;

/// The tables, and the function that enqueues a call.
const FIRST: &str = include_str!("first.sql");

/// Calls can wait for a person, and be denied.
const APPROVALS: &str = include_str!("approvals.sql");

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
    let encoding: String = client.query_one("SHOW server_encoding", &[])?.get(0);
    if encoding != "UTF8" {
        let what =
            format!("its encoding is {encoding}, which has not every character; create one with ENCODING 'UTF8'");
        return Err(StoreError::Server(what));
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
