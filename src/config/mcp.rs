//! `[mcp]`: how MCP clients are answered.

use toml::de::DeValue;

use super::origin::Setting;
use super::section::Section;
use super::value::{FromToml, choice};

/// What results are wrapped in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Envelope {
    /// Nothing: a result is the result.
    None,
    /// An object that says whether the tool ran, with its result or its error.
    ToolSuccess,
}

impl FromToml for Envelope {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        choice(value, &[("tool_success", Self::ToolSuccess), ("none", Self::None)])
    }
}

/// What one file says of it.
#[derive(Debug, Clone, Default)]
pub struct McpLayer {
    /// What results are wrapped in.
    pub envelope: Option<Setting<Envelope>>,
}

impl McpLayer {
    pub(super) fn read(section: Section<'_>) -> Self {
        let layer = Self { envelope: section.take("envelope") };
        section.finish(false);
        layer
    }

    pub(super) fn under(self, over: Self) -> Self {
        Self { envelope: over.envelope.or(self.envelope) }
    }

    /// Whether results wear an envelope.
    pub fn wears_envelope(&self) -> bool {
        self.envelope.as_ref().is_some_and(|envelope| envelope.value == Envelope::ToolSuccess)
    }
}
