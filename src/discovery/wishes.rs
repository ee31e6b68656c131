//! What an executable says of itself as a whole in what `--schema` prints: how it is to be kept, and what it wants.

use serde::{Deserialize, Serialize};

use crate::config::origin::{Origin, Setting};
use crate::config::tool::{Protocol, ToolLayer};

/// What it asks for. Whoever operates hostler has the last word.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Wishes {
    /// That it be kept as a worker, and how it is spoken to.
    pub protocol: Option<Protocol>,
    /// The secrets it wants, by name.
    pub secrets: Option<Vec<String>>,
}

impl Wishes {
    /// The same as a layer of wishes.
    pub fn layer(&self) -> ToolLayer {
        ToolLayer { protocol: said(self.protocol), secrets: said(self.secrets.clone()), ..ToolLayer::default() }
    }
}

fn said<T>(value: Option<T>) -> Option<Setting<T>> {
    value.map(|value| Setting { value, origin: Origin::Tool })
}
