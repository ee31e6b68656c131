//! Where secrets are. Only places stand in a configuration, never values; whoever makes a call looks them up.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::DeValue;

use super::Config;
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

impl Config {
    /// The variables that hold a configured secret: its own name, and the one that it is read from, which is often another.
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
            let (what, fix) = mistake(name, value.get_ref()).unwrap_or_else(|| {
                let fix = format!(
                    "write {name} = {{ env = \"VARIABLE\" }}, {{ file = \"path\" }} or {{ command = [\"program\", \"argument\"] }}"
                );
                ("not a place where a secret can be".to_owned(), fix)
            });
            section.report_value(name, value, what, fix);
        }
    }
    found
}

/// The keys of a place, each with what people call it elsewhere.
const KEYS: [(&str, &[&str]); 3] = [
    ("env", &["envs", "var", "variable", "environment", "env_var"]),
    ("file", &["files", "path", "filename", "from_file"]),
    ("command", &["cmd", "exec", "run", "program"]),
];

/// What is wrong with a place, and what to write. Values may be secrets: only paths and names of variables are told.
fn mistake(name: &str, value: &DeValue<'_>) -> Option<(String, String)> {
    let is_key = |text: &str| KEYS.iter().any(|(key, _)| *key == text);
    let Some(table) = value.as_table() else {
        let path =
            value.as_str().filter(|_| name == "file").map_or_else(|| "…".to_owned(), |path| format!("\"{path}\""));
        let what = format!("`{name}` stands where the name of the secret belongs");
        let fix = format!("the name comes first: API_KEY = {{ {name} = {path} }}");
        return is_key(name).then_some((what, fix));
    };
    let (key, item) = table.iter().next().filter(|_| table.len() == 1)?;
    let (key, item) = (key.get_ref().as_ref(), item.get_ref());
    if let Some((right, _)) = KEYS.iter().find(|(_, others)| others.contains(&key)) {
        return Some((format!("`{key}` is called `{right}` here"), format!("write `{right}` in its place")));
    }
    match (key, item.as_str()?) {
        ("env", variable) => {
            let variable = without_dollar(variable)?;
            let fix = format!("write {name} = {{ env = \"{variable}\" }}");
            Some(("a variable is named without `$`".to_owned(), fix))
        }
        ("command", words) => {
            let first = words.split_whitespace().next()?;
            let more = if words.split_whitespace().count() > 1 { ", \"…\"" } else { "" };
            let fix =
                format!("write each of its words in quotes of its own: {name} = {{ command = [\"{first}\"{more}] }}");
            Some(("a command is a list of words".to_owned(), fix))
        }
        _ => None,
    }
}

/// `KEY` of `$KEY` and `${KEY}`.
pub(super) fn without_dollar(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?.trim_start_matches('{').trim_end_matches('}');
    let is_name = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    (is_name && !name.is_empty()).then_some(name)
}

fn parse(value: &Spanned<DeValue<'_>>, folder: &Path) -> Option<SecretSource> {
    let table = value.get_ref().as_table()?;
    let mut entries = table.iter();
    let (Some((key, item)), None) = (entries.next(), entries.next()) else { return None };
    match key.get_ref().as_ref() {
        "env" => {
            let name = item.get_ref().as_str().filter(|name| without_dollar(name).is_none())?;
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
