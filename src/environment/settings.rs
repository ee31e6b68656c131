//! How environments are built, as the operator says.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A listener for what is being done, a line at a time.
pub type Said<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// How environments are built.
#[derive(Debug, Clone, Default)]
pub struct EnvironmentSettings {
    /// uv, when the operator says where it is.
    pub uv: Option<PathBuf>,
    /// The interpreter to build on, as uv understands it: `3.12`, a path.
    pub python: Option<String>,
    /// Variables that uv gets while it builds, over those of hostler itself.
    pub env: BTreeMap<String, String>,
    /// The longest a build may take.
    pub build_timeout: Duration,
    /// How long an unused environment is kept.
    pub keep: Duration,
    /// Names of variables that hold tools' secrets; uv does not get them.
    pub hidden: Vec<String>,
}
