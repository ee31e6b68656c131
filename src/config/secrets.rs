//! `[secrets]`: where secrets are. Values never stand there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::DeValue;

use super::environment::{from_file, user_secrets};
use super::origin::Setting;
use super::section::Section;
use super::value::{FromToml, limit};
use super::{Config, Environment};

/// The place of one secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SecretSource {
    /// A variable of hostler's own environment.
    Environment(String),
    /// A file that only its owner may read. The last line break is not part of the secret.
    File(PathBuf),
    /// The first line that a program prints.
    Command {
        /// The program and its arguments.
        words: Vec<String>,
        /// How long a value is used before the program runs again; zero for each call.
        cache: Duration,
    },
    /// The keyring of the operating system: Secret Service, or the macOS keychain.
    Keyring {
        /// The service that the entry is for.
        service: String,
        /// The user name of the entry.
        account: String,
        /// How long a value is used before the keyring is asked again; zero for each call.
        cache: Duration,
    },
    /// A credential that systemd passes to hostler's service.
    Systemd(String),
}

impl Config {
    /// The variables that hold a configured secret: its own name, and the one that it is read from.
    pub fn secret_variables(&self) -> impl Iterator<Item = &str> {
        let read_from = self.secrets.values().filter_map(|setting| match &setting.value {
            SecretSource::Environment(name) => Some(name.as_str()),
            _ => None,
        });
        self.secrets.keys().map(String::as_str).chain(read_from)
    }

    /// Where `hostler secrets set` stores a secret that `[secrets]` does not name. Tool files choose names: one that is not the name
    /// of a file there has no place.
    pub fn stored_secret(&self, name: &str) -> Option<PathBuf> {
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
        let is_name = is_plain && !name.starts_with('.') && (1..=200).contains(&name.len());
        is_name.then(|| user_secrets(&self.environment).join(name))
    }

    /// The files that hold secrets.
    pub(super) fn secret_files(&self) -> Vec<PathBuf> {
        let configured = self.secrets.values().filter_map(|setting| match &setting.value {
            SecretSource::File(path) => Some(path.clone()),
            _ => None,
        });
        let stored = std::fs::read_dir(user_secrets(&self.environment)).into_iter().flatten().flatten();
        configured.chain(stored.map(|file| file.path())).collect()
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
        if let Some(value) = secret_source(entry.key, entry.value, |path| from_file(&origin, path, environment)) {
            found.insert(entry.key.to_owned(), Setting { value, origin });
        } else {
            let fix = format!(
                "write {} = {{ env = \"VARIABLE\" }}, {{ file = \"path\" }}, {{ command = [\"program\", \"argument\"] }}, {{ keyring = \
                 \"service\" }} or {{ systemd = \"credential\" }}; a command and a keyring may have a `cache` time",
                entry.key
            );
            section.report(&entry, "expected the place of a secret", fix);
        }
    }
    found
}

fn secret_source(name: &str, value: &DeValue<'_>, whole: impl Fn(&Path) -> PathBuf) -> Option<SecretSource> {
    let table = value.as_table()?;
    let item = |key: &str| table.get(key).map(toml::Spanned::get_ref);
    let text = |key: &str| item(key)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let only = |allowed: &[&str]| table.keys().all(|key| allowed.contains(&key.get_ref().as_ref()));
    let cache = || item("cache").map_or(Some(Duration::ZERO), |value| limit(value).ok());
    if only(&["env"]) {
        text("env").filter(|name| !name.starts_with('$')).map(SecretSource::Environment)
    } else if only(&["file"]) {
        Some(SecretSource::File(whole(Path::new(&text("file")?))))
    } else if only(&["systemd"]) {
        text("systemd").filter(|name| !name.contains('/') && name != "..").map(SecretSource::Systemd)
    } else if only(&["command", "cache"]) {
        let words = Vec::from_toml(item("command")?).ok().filter(|words: &Vec<String>| !words.is_empty())?;
        Some(SecretSource::Command { words, cache: cache()? })
    } else if only(&["keyring", "account", "cache"]) {
        let account = if item("account").is_some() { text("account")? } else { name.to_owned() };
        Some(SecretSource::Keyring { service: text("keyring")?, account, cache: cache()? })
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<SecretSource> {
        let table = toml::de::DeTable::parse(text).unwrap();
        secret_source("KEY", table.get_ref().get("KEY").unwrap().get_ref(), |path| Path::new("/etc").join(path))
    }

    #[test]
    fn a_name_that_a_tool_chose_leads_out_of_no_folder() {
        let options = super::super::ConfigOptions::default();
        let config = Config::read(&[], &options, Path::new("/p")).unwrap();
        assert!(config.stored_secret("API_KEY").unwrap().ends_with("secrets/API_KEY"));
        for name in ["", ".", "..", ".hidden", "../KEY", "/etc/shadow", "a/b", "a\0b", "ü", &"A".repeat(201)] {
            assert_eq!(config.stored_secret(name), None, "{name}");
        }
    }

    #[test]
    fn a_secret_has_one_place() {
        let command = |cache| SecretSource::Command { words: vec!["op".into(), "read".into()], cache };
        let keyring =
            |account: &str, cache| SecretSource::Keyring { service: "s".into(), account: account.into(), cache };
        for (text, source) in [
            ("{ env = \"X\" }", SecretSource::Environment("X".into())),
            ("{ file = \"k\" }", SecretSource::File("/etc/k".into())),
            ("{ systemd = \"k\" }", SecretSource::Systemd("k".into())),
            ("{ command = [\"op\", \"read\"] }", command(Duration::ZERO)),
            ("{ command = [\"op\", \"read\"], cache = \"5m\" }", command(Duration::from_mins(5))),
            ("{ keyring = \"s\" }", keyring("KEY", Duration::ZERO)),
            ("{ keyring = \"s\", account = \"me\", cache = \"1h\" }", keyring("me", Duration::from_hours(1))),
        ] {
            assert_eq!(read(&format!("KEY = {text}")), Some(source), "{text}");
        }
        for text in [
            "\"value\"",
            "{}",
            "{ env = \"$X\" }",
            "{ env = \"X\", file = \"k\" }",
            "{ file = \"\" }",
            "{ file = \"k\", cache = \"5m\" }",
            "{ systemd = \"../k\" }",
            "{ systemd = \"..\" }",
            "{ command = [] }",
            "{ command = [\"op\"], cache = \"0s\" }",
            "{ keyring = \"s\", account = \"\" }",
            "{ account = \"me\" }",
            "{ cache = \"5m\" }",
        ] {
            assert_eq!(read(&format!("KEY = {text}")), None, "{text}");
        }
    }
}
