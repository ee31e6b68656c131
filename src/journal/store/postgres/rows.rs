//! Calls as rows of a server: how they are written and read.

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Duration;

use postgres::{Row, Transaction};
use serde_json::{Value, json};

use super::super::rows::{MOST_OUTPUT, end, number, read_tries, seconds, tagged, written_tries};
use super::super::{CallRow, Change, IS_OPEN, StoreError};
use crate::journal::state::State;

/// What is written of a new call.
const WRITTEN: &str = "id, prompt_id, block_id, api_tool_call_id, tool_name, state, request, response, error, pid, started_at, timeout_at, \
     retry_count, last_heartbeat, output_stream, max_retries, timeout_seconds, created_at, updated_at, code, fault, retry_at, \
     process_started, boot_id, duration_us, attempt, effects, level, background, session, client, tags, traceparent, key, tool_version, \
     workspace, has_secrets, cancelled, metadata, spool, tries, origin";

/// The spool whose calls are written, and whose they are.
#[derive(Clone, Copy)]
pub struct Writer<'a> {
    pub spool: &'a str,
    pub origin: &'a str,
    /// Whether only calls of this spool are changed: others have another process by now.
    pub is_fenced: bool,
}

/// A call as a row of [`COLUMNS`](super::super::rows::COLUMNS).
pub fn row(row: &Row) -> CallRow {
    let time = |place: usize| row.get::<_, Option<i64>>(place).and_then(|time| u64::try_from(time).ok());
    let count = |place: usize| u64::try_from(row.get::<_, i64>(place)).unwrap_or_default();
    let limit = Duration::try_from_secs_f64(row.get(13)).unwrap_or_default();
    CallRow {
        id: row.get(0),
        tool_name: row.get(1),
        state: State::of(row.get(2)),
        request: row.get(3),
        response: row.get(4),
        error: row.get(5),
        pid: time(6),
        started_at: time(7),
        timeout_at: time(8),
        retry_count: count(9),
        last_heartbeat: time(10),
        output: row.get(11),
        // As its tool has it.
        max_retries: u64::try_from(row.get::<_, i64>(12)).unwrap_or(u64::MAX),
        timeout_ms: limit.as_millis().try_into().unwrap_or(u64::MAX),
        created_at: count(14),
        updated_at: count(15),
        code: row.get(16),
        fault: row.get(17),
        retry_at: time(18),
        process_started: time(19),
        boot_id: row.get(20),
        duration_us: time(21),
        attempt: count(22),
        effects: row.get(23),
        level: row.get(24),
        background: row.get(25),
        session: count(26),
        client: row.get(27),
        // Others may write here too.
        tags: row
            .try_get::<_, Option<Vec<Option<String>>>>(28)
            .ok()
            .flatten()
            .map(|tags| tags.into_iter().flatten().collect())
            .unwrap_or_default(),
        traceparent: row.get(29),
        key: row.get(30),
        tool_version: row.get(31),
        workspace: row.get(32),
        cancelled: row.get(33),
        metadata: row.get(34),
        spool: row.get(35),
        has_secrets: row.get(36),
        tries: read_tries(row.get(37)),
    }
}

/// Applies what became of calls: all new ones in one statement.
pub fn apply(transaction: &mut Transaction<'_>, writer: Writer<'_>, changes: &[Change]) -> Result<(), StoreError> {
    let new: Vec<&Change> = changes.iter().filter(|change| change.is_new).collect();
    let written = insert(transaction, writer, &new)?;
    for change in changes.iter().filter(|change| !written.contains(&change.row.id)) {
        if !update(transaction, writer, change)? {
            // The record of its acceptance is lost, or it has ended before, or another process has it.
            insert(transaction, writer, &[change])?;
        }
    }
    Ok(())
}

/// The ids of those that were not there.
fn insert(
    transaction: &mut Transaction<'_>,
    writer: Writer<'_>,
    changes: &[&Change],
) -> Result<HashSet<String>, StoreError> {
    if changes.is_empty() {
        return Ok(HashSet::new());
    }
    let rows: Vec<Value> = changes.iter().map(|change| written(writer, change)).collect();
    let sql = format!(
        "INSERT INTO hostler.tool_calls ({WRITTEN}) \
         SELECT {WRITTEN} FROM json_populate_recordset(NULL::hostler.tool_calls, $1::text::json) \
         ON CONFLICT (id) DO NOTHING RETURNING id"
    );
    let rows = serde_json::to_string(&rows).unwrap_or_default();
    Ok(transaction.query(&sql, &[&rows])?.iter().map(|row| row.get(0)).collect())
}

