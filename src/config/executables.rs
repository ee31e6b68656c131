//! `[executables]`: how programs are asked what they are.

use std::time::Duration;

use toml::de::DeValue;

use super::origin::Setting;
use super::section::Section;
use super::tool::limit;
use super::value::{FromToml, choice};

/// What is done with an executable that does not say what it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnSchemaFailure {
    /// It is listed, and can be called unchecked.
    List,
    /// It is no tool.
    Skip,
}

impl FromToml for OnSchemaFailure {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        choice(value, &[("list", Self::List), ("skip", Self::Skip)])
    }
}

/// What one file says of it.
#[derive(Debug, Clone, Default)]
pub struct ExecutablesLayer {
    /// How long a program may take to print its schema, from its own start.
    pub schema_timeout: Option<Setting<Duration>>,
    /// What becomes of one that does not.
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

    /// Whether one that does not is left out.
    pub fn skips(&self) -> bool {
        self.on_schema_failure.as_ref().is_some_and(|setting| setting.value == OnSchemaFailure::Skip)
    }
}
