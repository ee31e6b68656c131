//! How the calls of a tool file are made: by its kind, and by what it or its operator says of it.

use super::catalogue::FileEntry;
use crate::config::EffectiveTool;
use crate::config::tool::Protocol;
use crate::discovery::Kind;

/// How the calls of a tool file are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serving {
    /// By workers that run the shim, which loads the Python file.
    Shim,
    /// By workers that run the Python file itself, which serves the bare dialect.
    Itself,
    /// By workers that run the executable, and are spoken to so.
    Program(Protocol),
    /// By the executable, in a process for each call.
    EachCall,
    /// In this process.
    Inside,
}

impl Serving {
    /// What is in force for a file of this kind.
    pub fn of(kind: Kind, settings: &EffectiveTool) -> Self {
        let protocol = settings.protocol.as_ref().map(|protocol| protocol.value);
        match (kind, protocol) {
            (Kind::Python | Kind::Internal, Some(Protocol::Bare)) => Self::Itself,
            // The shim speaks v1.
            (Kind::Python | Kind::Internal, _) => Self::Shim,
            (Kind::Executable, None | Some(Protocol::Once)) => Self::EachCall,
            (Kind::Executable, Some(protocol)) => Self::Program(protocol),
            (Kind::Builtin, _) => Self::Inside,
        }
    }

    /// Whether workers make them that are spoken to in the bare dialect.
    pub const fn is_bare(self) -> bool {
        matches!(self, Self::Itself | Self::Program(Protocol::Bare))
    }

    /// Whether workers make them.
    pub const fn has_workers(self) -> bool {
        matches!(self, Self::Shim | Self::Itself | Self::Program(_))
    }

    /// Whether they are made by an interpreter in an environment of hostler's.
    pub const fn has_environment(self) -> bool {
        matches!(self, Self::Shim | Self::Itself)
    }
}

/// The words for what a tool file is.
pub const KIND_WORDS: [&str; 5] = ["python", "internal", "executable", "worker", "builtin"];

impl FileEntry {
    /// How its calls are made.
    pub fn serving(&self) -> Serving {
        Serving::of(self.file.kind, &self.settings)
    }

    /// The word for what it is, one of [`KIND_WORDS`].
    pub fn kind_word(&self) -> &'static str {
        match (self.file.kind, self.serving()) {
            (_, Serving::Program(_)) => "worker",
            (Kind::Python, _) => "python",
            (Kind::Internal, _) => "internal",
            (Kind::Executable, _) => "executable",
            (Kind::Builtin, _) => "builtin",
        }
    }
}
