//! Secrets: where their values come from, and what takes them out of everything but the call that they are for.
//!
//! Values are read at each call, so that a changed secret needs no restart, and go into the call's request only. Their memory is
//! overwritten when it is given back, as far as it is hostler's own.

#[cfg(feature = "bench")]
pub mod bench;
mod cache;
mod file;
mod live;
mod place;
mod program;
mod redactor;
mod unreadable;

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use zeroize::{Zeroize, Zeroizing};

pub use cache::refresh;
pub use file::{named_itself, store, trouble_of_secret};
pub use live::{Lease, LiveSecrets};
pub use place::{Place, why_missing};
pub use program::store_in_keyring;
pub use redactor::{KnownSecret, REMOVED, Redactor};
pub use unreadable::Unreadable;

use crate::config::Config;
use crate::config::secrets::SecretSource;
use cache::Cache;
use file::{Access, read_file};
use program::{of_command, of_keyring};

/// The value of a secret; its memory is overwritten when it is dropped.
pub type SecretText = Zeroizing<String>;

/// The sets of secrets that are remembered as they were last sent.
const SETS: usize = 256;

/// The secrets of a workspace.
#[derive(Debug, Default)]
pub struct Secrets {
    /// Those that were read.
    pub live: Arc<LiveSecrets>,
    cache: Cache,
    /// What calls were last given, by the names that their tools declare. Locked only briefly.
    given: Mutex<HashMap<Vec<String>, CallSecrets>>,
}

/// The secrets of one call.
#[derive(Debug, Clone)]
pub struct CallSecrets {
    /// Those that are set, as a JSON object.
    pub json: Arc<SecretJson>,
    /// Keeps them among the live ones.
    pub lease: Arc<Lease>,
}

impl Default for CallSecrets {
    fn default() -> Self {
        let nothing = to_raw_value(&serde_json::Map::new()).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self { json: Arc::new(SecretJson(nothing)), lease: Arc::default() }
    }
}

impl Secrets {
    /// Reads a secret; `None` if it is not set.
    pub async fn read(&self, name: &str, config: &Config) -> Result<Option<SecretText>, Unreadable> {
        let environment = &config.environment;
        let variable = |name: &str| environment.text(name).map(|value| SecretText::new(value.to_owned()));
        match config.secrets.get(name).map(|setting| &setting.value) {
            None => match (variable(name), config.stored_secret(name)) {
                (None, Some(path)) => read_file(path, Access::OwnerOnly).await,
                (found, _) => Ok(found),
            },
            Some(SecretSource::Environment(name)) => Ok(variable(name)),
            Some(SecretSource::File(path)) => read_file(path.clone(), Access::OwnerOnly).await,
            Some(SecretSource::Systemd(credential)) => match environment.absolute_path(CREDENTIALS) {
                Some(folder) => read_file(folder.join(credential), Access::Any).await,
                None => Ok(None),
            },
            Some(source @ SecretSource::Command { words, cache }) => {
                self.cache.get(source, *cache, environment, of_command(words, environment)).await
            }
            Some(source @ SecretSource::Keyring { service, account, cache }) => {
                self.cache.get(source, *cache, environment, of_keyring(service, account, environment)).await
            }
        }
    }

    /// Reads a secret for a call under way.
    pub async fn read_live(&self, name: &str, config: &Config) -> Result<Option<SecretText>, Unreadable> {
        let found = self.read(name, config).await?;
        if let Some(value) = &found {
            drop(self.live.add(&[KnownSecret { name: name.to_owned(), value: value.clone() }]));
        }
        Ok(found)
    }

    /// Reads the secrets of a call, or says which of them cannot be read.
    pub async fn of_call(&self, names: &[String], config: &Config) -> Result<CallSecrets, (String, Unreadable)> {
        let mut found = Vec::new();
        for name in names {
            match self.read(name, config).await {
                Ok(Some(value)) => found.push(KnownSecret { name: name.clone(), value }),
                Ok(None) => {}
                Err(error) => return Err((name.clone(), error)),
            }
        }
        let json = SecretJson::of(&found);
        let mut given = self.given.lock();
        // They rarely differ between calls.
        if let Some(known) = given.get(names).filter(|known| known.json.get() == json.get()) {
            return Ok(known.clone());
        }
        if given.len() >= SETS {
            given.clear();
        }
        let fresh = CallSecrets { json: Arc::new(json), lease: Arc::new(self.live.add(&found)) };
        given.insert(names.to_vec(), fresh.clone());
        Ok(fresh)
    }
}

/// The folder of systemd's credentials.
pub const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// Takes the secrets of these names out of texts. Those that are not there cannot be in them.
pub async fn redactor_of(names: &[String], config: &Config) -> Option<Arc<Redactor>> {
    let (secrets, mut found) = (Secrets::default(), Vec::new());
    for name in names {
        if let Ok(Some(value)) = secrets.read(name, config).await {
            found.push(KnownSecret { name: name.clone(), value });
        }
    }
    Redactor::finding(found)
}

/// Secrets as a JSON object; the memory is overwritten when it is dropped.
pub struct SecretJson(Box<RawValue>);

impl SecretJson {
    fn of(secrets: &[KnownSecret]) -> Self {
        Self(to_raw_value(&Members(secrets)).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }
}

impl Deref for SecretJson {
    type Target = RawValue;

    fn deref(&self) -> &RawValue {
        &self.0
    }
}

impl Drop for SecretJson {
    fn drop(&mut self) {
        let text: Box<str> = std::mem::replace(&mut self.0, RawValue::NULL.to_owned()).into();
        text.into_string().zeroize();
    }
}

impl std::fmt::Debug for SecretJson {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SecretJson")
    }
}

struct Members<'s>(&'s [KnownSecret]);

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(Some(self.0.len()))?;
        for secret in self.0 {
            members.serialize_entry(&secret.name, secret.value.as_str())?;
        }
        members.end()
    }
}
