//! What the store removes: calls that have ended, the first to end first.

use rusqlite::{Connection, params};

use super::IS_OVER;
use super::rows::number;
use crate::journal::keys::REMEMBERED_MS;
use crate::journal::retention::{Excess, Held};

/// Calls that may go: they have ended, and no idempotency key names them any more.
fn may_go() -> String {
    format!("{IS_OVER} AND NOT (key IS NOT NULL AND created_at >= ?1)")
}

/// Keys that are younger count.
fn keys_since(now_ms: u64) -> i64 {
    number(now_ms.saturating_sub(REMEMBERED_MS))
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<u64> {
    let value: i64 = connection.pragma_query_value(None, name, |row| row.get(0))?;
    Ok(u64::try_from(value).unwrap_or_default())
}

pub fn held(connection: &Connection) -> rusqlite::Result<Held> {
    let calls: i64 = connection.query_row("SELECT count(*) FROM tool_calls", [], |row| row.get(0))?;
    let pages = pragma(connection, "page_count")?.saturating_sub(pragma(connection, "freelist_count")?);
    Ok(Held {
        calls: u64::try_from(calls).unwrap_or_default(),
        bytes: pages.saturating_mul(pragma(connection, "page_size")?),
    })
}

pub fn count(connection: &Connection, excess: Excess, now_ms: u64) -> rusqlite::Result<u64> {
    let sql = format!("SELECT count(*), count(*) FILTER (WHERE updated_at < ?2) FROM tool_calls WHERE {}", may_go());
    let counts = connection.query_row(&sql, params![keys_since(now_ms), number(excess.before_ms)], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
    })?;
    let [all, old] = [counts.0, counts.1].map(|count| u64::try_from(count).unwrap_or_default());
    Ok(old.max(excess.count.min(all)))
}

pub fn remove(connection: &Connection, excess: Excess, at_most: u64, now_ms: u64) -> rusqlite::Result<u64> {
    let (condition, limit) =
        if excess.count > 0 { ("?2 = ?2", excess.count.min(at_most)) } else { ("updated_at < ?2", at_most) };
    let sql = format!(
        "DELETE FROM tool_calls WHERE number IN
            (SELECT number FROM tool_calls WHERE {} AND {condition} ORDER BY updated_at LIMIT ?3)",
        may_go()
    );
    let removed = connection.prepare_cached(&sql)?.execute(params![
        keys_since(now_ms),
        number(excess.before_ms),
        number(limit)
    ])?;
    Ok(u64::try_from(removed).unwrap_or_default())
}

pub fn tidy(connection: &Connection, now_ms: u64) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM keys WHERE created_at < ?1", [keys_since(now_ms)])?;
    // Some free room is used again soon.
    if pragma(connection, "freelist_count")? > pragma(connection, "page_count")? / 4 {
        // A page for each row.
        connection.pragma_query(None, "incremental_vacuum", |_| Ok(()))?;
    }
    Ok(())
}
