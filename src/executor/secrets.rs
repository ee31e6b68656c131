//! Secrets are looked up at the moment of a call, so that a person who sets one need not restart anything. Values go into
//! the call's request and nowhere else.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::secrets::SecretSource;
use crate::outcome::{Code, Fault};
use crate::process::{Launch, inherited_environment, run};

/// The longest a secret's file may take.
const FILE_LIMIT: Duration = Duration::from_secs(5);
/// The longest a secret's command may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);

/// Looks a secret up; `None` when it is not set.
pub(super) async fn look_up(name: &str, source: Option<&SecretSource>) -> Result<Option<String>, Fault> {
    let failed =
        |reason: String| Fault::new(Code::MissingCredentials, format!("the secret {name} cannot be read: {reason}"));
    match source {
        None => Ok(variable(name)),
        Some(SecretSource::Environment(variable_name)) => Ok(variable(variable_name)),
        Some(SecretSource::File(path)) => read_file(path.clone()).await.map_err(failed),
        Some(SecretSource::Command(words)) => run_command(words).await.map_err(failed),
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A file may lie on a disk that does not answer: it is read by a thread, and not waited for without end.
async fn read_file(path: PathBuf) -> Result<Option<String>, String> {
    let shown = path.display().to_string();
    let reading = tokio::task::spawn_blocking(move || read_now(&path));
    match tokio::time::timeout(FILE_LIMIT, reading).await {
        Ok(Ok(read)) => read,
        _ => Err(format!("{shown} was not read within {} s; is its disk there?", FILE_LIMIT.as_secs())),
    }
}

fn read_now(path: &Path) -> Result<Option<String>, String> {
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    if !metadata.is_file() {
        return Err(format!("{} is no regular file; put the secret into one", path.display()));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(format!("others may read {}; run `chmod 600` on it", path.display()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    // An empty one is a placeholder that nobody filled.
    Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()).filter(|text| !text.is_empty()))
}

async fn run_command(words: &[String]) -> Result<Option<String>, String> {
    let Some((program, arguments)) = words.split_first() else { return Ok(None) };
    let path = which::which(program).map_err(|_| format!("`{program}` is not on PATH"))?;
    let launch = Launch::new(path).args(arguments).envs(inherited_environment(&[]));
    let done = run(&launch, COMMAND_LIMIT, |_| {}).await.map_err(|error| error.to_string())?;
    if !done.succeeded() {
        let end = match done.exit {
            Some(exit) => format!("ended with {}", exit.behind_launcher()),
            None => format!("took longer than {} s", COMMAND_LIMIT.as_secs()),
        };
        return Err(format!("`{program}` {end}; run it by hand to see why"));
    }
    Ok(done.stdout.lines().next().filter(|line| !line.is_empty()).map(str::to_owned))
}
