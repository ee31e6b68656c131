//! Where secrets are. Only places stand in a configuration, never values; whoever makes a call looks them up.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::DeValue;

use super::origin::Setting;
use super::section::Section;
use super::value::FromToml;

/// Where one secret is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// A variable of hostler's own environment.
    Environment(String),
    /// A file that only its owner may read; its text without the last line break.
    File(PathBuf),
    /// The first line that a program prints.
    Command(Vec<String>),
}

/// Reads `[secrets]`.
pub(super) fn read(section: &Section<'_>, folder: &Path) -> BTreeMap<String, Setting<SecretSource>> {
    let mut found = BTreeMap::new();
    for (name, value) in section.entries() {
        if let Some(source) = parse(value, folder) {
            let origin = section.origin_of(value);
            found.insert(name.to_owned(), Setting { value: source, origin });
        } else {
            let fix = format!(
                "write {name} = {{ env = \"VARIABLE\" }}, {{ file = \"path\" }} or {{ command = [\"program\", \"argument\"] }}"
            );
            section.report_value(name, value, "not a place where a secret can be".to_owned(), fix);
        }
    }
    found
}

fn parse(value: &Spanned<DeValue<'_>>, folder: &Path) -> Option<SecretSource> {
    let table = value.get_ref().as_table()?;
    let mut entries = table.iter();
    let (Some((key, item)), None) = (entries.next(), entries.next()) else { return None };
    match key.get_ref().as_ref() {
        "env" => item.get_ref().as_str().map(|name| SecretSource::Environment(name.to_owned())),
        "file" => {
            let path = PathBuf::from(item.get_ref().as_str()?);
            Some(SecretSource::File(folder.join(super::paths::expand_home(&path))))
        }
        "command" => {
            let words = Vec::<String>::from_toml(item.get_ref()).ok()?;
            (!words.is_empty()).then_some(SecretSource::Command(words))
        }
        _ => None,
    }
}
