//! Verifies that the log is as it was written: nothing changed, nothing missing, every checkpoint signed by the key that the one before
//! names.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::head::Head;
use super::key::{self, is_signed};
use super::log::AuditLog;
use super::record::{Hash, Kind, Record, hash_of, no_hash, signed};
use super::segments::{self, Line, Snapshot};

/// A checkpoint, as it is kept elsewhere to compare with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The number of its record.
    pub n: u64,
    /// When it was made, in milliseconds since 1970.
    pub at_ms: u64,
    /// The hash of its line, which stands for all before it.
    pub hash: Hash,
}

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; none for the whole file.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
}

/// What was found.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Verified {
    /// How many records there are.
    pub records: u64,
    /// The time of the first one, in milliseconds since 1970.
    pub from_ms: Option<u64>,
    /// The time of the last one, likewise.
    pub to_ms: Option<u64>,
    /// How many of them are checkpoints.
    pub checkpoints: u64,
    /// How many records came after the last one, which nothing signs yet.
    pub unsigned: u64,
    /// The last checkpoint.
    pub last_checkpoint: Option<Checkpoint>,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// Reads a log as it is now, and compares it with checkpoints that were kept elsewhere. Writers wait only until its files are
/// open.
pub fn verify(folder: &Path, kept: &[Checkpoint]) -> io::Result<Verified> {
    if !folder.is_dir() {
        return Ok(Verified::default());
    }
    let taken = AuditLog::in_folder(folder.to_owned()).snapshot();
    let Snapshot { files, head, keys } = match taken {
        Ok(snapshot) => snapshot,
        // A reader without the right to write still verifies.
        Err(_) => Snapshot::of(folder)?,
    };
    let mut verifier = Verifier { kept: kept.to_vec(), compared: kept.len(), ..Verifier::default() };
    let last = files.len();
    for (at, (first, file, length)) in (1..).zip(files) {
        (verifier.file, verifier.line) = (segments::file(folder, first), None);
        // What a process that died has left behind the last record, the next one cuts off.
        let known = head.as_ref().filter(|head| at == last && head.segment == first).map(|head| head.length);
        verifier.segment(first, file.take(length), known)?;
    }
    verifier.end(folder, head, &keys);
    Ok(verifier.found)
}

#[derive(Default)]
struct Verifier {
    found: Verified,
    file: PathBuf,
    line: Option<usize>,
    /// The number of the next record and the hash of the last one; `None` before the first.
    expected: Option<(u64, Hash)>,
    /// The number of the first record and the hash that it continues.
    begin: Option<(u64, Hash)>,
    /// The beginnings that the log itself names.
    pruned: Vec<(u64, Hash)>,
    /// The key that the next checkpoint has to be signed with; `None` before the first that names one.
    key: Option<String>,
    /// Checkpoints from elsewhere that were not found yet.
    kept: Vec<Checkpoint>,
    /// How many there were.
    compared: usize,
}

impl Verifier {
    fn report(&mut self, what: impl Into<String>) {
        let (file, line) = (self.file.clone(), self.line);
        self.found.findings.push(Finding { file, line, what: what.into() });
    }

    /// `known` is the length of the last file, as the head has it.
    fn segment(&mut self, first: u64, file: impl Read, known: Option<u64>) -> io::Result<()> {
        let (mut count, mut at) = (0, 0);
        for line in segments::lines(file) {
            let (line, begin) = (line?, at);
            at += line.length();
            count += 1;
            self.line = Some(count);
            match line {
                Line::Record(line, record) => {
                    if count == 1 && record.n != first {
                        self.report(format!("it begins with record {}, and should with {first}", record.n));
                    }
                    self.record(&line, &record);
                }
                Line::Torn(_) if known.is_some_and(|known| begin >= known) => {}
                Line::Torn(_) => self.report("not a whole line"),
                Line::Other(_) => self.report("not a record"),
            }
        }
        if count == 0 && known != Some(0) {
            self.line = None;
            self.report("an empty file");
        }
        Ok(())
    }

