//! Where a secret is looked for, for people.

use std::fmt;

use super::file::{how_to_fill, lack_of};
use crate::config::Config;
use crate::config::secrets::SecretSource;

/// Where a secret is read from.
pub struct Place<'c>(pub &'c str, pub &'c Config);

impl Place<'_> {
    /// The kind of place, for programs: `environment`, `stored`, `file`, `command`, `keyring`, `systemd`.
    pub fn kind(&self) -> &'static str {
        match self.1.secrets.get(self.0).map(|setting| &setting.value) {
            None if self.is_stored() => "stored",
            None | Some(SecretSource::Environment(_)) => "environment",
            Some(SecretSource::File(_)) => "file",
            Some(SecretSource::Command { .. }) => "command",
            Some(SecretSource::Keyring { .. }) => "keyring",
            Some(SecretSource::Systemd(_)) => "systemd",
        }
    }

    /// Whether it comes from where `hostler secrets set` put it.
    fn is_stored(&self) -> bool {
        let is_in_environment = self.1.environment.text(self.0).is_some();
        !is_in_environment && self.1.stored_secret(self.0).is_some_and(|path| path.exists())
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(name, config) = self;
        match config.secrets.get(*name).map(|setting| &setting.value) {
            None if self.is_stored() => {
                let path = config.stored_secret(name).unwrap_or_default();
                write!(formatter, "file {}", path.display())
            }
            None => write!(formatter, "variable {name}"),
            Some(SecretSource::Environment(variable)) => write!(formatter, "variable {variable}"),
            Some(SecretSource::File(path)) => write!(formatter, "file {}", path.display()),
            Some(SecretSource::Command { words, .. }) => write!(formatter, "command {}", words.join(" ")),
            Some(SecretSource::Keyring { service, account, .. }) => write!(formatter, "keyring {service}, {account}"),
            Some(SecretSource::Systemd(credential)) => write!(formatter, "systemd credential {credential}"),
        }
    }
}

/// Why a secret is not set, and what to do.
pub fn why_missing(name: &str, config: &Config) -> String {
    missing_secret(name, config.secrets.get(name).map(|setting| &setting.value))
}

fn missing_secret(name: &str, source: Option<&SecretSource>) -> String {
    let why = match source {
        None => {
            return format!(
                "Run `hostler secrets set {name}`, or put it into hostler's environment as {name}, or name its place under \
                 [secrets] in hostler.toml: {name} = {{ file = \"/path/to/it\" }}"
            );
        }
        Some(SecretSource::File(path)) => {
            format!("{}, which {}: {}", path.display(), lack_of(path), how_to_fill(path))
        }
        Some(SecretSource::Environment(variable)) => {
            format!("the variable {variable} of hostler's environment, which is not set or empty")
        }
        Some(SecretSource::Command { words, .. }) => format!("the output of `{}`, which is empty", words.join(" ")),
        Some(SecretSource::Keyring { service, account, .. }) => format!(
            "the keyring, which has no entry of the service {service} for the user name {account}: run `hostler secrets set {name}`"
        ),
        Some(SecretSource::Systemd(credential)) => format!(
            "the credential {credential} of systemd, which hostler did not get: add `LoadCredential={credential}:/path` to its service"
        ),
    };
    format!("[secrets] in hostler.toml reads it from {why}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_missing_secret_names_where_it_was_looked_up() {
        assert!(missing_secret("KEY", None).contains("under [secrets] in hostler.toml: KEY = {"));
        let cache = Duration::ZERO;
        for (source, words) in [
            (SecretSource::File("/run/key".into()), "/run/key, which does not exist"),
            (SecretSource::Environment("OTHER".to_owned()), "the variable OTHER"),
            (SecretSource::Command { words: vec!["pass".into(), "show".into()], cache }, "`pass show`"),
            (SecretSource::Keyring { service: "s".into(), account: "a".into(), cache }, "`hostler secrets set KEY`"),
            (SecretSource::Systemd("cred".to_owned()), "`LoadCredential=cred:/path`"),
        ] {
            let message = missing_secret("KEY", Some(&source));
            assert!(message.contains(words), "{message}");
        }
    }
}
