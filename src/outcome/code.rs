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
    /// The caller's client lacks something that the tool needs.
    NotSupported,
    /// The queue is full.
    Busy,
    /// A rule admits no more calls for now.
    RateLimited,
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
    /// hostler was killed while the call ran, so it is not known what the call did.
    OutcomeUnknown,
}

/// In the order of the variants: a code, its word in envelopes, the exit status of `hostler call`, and whether the same call may
/// succeed when retried unchanged. Programs rely on all three.
const TABLE: [(Code, &str, u8, bool); 20] = [
    (Code::ToolNotFound, "TOOL_NOT_FOUND", 3, false),
    (Code::InvalidParams, "INVALID_PARAMS", 2, false),
    (Code::PermissionDenied, "PERMISSION_DENIED", 4, false),
    (Code::NotSupported, "NOT_SUPPORTED", 8, false),
    (Code::Busy, "BUSY", 6, true),
    (Code::RateLimited, "RATE_LIMITED", 6, true),
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
    (Code::OutcomeUnknown, "OUTCOME_UNKNOWN", 1, false),
];

/// An unknown code, from a newer hostler, reads as [`Code::SystemError`]; the message stays.
impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
        Ok(Self::of_word(&word).unwrap_or(Self::SystemError))
    }
}

impl Code {
    /// The code of a word.
    pub fn of_word(word: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == word).map(|row| row.0)
    }

    /// The code as written in envelopes: `TOOL_TIMEOUT`.
    pub const fn word(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// The exit status of `hostler call` for this code.
    pub const fn exit_status(self) -> u8 {
        TABLE[self as usize].2
    }

    /// Whether a call with this fault may have been with its tool.
    pub const fn is_of_tool(self) -> bool {
        matches!(
            self,
            Self::ToolTimeout
                | Self::ToolError
                | Self::ToolCrashed
                | Self::ProcessKilled
                | Self::InvalidOutput
                | Self::Cancelled
                | Self::OutcomeUnknown
        )
    }

    /// Whether a rule may have denied the call.
    pub const fn is_denial(self) -> bool {
        matches!(self, Self::PermissionDenied | Self::RateLimited)
    }

    /// Whether the same call may succeed when retried unchanged.
    pub const fn retryable(self) -> bool {
        TABLE[self as usize].3
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

    /// Written apart from the table: a change to what programs rely on has to be made twice.
    #[test]
    fn words_exit_statuses_and_retries_are_as_promised() {
        let promised = [
            ("TOOL_NOT_FOUND", 3, false),
            ("INVALID_PARAMS", 2, false),
            ("PERMISSION_DENIED", 4, false),
            ("NOT_SUPPORTED", 8, false),
            ("BUSY", 6, true),
            ("RATE_LIMITED", 6, true),
            ("TOOL_TIMEOUT", 5, true),
            ("CANCELLED", 130, false),
            ("TOOL_ERROR", 1, false),
            ("TOOL_CRASHED", 1, false),
            ("PROCESS_KILLED", 1, true),
            ("INVALID_OUTPUT", 1, false),
            ("COMMAND_NOT_FOUND", 7, false),
            ("ENVIRONMENT_FAILED", 7, false),
            ("STARTUP_FAILED", 7, false),
            ("RESOURCE_EXHAUSTED", 6, true),
            ("MISSING_CREDENTIALS", 1, false),
            ("SHUTTING_DOWN", 130, true),
            ("SYSTEM_ERROR", 70, false),
            ("OUTCOME_UNKNOWN", 1, false),
        ];
        let found = TABLE.map(|(code, ..)| (code.word(), code.exit_status(), code.retryable()));
        assert_eq!(found, promised);
    }

    #[test]
    fn each_row_of_the_table_is_its_codes() {
        for (place, (code, word, ..)) in TABLE.into_iter().enumerate() {
            assert_eq!((code as usize, code.word()), (place, word));
            assert_eq!(serde_json::to_value(code).unwrap(), word);
            assert_eq!(serde_json::from_value::<Code>(word.into()).unwrap(), code);
        }
    }
}
