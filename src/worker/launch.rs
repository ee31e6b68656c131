//! What a worker is started with, and what it may ask of hostler while it runs.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::value::RawValue;

use super::events::{EventSender, WorkerHandle};
use crate::outcome::Fault;
use crate::protocol::{HostMethod, WireError};

/// Something that happens on the way to a running worker, for people who wait.
#[derive(Debug, Clone)]
pub struct StartNote(pub String);

/// Where start notes go.
pub type StartNotes = Arc<dyn Fn(StartNote) + Send + Sync>;

/// A start under way.
pub type Starting = Pin<Box<dyn Future<Output = Result<WorkerHandle, Fault>> + Send>>;

/// Starts workers.
pub trait Launcher: Send + Sync {
    /// What it starts, for notes: the pack.
    fn name(&self) -> &str;

    /// Starts one worker and waits until it can be given calls. Dropping the future leaves nothing behind.
    fn launch(&self, events: EventSender, notes: StartNotes) -> Starting;
}

/// A question from inside a call.
#[derive(Debug)]
pub struct Ask {
    /// What is asked.
    pub method: HostMethod,
    /// With what, a JSON object.
    pub params: Box<RawValue>,
    /// How much of the asking call's time is left.
    pub left: Duration,
}

/// Answers a call's questions.
pub trait HostAccess: Send + Sync {
    /// Answers one question; the error's message is what the tool's author reads.
    fn answer(&self, ask: Ask) -> Pin<Box<dyn Future<Output = Result<Box<RawValue>, WireError>> + Send + '_>>;
}

/// What a worker is started with.
#[derive(Debug, Clone)]
pub struct WorkerSpec {
    /// The pack it serves.
    pub pack: String,
    /// The tool file.
    pub file: PathBuf,
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
    /// Whether it speaks the bare codec, and not protocol v1.
    pub is_bare: bool,
}

/// Where goes what a worker told of its types, as JSON text.
pub type Described = Arc<dyn Fn(Box<RawValue>) + Send + Sync>;
