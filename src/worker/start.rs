//! From a tool file to a worker that has said hello: environment, process, pipes, handshake.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::Signal;
use serde_json::value::RawValue;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use super::answer::lack;
use super::life::Life;
use super::news::{News, NewsSender, WorkerHandle};
use super::reader::LinkReader;
use super::shim::Shims;
use super::sources::Sources;
use super::stack::Stack;
use super::stderr::{self, Tail};
use super::writer::{LinkWriter, start_writer};
use crate::config::tool::Launcher as LauncherKind;
use crate::environment::{EnvironmentSpec, Environments, Lease};
use crate::outcome::{Code, Details, Fault};
use crate::process::{Child, Launch, PipeEnd, Tracked, keeper, worker_environment};
use crate::protocol::{HELLO_ID, Hello, HelloReply, Incoming, VERSION, WireError};

/// Something that happens on the way to a running worker, for people who wait.
#[derive(Debug, Clone)]
pub struct StartNote(pub String);

/// Where start notes go.
pub type StartNotes = Arc<dyn Fn(StartNote) + Send + Sync>;

/// A start under way.
pub type Starting = Pin<Box<dyn Future<Output = Result<WorkerHandle, Fault>> + Send>>;

/// Starts workers. The pool knows only this; tests put memory in its place.
pub trait Launcher: Send + Sync {
    /// What it starts, for notes: the pack.
    fn name(&self) -> &str;

    /// Starts one worker and waits for its hello. Dropping the future leaves nothing behind.
    fn launch(&self, news: NewsSender, notes: StartNotes) -> Starting;
}

/// What a worker of a Python tool file is started with.
#[derive(Debug, Clone)]
pub struct WorkerSpec {
    /// The pack it serves.
    pub pack: String,
    /// The tool file.
    pub file: PathBuf,
    /// SHA-256 of the text that is to be run under its name, whatever it holds by then.
    pub fingerprint: [u8; 32],
    /// Its environment.
    pub environment: EnvironmentSpec,
    /// Through `uv run`, or the interpreter itself.
    pub launcher: LauncherKind,
    /// The secrets it declared.
    pub secrets: Vec<String>,
    /// What it may ask of hostler.
    pub host: Vec<&'static str>,
    /// How many calls it is to run at once.
    pub concurrency: usize,
    /// The types it shall describe, as JSON: names by the side they stand on.
    pub describe: Option<Box<RawValue>>,
    /// Whether a worker was asked that already. One is enough, and should it hang over it, it was the last one.
    pub was_asked: Arc<AtomicBool>,
    /// From the start of the process to its hello.
    pub startup_timeout: Duration,
    /// Where that is set, for whoever wants more.
    pub startup_timeout_place: String,
    /// The most memory it may hold, in bytes, its children included.
    pub max_memory: Option<usize>,
    /// Variables of hostler's own environment that it may see beside the usual ones.
    pub pass_env: Vec<String>,
    /// Variables it is given.
    pub env: Vec<(String, String)>,
}

/// Where goes what a worker told of its types, as JSON text.
pub type Described = Arc<dyn Fn(Box<RawValue>) + Send + Sync>;

/// Starts Python workers.
pub struct PythonLauncher {
    /// What to start.
    pub spec: Arc<WorkerSpec>,
    /// Where its environment comes from.
    pub environments: Arc<Environments>,
    /// Where its shim comes from.
    pub shims: Shims,
    /// Where the text comes from.
    pub sources: Sources,
    /// Who hears what its types are.
    pub described: Described,
}

impl Launcher for PythonLauncher {
    fn name(&self) -> &str {
        &self.spec.pack
    }

