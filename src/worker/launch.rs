//! What a worker is started with, and its requests to hostler while it runs.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::value::RawValue;

use super::events::{EventSender, WorkerHandle};
use crate::outcome::Fault;
use crate::process::{CommandLauncher, UsageLimits, Walls};
use crate::protocol::{HostMethod, WireError};
use crate::secrets::Lease;

/// A step of a worker's start, for callers that wait.
#[derive(Debug, Clone)]
pub struct StartNote(pub String);

/// Receives start notes.
pub type StartNotes = Arc<dyn Fn(StartNote) + Send + Sync>;

/// A start in progress.
pub type Starting = Pin<Box<dyn Future<Output = Result<WorkerHandle, Fault>> + Send>>;

/// Starts workers.
pub trait Launcher: Send + Sync {
    /// The pack, for notes.
    fn name(&self) -> &str;

    /// Starts one worker and waits until it accepts calls. Dropping the future stops what was started.
    fn launch(&self, events: EventSender, notes: StartNotes) -> Starting;
}

/// A request from a call.
#[derive(Debug)]
pub struct Ask {
    /// The method.
    pub method: HostMethod,
    /// The parameters, a JSON object.
    pub params: Box<RawValue>,
    /// The arguments of the requesting call, if it runs in a worker.
    pub arguments: Option<Arc<RawValue>>,
    /// The time left to the requesting call.
    pub left: Duration,
    /// The requesting call, if it runs in a worker.
    pub waits: Option<Arc<dyn Waits>>,
}

/// A call that waits for a call of its own.
pub trait Waits: Send + Sync {
    /// The inner call asks its client: the outer one waits for the same answer.
    fn inner_asks(&self);
    /// The inner call has its answer.
    fn inner_goes_on(&self);
}

impl std::fmt::Debug for dyn Waits {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Waits")
    }
}

/// Answers a call's requests.
pub trait HostAccess: Send + Sync {
    /// Whether the client may answer this method; the call waits for it then.
    fn waits_for_client(&self, method: HostMethod) -> bool;
    /// Answers one request; the tool's author reads the error's message.
    fn answer(&self, ask: Ask) -> Pin<Box<dyn Future<Output = Result<Box<RawValue>, WireError>> + Send + '_>>;
    /// These secrets are in use until the outcome of the call is recorded.
    fn holds(&self, _secrets: &Arc<Lease>) {}
    /// The call goes to its tool, and its secrets are known.
    fn starts(&self) {}
    /// The call goes to this process, whose start is in clock ticks since boot; or why it may not.
    fn dispatches(&self, _process: (u32, u64)) -> Result<(), Fault> {
        Ok(())
    }
    /// The call goes to a process or a task of its own; or why it may not.
    fn dispatches_at_once(&self) -> Result<(), Fault> {
        Ok(())
    }
    /// The tool begins to run the call, or begins it again.
    fn begins(&self) {}
}

/// What a worker is started with.
#[derive(Debug, Clone)]
pub struct WorkerSpec {
    /// The pack it serves.
    pub pack: String,
    /// The tool file.
    pub file: PathBuf,
    /// Its declared secrets.
    pub secrets: Vec<String>,
    /// The requests that it may send.
    pub host: Vec<&'static str>,
    /// The number of calls to run at once.
    pub concurrency: usize,
    /// The types to describe, as JSON: names grouped by direction.
    pub describe: Option<Box<RawValue>>,
    /// Whether a worker was already asked to. One is enough, and if it hangs, no other worker tries.
    pub was_asked: Arc<AtomicBool>,
    /// The time limit from the start to hello.
    pub startup_timeout: Duration,
    /// Where that limit is set.
    pub startup_timeout_place: String,
    /// How much it and its children may use.
    pub limits: UsageLimits,
    /// Whether it may gain privileges.
    pub new_privileges: bool,
    /// What it may reach, if that is limited.
    pub walls: Option<Arc<Walls>>,
    /// The command that starts it, if the operator has one.
    pub launcher: Option<Arc<CommandLauncher>>,
    /// Whether it uses the bare protocol instead of protocol v1.
    pub is_bare: bool,
    /// Whether it runs its file as a program for each call.
    pub is_program: bool,
}

/// Receives a worker's type descriptions as JSON text.
pub type Described = Arc<dyn Fn(Box<RawValue>) + Send + Sync>;
