//! Calls that go on without their client, as faces start them and find them again.

use std::sync::Arc;

use super::client::Answer;
use super::handle::CallHandle;
use super::request::CallRequest;
use super::service::CallService;
use super::watch::CallInfo;
use crate::config::call_site::CallSite;
use crate::journal::CallRow;
use crate::outcome::{Code, Fault};

/// A call that goes on.
pub struct Begun {
    /// Its id.
    pub id: String,
    /// The call, if it was begun now: one that was made before with its key is not.
    pub handle: Option<CallHandle>,
}

/// What starts such calls.
pub trait BackgroundCalls: Send + Sync {
    /// Starts a call of a client with this site. When this returns, it will not be lost.
    fn start(&self, site: CallSite, request: CallRequest) -> Answer<'_, Begun, Fault>;
}

impl CallService {
    /// Whether calls can go on without their client: they have to be written down.
    pub fn has_background(&self) -> bool {
        self.journal.is_some() && self.background.get().is_some()
    }

    /// Starts a call that goes on until it ends, whoever leaves. When this returns, it will not be lost.
    pub async fn start_in_background(&self, request: CallRequest) -> Result<Begun, Fault> {
        let background = self.background.get().and_then(std::sync::Weak::upgrade);
        let background = background.ok_or_else(|| Fault::new(Code::ShuttingDown, "hostler is shutting down"))?;
        background.start(CallSite::of(&self.config()), request).await
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
        let journal = Arc::clone(self.journal.as_ref()?);
        if self.watch.has_ended(id) {
            journal.caught_up().await;
        }
        journal.call(id).await
    }
}
