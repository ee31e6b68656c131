//! The requests of one client that have no answer yet.

use std::collections::HashMap;

use rmcp::ErrorData;
use rmcp::model::RequestId;
use tokio::task::AbortHandle;

use super::session::Refused;
use crate::call::CallHandle;

/// Requests that are answered later. A client may use the id of a cancelled request again while its call still ends, so each
/// has a number of its own.
#[derive(Default)]
pub(super) struct OpenRequests {
    of_id: HashMap<RequestId, (u64, Running)>,
    last: u64,
}

impl OpenRequests {
    /// The number of a new request, unless its id is in use.
    pub fn accept(&mut self, id: &RequestId) -> Result<u64, Refused> {
        if self.of_id.contains_key(id) {
            return Err(ErrorData::invalid_request("a request with this id is still running", None));
        }
        self.last += 1;
        self.of_id.insert(id.clone(), (self.last, Running::Accepted));
        Ok(self.last)
    }

    /// What runs for a request, which may already have ended and been removed.
    pub fn set(&mut self, id: &RequestId, number: u64, now: Running) {
        if let Some((_, running)) = self.of_id.get_mut(id).filter(|(own, _)| *own == number) {
            *running = now;
        }
    }

    pub fn has(&self, id: &RequestId, number: u64) -> bool {
        self.of_id.get(id).is_some_and(|(own, _)| *own == number)
    }

    pub fn remove(&mut self, id: &RequestId, number: u64) -> bool {
        self.has(id, number) && self.of_id.remove(id).is_some()
    }

    /// What runs for a request that its client cancels.
    pub fn cancel(&mut self, id: &RequestId) -> Option<Running> {
        self.of_id.remove(id).map(|(_, running)| running)
    }

    pub fn is_empty(&self) -> bool {
        self.of_id.is_empty()
    }

    /// Whether a call answers an open request.
    pub fn has_call(&self, call: &str) -> bool {
        self.of_id.values().any(|(_, running)| running.is_of(call))
    }

    /// Ends the requests of a call, which goes on.
    pub fn take_of(&mut self, call: &str) -> Vec<(RequestId, CallHandle)> {
        let taken = self.of_id.extract_if(|_, (_, running)| running.is_of(call));
        let handle = |(id, (_, running))| match running {
            Running::Call(handle) => Some((id, handle)),
            _ => None,
        };
        taken.filter_map(handle).collect()
    }

    /// The call that answers an open request.
    pub fn call_of(&self, id: &RequestId, number: u64) -> Option<CallHandle> {
        let (_, running) = self.of_id.get(id).filter(|(own, _)| *own == number)?;
        match running {
            Running::Call(handle) => Some(handle.observer()),
            _ => None,
        }
    }

    /// Another handle to the call of an open request.
    pub fn join(&self, call: &str) -> Option<CallHandle> {
        let mut running = self.of_id.values().map(|(_, running)| running);
        running.find_map(|running| match running {
            Running::Call(handle) if handle.id() == call => handle.join(),
            _ => None,
        })
    }
}

/// What runs for a request.
pub(super) enum Running {
    /// Nothing yet: the request is being accepted.
    Accepted,
    Call(CallHandle),
    /// A subscription, or an answer that is being made.
    Task(AbortHandle),
}

impl Running {
    fn is_of(&self, call: &str) -> bool {
        matches!(self, Self::Call(handle) if handle.id() == call)
    }
}
