//! How many calls of one configuration have ended in this process, and how.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;

use super::handle::RunningCall;
use crate::outcome::{Code, Outcome};
use crate::policy::Calls;

/// Calls that have ended.
#[derive(Debug, Default)]
pub(super) struct Counted {
    ended: AtomicU64,
    failed: AtomicU64,
    denied: AtomicU64,
}

impl Counted {
    /// Those of all sessions of a configuration, by the file that keeps its mode.
    pub fn of(mode_file: &Path) -> Arc<Self> {
        static ALL: LazyLock<Mutex<HashMap<Box<Path>, Weak<Counted>>>> = LazyLock::new(Mutex::default);
        let mut all = ALL.lock();
        all.retain(|_, counted| counted.strong_count() > 0);
        if let Some(counted) = all.get(mode_file).and_then(Weak::upgrade) {
            return counted;
        }
        let counted = Arc::<Self>::default();
        all.insert(mode_file.into(), Arc::downgrade(&counted));
        counted
    }

    /// One more.
    pub fn add(&self, call: &RunningCall, outcome: &Outcome) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        let Err(fault) = &outcome.ended else { return };
        if call.watched.is_denied(fault.code) {
            self.denied.fetch_add(1, Ordering::Relaxed);
        } else if is_failure(fault.code) {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn so_far(&self) -> Calls {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Calls { ended: read(&self.ended), failed: read(&self.failed), denied: read(&self.denied) }
    }
}

/// Whether a fault is one of the tool, or of what it runs on, and not of who called it.
fn is_failure(code: Code) -> bool {
    matches!(
        code,
        Code::ToolError
            | Code::ToolTimeout
            | Code::ToolCrashed
            | Code::ProcessKilled
            | Code::InvalidOutput
            | Code::CommandNotFound
            | Code::EnvironmentFailed
            | Code::StartupFailed
            | Code::ResourceExhausted
            | Code::SystemError
    )
}