    fn launch(&self, news: NewsSender, notes: StartNotes) -> Starting {
        let (spec, environments) = (Arc::clone(&self.spec), Arc::clone(&self.environments));
        let (shims, sources, described) = (self.shims.clone(), self.sources.clone(), Arc::clone(&self.described));
        Box::pin(async move {
            let lease = environments.ensure(&spec.environment, &|line| notes(StartNote(line.to_owned()))).await?;
            let shim = shims.lay_out().map_err(|error| unwritten(shims.folder(), &error))?;
            notes(StartNote(format!("starting {}", spec.pack)));
            let Some(source) = sources.of(&spec.file, spec.fingerprint) else { return Err(lost_fault(&spec)) };
            let launch = command(&spec, &environments, &lease, &shim).await?.arg(source);
            let child = Child::spawn(&launch).map_err(|error| Fault::new(Code::StartupFailed, error.to_string()))?;
            Handshake::new(spec, child, news, lease, described, environments).run().await
        })
    }
}

/// The shim has no place in the cache: the disk is full, or the folder is not ours.
fn unwritten(folder: &Path, error: &io::Error) -> Fault {
    let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let (code, cure) = if is_full {
        (Code::ResourceExhausted, "Make room on that disk (`hostler warm --prune` removes unused environments)")
    } else {
        (Code::SystemError, "See to its permissions, and that it is a folder")
    };
    let place = folder.display();
    let text = format!(
        "the worker shim could not be written below {place}: {error}. {cure}, or set XDG_CACHE_HOME to another"
    );
    Fault::new(code, text)
}

/// Neither the file nor a copy holds the text of this version any more. Whoever calls again gets the file as it is now.
fn lost_fault(spec: &WorkerSpec) -> Fault {
    let (pack, file) = (&spec.pack, spec.file.display());
    let message = format!("{pack} could not be started: {file} has changed and no copy of its earlier text is left");
    Fault::new(Code::StartupFailed, message)
}

/// The command line of a worker, as `docs/architecture.md` explains it.
async fn command(spec: &WorkerSpec, environments: &Environments, lease: &Lease, shim: &Path) -> Result<Launch, Fault> {
    let launch = match spec.launcher {
        LauncherKind::Direct => Launch::new(&lease.python),
        LauncherKind::Uv => Launch::new(environments.uv(&|_| {}).await?)
            .args(["run", "--no-project", "--no-config", "--no-env-file", "--offline", "--no-python-downloads"])
            .arg("--cache-dir")
            .arg(environments.run_cache())
            .arg("--python")
            .arg(&lease.python)
            .arg("python"),
    };
    let launch = launch.arg("-I").arg(shim).arg(&spec.file).envs(worker_environment(&spec.pass_env));
    Ok(spec.env.iter().fold(launch, |launch, (name, value)| launch.env(name, value)))
}

/// How long a launcher may outlive an interpreter that is gone.
const LAST_BREATH: Duration = Duration::from_secs(1);

/// How long an interpreter that did not get ready may take to say where it is.
const STACK_LOOK: Duration = Duration::from_millis(20);
const STACK_LOOKS: u32 = 15;

/// A process that has not said hello yet.
struct Handshake {
    spec: Arc<WorkerSpec>,
    child: Child,
    news: NewsSender,
    lease: Lease,
    described: Described,
    environments: Arc<Environments>,
    tail: Arc<Mutex<Tail>>,
    stack: Arc<Mutex<Stack>>,
}

impl Handshake {
    fn new(
        spec: Arc<WorkerSpec>,
        child: Child,
        news: NewsSender,
        lease: Lease,
        described: Described,
        environments: Arc<Environments>,
    ) -> Self {
        Self { spec, child, news, lease, described, environments, tail: Arc::default(), stack: Arc::default() }
    }

