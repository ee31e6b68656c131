//! Fault codes, and what each means to a program: whether to retry, and the exit status.

use serde::{Deserialize, Deserializer, Serialize};

/// Why a call has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// No tool has this name.
    ToolNotFound,
    /// The arguments do not match the tool's schema.
    InvalidParams,
    /// The tool is not permitted to do this.
    PermissionDenied,
    /// The queue is full.
    Busy,
    /// The tool exceeded its time limit.
    ToolTimeout,
    /// The caller cancelled the call.
    Cancelled,
    /// The tool raised an exception.
    ToolError,
    /// The tool's process died by itself.
    ToolCrashed,
    /// Another process killed the tool's process.
    ProcessKilled,
    /// The tool's result is invalid.
    InvalidOutput,
    /// A required program is missing.
    CommandNotFound,
    /// The tool's environment could not be built.
    EnvironmentFailed,
    /// The tool file cannot be started: invalid header, import error, no hello.
    StartupFailed,
    /// Memory, descriptors or disk space ran out.
    ResourceExhausted,
    /// A declared secret is not set.
    MissingCredentials,
    /// hostler is shutting down.
    ShuttingDown,
    /// A failure of hostler or of the machine.
    SystemError,
}

/// An unknown code, from a newer hostler, reads as [`Code::SystemError`]; the message stays.
impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
        Ok(Self::ALL.into_iter().find(|code| code.word() == word).unwrap_or(Self::SystemError))
    }
}

impl Code {
    /// All codes.
    pub const ALL: [Self; 17] = [
        Self::ToolNotFound,
        Self::InvalidParams,
        Self::PermissionDenied,
        Self::Busy,
        Self::ToolTimeout,
        Self::Cancelled,
        Self::ToolError,
        Self::ToolCrashed,
        Self::ProcessKilled,
        Self::InvalidOutput,
        Self::CommandNotFound,
        Self::EnvironmentFailed,
        Self::StartupFailed,
        Self::ResourceExhausted,
        Self::MissingCredentials,
        Self::ShuttingDown,
        Self::SystemError,
    ];

    /// The code as written in envelopes: `TOOL_TIMEOUT`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::ToolNotFound => "TOOL_NOT_FOUND",
            Self::InvalidParams => "INVALID_PARAMS",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::Busy => "BUSY",
            Self::ToolTimeout => "TOOL_TIMEOUT",
            Self::Cancelled => "CANCELLED",
            Self::ToolError => "TOOL_ERROR",
            Self::ToolCrashed => "TOOL_CRASHED",
            Self::ProcessKilled => "PROCESS_KILLED",
            Self::InvalidOutput => "INVALID_OUTPUT",
            Self::CommandNotFound => "COMMAND_NOT_FOUND",
            Self::EnvironmentFailed => "ENVIRONMENT_FAILED",
            Self::StartupFailed => "STARTUP_FAILED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::MissingCredentials => "MISSING_CREDENTIALS",
            Self::ShuttingDown => "SHUTTING_DOWN",
            Self::SystemError => "SYSTEM_ERROR",
        }
    }

    /// The exit status of `hostler call` for this code.
    pub const fn exit_status(self) -> u8 {
        match self {
            Self::ToolError
            | Self::ToolCrashed
            | Self::ProcessKilled
            | Self::InvalidOutput
            | Self::MissingCredentials => 1,
            Self::InvalidParams => 2,
            Self::ToolNotFound => 3,
            Self::PermissionDenied => 4,
            Self::ToolTimeout => 5,
            Self::Busy | Self::ResourceExhausted => 6,
            Self::CommandNotFound | Self::EnvironmentFailed | Self::StartupFailed => 7,
            Self::SystemError => 70,
            Self::Cancelled | Self::ShuttingDown => 130,
        }
    }

    /// Whether the same call may succeed when retried unchanged.
    pub const fn retryable(self) -> bool {
        matches!(
            self,
            Self::Busy | Self::ToolTimeout | Self::ProcessKilled | Self::ResourceExhausted | Self::ShuttingDown
        )
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: [(Code, &str, u8, bool); 17] = [
        (Code::ToolNotFound, "TOOL_NOT_FOUND", 3, false),
        (Code::InvalidParams, "INVALID_PARAMS", 2, false),
        (Code::PermissionDenied, "PERMISSION_DENIED", 4, false),
        (Code::Busy, "BUSY", 6, true),
        (Code::ToolTimeout, "TOOL_TIMEOUT", 5, true),
        (Code::Cancelled, "CANCELLED", 130, false),
        (Code::ToolError, "TOOL_ERROR", 1, false),
        (Code::ToolCrashed, "TOOL_CRASHED", 1, false),
        (Code::ProcessKilled, "PROCESS_KILLED", 1, true),
        (Code::InvalidOutput, "INVALID_OUTPUT", 1, false),
        (Code::CommandNotFound, "COMMAND_NOT_FOUND", 7, false),
        (Code::EnvironmentFailed, "ENVIRONMENT_FAILED", 7, false),
        (Code::StartupFailed, "STARTUP_FAILED", 7, false),
        (Code::ResourceExhausted, "RESOURCE_EXHAUSTED", 6, true),
        (Code::MissingCredentials, "MISSING_CREDENTIALS", 1, false),
        (Code::ShuttingDown, "SHUTTING_DOWN", 130, true),
        (Code::SystemError, "SYSTEM_ERROR", 70, false),
    ];

    /// Programs rely on these three values; some codes cannot be reached by tests from outside.
    #[test]
    fn each_code_has_its_word_exit_status_and_retry() {
        assert_eq!(EVERY.map(|(code, ..)| code), Code::ALL);
        for (code, word, status, retryable) in EVERY {
            assert_eq!((code.word(), code.exit_status(), code.retryable()), (word, status, retryable));
            assert_eq!(serde_json::to_value(code).unwrap(), word);
            assert_eq!(serde_json::from_value::<Code>(word.into()).unwrap(), code);
        }
    }
}
