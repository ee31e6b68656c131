//! Counts calls for rates: exactly, within a sliding window. What all processes of a person count is kept in files and outlives them;
//! what a session counts ends with it.

mod ring;
mod window;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use self::ring::Ring;
use self::window::Recent;
use crate::config::turns::{hold, open_lock, release};
use crate::policy::{Rate, Turn, Unit};
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

impl CountError {
    fn of(path: &Path, source: io::Error) -> Self {
        Self::System { path: path.to_owned(), source }
    }
}

/// The counts of a person's calls.
#[derive(Debug)]
pub struct Rates {
    /// Where they are kept.
    folder: PathBuf,
    counts: Mutex<Counts>,
}

/// What is at hand of them.
#[derive(Debug, Default)]
struct Counts {
    /// Whether the folder is there; `None` before a call is counted there. If it is not, counts end with the process.
    is_kept: Option<bool>,
    /// What keeps out other processes.
    lock: Option<File>,
    kept: HashMap<String, Ring>,
    /// What is left of seconds that calls ran beyond whole ones.
    rest: HashMap<(Option<u64>, String), Duration>,
    /// Counts of sessions, and all where there is no folder.
    held: HashMap<(Option<u64>, String), Recent>,
    /// When it was last looked whether the files are still there, in milliseconds since the boot.
    looked: i64,
}

/// The most files that are kept open.
const MOST_OPEN: usize = 256;
/// How often it is looked whether somebody removed the files, in milliseconds.
const LOOK: i64 = 1000;
/// How long a lock that another process keeps is left alone.
const PAUSE: Duration = Duration::from_millis(1);

/// What a look at the counts is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To see whose turn it is.
    Look,
    /// To count a call if it is its turn for all limits.
    Take,
    /// To count how long a call ran.
    Spend(Duration),
}

impl Rates {
    /// Those that are kept in this folder, which is made when it is needed.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder, counts: Mutex::default() }
    }

    /// When each of the rates admits a call of this session. Another process that counts just now is waited for.
    pub fn look(&self, rates: &[Rate], session: u64, now: Moment, patience: Duration) -> Result<Vec<Turn>, CountError> {
        self.count(rates, session, now, patience, Purpose::Look)
    }

    /// Forgets what a session counted.
    pub fn session_ended(&self, session: u64) {
        let mut counts = self.counts.lock();
        counts.held.retain(|(of, _), _| *of != Some(session));
        counts.rest.retain(|(of, _), _| *of != Some(session));
    }

    /// The same for any purpose: a call is counted once in all of its limits, and the seconds that it ran in those for seconds.
    pub fn count(
        &self,
        rates: &[Rate],
        session: u64,
        now: Moment,
        patience: Duration,
        purpose: Purpose,
    ) -> Result<Vec<Turn>, CountError> {
        let late = Instant::now() + patience;
        loop {
            match self.counted_at_once(rates, session, now, purpose) {
                // Nothing is held meanwhile.
                Err(CountError::Busy) if Instant::now() < late => std::thread::sleep(PAUSE),
                counted => return counted,
            }
        }
    }

    fn counted_at_once(
        &self,
        rates: &[Rate],
        session: u64,
        now: Moment,
        purpose: Purpose,
    ) -> Result<Vec<Turn>, CountError> {
        let mut together: BTreeMap<(bool, &str), Vec<usize>> = BTreeMap::new();
        for (index, rate) in rates.iter().enumerate() {
            together.entry((rate.is_of_session, &rate.name)).or_default().push(index);
        }
        let mut counts = self.counts.lock();
        if rates.iter().any(|rate| !rate.is_of_session) && counts.is_kept(&self.folder, now) {
            counts.lock(&self.folder.join("lock"), now)?;
        }
        let counted = counts.counted(&self.folder, rates, &together, session, now, purpose);
        counts.unlock();
        counted
    }
}

impl Counts {
    fn is_kept(&mut self, folder: &Path, now: Moment) -> bool {
        *self.is_kept.get_or_insert_with(|| {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            if let Err(error) = &made {
                let folder = folder.display();
                tracing::warn!("cannot make {folder} ({error}); rates are counted within this process alone");
            }
            self.looked = now.since_boot;
            made.is_ok()
        })
    }

