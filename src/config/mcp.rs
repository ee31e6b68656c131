//! `[mcp]`: how hostler presents itself to MCP clients, and how much it sends them at once.

use std::path::{Component, Path, PathBuf};

use toml::de::DeValue;

use super::environment::{Environment, from_file};
use super::icon::address;
use super::origin::{Diagnosis, Setting};
use super::section::Section;
use super::value::{ByteCount, FromToml, Word, mismatch};

/// What the results of MCP calls are wrapped in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Envelope {
    /// Nothing.
    None,
    /// An object that says whether the tool ran, with its result or its error.
    ToolSuccess,
}

impl Word for Envelope {
    const WORDS: &'static [(&'static str, Self)] = &[("tool_success", Self::ToolSuccess), ("none", Self::None)];
}

/// `[mcp]`.
#[derive(Debug, Clone)]
pub struct Mcp {
    /// What results are wrapped in.
    pub envelope: Envelope,
    /// The longest line that answers a request.
    pub max_result: ByteCount,
    /// What clients may tell their model about this server.
    pub instructions: Option<String>,
    /// The server's name for people.
    pub title: Option<String>,
    /// The address of the server's icon.
    pub icon: Option<String>,
    /// Files that clients may read.
    pub resources: Option<ResourceFiles>,
}

/// Files offered as resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceFiles {
    /// The folder of the configuration file, in which patterns begin.
    pub folder: PathBuf,
    /// Patterns of paths.
    pub patterns: Vec<String>,
    /// The files of the configuration and of secrets, which are never offered.
    pub withheld: Vec<PathBuf>,
}

/// TypeScript clients end the session at a line of more than 10 MiB.
const MAX_RESULT: ByteCount = ByteCount(9 << 20);

/// The least limit of a line: one with a fault and a short output still fits.
const LEAST_RESULT: ByteCount = ByteCount(64_000);

impl Mcp {
    pub(super) fn read(section: Section<'_>, variables: &Environment) -> Self {
        let text = |setting: Option<Setting<String>>| setting.map(|setting| setting.value);
        let mcp = Self {
            envelope: section.take("envelope").map_or(Envelope::None, |setting| setting.value),
            max_result: section.take_as("max_result", line_limit).map_or(MAX_RESULT, |setting| setting.value),
            instructions: text(section.take("instructions")),
            title: text(section.take("title")),
            icon: text(section.take_as("icon", address)),
            resources: section.take_as("resources", patterns).map(|Setting { value, origin }| ResourceFiles {
                folder: from_file(&origin, Path::new(""), variables),
                patterns: value,
                withheld: Vec::new(),
            }),
        };
        section.finish(false);
        mcp
    }
}

fn line_limit(value: &DeValue<'_>) -> Result<ByteCount, Diagnosis> {
    let size = ByteCount::from_toml(value)?;
    if size < LEAST_RESULT {
        return Err(mismatch("a size of at least 64KB", value, "write one like \"9MiB\""));
    }
    Ok(size)
}

/// Patterns of files below the folder of the configuration file.
fn patterns(value: &DeValue<'_>) -> Result<Vec<String>, Diagnosis> {
    let patterns = Vec::<String>::from_toml(value)?;
    let is_within = |pattern: &&String| {
        let mut parts = Path::new(pattern.as_str()).components();
        !pattern.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
    };
    let fix = "write paths below the folder of this file, such as \"docs/**\"";
    if let Some(outside) = patterns.iter().find(|pattern| !is_within(pattern)) {
        return Err(Diagnosis::new(format!("`{outside}` is not a path below this file"), fix));
    }
    if let Some((pattern, error)) = patterns.iter().find_map(|one| Some((one, globset::Glob::new(one).err()?))) {
        return Err(Diagnosis::new(format!("`{pattern}` is not a pattern: {}", error.kind()), fix));
    }
    Ok(patterns)
}