    fn record(&mut self, line: &[u8], record: &Record) {
        match &self.expected {
            None => self.begin = Some((record.n, record.prev.clone())),
            Some((next, hash)) => {
                let what = match record.n.checked_sub(*next) {
                    Some(0) if record.prev == *hash => None,
                    Some(0) => Some("the record before it was changed".to_owned()),
                    Some(missing) => Some(format!("{missing} records before it are missing")),
                    None => Some(format!("it is record {} where {next} should be", record.n)),
                };
                if let Some(what) = what {
                    self.report(what);
                }
            }
        }
        let hash = hash_of(line);
        self.found.records += 1;
        self.found.unsigned += 1;
        self.found.from_ms.get_or_insert(record.at_ms);
        self.found.to_ms = Some(record.at_ms);
        self.kind(record, &hash);
        self.expected = Some((record.n.saturating_add(1), hash));
    }

    fn kind(&mut self, record: &Record, hash: &str) {
        match &record.kind {
            Kind::Begin { key, why } => {
                if record.n > 0 {
                    let why = why.as_deref().unwrap_or("no reason is given");
                    self.report(format!("another key signs from here on, and no earlier one says so: {why}"));
                }
                self.key = Some(key.clone());
            }
            Kind::Checkpoint { next, signature } => self.checkpoint(record, hash, next, signature),
            // It names a record before itself.
            Kind::Pruned { first, before } if *first < record.n => self.pruned.push((*first, before.clone())),
            Kind::Pruned { .. } => self.report("it says that records were removed which come later"),
            Kind::Resumed { why } => self.report(format!("what was written before it was damaged: {why}")),
            Kind::Decision(_) | Kind::Mode(_) => {}
        }
    }

    fn checkpoint(&mut self, record: &Record, hash: &str, next: &str, signature: &str) {
        let bytes = signed(record.n, record.at_ms, &record.prev, next);
        // The key of the first one may have been named in a file that is not kept any longer.
        if self.key.as_ref().is_some_and(|key| !is_signed(key, &bytes, signature)) {
            self.report("its signature is not by the key that the last checkpoint names");
        }
        self.key = Some(next.to_owned());
        self.found.checkpoints += 1;
        self.found.unsigned = 0;
        let checkpoint = Checkpoint { n: record.n, at_ms: record.at_ms, hash: hash.to_owned() };
        self.kept.retain(|kept| *kept != checkpoint);
        self.found.last_checkpoint = Some(checkpoint);
    }

    /// What can be said when all is read.
    fn end(&mut self, folder: &Path, head: Option<Head>, keys: &[Option<String>; 2]) {
        (self.file, self.line) = (folder.to_owned(), None);
        // The process that removes the oldest files may have died meanwhile.
        let is_allowed = |begin: &(u64, Hash)| {
            *begin == (0, no_hash()) || self.pruned.iter().any(|pruned| pruned == begin || pruned.0 > begin.0)
        };
        if let Some(begin) = self.begin.clone().filter(|begin| !is_allowed(begin)) {
            self.report(format!(
                "the records before {} are missing, and no record says that they were removed",
                begin.0
            ));
        }
        let is_none_found = self.compared > 0 && self.kept.len() == self.compared;
        for kept in std::mem::take(&mut self.kept) {
            let first = self.begin.as_ref().map_or(u64::MAX, |(first, _)| *first);
            let is_removed = kept.n < first && self.pruned.iter().any(|(pruned, _)| *pruned > kept.n);
            // A program that replaces the whole log can make up records that say so.
            if !is_removed || is_none_found {
                self.report(format!("it does not have checkpoint {} of the given file", kept.n));
            }
        }
        self.file = Head::file(folder);
        match (head, self.expected.clone()) {
            (None, None) => return,
            (None, Some(_)) => self.report("missing or damaged"),
            (Some(head), expected) => {
                let (next, hash) = expected.unwrap_or_else(|| (0, no_hash()));
                if head.next > next {
                    self.report(format!("the last {} records are missing", head.next - next));
                } else if head.next == next && head.hash != hash {
                    self.report("the last record was changed");
                }
            }
        }
        // An earlier key is gone, so a log that was cut shows.
        if self.found.records > 0 && (self.key.is_none() || !keys.contains(&self.key)) {
            self.file = key::current(folder);
            self.report("missing, or not the key that the last checkpoint names: later records may be missing");
        }
    }
}
