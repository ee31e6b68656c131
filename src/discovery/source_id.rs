//! The identity of what offers tools, whichever kind it is of.

use std::path::{Path, PathBuf};

use super::{Kind, ToolFile};

/// What offers tools. Pools, queues and caches are kept by it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SourceId {
    /// A Python file.
    Python(PathBuf),
    /// A program that answers `--schema`.
    Executable(PathBuf),
    /// A tool inside hostler, by its pack.
    Builtin(String),
}

impl SourceId {
    /// The file, for sources that are one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Python(path) | Self::Executable(path) => Some(path),
            Self::Builtin(_) => None,
        }
    }
}

impl ToolFile {
    /// Its identity: the same for every version of it.
    pub fn source(&self) -> SourceId {
        match self.kind {
            Kind::Python | Kind::Internal => SourceId::Python(self.path.clone()),
            Kind::Executable => SourceId::Executable(self.path.clone()),
            Kind::Builtin => SourceId::Builtin(self.pack.clone()),
        }
    }
}

impl std::fmt::Display for SourceId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Python(path) | Self::Executable(path) => path.display().fmt(formatter),
            Self::Builtin(pack) => formatter.write_str(pack),
        }
    }
}
