//! What a worker is started with, whatever it runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::value::RawValue;

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
    /// Whether it speaks the bare dialect, and not protocol v1.
    pub is_bare: bool,
}

/// Where goes what a worker told of its types, as JSON text.
pub type Described = Arc<dyn Fn(Box<RawValue>) + Send + Sync>;
