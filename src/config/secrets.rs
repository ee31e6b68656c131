//! `[secrets]`: where secrets are. A configuration holds their places, never their values; the executor looks them up.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::de::DeValue;

use super::origin::Setting;
use super::paths::from_file;
use super::section::Section;
use super::value::FromToml;
use super::{Config, Environment};

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
pub(super) fn read(section: &Section<'_>, environment: &Environment) -> BTreeMap<String, Setting<SecretSource>> {
    let mut found = BTreeMap::new();
    for entry in section.entries() {
        let origin = entry.origin();
        if let Some(value) = parse(entry.value, |path| from_file(&origin, path, environment)) {
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

fn parse(value: &DeValue<'_>, whole: impl Fn(&Path) -> PathBuf) -> Option<SecretSource> {
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
