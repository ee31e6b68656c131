//! Reads records, newest first.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use super::record::{Kind, Record};
use super::segments::{self, Line};

/// Which records are wanted. `None` is all.
#[derive(Debug, Clone, Default)]
pub struct RecordFilter {
    /// Decisions about calls of this tool, by its full name.
    pub tool: Option<String>,
    /// The decision about the call whose id begins so.
    pub call: Option<String>,
    /// Decisions against a call alone.
    pub is_denied: bool,
    /// Those of this time and later, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// At most so many.
    pub limit: usize,
}

impl RecordFilter {
    fn has(&self, record: &Record) -> bool {
        let is_late = self.since_ms.is_none_or(|since| record.at_ms >= since);
        let Kind::Decision(decided) = &record.kind else {
            let is_of_calls = self.tool.is_some() || self.call.is_some() || self.is_denied;
            return is_late && !is_of_calls && !matches!(record.kind, Kind::Checkpoint { .. });
        };
        is_late
            && self.tool.as_ref().is_none_or(|tool| *tool == decided.tool)
            && self.call.as_ref().is_none_or(|begin| decided.call.starts_with(begin))
            && (!self.is_denied || matches!(&*decided.decision, "denied" | "not_approved"))
    }
}

/// The records that are wanted, newest first, without checkpoints. What is no record is left out.
pub fn records(folder: &Path, wanted: &RecordFilter) -> io::Result<Vec<Record>> {
    let mut found = Vec::new();
    for first in segments::all(folder)?.into_iter().rev() {
        let left = wanted.limit - found.len();
        let mut newest = VecDeque::new();
        let file = match segments::read(&segments::file(folder, first)) {
            Ok(file) => file,
            // It was removed since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for line in segments::lines(file) {
            let Line::Record(_, record) = line? else { continue };
            if wanted.has(&record) {
                newest.push_back(*record);
                if newest.len() > left {
                    newest.pop_front();
                }
            }
        }
        found.extend(newest.into_iter().rev());
        if found.len() >= wanted.limit {
            break;
        }
    }
    Ok(found)
}
