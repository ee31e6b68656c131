//! Turns a started process into a worker that accepts calls: pipes, and the handshake if the codec has one.

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::codec::Codec;
use super::events::{EventSender, WorkerEvent, WorkerHandle};
use super::launch::{Described, WorkerSpec};
use super::reader::LinkReader;
use super::stack::Stack;
use super::stderr::{self, Tail};
use super::task::{Between, Interruption, Signals, WorkerTask};
use super::writer::LinkWriter;
use crate::environment::{Environments, Lease};
use crate::outcome::{Code, Details, Fault};
use crate::process::{Child, FirstInput, PipeEnd, Tracked, started};
use crate::protocol::{HELLO_ID, Hello, HelloReply, Incoming, VERSION, WireError};

/// How long a launcher may outlive its interpreter.
const LAST_BREATH: Duration = Duration::from_secs(1);

/// What a worker holds besides its process.
#[derive(Default)]
pub(super) struct Support {
    /// Its environment, which is not pruned while it is in use.
    pub lease: Option<Lease>,
    /// Receives type descriptions.
    pub described: Option<Described>,
    /// The `uv` that launched it, if any.
    pub launched: Option<Arc<Environments>>,
}

/// A process that does not accept calls yet.
pub(super) struct Handshake {
    pub spec: Arc<WorkerSpec>,
    pub child: Child,
    pub events: EventSender,
    pub support: Support,
    pub tail: Arc<Mutex<Tail>>,
    pub stack: Arc<Mutex<Stack>>,
}

/// The pipes of a process, in use.
struct Pipes {
    writer: LinkWriter,
    reader: LinkReader<pipe::Receiver>,
    held: [Option<PipeEnd>; 2],
    first_input: Option<FirstInput>,
    stderr: JoinHandle<()>,
    /// For workers that do not ensure that their stderr is read before their answers.
    unread: Option<stderr::Waiting>,
}

impl Handshake {
    pub fn new(spec: Arc<WorkerSpec>, child: Child, events: EventSender, support: Support) -> Self {
        Self { spec, child, events, support, tail: Arc::default(), stack: Arc::default() }
    }

    /// Waits until it accepts calls.
    pub async fn ready(mut self) -> Result<WorkerHandle, Fault> {
        if self.spec.is_bare {
            let pipes = self.take_pipes(&Codec::bare())?;
            self.found(pipes).await
        } else {
            let pipes = self.take_pipes(&Codec::V1)?;
            self.greeted(pipes).await
        }
    }

    fn take_pipes(&mut self, codec: &Codec) -> Result<Pipes, Fault> {
        let pipes = (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(Fault::new(Code::SystemError, "a new worker has no pipes"));
        };
        let errors = (self.events.clone(), Arc::clone(&self.tail), Arc::clone(&self.stack));
        let (unread, forwarded) = stderr::Waiting::of(&stderr);
        let held = [PipeEnd::beyond(&stdin), PipeEnd::beyond(&stdout)];
        let to_look = stdin.as_fd().try_clone_to_owned().ok().filter(|_| self.spec.is_bare);
        let writer = LinkWriter::new(Box::new(stdin), codec.clone(), self.spec.concurrency);
        Ok(Pipes {
            unread: (self.spec.is_bare || self.support.lease.is_none()).then_some(unread),
            stderr: tokio::spawn(stderr::drain(stderr, errors.0, errors.1, errors.2, forwarded)),
            held,
            first_input: to_look.map(|pipe| FirstInput::of(pipe, writer.progress())),
            writer,
            reader: LinkReader::new(stdout, codec.clone()),
        })
    }

    /// The bare protocol has no hello: a running process accepts calls. What it does before reading the first one counts
    /// towards that call.
    async fn found(self, pipes: Pipes) -> Result<WorkerHandle, Fault> {
        if self.spec.concurrency > 1 {
            return Err(self.one_at_a_time());
        }
        let interpreter = if self.support.launched.is_some() {
            let limit = self.spec.startup_timeout;
            let searched = tokio::select! {
                // A launcher that has exited may have launched nothing.
                biased;
                _ = self.child.exited() => return Err(self.death_fault(pipes.stderr).await),
                found = tokio::time::timeout(limit, Tracked::launched_by(&self.child, self.spec.file.as_os_str())) => found,
            };
            match searched {
                Ok(found) => found,
                Err(_) => return Err(self.slow_fault(limit).await),
            }
        } else {
            Tracked::program_of(&self.child)
        };
        let interpreter = match interpreter {
            Ok(interpreter) => interpreter,
            Err(error) => return self.unwatched(&error, pipes.stderr).await,
        };
        let is_elsewhere = self.spec.launcher.is_some();
        Ok(self.settle(interpreter, Signals::NONE, pipes, is_elsewhere))
    }

