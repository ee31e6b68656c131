//! Asks executables for their schema: in parallel, each with a time limit, once for each version of its file. Serving does
//! not wait for them.

use std::collections::HashMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::live::Registry;
use crate::config::origin::Diagnosis;
use crate::config::sandbox::Sandbox;
use crate::discovery::{Answer, Stamp, remarks};
use crate::process::{
    CommandLauncher, Done, End, EnvFilter, Exit, Grace, Launch, NoLauncher, Once, Own, USUAL_TAIL, UsageLimits, Walls,
    cannot_run, last_word, limit_behind, once,
};
use crate::telemetry::{carried, spawn};
use crate::threads::blocking_or_here;

/// The state of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaProgress {
    /// It has not begun.
    NotStarted,
    /// This many executables have not answered.
    InProgress(usize),
    /// All executables have answered.
    Complete,
    /// It was aborted by a fault of hostler's.
    Failed,
}

/// An executable whose schema is not known.
pub(super) struct Unasked {
    pub path: PathBuf,
    pub stamp: Stamp,
    /// What it may reach while it is asked, as in its calls.
    pub sandbox: Vec<Sandbox>,
    /// The command that starts it, as in its calls.
    pub launcher: Option<Arc<CommandLauncher>>,
    /// Whether that may gain privileges. A program is asked for its schema without any.
    pub new_privileges: bool,
}

/// How executables are asked.
struct Asks {
    /// How long each may take, from its own start.
    limit: Duration,
    /// The environment variables that they do not inherit.
    env_filter: EnvFilter,
}

/// Connects the task that asks with those that wait for it.
#[derive(Debug)]
pub(super) struct AskSignal {
    pub state: watch::Sender<SchemaProgress>,
    /// Wakes the task when the catalogue changed.
    pub wake: Notify,
}

impl Default for AskSignal {
    fn default() -> Self {
        Self { state: watch::Sender::new(SchemaProgress::NotStarted), wake: Notify::new() }
    }
}

/// After these pauses programs that did not end in time are asked again: they may have been slow only because the machine was busy.
const PAUSES: [Duration; 3] = [Duration::from_secs(5), Duration::from_secs(30), Duration::from_mins(5)];

/// The most that `--schema` may print, in bytes.
const MOST: usize = 1 << 20;

/// Asks as long as the registry exists. Runs where processes may be started.
pub fn keep_asking(registry: Weak<Registry>) -> impl Future<Output = ()> + Send {
    // Set at once, so that a search for a tool waits for it.
    if let Some(known) = registry.upgrade() {
        known.ask_signal().state.send_replace(SchemaProgress::InProgress(known.unasked().len()));
    }
    asking(registry)
}

async fn asking(registry: Weak<Registry>) {
    let mut tries: HashMap<PathBuf, (Stamp, usize)> = HashMap::new();
    let mut due: Option<Instant> = None;
    loop {
        let Some(known) = registry.upgrade() else { return };
        let unasked = known.unasked();
        let signal = known.ask_signal();
        signal.state.send_replace(if unasked.is_empty() {
            SchemaProgress::Complete
        } else {
            SchemaProgress::InProgress(unasked.len())
        });
        let asked = if unasked.is_empty() {
            let pause = again(&known, &mut tries).iter().map(|(_, pause)| *pause).min();
            due = pause.map(|pause| due.unwrap_or_else(|| Instant::now() + pause));
            drop(known);
            if !is_due(&signal.wake, due).await {
                continue;
            }
            due = None;
            let Some(known) = registry.upgrade() else { return };
            let late: Vec<Unasked> = again(&known, &mut tries).into_iter().map(|(late, _)| late).collect();
            for one in &late {
                tries.entry(one.path.clone()).or_insert((one.stamp, 0)).1 += 1;
            }
            ask_and_take(late, known).await
        } else {
            ask_and_take(unasked, known).await
        };
        if !asked {
            signal.state.send_replace(SchemaProgress::Failed);
            return;
        }
    }
}

/// The programs that did not end in time and are asked again, each with the pause before that.
fn again(known: &Registry, tries: &mut HashMap<PathBuf, (Stamp, usize)>) -> Vec<(Unasked, Duration)> {
    let late = known.late().into_iter().filter_map(|one| {
        // Another version is another program.
        tries.retain(|path, (stamp, _)| *path != one.path || *stamp == one.stamp);
        let count = tries.get(&one.path).map_or(0, |(_, count)| *count);
        Some((one, *PAUSES.get(count)?))
    });
    late.collect()
}

/// Whether that time comes before the catalogue changes.
async fn is_due(wake: &Notify, due: Option<Instant>) -> bool {
    let Some(due) = due else {
        wake.notified().await;
        return false;
    };
    timeout_at(due, wake.notified()).await.is_err()
}

