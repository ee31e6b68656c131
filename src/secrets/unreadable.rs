//! Why a secret cannot be read.

use std::io;

use crate::outcome::{Code, Fault};
use crate::process::limit_behind;

/// Why a secret cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{what}; {fix}")]
pub struct Unreadable {
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub fix: String,
    pub(super) source: Option<io::Error>,
}

impl Unreadable {
    /// The fault of a call that needs the secret.
    pub fn fault_of(self, name: &str) -> Fault {
        let message = format!("the secret {name} cannot be read: {self}");
        let is_limit = self.source.as_ref().is_some_and(|error| limit_behind(error).is_some());
        let code = if is_limit { Code::ResourceExhausted } else { Code::MissingCredentials };
        Fault::new(code, message).caused_by(self)
    }

    pub(super) fn without_thread(error: io::Error) -> Self {
        let fix = limit_behind(&error).map_or_else(|| "try again".to_owned(), |limit| limit.to_string());
        Self { source: Some(error), ..Self::new("no thread could be started to read it".to_owned(), fix) }
    }

    pub(super) fn new(what: String, fix: impl Into<String>) -> Self {
        Self { what, fix: fix.into(), source: None }
    }
}
