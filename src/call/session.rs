//! One client of one workspace: its running calls. Its end ends them, and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::handle::CallHandle;
use super::request::{CallRequest, Caller, SessionId};
use super::service::CallService;
use crate::outcome::{Cancelled, Canceller, Outcome};

/// The last id that was given. 0 is the program itself.
static LAST: AtomicU64 = AtomicU64::new(0);

/// A client's place in a workspace. Dropping it cancels the calls that it started.
pub struct Session {
    id: SessionId,
    service: Arc<CallService>,
}

impl Session {
    /// A new client.
    pub fn open(service: Arc<CallService>) -> Self {
        Self { id: SessionId(LAST.fetch_add(1, Ordering::Relaxed) + 1), service }
    }

    /// Unique within the process.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// What it calls.
    pub fn service(&self) -> &Arc<CallService> {
        &self.service
    }

    /// Accepts a call of this session.
    pub fn start(&self, mut request: CallRequest) -> CallHandle {
        if request.caller.session != self.id {
            request.caller = Arc::new(Caller { session: self.id, ..(*request.caller).clone() });
        }
        self.service.start(request)
    }

    /// Makes a call and waits for its end. Dropping the future cancels the call.
    pub async fn call(&self, request: CallRequest) -> Arc<Outcome> {
        let handle = super::handle::CancelOnDrop(self.start(request));
        handle.0.outcome().await
    }

    /// How many of its calls have no outcome yet.
    pub fn running(&self) -> usize {
        self.service.running_of(self.id)
    }

    /// Waits until none of its calls is running.
    pub async fn idle(&self) {
        self.service.idle(self.id).await;
    }

    /// Cancels every call of the session, whoever listens to it.
    pub fn cancel_all(&self, why: &Cancelled) {
        self.service.cancel_all_of(self.id, why);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.cancel_all(&Cancelled::by(Canceller::SessionEnd));
    }
}
