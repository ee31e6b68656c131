//! The calls that commands look up: those of the shared hostler if one runs, else those that the journal has.

use std::sync::Arc;

use serde_json::json;

use super::shared::{own, refusal};
use super::style::Refusal;
use crate::call::{CallFilter, CallInfo};
use crate::config::Environment;
use crate::control::{Connection, call_page, kept_call, stored_states};
use crate::journal::{KeptSources, LazyStore, Place, RowFilter, StoreAddress, StoreError};

/// How many calls are listed by default.
const USUAL: usize = 1000;

/// Where calls are looked up.
pub(super) enum KnownCalls {
    /// The shared hostler, which also reads the journal.
    Running(Connection),
    /// The journal alone.
    Kept(Box<LazyStore>, KeptSources),
}

impl KnownCalls {
    /// `None` if no hostler runs and none has written a journal.
    pub fn find(environment: &Arc<Environment>) -> Result<Option<Self>, Refusal> {
        if let Some(connection) = own(environment)? {
            return Ok(Some(Self::Running(connection)));
        }
        let store = LazyStore::to_read(StoreAddress::of(environment)).map_err(|error| unreadable(&error))?;
        Ok(store.map(|store| Self::Kept(Box::new(store), Place::of(environment).sources())))
    }

    /// Those that match, the newest first.
    pub fn list(&mut self, filter: &CallFilter) -> Result<Vec<CallInfo>, Refusal> {
        match self {
            Self::Running(connection) => connection.call("calls.list", filter).map_err(refusal),
            Self::Kept(store, _) => {
                let states = stored_states(filter);
                let limit = filter.limit.unwrap_or(USUAL);
                let (id, tool) = (filter.call.clone(), filter.tool.clone());
                let wanted = RowFilter { id, tool, states, limit, ..RowFilter::default() };
                let rows = store.with(|store| store.calls(&wanted)).map_err(|error| unreadable(&error))?;
                Ok(rows.iter().map(kept_call).collect())
            }
        }
    }

    /// The call whose id begins so.
    pub fn one(&mut self, begin: &str) -> Result<CallInfo, Refusal> {
        let unknown = || Refusal::not_found(format!("there is no call {begin}"), "`hostler calls` lists them");
        let filter = CallFilter { call: Some(begin.to_owned()), limit: Some(2), ..CallFilter::default() };
        let mut found = self.list(&filter)?.into_iter();
        let first = found.next().ok_or_else(unknown)?;
        if found.next().is_some() {
            return Err(Refusal::new(format!("several calls begin with {begin}"), "write more of the id"));
        }
        self.whole(first)
    }

    /// The same call with all that is kept of it.
    fn whole(&mut self, call: CallInfo) -> Result<CallInfo, Refusal> {
        match self {
            Self::Running(connection) => connection.call("calls.get", &json!({"call": call.call_id})).map_err(refusal),
            Self::Kept(store, sources) => {
                let row = store.with(|store| store.call(&call.call_id)).map_err(|error| unreadable(&error))?;
                Ok(row.as_ref().map_or(call, |row| call_page(row, sources)))
            }
        }
    }

    /// The shared hostler, which an order needs.
    pub fn running(&mut self) -> Result<&mut Connection, Refusal> {
        match self {
            Self::Running(connection) => Ok(connection),
            Self::Kept(..) => {
                Err(Refusal::not_found("no shared hostler is running", "a client's `hostler serve` starts one"))
            }
        }
    }
}

pub(super) fn unreadable(error: &StoreError) -> Refusal {
    Refusal::system("the journal of calls cannot be read", std::io::Error::other(error.to_string()))
}
