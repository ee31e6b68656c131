//! The place that set a value, and what is wrong at one. Every effective setting knows its own.

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
    /// A file in the folder of a tool file, such as a `requirements.txt`, which is overridden as well.
    Folder(Arc<PathBuf>),
    /// The declaration of a tool without a header, which is overridden too.
    Tool,
    /// A line of a `hostler.toml`.
    File(Place),
    /// A command-line flag, by its name.
    Flag(&'static str),
    /// An environment variable, by its name.
    Environment(&'static str),
    /// A person, by this command.
    Command(&'static str),
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
            Self::Folder(file) => write!(f, "{}", file.display()),
            Self::Tool => f.write_str("the tool itself"),
            Self::File(place) => write!(f, "{place}"),
            Self::Flag(name) => write!(f, "flag {name}"),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Command(name) => write!(f, "`{name}`"),
        }
    }
}

impl Origin {
    /// Whether it is what a tool says of itself, not its operator.
    pub fn is_of_tool(&self) -> bool {
        matches!(self, Self::Header(_) | Self::Folder(_) | Self::Tool)
    }

    /// The line of a file that set it, if one did.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Header(place) | Self::File(place) => Some(place),
            Self::Default | Self::Folder(_) | Self::Tool | Self::Flag(_) | Self::Environment(_) | Self::Command(_) => {
                None
            }
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

/// What is wrong, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{what}{}{fix}", if fix.is_empty() { "" } else { "; " })]
pub struct Diagnosis {
    /// What is wrong.
    pub what: String,
    /// What to do; empty where what is wrong says it.
    pub fix: String,
}

impl Diagnosis {
    /// What is wrong, and what to do.
    pub fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { what: what.into(), fix: fix.into() }
    }
}

/// One thing that is wrong in a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it is.
    pub place: Place,
    /// The full key, `tool.brave.timeout`; empty when the text is not TOML.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// What to write instead.
    pub fix: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.key.is_empty() {
            write!(f, "`{}`: ", self.key)?;
        }
        f.write_str(&self.what)?;
        if self.fix.is_empty() { Ok(()) } else { write!(f, "; {}", self.fix) }
    }
}