    /// Sends hello and waits for the answer.
    async fn greeted(self, mut pipes: Pipes) -> Result<WorkerHandle, Fault> {
        let spec = &self.spec;
        let describe = spec.describe.as_deref().filter(|_| !spec.was_asked.swap(true, Ordering::Relaxed));
        let hello = Hello::new(&spec.pack, &spec.secrets, &spec.host).running(spec.concurrency);
        let hello = hello.of_program(spec.is_program).describing(describe);
        pipes.writer.send(&hello.frame());
        let limit = spec.startup_timeout;
        let hello = match tokio::time::timeout(limit, self.await_hello(&mut pipes.reader)).await {
            Ok(Some(Ok(hello))) => hello,
            Ok(Some(Err(error))) => return Err(self.import_fault(&error)),
            Ok(None) => return Err(self.death_fault(pipes.stderr).await),
            Err(_) => return Err(self.slow_fault(limit).await),
        };
        if hello.protocol != VERSION {
            let text = format!("its worker uses protocol v{}, hostler uses v{VERSION}", hello.protocol);
            return Err(self.fault(&text, Details::default()));
        }
        if spec.concurrency > 1 && !hello.runs_several() {
            return Err(self.one_at_a_time());
        }
        let counts_apart = spec.launcher.is_some() || self.child.has_monitor();
        let below = counts_apart.then(|| Tracked::below(&self.child, hello.pid));
        // Behind a launcher that starts it elsewhere, as in a container, only the launcher gets signals.
        let is_elsewhere = matches!(below, Some(None)) && spec.launcher.is_some();
        let claimed = if is_elsewhere { self.child.pid() } else { hello.pid };
        let interpreter = match below.flatten().unwrap_or_else(|| Tracked::behind(&self.child, claimed)) {
            Ok(interpreter) => interpreter,
            Err(error) => return self.unwatched(&error, pipes.stderr).await,
        };
        let signals = if is_elsewhere {
            Signals { interruption: Interruption::without_signals(&hello, spec.concurrency), stack: false }
        } else {
            Signals { interruption: Interruption::of(&hello, spec.concurrency), stack: hello.prints_stacks() }
        };
        let handle = self.settle(interpreter, signals, pipes, is_elsewhere);
        Ok(WorkerHandle { sessions: hello.keeps_sessions().then(BTreeSet::new), ..handle })
    }

    /// Waits for the answer to `hello`; `None` if the pipe ended first.
    async fn await_hello(&self, reader: &mut LinkReader<pipe::Receiver>) -> Option<Result<HelloReply, WireError>> {
        while let Ok(Some(events)) = reader.next().await {
            match events {
                WorkerEvent::Frame(Incoming::Reply { id: HELLO_ID, answer }) => {
                    let hello = answer.and_then(|result| {
                        serde_json::from_str(result.get()).map_err(|error| WireError {
                            code: 0,
                            message: format!("its answer to `hello` is not valid in protocol v{VERSION}: {error}"),
                            data: None,
                        })
                    });
                    return Some(hello);
                }
                other => {
                    // Output during import explains a failed start.
                    if let WorkerEvent::Frame(Incoming::Output(note)) = &other {
                        self.tail.lock().push(&note.text);
                    }
                    self.events.send(other);
                }
            }
        }
        None
    }

    /// The process cannot be watched, perhaps because it is already dead.
    async fn unwatched(self, error: &std::io::Error, stderr: JoinHandle<()>) -> Result<WorkerHandle, Fault> {
        if tokio::time::timeout(LAST_BREATH, self.child.exited()).await.is_ok() {
            return Err(self.death_fault(stderr).await);
        }
        Err(self.fault(&format!("its worker cannot be watched: {error}"), Details::default()))
    }

    fn settle(self, interpreter: Tracked, signals: Signals, pipes: Pipes, is_elsewhere: bool) -> WorkerHandle {
        let Pipes { writer, mut reader, held, first_input, stderr, unread } = pipes;
        let (control, orders) = mpsc::unbounded_channel();
        let events = self.events.clone();
        let Support { lease, described, launched } = self.support;
        let reader = tokio::spawn(async move {
            let _in_use = lease;
            while let Ok(Some(item)) = reader.next().await {
                if let (WorkerEvent::Frame(Incoming::Reply { .. }), Some(unread)) = (&item, &unread) {
                    unread.read().await;
                }
                match (item, &described) {
                    (WorkerEvent::Frame(Incoming::Described(types)), Some(described)) => described(types),
                    (item, _) => events.send(item),
                }
                events.room().await;
            }
        });
        let pid = interpreter.pid();
        // A monitor ends as its program does, and holds none of its pipes.
        let is_it = self.child.pid() == pid || (self.child.has_monitor() && self.spec.launcher.is_none());
        // Without a launcher, the ends of the pipes show it.
        let held = if is_it { [None; 2] } else { held };
        let between = match (launched, &self.spec.launcher) {
            (Some(_), _) => Between::Uv,
            (None, Some(_)) if is_elsewhere => Between::Elsewhere,
            (None, None) if is_it => Between::Nothing,
            (None, _) => Between::Launcher,
        };
        let ends_by_interruption = signals.interruption == Interruption::End;
        let task = WorkerTask {
            child: self.child,
            interpreter,
            between,
            is_bare: self.spec.is_bare,
            signals,
            orders,
            reader,
            stderr,
            events: self.events,
            tail: self.tail,
            stack: Arc::clone(&self.stack),
            held,
            first_input,
            deaf: writer.broken(),
            overwhelmed: writer.overwhelmed(),
            broke: None,
            limits: self.spec.limits,
            calls: writer.calls(),
            concurrency: self.spec.concurrency,
        };
        tokio::spawn(task.live());
        let process_started = started(pid);
        WorkerHandle { pid, process_started, writer, control, stack: self.stack, ends_by_interruption, sessions: None }
    }
}
