//! Where a value came from: every effective setting can answer "who said so?".

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The place that decided a setting's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything; hostler's own default.
    Default,
    /// The header of a tool file; a header can only ask, the operator's file wins over it.
    Header(Place),
    /// A tool that has no header, in what it says of itself; it can only ask, too.
    Tool,
    /// A line of a `hostler.toml`.
    File(Place),
    /// A command-line flag, by its name.
    Flag(&'static str),
    /// An environment variable, by its name.
    Environment(&'static str),
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, as it was opened.
    pub file: Arc<PathBuf>,
    /// 1-based line.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Header(place) => write!(f, "header {place}"),
            Self::Tool => f.write_str("the tool itself"),
            Self::File(place) => write!(f, "{place}"),
            Self::Flag(name) => write!(f, "flag {name}"),
            Self::Environment(name) => write!(f, "environment {name}"),
        }
    }
}

impl Origin {
    /// The line that decided it, where it is one of a file.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Header(place) | Self::File(place) => Some(place),
            Self::Default | Self::Tool | Self::Flag(_) | Self::Environment(_) => None,
        }
    }
}

/// A value that knows where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    /// What is in force.
    pub value: T,
    /// Who decided it.
    pub origin: Origin,
}

impl<T> Setting<T> {
    /// A value that nobody set.
    pub const fn default_value(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }

    /// The same setting in another form.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Setting<U> {
        Setting { value: change(self.value), origin: self.origin }
    }
}
