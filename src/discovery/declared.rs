//! What a tool says of itself that has no header to say it in: an executable in what `--schema` prints, a built-in one in its
//! definition.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::origin::{Origin, Setting};
use crate::config::tool::{Effects, Protocol, ToolLayer};

/// What it asks for. Whoever operates hostler has the last word.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Declared {
    /// How long one call may run.
    pub timeout: Option<Duration>,
    /// What repeating a call does.
    pub effects: Option<Effects>,
    /// That it wants to be kept as a worker, and how it is spoken to.
    pub protocol: Option<Protocol>,
    /// The secrets it wants, by name.
    pub secrets: Option<Vec<String>>,
}

impl Declared {
    /// The same as a layer of wishes.
    pub fn layer(&self) -> ToolLayer {
        ToolLayer {
            timeout: said(self.timeout),
            effects: said(self.effects),
            protocol: said(self.protocol),
            secrets: said(self.secrets.clone()),
            ..ToolLayer::default()
        }
    }
}

fn said<T>(value: Option<T>) -> Option<Setting<T>> {
    value.map(|value| Setting { value, origin: Origin::Tool })
}
