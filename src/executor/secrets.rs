//! Secrets are read at each call, so that a changed secret needs no restart. Values go into the call's request only.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::config::tables::SecretSource;
use crate::config::{Config, Environment};
use crate::outcome::{Code, Fault, Redactor};
use crate::process::{Launch, limit_behind, run, shell_word};
use crate::threads::blocking;

/// The time limit for reading a secret's file.
const FILE_LIMIT: Duration = Duration::from_secs(5);
/// The time limit for a secret's command.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);

/// Reads a secret; `None` if it is not set.
pub(super) async fn look_up(name: &str, config: &Config) -> Result<Option<String>, Unreadable> {
    let environment = &config.environment;
    match config.secrets.get(name).map(|setting| &setting.value) {
        None => Ok(environment.text(name).map(str::to_owned)),
        Some(SecretSource::Environment(variable_name)) => Ok(environment.text(variable_name).map(str::to_owned)),
        Some(SecretSource::File(path)) => read_file(path.clone()).await,
        Some(SecretSource::Command(words)) => run_command(words, environment).await,
    }
}

/// Takes the secrets of these names out of texts. Those that are not there cannot be in them.
pub async fn redactor_of(names: &[String], config: &Config) -> Option<Arc<Redactor>> {
    let mut found = Vec::new();
    for name in names {
        if let Ok(Some(value)) = look_up(name, config).await {
            found.push((name.as_str(), value));
        }
    }
    Redactor::of(found.iter().map(|(name, value)| (*name, value.as_str())))
}

/// Why a secret cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{what}; {fix}")]
pub struct Unreadable {
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub fix: String,
    source: Option<io::Error>,
}

impl Unreadable {
    /// The fault of a call that needs the secret.
    pub(super) fn fault_of(self, name: &str) -> Fault {
        let message = format!("the secret {name} cannot be read: {self}");
        let is_limit = self.source.as_ref().is_some_and(|error| limit_behind(error).is_some());
        let code = if is_limit { Code::ResourceExhausted } else { Code::MissingCredentials };
        Fault::new(code, message).caused_by(self)
    }

    fn without_thread(error: io::Error) -> Self {
        let fix = limit_behind(&error).map_or_else(|| "try again".to_owned(), |limit| limit.to_string());
        Self { source: Some(error), ..Self::new("no thread could be started to read it".to_owned(), fix) }
    }

    fn new(what: String, fix: impl Into<String>) -> Self {
        Self { what, fix: fix.into(), source: None }
    }
}

/// A disk may not answer, so a thread reads the file, with a time limit.
async fn read_file(path: PathBuf) -> Result<Option<String>, Unreadable> {
    let late = format!("reading {} took longer than {} s", path.display(), FILE_LIMIT.as_secs());
    let reading = blocking(move || read_now(&path)).map_err(Unreadable::without_thread)?;
    let read = tokio::time::timeout(FILE_LIMIT, reading).await;
    read.unwrap_or_else(|_| Err(Unreadable::new(late, "check that its disk is available")))
}

fn read_now(path: &Path) -> Result<Option<String>, Unreadable> {
    let shown = path.display();
    let cannot = |error: io::Error| {
        let what = format!("{shown}: {error}");
        Unreadable { source: Some(error), ..Unreadable::new(what, "correct its line in [secrets]") }
    };
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot(error)),
    };
    if !metadata.is_file() {
        return Err(Unreadable::new(format!("{shown} is not a regular file"), "put the secret into one"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(Unreadable::new(format!("{shown} is readable by other users"), format!("run {}", chmod(path))));
    }
    let text = std::fs::read_to_string(path).map_err(cannot)?;
    // An empty file is an unfilled placeholder.
    Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()).filter(|text| !text.is_empty()))
}

/// The problem with a secret's file, and the next step.
pub fn trouble_of_secret(name: &str, path: &Path) -> Option<(String, String)> {
    match read_now(path) {
        Err(error) => Some((error.what, error.fix)),
        Ok(None) => {
            Some((format!("{name} is read from {}, which {}", path.display(), lack_of(path)), how_to_fill(path)))
        }
        Ok(Some(text)) => named_itself(name, &text),
    }
}

/// How to fill a missing or empty file, including its mode.
pub(super) fn how_to_fill(path: &Path) -> String {
    format!("write only the value into it, and run {}", chmod(path))
}

fn chmod(path: &Path) -> String {
    format!("`chmod 600 {}`", shell_word(&path.to_string_lossy()))
}

/// Why a file holds no secret.
pub(super) fn lack_of(path: &Path) -> &'static str {
    if path.exists() { "is empty" } else { "does not exist" }
}

/// A line of an `.env` file instead of the value alone.
pub fn named_itself(name: &str, value: &str) -> Option<(String, String)> {
    let line = value.strip_prefix("export ").unwrap_or(value);
    let is_named = line.strip_prefix(name)?.trim_start().starts_with('=');
    let what = format!("the value of {name} begins with `{name}=`, which tools receive as part of it");
    let fix = format!(
        "remove `{}{name}=`: the file holds only the value, without quotes",
        &value[..value.len() - line.len()]
    );
    is_named.then_some((what, fix))
}

async fn run_command(words: &[String], environment: &Environment) -> Result<Option<String>, Unreadable> {
    let Some((program, arguments)) = words.split_first() else { return Ok(None) };
    let absent = || Unreadable::new(format!("`{program}` is not on PATH"), "install it, or write its whole path");
    let path = environment.find_program(program).ok_or_else(absent)?;
    let launch = Launch::new(path)
        .args(arguments)
        .within_that_of(environment)
        // The operator's own command; password managers gain a group to reach their daemon.
        .with_new_privileges(true)
        .envs(environment.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect());
    let by_hand = "run it by hand to see why";
    let done = run(&launch, COMMAND_LIMIT, |_| {}).await.map_err(|error| {
        let fix = limit_behind(&error.source).map_or_else(|| by_hand.to_owned(), |limit| limit.to_string());
        Unreadable { what: error.to_string(), fix, source: Some(error.source) }
    })?;
    if !done.succeeded() {
        let end = match done.exit {
            Some(exit) => format!("ended with {}", exit.behind_launcher()),
            None => format!("took longer than {} s", COMMAND_LIMIT.as_secs()),
        };
        return Err(Unreadable::new(format!("`{program}` {end}"), by_hand));
    }
    Ok(done.stdout.lines().next().filter(|line| !line.is_empty()).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn problems_with_a_secret_file_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my key");
        let shown = path.display();
        let found = || trouble_of_secret("KEY", &path).map(|(what, fix)| format!("{what}; {fix}"));
        let fill = format!("write only the value into it, and run `chmod 600 '{shown}'`");
        let looked = format!("KEY is read from {shown}, which ");
        assert_eq!(found(), Some(format!("{looked}does not exist; {fill}")));
        let write = |text: &str, mode| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        };
        write("\n", 0o600);
        assert_eq!(found(), Some(format!("{looked}is empty; {fill}")));
        write("k-1\n", 0o644);
        assert_eq!(found(), Some(format!("{shown} is readable by other users; run `chmod 600 '{shown}'`")));
        write("k-1\n", 0o600);
        assert_eq!(found(), None);
        for (text, head) in [("KEY=k-1\n", "KEY="), ("export KEY=k-1", "export KEY=")] {
            write(text, 0o600);
            let found = found().unwrap();
            assert!(found.contains(&format!("remove `{head}`")) && !found.contains("k-1"), "{found}");
        }
        assert_eq!((named_itself("KEY", "KEYS=1"), named_itself("KEY", "KEY1")), (None, None));
    }
}
