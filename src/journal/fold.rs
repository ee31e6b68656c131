//! From records to what they change in the store: pure. What is written of one call in a batch becomes one change.

use std::collections::HashMap;

use super::record::{Accepted, Dispatched, Finished, Id, Record, Retrying};
use super::spool::Position;
use super::state::{Created, Errored, Running, State, WaitingApproval};
use super::store::{Batch, CallRow, Change, MOST_OUTPUT};
use crate::outcome::Attempt;

/// Gathers the records of a batch.
pub struct Fold<'a> {
    boot: &'a str,
    batch: Batch,
    places: HashMap<Id, usize>,
}

impl<'a> Fold<'a> {
    /// Of a spool that is written in this boot.
    pub fn new(boot: &'a str) -> Self {
        Self { boot, batch: Batch::default(), places: HashMap::new() }
    }

    /// The calls that the records are about.
    pub fn calls(&self) -> usize {
        self.batch.calls.len()
    }

    /// The batch, which ends there.
    pub fn finish(self, at: Position) -> Batch {
        Batch { at, ..self.batch }
    }

    /// Adds a record.
    pub fn add(&mut self, record: &Record<'_>) {
        let boot = self.boot;
        let change = self.change(record.id());
        match record {
            Record::Accepted(one) => accept(change, one, boot),
            Record::Dispatched(one) => dispatch(&mut change.row, one, boot),
            Record::Finished(one) => {
                finish(&mut change.row, one);
                change.keeps_request = one.keeps_arguments;
            }
            Record::Retrying(one) => retry(&mut change.row, one),
            Record::Cancelling(one) => {
                change.row.cancelled = Some(one.by.to_owned());
                change.row.updated_at = one.at_ms;
            }
            Record::Detached(one) => {
                change.row.background = true;
                change.row.workspace = one.workspace.map(str::to_owned).or(change.row.workspace.take());
                change.row.updated_at = one.at_ms;
            }
            Record::Waiting(one) => {
                let WaitingApproval = Created.ask();
                change.row.state = Some(State::WaitingApproval);
                change.row.updated_at = one.at_ms;
            }
            Record::Printed(one) => {
                change.printed.push_str(one.text);
                keep_end(&mut change.printed);
                change.row.updated_at = one.at_ms;
            }
        }
    }

    fn change(&mut self, id: Id) -> &mut Change {
        let calls = &mut self.batch.calls;
        let place = *self.places.entry(id).or_insert_with(|| {
            let row = CallRow { id: data_encoding::HEXLOWER.encode(&id), ..CallRow::default() };
            calls.push(Change { row, ..Change::default() });
            calls.len() - 1
        });
        &mut calls[place]
    }
}

/// Cuts output of which the end is kept: now and then, since each cut copies.
fn keep_end(output: &mut String) {
    if output.len() > 4 * MOST_OUTPUT {
        output.drain(..output.ceil_char_boundary(output.len() - MOST_OUTPUT));
    }
}

fn accept(change: &mut Change, one: &Accepted<'_>, boot: &str) {
    let text = |text: Option<&str>| text.map(str::to_owned);
    let row = std::mem::take(&mut change.row);
    change.is_new = true;
    change.row = CallRow {
        id: row.id,
        tool_name: one.tool.to_owned(),
        state: Some(State::Created),
        request: (!one.arguments.is_empty()).then(|| one.arguments.to_owned()),
        created_at: one.at_ms,
        updated_at: one.at_ms,
        timeout_ms: one.timeout_ms,
        max_retries: one.max_retries,
        effects: one.effects.to_owned(),
        level: one.level.to_owned(),
        background: one.background,
        session: one.session,
        client: text(one.client),
        tags: one.tags.iter().map(|&tag| tag.to_owned()).collect(),
        traceparent: text(one.traceparent),
        key: text(one.key),
        tool_version: data_encoding::HEXLOWER.encode(one.version),
        workspace: text(one.workspace),
        has_secrets: one.has_secrets,
        boot_id: Some(boot.to_owned()),
        ..CallRow::default()
    };
}

fn dispatch(row: &mut CallRow, one: &Dispatched, boot: &str) {
    let Running = Created.dispatch();
    row.state = Some(State::Running);
    row.attempt = one.attempt;
    row.pid = Some(one.pid).filter(|pid| *pid > 0);
    row.process_started = Some(one.process_started).filter(|ticks| *ticks > 0);
    row.boot_id = Some(boot.to_owned());
    row.started_at = Some(one.at_ms);
    row.timeout_at = Some(one.at_ms + row.timeout_ms);
    row.retry_at = None;
    row.updated_at = one.at_ms;
}

