//! `doctor`: whether everything that tools need works here, and what to do where it does not. It builds, downloads and changes
//! nothing.

mod machine;
mod tools;

use serde::Serialize;

use crate::runtime::Workspace;

/// The state of one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It works.
    Good,
    /// It works, but may fail under likely circumstances.
    Doubtful,
    /// It does not work.
    Bad,
}

/// One thing that was checked.
#[derive(Debug, Clone, Serialize)]
pub struct CheckResult {
    /// The subject: `uv`, `cache`.
    pub about: &'static str,
    /// Its state.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl CheckResult {
    fn good(about: &'static str, found: impl Into<String>) -> Self {
        Self { about, state: State::Good, found: found.into(), fix: None }
    }

    fn new(about: &'static str, state: State, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { about, state, found: found.into(), fix: Some(fix.into()) }
    }
}

/// Checks everything. The package index is only asked if `online`.
pub async fn examine(app: &Workspace, online: bool) -> Vec<CheckResult> {
    let mut results = vec![machine::cache(app)];
    results.extend(machine::uv(app, online).await);
    results.extend(machine::certificates(app));
    results.extend(machine::stripped(app, &results));
    results.push(tools::folders(app));
    results.extend(tools::broken(app));
    results.extend(tools::built_in(app));
    results.extend(machine::interpreters(app).await);
    results.extend(tools::secrets(app).await);
    results
}
