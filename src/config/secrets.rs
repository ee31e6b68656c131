//! `[secrets]`: where secrets are. A configuration holds their places, never their values; the executor looks them up.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::DeValue;

use super::Config;
use super::origin::Setting;
use super::section::Section;
use super::value::FromToml;

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
        let secrets = &self.layer.secrets;
        let read_from = secrets.values().filter_map(|setting| match &setting.value {
            SecretSource::Environment(name) => Some(name.as_str()),
            SecretSource::File(_) | SecretSource::Command(_) => None,
        });
        secrets.keys().map(String::as_str).chain(read_from)
    }
}

/// Reads `[secrets]`.
pub(super) fn read(section: &Section<'_>, folder: &Path) -> BTreeMap<String, Setting<SecretSource>> {
    let mut found = BTreeMap::new();
    for (name, value) in section.entries() {
        if let Some(source) = parse(value, folder) {
            let origin = section.origin_of(value);
            found.insert(name.to_owned(), Setting { value: source, origin });
        } else {
            let what = "expected the place of a secret".to_owned();
            let fix = format!(
                "write {name} = {{ env = \"VARIABLE\" }}, {{ file = \"path\" }} or {{ command = [\"program\", \"argument\"] }}"
            );
            section.report_value(name, value, what, fix);
        }
    }
    found
}

fn parse(value: &Spanned<DeValue<'_>>, folder: &Path) -> Option<SecretSource> {
    let table = value.get_ref().as_table()?;
    let mut entries = table.iter();
    let (Some((key, item)), None) = (entries.next(), entries.next()) else { return None };
    match key.get_ref().as_ref() {
        "env" => {
            let name = item.get_ref().as_str().filter(|name| !name.starts_with('$'))?;
            Some(SecretSource::Environment(name.to_owned()))
        }
        "file" => {
            let path = PathBuf::from(item.get_ref().as_str()?);
            Some(SecretSource::File(super::paths::beside(folder, path)))
        }
        "command" => {
            let words = Vec::<String>::from_toml(item.get_ref()).ok()?;
            (!words.is_empty()).then_some(SecretSource::Command(words))
        }
        _ => None,
    }
}
