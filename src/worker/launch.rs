//! How workers come to be, as the pool knows it. It knows only this; tests put memory in its place.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::news::{NewsSender, WorkerHandle};
use crate::outcome::Fault;

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
    fn launch(&self, news: NewsSender, notes: StartNotes) -> Starting;
}
