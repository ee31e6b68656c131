//! Calls as rows: how they are written and read.

use std::time::Duration;

use rusqlite::{Row, Transaction, params};

use super::{CallRow, Change, IS_OPEN};
use crate::journal::state::State;
use crate::outcome::Attempt;

/// The most of a call's output that is kept, the newest.
pub const MOST_OUTPUT: usize = 1 << 20;

macro_rules! columns {
    ($bodies:literal, $output:literal, $metadata:literal) => {
        concat!(
            "id, tool_name, state, ", $bodies, ", error, pid, started_at, timeout_at, retry_count, last_heartbeat, ", $output,
            ", max_retries, timeout_seconds, created_at, updated_at, code, fault, retry_at, process_started, boot_id, \
             duration_us, attempt, effects, level, background, session, client, tags, traceparent, key, tool_version, workspace, \
             cancelled, ", $metadata, ", spool, has_secrets, tries"
        )
    };
}

/// What is read of a call.
pub const COLUMNS: &str = columns!("request, response", "output_stream", "metadata");

/// The same for a list, without bodies.
pub const LISTED: &str = columns!("substr(request, 1, 2048), NULL", "NULL", "NULL");

/// A call as a row of these.
pub fn row(row: &Row<'_>) -> rusqlite::Result<CallRow> {
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
        tries: read_tries(row.get::<_, Option<String>>(37)?.as_deref()),
    })
}

/// SQLite has signed numbers; ours are below 2^63.
pub fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The same back.
pub fn unsigned(row: &Row<'_>, place: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(place).map(|value| u64::try_from(value).unwrap_or_default())
}

fn optional(row: &Row<'_>, place: usize) -> rusqlite::Result<Option<u64>> {
    row.get::<_, Option<i64>>(place).map(|value| value.and_then(|value| u64::try_from(value).ok()))
}

/// The part of a tag behind its name: a caller's own id.
pub fn tagged<'a>(tags: &'a [String], name: &str) -> Option<&'a str> {
    tags.iter().find_map(|tag| tag.strip_prefix(name)?.strip_prefix(':'))
}

/// The time limit of a call in seconds.
pub fn seconds(one: &CallRow) -> f64 {
    Duration::from_millis(one.timeout_ms).as_secs_f64()
}

/// Applies what became of a call.
pub fn apply(transaction: &Transaction<'_>, spool: &str, change: &Change) -> rusqlite::Result<()> {
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
    let inserted = transaction
        .prepare_cached(
            "INSERT OR IGNORE INTO tool_calls (id, prompt_id, block_id, api_tool_call_id, tool_name, state, request, response, error,
                pid, started_at, timeout_at, retry_count, last_heartbeat, output_stream, max_retries, timeout_seconds, created_at,
                updated_at, code, fault, retry_at, process_started, boot_id, duration_us, attempt, effects, level, background,
                session, client, tags, traceparent, key, tool_version, workspace, cancelled, metadata, spool, has_secrets, tries)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24,
                ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, ?39, ?40, ?41)",
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
            seconds(one),
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
            written_tries(&one.tries),
        ])?;
    Ok(inserted > 0)
}

/// Whether there is such a call that has not ended, or ends with this. What the records do not say stays, except for what ends with a call or an attempt: its arguments, its fault, its pause.
fn update(transaction: &Transaction<'_>, spool: &str, change: &Change) -> rusqlite::Result<bool> {
    let one = &change.row;
    let drops_request = one.state.is_some_and(State::is_final) && !change.keeps_request;
    let changed = transaction
        .prepare_cached(&format!(
            "UPDATE tool_calls SET state = coalesce(?2, state), request = iif(?3, ?4, request), response = coalesce(?5, response),
                error = iif(?6, ?7, error), code = iif(?6, ?8, code), fault = iif(?6, ?9, fault), pid = coalesce(?10, pid),
                process_started = coalesce(?11, process_started), boot_id = coalesce(?12, boot_id),
                started_at = coalesce(?13, started_at),
                timeout_at = coalesce(CAST(?13 + iif(?26, ?31, timeout_seconds) * 1000 AS INTEGER), timeout_at),
                retry_count = max(retry_count, ?14), retry_at = iif(?6, ?15, retry_at), attempt = max(attempt, ?16),
                duration_us = coalesce(?17, duration_us), cancelled = coalesce(?18, cancelled), metadata = coalesce(?19, metadata),
                updated_at = ?20, output_stream = coalesce(?21, output_stream), last_heartbeat = coalesce(?13, last_heartbeat),
                spool = ?22, workspace = coalesce(?23, workspace), background = background OR ?25,
                effects = iif(?26, ?27, effects), level = iif(?26, ?28, level), tool_version = iif(?26, ?29, tool_version),
                has_secrets = has_secrets OR ?30, timeout_seconds = iif(?26, ?31, timeout_seconds),
                max_retries = iif(?26, ?32, max_retries)
             WHERE id = ?1 AND ({IS_OPEN} OR ?24)"
        ))?
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
            one.background,
            // Accepted again: by another version of its tool, perhaps.
            change.is_new,
            one.effects,
            one.level,
            one.tool_version,
            one.has_secrets,
            seconds(one),
            number(one.max_retries),
        ])?;
    if changed == 0 {
        return Ok(false);
    }
    if !one.tries.is_empty() {
        let before: Option<String> = transaction
            .prepare_cached("SELECT tries FROM tool_calls WHERE id = ?1")?
            .query_row([&one.id], |row| row.get(0))?;
        let tries = [read_tries(before.as_deref()), one.tries.clone()].concat();
        transaction
            .prepare_cached("UPDATE tool_calls SET tries = ?2 WHERE id = ?1")?
            .execute(params![one.id, written_tries(&tries)])?;
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

/// Why tries have failed, as JSON.
pub fn written_tries(tries: &[Attempt]) -> Option<String> {
    (!tries.is_empty()).then(|| serde_json::to_string(tries).unwrap_or_default())
}

/// The same as it was written.
pub fn read_tries(written: Option<&str>) -> Vec<Attempt> {
    written.and_then(|written| serde_json::from_str(written).ok()).unwrap_or_default()
}

/// The end of an output that is kept.
pub fn end(output: &str) -> &str {
    &output[output.ceil_char_boundary(output.len().saturating_sub(MOST_OUTPUT))..]
}