fn finish(row: &mut CallRow, one: &Finished<'_>) {
    let text = |text: Option<&str>| text.map(str::to_owned);
    row.state = Some(State::of(one.state).unwrap_or(State::Error));
    row.code = text(one.code);
    row.fault = text(one.fault);
    row.error = one.fault.and_then(message);
    row.response = text(one.result);
    if !one.keeps_arguments {
        row.request = text(one.arguments);
    }
    row.output = text(one.output);
    row.duration_us = Some(one.duration_us);
    row.attempt = row.attempt.max(one.attempt);
    row.pid = Some(one.pid).filter(|pid| *pid > 0).or(row.pid);
    row.cancelled = text(one.cancelled).or(row.cancelled.take());
    row.metadata = text(one.metadata);
    row.workspace = text(one.workspace).or(row.workspace.take());
    row.retry_at = None;
    row.updated_at = one.at_ms;
    // What is lost with a damaged record.
    if row.created_at == 0 {
        row.created_at = one.at_ms.saturating_sub(one.duration_us / 1000);
    }
}

fn retry(row: &mut CallRow, one: &Retrying<'_>) {
    let Created = Errored.retry();
    row.state = Some(State::Created);
    row.retry_count = one.retry;
    row.tries.extend(serde_json::from_str::<Attempt>(one.fault).ok());
    row.retry_at = Some(one.retry_at_ms);
    // Specification 003 clears the error.
    (row.error, row.code, row.fault) = (None, None, None);
    row.updated_at = one.at_ms;
}

/// The sentence of a fault.
fn message(fault: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Message {
        message: String,
    }
    serde_json::from_str::<Message>(fault).ok().map(|fault| fault.message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::record::Waiting;

    const ID: Id = [7; 16];

    fn folded(records: &[Record<'_>]) -> Vec<Change> {
        let mut fold = Fold::new("boot");
        for record in records {
            fold.add(record);
        }
        fold.finish(Position::default()).calls
    }

    fn accepted() -> Record<'static> {
        let tags = vec!["prompt:1"];
        Record::Accepted(Accepted {
            id: ID,
            at_ms: 10,
            tool: "a.b",
            arguments: "{}",
            timeout_ms: 5,
            tags,
            ..Accepted::default()
        })
    }

    fn dispatched(attempt: u64) -> Record<'static> {
        Record::Dispatched(Dispatched { id: ID, at_ms: 20, attempt, pid: 4, process_started: 5 })
    }

    #[test]
    fn a_call_in_one_batch_is_one_new_row() {
        let fault = r#"{"code":"TOOL_ERROR","message":"no"}"#;
        let end = Finished {
            id: ID,
            at_ms: 30,
            state: "error",
            code: Some("TOOL_ERROR"),
            fault: Some(fault),
            ..Finished::default()
        };
        let changes = folded(&[accepted(), dispatched(1), Record::Finished(end)]);
        let [change] = &changes[..] else { panic!("{changes:?}") };
        let row = &change.row;
        assert!(change.is_new && row.id == "07070707070707070707070707070707");
        assert_eq!((row.state, row.error.as_deref(), row.attempt), (Some(State::Error), Some("no"), 1));
        assert_eq!((row.created_at, row.started_at, row.timeout_at, row.updated_at), (10, Some(20), Some(25), 30));
        assert_eq!((row.pid, row.process_started, row.boot_id.as_deref()), (Some(4), Some(5), Some("boot")));
        assert_eq!(row.request, None, "the arguments of a call that has ended are those of its end");
    }

    #[test]
    fn a_call_that_waits_for_a_person_runs_once_it_is_dispatched() {
        let waiting = Record::Waiting(Waiting { id: ID, at_ms: 15 });
        let state = |records: &[Record<'_>]| folded(records)[0].row.state;
        assert_eq!(state(&[accepted(), waiting.clone()]), Some(State::WaitingApproval));
        assert_eq!(state(&[accepted(), waiting, dispatched(1)]), Some(State::Running));
    }

    #[test]
    fn a_call_of_an_earlier_batch_is_changed() {
        let [change] = &folded(&[dispatched(2)])[..] else { panic!() };
        assert!(!change.is_new && change.row.state == Some(State::Running) && change.row.attempt == 2);
        let retry = Retrying { id: ID, retry: 2, retry_at_ms: 99, fault: "{}", ..Retrying::default() };
        let [change] = &folded(&[dispatched(2), Record::Retrying(retry)])[..] else { panic!() };
        assert_eq!(
            (change.row.state, change.row.retry_count, change.row.retry_at),
            (Some(State::Created), 2, Some(99))
        );
    }
}
