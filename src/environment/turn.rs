//! Which hostler builds an environment, where several want the same one.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep};

use super::settings::Progress;

/// How often the builder shows that it is alive.
const BEAT: Duration = Duration::from_secs(5);
/// A builder that has not shown it for this long is stopped, or its machine is gone.
const SILENT: Duration = Duration::from_secs(30);
/// How often to look whether the other builder is done.
const LOOK: Duration = Duration::from_millis(100);
/// How often a caller hears that it still waits.
pub(super) const REMIND: Duration = Duration::from_secs(10);

/// The lock file of an environment. Its lock is the builder's, and ends with the builder's process; its time of change
/// shows that the builder is alive.
pub(super) struct Gate {
    file: File,
    place: PathBuf,
}

/// How a wait for the turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// The lock is held.
    Held,
    /// The builder is silent and keeps the lock. It may go on at any moment.
    Beside,
    /// The time is over.
    Late,
}

impl Gate {
    pub fn of(folder: &Path, key: &str) -> (PathBuf, io::Result<Self>) {
        let place = folder.join(format!(".{key}.lock"));
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&place);
        (place.clone(), file.map(|file| Self { file, place }))
    }

    /// Waits for the turn to build.
    pub async fn turn(&self, name: &str, until: Instant, progress: Progress<'_>) -> Turn {
        let began = Instant::now();
        let mut sign = Sign { at: self.changed(), seen: began };
        let mut reminded = None;
        while self.file.try_lock().is_err() {
            let now = Instant::now();
            if now >= until {
                return Turn::Late;
            }
            if sign.is_silent(now, self.changed()) {
                progress(&format!("another hostler has stopped building the environment of {name}; it is built anew"));
                return Turn::Beside;
            }
            if reminded.is_none_or(|last| now - last >= REMIND) {
                let waited =
                    if reminded.is_some() { format!(" ({} s)", (now - began).as_secs()) } else { String::new() };
                progress(&format!("another hostler is building the environment of {name}{waited}"));
                reminded = Some(now);
            }
            sleep(LOOK.min(until - now)).await;
        }
        Turn::Held
    }

    /// Shows that the builder is alive, as long as it is polled.
    pub async fn beat(&self) -> ! {
        loop {
            if let Err(error) = self.file.set_modified(SystemTime::now()) {
                tracing::debug!(%error, place = %self.place.display(), "other hostlers may build the same environment");
            }
            sleep(BEAT).await;
        }
    }

    fn changed(&self) -> Option<SystemTime> {
        self.file.metadata().and_then(|data| data.modified()).ok()
    }
}

/// The last sign of life. Clocks of machines differ, so only changes count.
#[derive(Debug)]
struct Sign {
    at: Option<SystemTime>,
    seen: Instant,
}

impl Sign {
    fn is_silent(&mut self, now: Instant, at: Option<SystemTime>) -> bool {
        if at != self.at {
            *self = Self { at, seen: now };
        }
        now - self.seen >= SILENT
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    fn gates(folder: &Path) -> (Gate, Gate) {
        let gate = || Gate::of(folder, "key").1.unwrap();
        (gate(), gate())
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_builder_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (other, own) = gates(folder.path());
        let (began, said) = (Instant::now(), Mutex::new(Vec::new()));
        assert_eq!(other.turn("a", began, &|_| {}).await, Turn::Held);
        let hear = |line: &str| said.lock().push(line.to_owned());
        let turn = own.turn("a", began + Duration::from_mins(10), &hear).await;
        assert_eq!((turn, began.elapsed().as_secs()), (Turn::Beside, SILENT.as_secs()));
        assert_eq!(said.lock().len(), 4, "at once, two reminders, and the end: {said:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_alive_is_waited_for_as_long_as_a_build_may_take() {
        let folder = tempfile::tempdir().unwrap();
        let (other, own) = gates(folder.path());
        let began = Instant::now();
        assert_eq!(other.turn("a", began, &|_| {}).await, Turn::Held);
        let wait = own.turn("a", began + Duration::from_mins(3), &|_| {});
        let turn = tokio::select! { turn = wait => turn, never = other.beat() => never };
        assert_eq!((turn, began.elapsed().as_secs()), (Turn::Late, 180));
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_one_builds_when_the_builder_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let (other, own) = gates(folder.path());
        let began = Instant::now();
        assert_eq!(other.turn("a", began, &|_| {}).await, Turn::Held);
        let wait = own.turn("a", began + Duration::from_mins(3), &|_| {});
        let done = async {
            sleep(Duration::from_secs(20)).await;
            drop(other);
            std::future::pending::<Turn>().await
        };
        let turn = tokio::select! { turn = wait => turn, never = done => never };
        assert_eq!((turn, began.elapsed().as_secs()), (Turn::Held, 20));
    }
}
