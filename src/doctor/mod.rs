//! `doctor`: does everything that tools need work here, and what to do where it does not. Looks and asks; builds, fetches
//! and changes nothing.

mod machine;
mod pythons;
mod tools;
mod variables;

use serde::Serialize;

use crate::runtime::Workspace;

/// How it stands with one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It works.
    Good,
    /// It works, and will not under some circumstances that are likely to come.
    Doubtful,
    /// It does not work.
    Bad,
}

/// One thing that was looked at.
#[derive(Debug, Clone, Serialize)]
pub struct Sign {
    /// What it is about, in a word or two: `uv`, `cache`.
    pub about: &'static str,
    /// How it stands.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What to do, where there is something to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Sign {
    fn good(about: &'static str, found: impl Into<String>) -> Self {
        Self { about, state: State::Good, found: found.into(), fix: None }
    }

    fn new(about: &'static str, state: State, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { about, state, found: found.into(), fix: Some(fix.into()) }
    }
}

/// Looks at everything. The package index is only asked where `online` says so.
pub async fn examine(app: &Workspace, online: bool) -> Vec<Sign> {
    let mut signs = vec![machine::cache(app)];
    signs.extend(machine::uv(app, online).await);
    signs.extend(variables::certificates(app));
    signs.extend(variables::stripped(app, &signs));
    signs.push(tools::folders(app));
    signs.extend(tools::broken(app));
    signs.extend(tools::built_in(app));
    signs.extend(pythons::interpreters(app).await);
    signs.extend(tools::secrets(app).await);
    signs
}
