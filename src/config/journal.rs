//! `[journal]`: what is kept of calls.

use std::time::Duration;

use toml::de::DeValue;

use super::origin::{Diagnosis, Setting};
use super::section::Section;
use super::value::{ByteCount, FromToml, Word};

/// What is kept of the arguments and results of calls that have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bodies {
    /// Those of calls that failed, and of background calls.
    #[default]
    Needed,
    /// All.
    All,
    /// None.
    None,
}

impl Word for Bodies {
    const WORDS: &'static [(&'static str, Self)] =
        &[("needed", Self::Needed), ("all", Self::All), ("none", Self::None)];
}

const KEEP: Duration = Duration::from_hours(30 * 24);
const KEEP_CALLS: usize = 100_000;
const KEEP_SIZE: ByteCount = ByteCount(1_000_000_000);

/// `[journal]`.
#[derive(Debug, Clone)]
pub struct JournalSettings {
    /// Whether calls are written down at all.
    pub enabled: Setting<bool>,
    /// What is kept of them.
    pub bodies: Setting<Bodies>,
    /// The server that has the store, instead of a file of the person.
    pub store: Option<Setting<String>>,
    /// The packs and tools whose calls are taken from the queue of that server.
    pub queue: Setting<Vec<String>>,
    /// How long calls that have ended are kept.
    pub keep: Setting<Duration>,
    /// How many calls are kept.
    pub keep_calls: Setting<usize>,
    /// The most that they may take on the disk.
    pub keep_size: Setting<ByteCount>,
}

impl JournalSettings {
    pub(super) fn read(section: Section<'_>) -> Self {
        let settings = Self {
            enabled: section.take("enabled").unwrap_or(Setting::default_value(true)),
            bodies: section.take("bodies").unwrap_or(Setting::default_value(Bodies::Needed)),
            store: section.take_as("store", server),
            queue: section.take("queue").unwrap_or(Setting::default_value(Vec::new())),
            keep: section.take("keep").unwrap_or(Setting::default_value(KEEP)),
            keep_calls: section.take("keep_calls").unwrap_or(Setting::default_value(KEEP_CALLS)),
            keep_size: section.take("keep_size").unwrap_or(Setting::default_value(KEEP_SIZE)),
        };
        section.finish(false);
        settings
    }
}

/// The address of a PostgreSQL server. It may have a password, which no message repeats.
fn server(value: &DeValue<'_>) -> Result<String, Diagnosis> {
    let text = String::from_toml(value)?;
    let is_url = ["postgres://", "postgresql://"].iter().any(|begin| text.starts_with(begin));
    let names_a_host = || text.parse::<postgres::Config>().is_ok_and(|config| !config.get_hosts().is_empty());
    if is_url && names_a_host() {
        return Ok(text);
    }
    let fix = "write one like \"postgres://user@host/database\"; a password may be in the variable PGPASSWORD";
    Err(Diagnosis::new("expected the address of a PostgreSQL database", fix))
}
