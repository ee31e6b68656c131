//! `[mcp]`: how hostler presents itself to MCP clients, and how much it sends them at once.

use toml::de::DeValue;

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
}

/// TypeScript clients end the session at a line of more than 10 MiB.
const MAX_RESULT: ByteCount = ByteCount(9 << 20);

/// The least limit of a line: one with a fault and a short output still fits.
const LEAST_RESULT: ByteCount = ByteCount(64_000);

impl Mcp {
    pub(super) fn read(section: Section<'_>) -> Self {
        let text = |setting: Option<Setting<String>>| setting.map(|setting| setting.value);
        let mcp = Self {
            envelope: section.take("envelope").map_or(Envelope::None, |setting| setting.value),
            max_result: section.take_as("max_result", line_limit).map_or(MAX_RESULT, |setting| setting.value),
            instructions: text(section.take("instructions")),
            title: text(section.take("title")),
            icon: text(section.take_as("icon", icon)),
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

/// The address of an icon. Clients fetch it, and accept these two schemes alone.
fn icon(value: &DeValue<'_>) -> Result<String, Diagnosis> {
    let address = String::from_toml(value)?;
    if !address.starts_with("https://") && !address.starts_with("data:image/") {
        return Err(mismatch("the address of an image", value, "write one that begins with https:// or data:image/"));
    }
    Ok(address)
}