/// Whether all are asked, and their answers taken.
async fn ask_and_take(unasked: Vec<Unasked>, known: Arc<Registry>) -> bool {
    let (limit, env_filter) = (known.config().executables.schema_timeout, known.env_filter.clone());
    let answers = ask_all(unasked, &Arc::new(Asks { limit, env_filter })).await;
    // All files are read again.
    spawn(blocking_or_here(move || known.take_answers(answers, limit))).await.is_ok()
}

async fn ask_all(unasked: Vec<Unasked>, asks: &Arc<Asks>) -> Vec<(PathBuf, Stamp, Answer)> {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    // More programs than processors would only use up each other's time.
    let at_once = Arc::new(Semaphore::new(2 * processors));
    let mut asking = JoinSet::new();
    for one in unasked {
        let (asks, at_once) = (Arc::clone(asks), Arc::clone(&at_once));
        asking.spawn(carried(async move {
            let _one = at_once.acquire().await;
            let answer = ask(&one, &asks).await;
            (one.path, one.stamp, answer)
        }));
    }
    let mut answers = Vec::new();
    while let Some(answer) = asking.join_next().await {
        answers.extend(answer);
    }
    answers
}

async fn ask(one: &Unasked, asks: &Asks) -> Answer {
    let path = &one.path;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut answer = attempt(one, asks).await;
    if answer.is_none() {
        // The first start of a program may be slow.
        answer = attempt(one, asks).await;
    }
    let Some(answer) = answer else {
        tracing::warn!("tool '{name}' schema failed (timeout)");
        let what = format!("`--schema` did not end within {}", humantime::format_duration(asks.limit));
        let fix = "make it print and exit, or raise `schema_timeout` under [executables] in hostler.toml";
        let reason = Diagnosis::new(what, fix);
        return Answer::Late(reason);
    };
    let failed = |reason: &Diagnosis| tracing::warn!("tool '{name}' schema failed ({reason})");
    match &answer {
        Answer::Said(output) => match remarks(path, output) {
            Ok(remarks) => remarks.iter().for_each(|remark| tracing::warn!("tool '{name}': {remark}")),
            Err(reason) => failed(&reason),
        },
        Answer::Failed(reason) | Answer::Refused(reason) | Answer::Late(reason) => failed(reason),
        Answer::Broken(_) => {}
    }
    answer
}

/// `None` when the time is over.
async fn attempt(one: &Unasked, asks: &Asks) -> Option<Answer> {
    let (path, environment) = (&one.path, asks.env_filter.environment());
    let walls = Walls::of(&one.sandbox, vec![Own::Program(path.clone())], environment);
    let launch = Launch::new(path).arg("--schema").envs(asks.env_filter.for_programs());
    let launch = launch.within_that_of(environment).with_walls(walls);
    // What a launcher has started elsewhere is ended by the launcher.
    let to_obey = if one.launcher.is_some() { Duration::from_millis(500) } else { Duration::ZERO };
    let grace = Grace { to_obey, ..Grace::NONE };
    let launch = match &one.launcher {
        Some(launcher) => match launcher.wrap(launch.with_new_privileges(one.new_privileges), Vec::new()).await {
            Ok(launch) => launch,
            Err(NoLauncher(reason)) => return Some(Answer::Refused(reason)),
        },
        None => launch,
    };
    let program = Once {
        launch,
        input: Vec::new(),
        limit: asks.limit,
        most: MOST,
        tail: USUAL_TAIL,
        grace,
        limits: UsageLimits::default(),
    };
    let done = match once(program, |_, _| {}).await {
        Ok(done) => done,
        Err(error) => {
            let refused = limit_behind(&error.source).map(Answer::Refused);
            return Some(refused.unwrap_or_else(|| Answer::Broken(cannot_run(path, &error))));
        }
    };
    match done.end {
        End::Exit(Exit::Code(0)) => Some(Answer::Said(done.stdout)),
        End::Exit(exit) => {
            let what = format!("`--schema` ended with {exit}{}", last_words(&done));
            let reason = Diagnosis::new(what, "make it print JSON and exit with 0");
            // The cause may be the launcher's.
            Some(if one.launcher.is_some() { Answer::Refused(reason) } else { Answer::Failed(reason) })
        }
        End::TooMuch => {
            let reason = Diagnosis::new("`--schema` prints more than 1 MB", "make it print the schema alone");
            Some(Answer::Failed(reason))
        }
        // It has no limits but its time.
        End::TimeOver | End::Excess(_) => None,
    }
}

fn last_words(done: &Done) -> String {
    let last = last_word(&done.stderr);
    last.map(|line| format!(": {}", line.chars().take(200).collect::<String>())).unwrap_or_default()
}
