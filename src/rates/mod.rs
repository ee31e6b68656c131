//! Counts calls for rates: exactly, within a sliding window. What all processes of a person count is kept in files and outlives them;
//! what a session counts ends with it.

mod ring;
mod window;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use self::ring::RingFile;
use self::window::{Counted, Recent};
use crate::policy::{Rate, Turn};
use crate::process::Moment;

/// Why calls cannot be counted.
#[derive(Debug, thiserror::Error)]
pub enum CountError {
    /// Another process counts just now.
    #[error("another process is counting")]
    Busy,
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    System {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// The counts of a person's calls.
#[derive(Debug)]
pub struct Rates {
    /// Where they are kept.
    folder: PathBuf,
    /// Whether that folder is there; set when calls are counted for the first time. If it is not, counts end with the process.
    is_there: OnceLock<bool>,
    counts: Mutex<HashMap<Key, Arc<Count>>>,
}

/// The most counts that are at hand. Files beyond it are closed, and opened again when they are needed.
const MOST_OPEN: usize = 256;

/// What is counted together: a name, and the session that is counted apart.
type Key = (Option<u64>, String);

/// The counted calls of one key.
#[derive(Debug)]
enum Count {
    Kept(RingFile),
    Held(Mutex<Recent>),
}

impl Rates {
    /// Those that are kept in this folder, which is made when it is needed.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder, is_there: OnceLock::new(), counts: Mutex::default() }
    }

    fn is_kept(&self) -> bool {
        *self.is_there.get_or_init(|| {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
            match &made {
                Ok(()) => ring::sweep(&self.folder),
                Err(error) => {
                    let folder = self.folder.display();
                    tracing::warn!("cannot make {folder} ({error}); rates are counted within this process alone");
                }
            }
            made.is_ok()
        })
    }

    /// When each of the rates admits a call of this session. Another process that counts just now is waited for.
    pub fn look(&self, rates: &[Rate], session: u64, now: Moment, patience: Duration) -> Result<Vec<Turn>, CountError> {
        self.counted(rates, session, now, patience, false)
    }

    /// The same, and counts the call if it is its turn for all of them.
    pub fn take(&self, rates: &[Rate], session: u64, now: Moment, patience: Duration) -> Result<Vec<Turn>, CountError> {
        self.counted(rates, session, now, patience, true)
    }

    fn counted(
        &self,
        rates: &[Rate],
        session: u64,
        now: Moment,
        patience: Duration,
        takes: bool,
    ) -> Result<Vec<Turn>, CountError> {
        // In one order, so that two calls never wait for each other.
        let mut together: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
        for (index, rate) in rates.iter().enumerate() {
            let key = (rate.is_of_session.then_some(session), rate.name.clone());
            together.entry(key).or_default().push(index);
        }
        let counts: Vec<_> = together.into_iter().map(|(key, of)| (self.count(key), of)).collect();
        let mut open = Vec::new();
        for (count, of) in &counts {
            let most = of.iter().map(|index| rates[*index].most).max().unwrap_or_default();
            open.push((count.open(most, now, patience)?, of));
        }
        let mut turns = vec![Turn::Now; rates.len()];
        for (counted, of) in &open {
            for index in *of {
                turns[*index] = counted.turn(rates[*index].most, rates[*index].window, now)?;
            }
        }
        if takes && turns.iter().all(|turn| *turn == Turn::Now) {
            for (counted, _) in &mut open {
                counted.add(now)?;
            }
        }
        Ok(turns)
    }

    /// Forgets what a session counted.
    pub fn session_ended(&self, session: u64) {
        self.counts.lock().retain(|(of, _), _| *of != Some(session));
    }

    fn count(&self, key: Key) -> Arc<Count> {
        let mut counts = self.counts.lock();
        if let Some(known) = counts.get(&key) {
            return Arc::clone(known);
        }
        if counts.len() >= MOST_OPEN {
            counts.retain(|_, count| matches!(**count, Count::Held(_)));
        }
        let count = if key.0.is_none() && self.is_kept() {
            Count::Kept(RingFile::at(self.folder.join(file_name(&key.1))))
        } else {
            Count::Held(Mutex::default())
        };
        Arc::clone(counts.entry(key).or_insert(Arc::new(count)))
    }
}

impl Count {
    /// Holds the counted calls, with room for this many, until what is returned is dropped.
    fn open(&self, most: usize, now: Moment, patience: Duration) -> Result<Counted<'_>, CountError> {
        match self {
            Self::Kept(file) => file.open(most, now, patience).map(Counted::Kept),
            Self::Held(recent) => {
                let mut recent = recent.lock();
                recent.keep(most);
                Ok(Counted::Held(recent))
            }
        }
    }
}

/// Names may be long, and have any characters.
fn file_name(name: &str) -> String {
    Sha256::digest(name).iter().take(16).fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
