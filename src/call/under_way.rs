//! Calls without an outcome: whose they are, how many, and their end.

use std::sync::Arc;

use super::handle::RunningCall;
use super::service::CallService;
use crate::outcome::Cancelled;
use crate::pool::SessionId;

impl CallService {
    /// A call without an outcome.
    pub(super) fn running_call(&self, id: &str) -> Option<Arc<RunningCall>> {
        self.running.lock().get(id).cloned()
    }

    /// Every call without an outcome.
    pub(super) fn running_calls(&self) -> Vec<Arc<RunningCall>> {
        self.running.lock().values().cloned().collect()
    }

    /// The number of a session's calls without an outcome. Those that go on without it do not count.
    pub fn running_of(&self, session: SessionId) -> usize {
        let is_its = |call: &&Arc<RunningCall>| call.caller.session == session && !call.is_background();
        self.running.lock().values().filter(is_its).count()
    }

    /// The number of all calls that a session has made and that have no outcome.
    pub(super) fn all_of(&self, session: SessionId) -> usize {
        self.running.lock().values().filter(|call| call.caller.session == session).count()
    }

    /// Whether calls go on without their clients.
    pub fn has_detached(&self) -> bool {
        self.running.lock().values().any(|call| call.is_background())
    }

    /// Waits until none does.
    pub async fn none_detached(&self) {
        self.until(|| !self.has_detached()).await;
    }

    /// The number of all calls without an outcome.
    pub fn running(&self) -> usize {
        self.running.lock().len()
    }

    /// Waits until a session has no running call.
    pub async fn idle(&self, session: SessionId) {
        self.until(|| self.running_of(session) == 0).await;
    }

    /// Waits until all calls that a session has made have ended.
    pub(super) async fn all_ended(&self, session: SessionId) {
        self.until(|| self.all_of(session) == 0).await;
    }

    /// Waits until no call is running.
    pub async fn all_idle(&self) {
        self.until(|| self.running() == 0).await;
    }

    /// Waits for something that may hold once a call has ended.
    async fn until(&self, holds: impl Fn() -> bool) {
        loop {
            let ended = self.ended.notified();
            if holds() {
                return;
            }
            ended.await;
        }
    }

    /// Waits until some call ends.
    pub async fn next_end(self: Arc<Self>) {
        self.ended.notified().await;
    }

    /// Cancels every call of a session, regardless of other handles.
    pub fn cancel_all_of(&self, session: SessionId, why: &Cancelled) {
        let running: Vec<_> = self.running.lock().values().cloned().collect();
        let is_its = |call: &&Arc<RunningCall>| call.caller.session == session && !call.is_background();
        running.iter().filter(is_its).for_each(|call| call.cancel(why.clone()));
    }
}
