//! What is written down of one call, for who wants to know why it ended so.

use serde::{Deserialize, Serialize};

/// What is written down of a call besides its outcome, to find out why it ended so.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct CallDetails {
    /// The version of its tool file: a hash of what the file and its helpers contained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What repeating it does, as its tool says.
    pub effects: String,
    /// How well it is remembered.
    pub journal: String,
    /// The working directory of the client's hostler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The configuration that the client's hostler was started with, if it named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// The folder in which its source is kept: the tool file, its helpers and its lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The lock of its dependencies, as it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    /// Its time limit in milliseconds; 0 for none.
    pub timeout_ms: u64,
    /// How often it may be tried again.
    pub max_retries: u64,
    /// When its last attempt went to its tool, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_ms: Option<u64>,
    /// The process of that attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<u64>,
    /// How long it waited, how long its worker took to start, and how long it ran, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_ms: Option<f64>,
    /// How long it waited for its client's answers, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_ms: Option<f64>,
    /// Where it failed or stuck: the frames of the tool's code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// The last lines of its process's standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// The faults of the tries before, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tries: Vec<String>,
}