    async fn run(mut self) -> Result<WorkerHandle, Fault> {
        let pipes = (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(Fault::new(Code::SystemError, "a new worker has no pipes"));
        };
        let errors = (self.news.clone(), Arc::clone(&self.tail), Arc::clone(&self.stack));
        let stderr = tokio::spawn(stderr::drain(stderr, errors.0, errors.1, errors.2));
        let writer = start_writer(stdin);
        writer.send(
            Hello::new(&self.spec.pack, &self.spec.secrets, &self.spec.host)
                .running(self.spec.concurrency)
                .describing(
                    self.spec.describe.as_deref().filter(|_| !self.spec.was_asked.swap(true, Ordering::Relaxed)),
                )
                .frame(),
        );
        let output = PipeEnd::beyond(&stdout);
        let mut reader = LinkReader::new(stdout);
        let limit = self.spec.startup_timeout;
        let answer = tokio::time::timeout(limit, self.await_hello(&mut reader)).await;
        let hello = match answer {
            Ok(Some(Ok(hello))) => hello,
            Ok(Some(Err(error))) => return Err(self.import_fault(&error)),
            Ok(None) => return Err(self.death_fault(stderr).await),
            Err(_) => return Err(self.slow_fault(limit).await),
        };
        let interpreter = match Tracked::behind(&self.child, hello.pid) {
            Ok(interpreter) => interpreter,
            // It may have said hello and died in the same moment.
            Err(_) if tokio::time::timeout(LAST_BREATH, self.child.exited()).await.is_ok() => {
                return Err(self.death_fault(stderr).await);
            }
            Err(error) => return Err(self.fault(&format!("its worker cannot be watched: {error}"), Details::default())),
        };
        self.settle(&hello, interpreter, writer, (reader, output), stderr)
    }

    /// Waits for the answer to `hello`; `None` when the pipe ended first.
    async fn await_hello(&self, reader: &mut LinkReader<pipe::Receiver>) -> Option<Result<HelloReply, WireError>> {
        while let Ok(Some(news)) = reader.next().await {
            match news {
                News::Frame(Incoming::Reply { id: HELLO_ID, answer }) => {
                    let hello = answer.and_then(|result| {
                        serde_json::from_str(result.get()).map_err(|error| WireError {
                            code: 0,
                            message: format!("its hello is not one of protocol v{VERSION}: {error}"),
                            data: None,
                        })
                    });
                    return Some(hello);
                }
                other => {
                    // What a file prints while it is imported is its last word if it dies of that.
                    if let News::Frame(Incoming::Output(note)) = &other {
                        self.tail.lock().push(&note.text);
                    }
                    self.news.send(other);
                }
            }
        }
        None
    }

    fn settle(
        self,
        hello: &HelloReply,
        interpreter: Tracked,
        writer: LinkWriter,
        (mut reader, output): (LinkReader<pipe::Receiver>, Option<PipeEnd>),
        stderr: tokio::task::JoinHandle<()>,
    ) -> Result<WorkerHandle, Fault> {
        if hello.protocol != VERSION {
            let text = format!("its worker speaks protocol v{}, this hostler v{VERSION}", hello.protocol);
            return Err(self.fault(&text, Details::default()));
        }
        if self.spec.concurrency > 1 && !hello.runs_several() {
            let text = "its worker runs one call at a time and cannot be asked for more; set `concurrency = 1` for it";
            return Err(self.fault(text, Details::default()));
        }
        let (control, orders) = mpsc::unbounded_channel();
        let news = self.news.clone();
        // The lease keeps the environment from being pruned for as long as the worker reads from it.
        let lease = self.lease;
        let described = self.described;
        let reader = tokio::spawn(async move {
            let _in_use = lease;
            while let Ok(Some(item)) = reader.next().await {
                match item {
                    News::Frame(Incoming::Described(told)) => described(told),
                    item => news.send(item),
                }
                news.room().await;
            }
        });
        let pid = interpreter.pid();
        // Without a launcher, the end of the pipe tells.
        let output = output.filter(|_| self.child.pid() != pid);
        let life = Life {
            child: self.child,
            interpreter,
            orders,
            reader,
            stderr,
            news: self.news,
            tail: self.tail,
            stack: Arc::clone(&self.stack),
            output,
            hung_up: false,
            memory_limit: self.spec.max_memory,
        };
        tokio::spawn(life.live());
        Ok(WorkerHandle { pid, writer, control, stack: self.stack })
    }