fn written(writer: Writer<'_>, change: &Change) -> Value {
    let one = &change.row;
    let printed = (!change.printed.is_empty()).then_some(&*change.printed);
    let mut row = json!({
        "id": one.id,
        "prompt_id": clean(tagged(&one.tags, "prompt")),
        "block_id": clean(tagged(&one.tags, "block")),
        "api_tool_call_id": clean(tagged(&one.tags, "tool_call")),
        "tool_name": clean(Some(&*one.tool_name)),
        "state": one.state.unwrap_or(State::Created).word(),
        "request": clean(one.request.as_deref()),
        "response": clean(one.response.as_deref()),
        "error": clean(one.error.as_deref()),
        "pid": one.pid.map(number),
        "started_at": one.started_at.map(number),
        "timeout_at": one.timeout_at.map(number),
        "retry_count": number(one.retry_count),
        "last_heartbeat": one.started_at.map(number),
        "output_stream": clean(one.output.as_deref().or(printed).map(end)),
        "max_retries": number(one.max_retries),
        "timeout_seconds": seconds(one),
        "created_at": number(one.created_at),
        "updated_at": number(one.updated_at),
        "code": one.code,
        "fault": clean(one.fault.as_deref()),
        "retry_at": one.retry_at.map(number),
        "process_started": one.process_started.map(number),
        "boot_id": one.boot_id,
        "duration_us": one.duration_us.map(number),
        "attempt": number(one.attempt),
        "effects": one.effects,
        "level": one.level,
        "background": one.background,
        "session": number(one.session),
        "client": clean(one.client.as_deref()),
        "tags": (!one.tags.is_empty()).then(|| one.tags.iter().map(|tag| clean(Some(tag))).collect::<Vec<_>>()),
        "traceparent": clean(one.traceparent.as_deref()),
        "key": clean(one.key.as_deref()),
        "tool_version": one.tool_version,
        "workspace": clean(one.workspace.as_deref()),
        "has_secrets": one.has_secrets,
        "cancelled": clean(one.cancelled.as_deref()),
        "metadata": clean(one.metadata.as_deref()),
        "spool": writer.spool,
        "origin": writer.origin,
    });
    row["tries"] = json!(clean(written_tries(&one.tries).as_deref()));
    row
}

/// Texts of a server have no NUL.
pub fn clean(text: Option<&str>) -> Option<Cow<'_, str>> {
    text.map(|text| if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { Cow::Borrowed(text) })
}

/// Whether there is such a call that has not ended, or ends with this. What the records do not say stays, except for what ends with a
/// call or an attempt: its arguments, its fault, its pause.
fn update(transaction: &mut Transaction<'_>, writer: Writer<'_>, change: &Change) -> Result<bool, StoreError> {
    let one = &change.row;
    let is_final = one.state.is_some_and(State::is_final);
    let drops_request = is_final && !change.keeps_request;
    let [request, response, error, fault] =
        [&one.request, &one.response, &one.error, &one.fault].map(|text| clean(text.as_deref()));
    let [cancelled, metadata, workspace] =
        [&one.cancelled, &one.metadata, &one.workspace].map(|text| clean(text.as_deref()));
    let (output, printed) = (clean(one.output.as_deref().map(end)), clean(Some(&*change.printed)));
    let most = i32::try_from(MOST_OUTPUT).unwrap_or(i32::MAX);
    let sql = format!(
        "UPDATE hostler.tool_calls SET state = coalesce($2, state), request = CASE WHEN $3 THEN $4 ELSE request END,
            response = coalesce($5, response), error = CASE WHEN $6 THEN $7 ELSE error END,
            code = CASE WHEN $6 THEN $8 ELSE code END, fault = CASE WHEN $6 THEN $9 ELSE fault END, pid = coalesce($10, pid),
            process_started = coalesce($11, process_started), boot_id = coalesce($12, boot_id),
            started_at = coalesce($13, started_at),
            timeout_at = coalesce($13 + (least(CASE WHEN $29 THEN $34 ELSE timeout_seconds END, 1e9) * 1000)::bigint, timeout_at),
            retry_count = greatest(retry_count, $14), retry_at = CASE WHEN $6 THEN $15 ELSE retry_at END, attempt = greatest(attempt, $16),
            duration_us = coalesce($17, duration_us), cancelled = coalesce($18, cancelled), metadata = coalesce($19, metadata),
            updated_at = $20, last_heartbeat = coalesce($13, last_heartbeat),
            output_stream = CASE WHEN $21::text IS NOT NULL THEN $21 WHEN $26 = '' THEN output_stream
                ELSE right(coalesce(output_stream, '') || $26, $27) END,
            spool = $22, workspace = coalesce($23, workspace), background = background OR $25,
            effects = CASE WHEN $29 THEN $30 ELSE effects END, level = CASE WHEN $29 THEN $31 ELSE level END,
            tool_version = CASE WHEN $29 THEN $32 ELSE tool_version END,
            has_secrets = has_secrets OR $33, timeout_seconds = CASE WHEN $29 THEN $34 ELSE timeout_seconds END,
            max_retries = CASE WHEN $29 THEN $35 ELSE max_retries END
         WHERE id = $1 AND ({IS_OPEN} OR $24) AND (spool = $22 OR NOT $28)"
    );
    let changed = transaction.execute(
        &sql,
        &[
            &one.id,
            &one.state.map(State::word),
            &drops_request,
            &request,
            &response,
            &one.state.is_some(),
            &error,
            &one.code,
            &fault,
            &one.pid.map(number),
            &one.process_started.map(number),
            &one.boot_id,
            &one.started_at.map(number),
            &number(one.retry_count),
            &one.retry_at.map(number),
            &number(one.attempt),
            &one.duration_us.map(number),
            &cancelled,
            &metadata,
            &number(one.updated_at),
            &output,
            &writer.spool,
            &workspace,
            &is_final,
            &one.background,
            &printed,
            &most,
            &writer.is_fenced,
            // Accepted again: by another version of its tool, perhaps.
            &change.is_new,
            &one.effects,
            &one.level,
            &one.tool_version,
            &one.has_secrets,
            &seconds(one),
            &number(one.max_retries),
        ],
    )?;
    if changed > 0 && !one.tries.is_empty() {
        let before = transaction.query_one("SELECT tries FROM hostler.tool_calls WHERE id = $1", &[&one.id])?;
        let tries = [read_tries(before.get(0)), one.tries.clone()].concat();
        let tries = written_tries(&tries);
        transaction
            .execute("UPDATE hostler.tool_calls SET tries = $2 WHERE id = $1", &[&one.id, &clean(tries.as_deref())])?;
    }
    Ok(changed > 0)
}
