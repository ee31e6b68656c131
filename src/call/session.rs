//! The session of one client. Closing it cancels its calls and no others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::handle::CallHandle;
use super::request::CallRequest;
use super::service::CallService;
use crate::outcome::{Cancelled, Canceller, Outcome};
use crate::pool::{Caller, SessionId};

/// The last id in use. 0 is the program itself.
static LAST: AtomicU64 = AtomicU64::new(0);

/// A client's session in a workspace. Dropping it cancels the calls that it started.
pub struct Session {
    id: SessionId,
    is_of_many: bool,
    service: Arc<CallService>,
}

impl Session {
    /// A new client.
    pub fn open(service: Arc<CallService>) -> Self {
        Self::begin(service, false)
    }

    /// A session of several clients that cannot be distinguished: what a person allows to one session is not allowed to them.
    pub fn of_many(service: Arc<CallService>) -> Self {
        Self::begin(service, true)
    }

    fn begin(service: Arc<CallService>, is_of_many: bool) -> Self {
        let id = SessionId(LAST.fetch_add(1, Ordering::Relaxed) + 1);
        service.watch.session_begins(service.number_of(id));
        Self { id, is_of_many, service }
    }

    /// A caller of this session, of which nothing else is known.
    pub fn caller(&self) -> Caller {
        Caller { session: self.id, is_of_many: self.is_of_many, ..Caller::default() }
    }

    /// Unique within the process.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// The service that runs its calls.
    pub fn service(&self) -> &Arc<CallService> {
        &self.service
    }

    /// Accepts a call in this session.
    pub fn start(&self, request: CallRequest) -> CallHandle {
        self.start_with(request, |handle| handle)
    }

    /// The same, for a caller that must know the call before it runs.
    pub(crate) fn start_with<T>(&self, mut request: CallRequest, register: impl FnOnce(CallHandle) -> T) -> T {
        if (request.caller.session, request.caller.is_of_many) != (self.id, self.is_of_many) {
            let Caller { client, tags, trace, .. } = (*request.caller).clone();
            request.caller = Arc::new(Caller { client, tags, trace, ..self.caller() });
        }
        self.service.start_with(request, register)
    }

    /// Runs a call to its end. Dropping the future cancels the call.
    pub async fn call(&self, request: CallRequest) -> Arc<Outcome> {
        let handle = super::handle::CancelOnDrop(self.start(request));
        handle.0.outcome().await
    }

    /// The number of the session's calls without an outcome.
    pub fn running(&self) -> usize {
        self.service.running_of(self.id)
    }

    /// Waits until none of the session's calls is running.
    pub async fn idle(&self) {
        self.service.idle(self.id).await;
    }

    /// Cancels every call of the session, regardless of other handles.
    pub fn cancel_all(&self, why: &Cancelled) {
        self.service.cancel_all_of(self.id, why);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.cancel_all(&Cancelled::by(Canceller::SessionEnd));
        self.service.watch.session_ends(self.service.number_of(self.id));
        self.service.rates.session_ended(self.id.0);
        self.service.approvals.session_ended(self.id.0);
        self.service.loops.session_ended(self.id);
        let (service, id) = (Arc::clone(&self.service), self.id);
        if service.all_of(id) == 0 {
            return service.pools.session_ended(id);
        }
        // Its calls have not ended in their workers.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                service.all_ended(id).await;
                service.pools.session_ended(id);
            });
        }
    }
}
