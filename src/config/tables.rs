//! The small tables of `hostler.toml`: `[limits]`, `[executables]`, and `[secrets]`, which holds the places of secrets and
//! never their values.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::DeValue;

use super::environment::from_file;
use super::origin::Setting;
use super::section::Section;
use super::value::{ByteCount, FromToml, Word, count, limit, memory};
use super::{Config, Environment};

/// `[limits]`: limits for all tools together.
#[derive(Debug, Clone)]
#[expect(clippy::struct_field_names, reason = "named as in hostler.toml")]
pub struct Limits {
    /// The most output that is kept of one call.
    pub max_output: Setting<ByteCount>,
    /// How many calls may run at once.
    pub max_concurrent_calls: Setting<usize>,
    /// How many calls may wait.
    pub max_queue: Setting<usize>,
    /// How many workers may be alive.
    pub max_workers: Setting<usize>,
    /// The most memory that all workers may use; `None` for no limit.
    pub max_memory: Option<Setting<ByteCount>>,
}

impl Limits {
    pub(super) fn read(section: Section<'_>) -> Self {
        let count = |key, default| section.take_as(key, count).unwrap_or(Setting::default_value(default));
        let limits = Self {
            max_output: section.take("max_output").unwrap_or(Setting::default_value(ByteCount(1_000_000))),
            max_concurrent_calls: count("max_concurrent_calls", 16),
            max_queue: count("max_queue", 1024),
            max_workers: count("max_workers", 32),
            max_memory: section.take_as("max_memory", memory),
        };
        section.finish(false);
        limits
    }
}

/// What happens to an executable that does not print a usable schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnSchemaFailure {
    /// It is listed, and its arguments are not checked.
    List,
    /// It is not listed.
    Skip,
}

impl Word for OnSchemaFailure {
    const WORDS: &'static [(&'static str, Self)] = &[("list", Self::List), ("skip", Self::Skip)];
}

/// `[executables]`: how programs are asked for their schema.
#[derive(Debug, Clone)]
pub struct Executables {
    /// How long a program may take to print its schema, from its own start.
    pub schema_timeout: Duration,
    /// What happens to one that fails to.
    pub on_schema_failure: OnSchemaFailure,
}

impl Executables {
    pub(super) fn read(section: Section<'_>) -> Self {
        let (limit, failure) = (section.take_as("schema_timeout", limit), section.take("on_schema_failure"));
        section.finish(false);
        Self {
            schema_timeout: limit.map_or(Duration::from_secs(1), |setting| setting.value),
            on_schema_failure: failure.map_or(OnSchemaFailure::List, |setting| setting.value),
        }
    }
}

/// The place of one secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// A variable of hostler's own environment.
    Environment(String),
    /// A file that only its owner may read. The last line break is not part of the secret.
    File(PathBuf),
    /// The first line that a program prints.
    Command(Vec<String>),
}

impl Config {
    /// The variables that hold a configured secret: its own name, and the one that it is read from.
    pub fn secret_variables(&self) -> impl Iterator<Item = &str> {
        let read_from = self.secrets.values().filter_map(|setting| match &setting.value {
            SecretSource::Environment(name) => Some(name.as_str()),
            SecretSource::File(_) | SecretSource::Command(_) => None,
        });
        self.secrets.keys().map(String::as_str).chain(read_from)
    }
}

/// Reads `[secrets]`.
pub(super) fn read_secrets(
    section: &Section<'_>,
    environment: &Environment,
) -> BTreeMap<String, Setting<SecretSource>> {
    let mut found = BTreeMap::new();
    for entry in section.entries() {
        let origin = entry.origin();
        if let Some(value) = secret_source(entry.value, |path| from_file(&origin, path, environment)) {
            found.insert(entry.key.to_owned(), Setting { value, origin });
        } else {
            let fix = format!(
                "write {} = {{ env = \"VARIABLE\" }}, {{ file = \"path\" }} or {{ command = [\"program\", \"argument\"] }}",
                entry.key
            );
            section.report(&entry, "expected the place of a secret", fix);
        }
    }
    found
}

fn secret_source(value: &DeValue<'_>, whole: impl Fn(&Path) -> PathBuf) -> Option<SecretSource> {
    let mut entries = value.as_table()?.iter();
    let (Some((key, item)), None) = (entries.next(), entries.next()) else { return None };
    let item = item.get_ref();
    Some(match key.get_ref().as_ref() {
        "env" => SecretSource::Environment(item.as_str().filter(|name| !name.starts_with('$'))?.to_owned()),
        "file" => SecretSource::File(whole(Path::new(item.as_str()?))),
        "command" => SecretSource::Command(Vec::from_toml(item).ok().filter(|words| !words.is_empty())?),
        _ => return None,
    })
}
