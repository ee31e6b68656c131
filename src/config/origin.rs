//! The place that set a value. Every effective setting knows its own.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What set a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// hostler's default.
    Default,
    /// The header of a tool file, which the operator's file overrides.
    Header(Place),
    /// The declaration of a tool without a header, which is overridden too.
    Tool,
    /// A line of a `hostler.toml`.
    File(Place),
    /// A command-line flag, by its name.
    Flag(&'static str),
    /// An environment variable, by its name.
    Environment(&'static str),
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
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
    /// The line of a file that set it, if one did.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Header(place) | Self::File(place) => Some(place),
            Self::Default | Self::Tool | Self::Flag(_) | Self::Environment(_) => None,
        }
    }
}

/// A value with its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// What set it.
    pub origin: Origin,
}

impl<T> Setting<T> {
    /// A default.
    pub const fn default_value(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }

    /// What a tool without a header declares itself.
    pub const fn declared(value: T) -> Self {
        Self { value, origin: Origin::Tool }
    }
}

/// Its value alone: only what tools declare is stored.
impl<T: Serialize> Serialize for Setting<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Setting<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::declared)
    }
}
