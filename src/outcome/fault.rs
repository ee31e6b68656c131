//! A fault: a code, a sentence for people and models, and the details a program can use.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Code;

/// Why a call has no result, and what to do about it.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The kind of fault.
    pub code: Code,
    /// What happened and what to do next, in one or two sentences.
    pub message: String,
    /// What a program or a person with a debugger wants to know.
    pub details: Box<Details>,
    /// What the fault came from, for programs that embed hostler. Not part of the outcome.
    pub source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// The known particulars of a fault; all optional.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Details {
    /// The exit status of a process that ended by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended a process: `SIGKILL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The most memory a process that died ever held, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<usize>,
    /// The last lines on the process's standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// The tool's own frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceback: Option<String>,
    /// The exception's type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub exception: Option<String>,
    /// Names near to the one that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<String>,
    /// For BUSY: when a place is likely free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// What was not there, for whoever knows where it comes from and completes the sentence. Not part of the outcome.
    #[serde(skip)]
    pub missing: Option<Missing>,
}

/// Something that a tool needed and did not find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// A declared secret, by name.
    Secret(String),
    /// A module, by its full name.
    Module(String),
    /// The declaration of a secret, by the secret's name.
    Declaration(String),
    /// A variable of its environment.
    Variable(String),
    /// As much memory as it wanted.
    Memory,
}

impl Fault {
    /// A fault without particulars.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: Box::default(), source: None }
    }

    /// The same fault with the error that it came from.
    #[must_use]
    pub fn caused_by(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// The same fault with particulars.
    #[must_use]
    pub fn with(mut self, details: Details) -> Self {
        self.details = Box::new(details);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Fault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn std::error::Error + 'static))
    }
}

impl<'de> Deserialize<'de> for Fault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Shape {
            code: Code,
            message: String,
            #[serde(default)]
            details: Box<Details>,
        }
        let Shape { code, message, details } = Shape::deserialize(deserializer)?;
        Ok(Self { code, message, details, source: None })
    }
}

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shape<'a> {
            code: Code,
            message: &'a str,
            retryable: bool,
            details: &'a Details,
        }
        let Self { code, message, details, source: _ } = self;
        Shape { code: *code, message, retryable: code.retryable(), details }.serialize(serializer)
    }
}