    fn import_fault(&self, error: &WireError) -> Fault {
        let line = error.data.as_ref().and_then(|data| data.get("line")?.as_u64());
        let file = self.spec.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Python's own words name the place of what is no Python.
        let is_told = line.is_some_and(|line| error.message.contains(&format!("({file}, line {line})")));
        let place = line.filter(|_| !is_told).map(|line| format!(" ({file} line {line})")).unwrap_or_default();
        let details = Details {
            traceback: error.detail("traceback").map(str::to_owned),
            exception: error.detail("type").map(str::to_owned),
            lack: lack(error),
            stderr: self.tail.lock().text(),
            ..Details::default()
        };
        self.fault(&format!("{}{place}", error.message), details)
    }

    async fn death_fault(mut self, stderr: tokio::task::JoinHandle<()>) -> Fault {
        let exit = tokio::time::timeout(Duration::from_secs(1), self.child.exited()).await.ok();
        keeper::unless_over().await;
        self.child.clean_up();
        let _ = tokio::time::timeout(Duration::from_millis(200), stderr).await;
        if let (LauncherKind::Uv, Some(exit)) = (self.spec.launcher, exit) {
            let said = self.tail.lock().text().unwrap_or_default();
            if let Some(fault) = self.environments.unfit_launcher(exit, &said).await {
                return fault;
            }
        }
        let how = exit.map_or_else(
            || "it closed its output before it was ready".to_owned(),
            |exit| format!("its process ended with {} before it was ready", exit.behind_launcher()),
        );
        let tail = self.tail.lock().text();
        let last = tail.as_deref().and_then(|text| text.lines().last().map(|line| format!("; it last said: {line}")));
        let stack = self.stack.lock().clone();
        let place = stack.place(&self.spec.file).map(|place| format!(", at {place}")).unwrap_or_default();
        let text = format!("{how}{place}{}", last.unwrap_or_default());
        let traceback = stack.listing(&self.spec.file);
        self.fault(&text, Details { stderr: tail, traceback, ..Details::default() })
    }

    async fn slow_fault(&self, limit: Duration) -> Fault {
        let place = self.stuck_place().await.map(|place| format!("; it was at {place}")).unwrap_or_default();
        let limit = humantime::format_duration(limit);
        let text = format!(
            "it was not ready within {limit}{place}. Raise its `startup_timeout` {}, or do less while it is imported",
            self.spec.startup_timeout_place
        );
        let details = Details {
            stderr: self.tail.lock().text(),
            traceback: self.stack.lock().listing(&self.spec.file),
            ..Details::default()
        };
        self.fault(&text, details)
    }

    /// Asks the interpreter where it is. Its own pid is not known yet, so the whole group is asked; a launcher dies of
    /// that, as it is about to anyway.
    async fn stuck_place(&self) -> Option<String> {
        self.child.signal_group(Signal::USR2);
        for _ in 0..STACK_LOOKS {
            tokio::time::sleep(STACK_LOOK).await;
            let place = self.stack.lock().place(&self.spec.file);
            if place.is_some() {
                // The frames come one by one, the innermost first.
                tokio::time::sleep(STACK_LOOK).await;
                return self.stack.lock().place(&self.spec.file);
            }
        }
        None
    }

    fn fault(&self, why: &str, details: Details) -> Fault {
        let message = format!("{} could not be started: {why}", self.spec.pack);
        Fault::new(Code::StartupFailed, message).with(details)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shim_without_a_place_is_told_with_the_folder_and_the_cure() {
        let told = |kind: io::ErrorKind| unwritten(Path::new("/c/shims"), &kind.into());
        let full = told(io::ErrorKind::StorageFull);
        assert_eq!(full.code, Code::ResourceExhausted);
        assert!(
            full.message.contains("below /c/shims: ") && full.message.contains("Make room on that disk"),
            "{full:?}"
        );
        let closed = told(io::ErrorKind::PermissionDenied);
        assert_eq!(closed.code, Code::SystemError);
        assert!(closed.message.contains("See to its permissions"), "{closed:?}");
    }
}
