//! Calls that go on without their client, as faces let them go and find them again.

use super::handle::CallHandle;
use super::service::CallService;
use super::watch::CallInfo;
use crate::journal::CallRow;
use crate::outcome::Cancelled;

/// What holds a process for such calls.
pub trait BackgroundCalls: Send + Sync {
    /// Counts a call as one of them until it ends.
    fn hold(&self, call: CallHandle);
}

impl CallService {
    /// Whether calls can go on without their client: they have to be written down.
    pub fn has_background(&self) -> bool {
        self.journal.is_some() && self.background.get().is_some()
    }

    /// Lets a call go on without its client. False if it has ended before, or cannot be remembered.
    pub async fn detach(&self, call: &CallHandle) -> bool {
        match call.detach().await {
            Ok(is_detached) => {
                let background = self.background.get().and_then(std::sync::Weak::upgrade);
                if let Some(background) = background.filter(|_| is_detached) {
                    background.hold(call.observer());
                }
                is_detached
            }
            Err(why) => {
                tracing::warn!(call = call.id(), why, "a call does not become a task: it would be lost");
                false
            }
        }
    }

    /// Asks for the end of a call that another process runs, or that waits to be run again. Whether that is written down.
    pub async fn ask_end(&self, id: &str, why: &Cancelled) -> bool {
        match &self.journal {
            Some(journal) => journal.ask_end(id, why.to_string()).await,
            None => false,
        }
    }

    /// A running call of any session.
    pub fn running_anywhere(&self, id: &str) -> Option<CallHandle> {
        self.watch.handle(id)
    }

    /// A call of this process, while it runs and for some time after.
    pub fn seen(&self, id: &str) -> Option<CallInfo> {
        self.watch.call(id)
    }

    /// What is written down of a call, if it is kept.
    pub async fn kept(&self, id: &str) -> Option<CallRow> {
        self.watch.kept(self.journal.as_deref()?, id).await
    }
}
