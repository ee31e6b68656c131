//! The small tables of `hostler.toml`: `[limits]`, `[executables]` and `[mcp]`.

use std::time::Duration;

use toml::de::DeValue;

use super::layer::FileLayer;
use super::origin::Setting;
use super::section::Section;
use super::tool::limit;
use super::value::{ByteCount, FromToml, Mismatch, choice};

/// `[limits]`: limits for all tools together.
#[derive(Debug, Clone)]
#[expect(clippy::struct_field_names, reason = "named as in hostler.toml")]
pub struct Limits {
    /// The most output that is kept of one call.
    pub max_output: Setting<ByteCount>,
    /// How many calls may run at once.
    pub max_concurrent_calls: Setting<usize>,
    /// How many calls may wait.
    pub max_queue: Setting<usize>,
    /// How many workers may be alive.
    pub max_workers: Setting<usize>,
    /// The most memory that all workers may use; `None` for no limit.
    pub max_memory: Option<Setting<ByteCount>>,
}

impl Limits {
    pub(super) fn of(layer: &FileLayer) -> Self {
        let or = |setting: &Option<Setting<usize>>, default| setting.clone().unwrap_or(Setting::default_value(default));
        Self {
            max_output: layer.max_output.clone().unwrap_or(Setting::default_value(ByteCount(1_000_000))),
            max_concurrent_calls: or(&layer.max_concurrent_calls, 16),
            max_queue: or(&layer.max_queue, 1024),
            max_workers: or(&layer.max_workers, 32),
            max_memory: layer.max_memory.clone(),
        }
    }
}

/// What happens to an executable that does not print a usable schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnSchemaFailure {
    /// It is listed, and its arguments are not checked.
    List,
    /// It is not listed.
    Skip,
}

impl FromToml for OnSchemaFailure {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch> {
        choice(value, &[("list", Self::List), ("skip", Self::Skip)])
    }
}

/// `[executables]`: how programs are asked for their schema, as one file says it.
#[derive(Debug, Clone, Default)]
pub struct ExecutablesLayer {
    /// How long a program may take to print its schema, from its own start.
    pub schema_timeout: Option<Setting<Duration>>,
    /// What happens to one that fails to.
    pub on_schema_failure: Option<Setting<OnSchemaFailure>>,
}

impl ExecutablesLayer {
    pub(super) fn read(section: Section<'_>) -> Self {
        let layer = Self {
            schema_timeout: limit(&section, "schema_timeout"),
            on_schema_failure: section.take("on_schema_failure"),
        };
        section.finish(false);
        layer
    }

    pub(super) fn under(self, over: Self) -> Self {
        Self {
            schema_timeout: over.schema_timeout.or(self.schema_timeout),
            on_schema_failure: over.on_schema_failure.or(self.on_schema_failure),
        }
    }

    /// How long a program may take to print its schema.
    pub fn schema_timeout(&self) -> Duration {
        self.schema_timeout.as_ref().map_or(Duration::from_secs(1), |setting| setting.value)
    }

    /// Whether one that fails to is not listed.
    pub fn skips(&self) -> bool {
        self.on_schema_failure.as_ref().is_some_and(|setting| setting.value == OnSchemaFailure::Skip)
    }
}

/// What the results of MCP calls are wrapped in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Envelope {
    /// Nothing.
    None,
    /// An object that says whether the tool ran, with its result or its error.
    ToolSuccess,
}

impl FromToml for Envelope {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch> {
        choice(value, &[("tool_success", Self::ToolSuccess), ("none", Self::None)])
    }
}

/// `[mcp]`: how MCP clients are answered, as one file says it.
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

    /// Whether results are wrapped in an envelope.
    pub fn wears_envelope(&self) -> bool {
        self.envelope.as_ref().is_some_and(|envelope| envelope.value == Envelope::ToolSuccess)
    }
}
