//! Values that are used for a while before a command or the keyring is asked again.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::SecretText;
use super::unreadable::Unreadable;
use crate::config::Environment;
use crate::config::environment::state;
use crate::config::secrets::SecretSource;

/// The values that were read.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// Locked only briefly.
    read: Mutex<HashMap<SecretSource, Arc<Reading>>>,
}

/// One reading of a secret, which every call that needs it waits for.
#[derive(Debug)]
struct Reading {
    began: Instant,
    /// The last request for new values before it.
    refreshed: Option<SystemTime>,
    value: OnceCell<SecretText>,
}

impl Cache {
    /// The value of a source, read anew once it is older than `cache` or somebody asked for new ones.
    pub async fn get(
        &self,
        source: &SecretSource,
        cache: Duration,
        environment: &Environment,
        read: impl Future<Output = Result<Option<SecretText>, Unreadable>>,
    ) -> Result<Option<SecretText>, Unreadable> {
        if cache.is_zero() {
            return read.await;
        }
        let refreshed = mark(environment).metadata().and_then(|data| data.modified()).ok();
        let reading = {
            let mut known = self.read.lock();
            known.retain(|other, reading| other == source || !reading.is_over(other));
            let fresh = || Arc::new(Reading { began: Instant::now(), refreshed, value: OnceCell::new() });
            let reading = known.entry(source.clone()).or_insert_with(fresh);
            if reading.refreshed != refreshed || reading.began.elapsed() >= cache {
                *reading = fresh();
            }
            Arc::clone(reading)
        };
        // What is not set, or cannot be read, is looked for again by the next call.
        let found = reading.value.get_or_try_init(|| async { read.await.map_err(Some)?.ok_or(None) }).await;
        match found {
            Ok(value) => Ok(Some(value.clone())),
            Err(None) => Ok(None),
            Err(Some(error)) => Err(error),
        }
    }
}

impl Reading {
    /// Whether its value is too old.
    fn is_over(&self, source: &SecretSource) -> bool {
        match source {
            SecretSource::Command { cache, .. } | SecretSource::Keyring { cache, .. } => self.began.elapsed() >= *cache,
            _ => true,
        }
    }
}

/// Its time of change is the last request for new values.
fn mark(environment: &Environment) -> PathBuf {
    state(environment).join("secrets.refreshed")
}

/// Lets every hostler of this person read its secrets anew.
pub fn refresh(environment: &Environment) -> io::Result<()> {
    let mark = mark(environment);
    mark.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    std::fs::write(mark, format!("{}\n", std::process::id()))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use zeroize::Zeroizing;

    use super::*;

    fn source(cache: Duration) -> SecretSource {
        SecretSource::Command { words: vec!["op".to_owned()], cache }
    }

    struct Asked {
        cache: Cache,
        environment: Environment,
        times: Cell<usize>,
    }

    impl Asked {
        async fn get(&self, cache: Duration, answer: Option<&str>) -> Option<String> {
            let read = async {
                self.times.set(self.times.get() + 1);
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(answer.map(|text| Zeroizing::new(text.to_owned())))
            };
            let found = self.cache.get(&source(cache), cache, &self.environment, read).await;
            found.unwrap().map(|text| text.to_string())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_value_is_read_once_until_it_is_old_or_refreshed() {
        let folder = tempfile::tempdir().unwrap();
        let environment = Environment::from_iter([("XDG_STATE_HOME", folder.path())]);
        let asked = Asked { cache: Cache::default(), environment, times: Cell::new(0) };
        let minute = Duration::from_mins(1);
        assert_eq!(asked.get(minute, None).await, None, "and not remembered");
        let both = tokio::join!(asked.get(minute, Some("one")), asked.get(minute, Some("two")));
        assert_eq!(both, (Some("one".to_owned()), Some("one".to_owned())), "read once for both");
        tokio::time::advance(Duration::from_secs(30)).await;
        assert_eq!(asked.get(minute, Some("three")).await.as_deref(), Some("one"));
        tokio::time::advance(minute).await;
        assert_eq!(asked.get(minute, Some("three")).await.as_deref(), Some("three"));
        refresh(&asked.environment).unwrap();
        assert_eq!(asked.get(minute, Some("four")).await.as_deref(), Some("four"));
        assert_eq!(asked.times.get(), 4);
        assert_eq!(asked.get(Duration::ZERO, Some("five")).await.as_deref(), Some("five"), "no cache");
    }
}
