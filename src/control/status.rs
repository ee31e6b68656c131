//! What the control face reports, as its clients read it back.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::ToolMetrics;
use crate::executor::SharedStatus;
use crate::pool::Usage;
use crate::runtime::SessionInfo;

/// The result of `version`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Version {
    /// hostler's version.
    #[serde(rename = "version")]
    pub number: String,
    /// Its build: only the same one attaches.
    pub build: String,
    /// Which processes meet it, if it is shared: a hash of the build and of what they may reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its process id.
    pub pid: u32,
}

/// The result of `health`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// Whether new sessions are accepted.
    pub accepting: bool,
    /// Open sessions.
    pub sessions: usize,
    /// Calls without an outcome.
    pub running: usize,
}

/// The result of `status`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// Who answers.
    #[serde(flatten)]
    pub version: Version,
    /// Seconds since its start.
    pub up_s: u64,
    /// Whether it accepts no new session and ends after the last one.
    pub draining: bool,
    /// Where HTTP is served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// Its log, unless that is standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
    /// Its resident memory in bytes, without its workers.
    pub rss: Option<usize>,
    /// The use of what all share.
    pub usage: Usage,
    /// Every session.
    pub sessions: Vec<SessionInfo>,
    /// Every pool of workers.
    pub pools: Vec<SharedStatus>,
    /// Every tool, also the never called.
    pub tools: Vec<ToolMetrics>,
}
