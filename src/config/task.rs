//! `task`: which calls become MCP tasks, calls that go on without their request.

use toml::de::DeValue;

use super::origin::Diagnosis;
use super::value::FromToml;

/// Whether calls of clients that know MCP tasks become tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TaskMode {
    /// They do not, unless they take longer than `task_after`.
    #[default]
    No,
    /// They do.
    Yes,
    /// They do, and other clients cannot call the tool.
    Required,
}

impl TaskMode {
    /// As it is written.
    pub const fn word(self) -> &'static str {
        match self {
            Self::No => "false",
            Self::Yes => "true",
            Self::Required => "required",
        }
    }
}

impl FromToml for TaskMode {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Diagnosis> {
        if value.as_str() == Some("required") {
            return Ok(Self::Required);
        }
        let is_task = bool::from_toml(value).map(|is_task| if is_task { Self::Yes } else { Self::No });
        is_task.map_err(|wrong| Diagnosis { fix: format!("{}, or \"required\"", wrong.fix), ..wrong })
    }
}
