//! Executables are asked what they are: side by side, each within its own time, once for each version of its file. Serving
//! waits for none of them.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;

use super::live::Registry;
use crate::discovery::{Answer, Stamp, remarks};
use crate::process::{Done, End, Exit, Grace, Launch, Once, USUAL_TAIL, Withheld, cannot_run, last_word, once};

/// How far the asking is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Asking {
    /// Nobody asks yet.
    NotStarted,
    /// So many have not answered.
    InProgress(usize),
    /// All have.
    Complete,
    /// Nobody asks any more: it broke off, which is ours to mend.
    Failed,
}

/// How executables are asked.
#[derive(Debug, Clone)]
pub struct Asks {
    /// How long each may take, from its own start.
    pub limit: Duration,
    /// What they do not get of hostler's own environment.
    pub withheld: Withheld,
}

/// What those who wait and the one who asks tell each other.
#[derive(Debug)]
pub(super) struct Bell {
    pub state: watch::Sender<Asking>,
    pub rings: Notify,
}

impl Default for Bell {
    fn default() -> Self {
        Self { state: watch::Sender::new(Asking::NotStarted), rings: Notify::new() }
    }
}

/// The most that `--schema` may print, in bytes.
const MOST: usize = 1 << 20;

/// Asks for as long as the registry is there. To be run where processes may be started.
pub fn keep_asking(registry: Weak<Registry>, asks: Asks) -> impl Future<Output = ()> + Send {
    // Said at once: whoever looks for a tool in the next moment is to wait for it.
    if let Some(known) = registry.upgrade() {
        known.bell().state.send_replace(Asking::InProgress(known.unasked().len()));
    }
    asking(registry, Arc::new(asks))
}

async fn asking(registry: Weak<Registry>, asks: Arc<Asks>) {
    loop {
        let Some(known) = registry.upgrade() else { return };
        let unasked = known.unasked();
        let bell = known.bell();
        bell.state.send_replace(if unasked.is_empty() { Asking::Complete } else { Asking::InProgress(unasked.len()) });
        if unasked.is_empty() {
            drop(known);
            bell.rings.notified().await;
            continue;
        }
        let answers = ask_all(unasked, &asks).await;
        // Files are read anew for it.
        let heard = tokio::task::spawn_blocking(move || known.heard(answers)).await;
        if heard.is_err() {
            bell.state.send_replace(Asking::Failed);
            return;
        }
    }
}

async fn ask_all(unasked: Vec<(PathBuf, Stamp)>, asks: &Arc<Asks>) -> Vec<(PathBuf, Stamp, Answer)> {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    // More than the processors can run would only use up each other's time.
    let at_once = Arc::new(Semaphore::new(2 * processors));
    let mut asking = JoinSet::new();
    for (path, stamp) in unasked {
        let (asks, at_once) = (Arc::clone(asks), Arc::clone(&at_once));
        asking.spawn(async move {
            let _one = at_once.acquire().await;
            let answer = ask(&path, &asks).await;
            (path, stamp, answer)
        });
    }
    let mut answers = Vec::new();
    while let Some(answer) = asking.join_next().await {
        answers.extend(answer);
    }
    answers
}

async fn ask(path: &Path, asks: &Asks) -> Answer {
    let mut answer = attempt(path, asks).await;
    if matches!(&answer, Err(Trouble::Time)) {
        // A machine that has just started is slow once.
        answer = attempt(path, asks).await;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match answer {
        Ok(said) => {
            match remarks(path, &said) {
                Ok(remarks) => remarks.iter().for_each(|remark| tracing::warn!("tool '{name}': {remark}")),
                Err(reason) => tracing::warn!("tool '{name}' schema failed ({reason})"),
            }
            Answer::Said(said)
        }
        Err(Trouble::Broken(reason)) => Answer::Broken(reason),
        Err(Trouble::Time) => {
            let limit = humantime::format_duration(asks.limit);
            tracing::warn!("tool '{name}' schema failed (timeout)");
            Answer::Failed(format!(
                "`--schema` did not end within {limit}; let it print and exit, or raise `schema_timeout` under [executables] in hostler.toml"
            ))
        }
        Err(Trouble::Failed(reason)) => {
            tracing::warn!("tool '{name}' schema failed ({reason})");
            Answer::Failed(reason)
        }
    }
}

enum Trouble {
    Time,
    Failed(String),
    Broken(String),
}

async fn attempt(path: &Path, asks: &Asks) -> Result<Vec<u8>, Trouble> {
    let launch = Launch::new(path).arg("--schema").envs(asks.withheld.for_programs());
    let program =
        Once { launch, input: Vec::new(), limit: asks.limit, most: MOST, tail: USUAL_TAIL, grace: Grace::NONE };
    let done = once(program, |_, _| {}).await.map_err(|error| Trouble::Broken(cannot_run(path, &error)))?;
    match done.end {
        End::Exit(Exit::Code(0)) => Ok(done.stdout),
        End::Exit(exit) => Err(Trouble::Failed(format!(
            "`--schema` ended with {exit}{}; let it print JSON and end with 0",
            last_words(&done)
        ))),
        End::TooMuch => Err(Trouble::Failed("`--schema` prints more than 1 MB".to_owned())),
        End::TimeOver => Err(Trouble::Time),
    }
}

fn last_words(done: &Done) -> String {
    let last = last_word(&done.stderr);
    last.map(|line| format!(" and said: {}", line.chars().take(200).collect::<String>())).unwrap_or_default()
}