    fn counted(
        &mut self,
        folder: &Path,
        rates: &[Rate],
        together: &BTreeMap<(bool, &str), Vec<usize>>,
        session: u64,
        now: Moment,
        purpose: Purpose,
    ) -> Result<Vec<Turn>, CountError> {
        let mut turns = vec![Turn::Now; rates.len()];
        let key = |is_of_session: bool, name: &str| (is_of_session.then_some(session), name.to_owned());
        for ((is_of_session, name), of) in together {
            let most = of.iter().map(|index| rates[*index].most).max().unwrap_or_default();
            let recent = if *is_of_session || self.is_kept == Some(false) {
                let recent = self.held.entry(key(*is_of_session, name)).or_default();
                recent.keep(most);
                &*recent
            } else {
                self.ring(folder, name, most, now)?.look(most, now)?
            };
            for index in of {
                turns[*index] = recent.turn(rates[*index].most, rates[*index].window, now.since_boot);
            }
        }
        let is_turn = turns.iter().all(|turn| *turn == Turn::Now);
        for ((is_of_session, name), of) in together {
            let (unit, most) = (rates[of[0]].unit, of.iter().map(|index| rates[*index].most).max().unwrap_or_default());
            let amount = match (purpose, unit) {
                (Purpose::Take, Unit::Calls) if is_turn => 1,
                (Purpose::Spend(ran), Unit::Seconds) => self.whole(key(*is_of_session, name), ran).min(most),
                _ => 0,
            };
            for _ in 0..amount {
                if let Some(ring) = self.kept.get_mut(*name).filter(|_| !is_of_session) {
                    ring.add(now)?;
                } else if let Some(recent) = self.held.get_mut(&key(*is_of_session, name)) {
                    recent.add(now.since_boot);
                }
            }
        }
        Ok(turns)
    }

    /// The whole seconds of a time and of what was left of earlier ones. The rest is kept as long as the process runs.
    fn whole(&mut self, key: (Option<u64>, String), ran: Duration) -> usize {
        let rest = self.rest.entry(key).or_default();
        let all = *rest + ran;
        *rest = Duration::from_nanos(all.subsec_nanos().into());
        usize::try_from(all.as_secs()).unwrap_or(usize::MAX)
    }

    fn ring(&mut self, folder: &Path, name: &str, most: usize, now: Moment) -> Result<&mut Ring, CountError> {
        if !self.kept.contains_key(name) {
            let ring = Ring::open(&folder.join(file_name(name)), most, now)?;
            self.kept.insert(name.to_owned(), ring);
        }
        self.kept.get_mut(name).ok_or(CountError::Busy)
    }

    /// Keeps out other processes. What was removed since the last look is opened anew.
    fn lock(&mut self, path: &Path, now: Moment) -> Result<(), CountError> {
        if now.since_boot.saturating_sub(self.looked) >= LOOK || self.kept.len() >= MOST_OPEN {
            self.looked = now.since_boot;
            self.lock.take_if(|lock| !lock.metadata().is_ok_and(|found| found.nlink() > 0));
            if let Some(folder) = path.parent().filter(|_| self.lock.is_none()) {
                let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
                made.map_err(|source| CountError::of(folder, source))?;
            }
            let is_full = self.kept.len() >= MOST_OPEN;
            self.kept.retain(|_, ring| !is_full && ring.is_there());
        }
        let is_first = self.lock.is_none();
        let lock = match &mut self.lock {
            Some(lock) => lock,
            none => none.insert(open_lock(path).map_err(|source| CountError::of(path, source))?),
        };
        hold(lock).map_err(|source| match source.kind() {
            io::ErrorKind::WouldBlock => CountError::Busy,
            _ => CountError::of(path, source),
        })?;
        if is_first && let Some(folder) = path.parent() {
            sweep(folder, now);
        }
        Ok(())
    }

    fn unlock(&self) {
        if let Some(lock) = &self.lock {
            release(lock);
        }
    }
}

/// Removes files that are long out of use.
fn sweep(folder: &Path, now: Moment) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name() != "lock").for_each(|entry| Ring::remove_if_old(&entry.path(), now));
}

/// Names may be long, and have any characters.
fn file_name(name: &str) -> String {
    Sha256::digest(name).iter().take(16).fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
