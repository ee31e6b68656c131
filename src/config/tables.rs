//! The small tables of `hostler.toml`: `[limits]` and `[executables]`.

use std::time::Duration;

use super::origin::Setting;
use super::section::Section;
use super::value::{ByteCount, Word, count, limit, memory};

/// `[limits]`: limits for all tools together.
#[derive(Debug, Clone)]
#[expect(clippy::struct_field_names, reason = "named as in hostler.toml")]
pub struct Limits {
    /// The most output that is kept of one call.
    pub max_output: Setting<ByteCount>,
    /// How many calls may run at once.
    pub max_concurrent_calls: Setting<usize>,
    /// How many calls may wait.
    pub max_queue: Setting<usize>,
    /// How many workers may be alive.
    pub max_workers: Setting<usize>,
    /// The most memory that all workers may use; `None` for no limit.
    pub max_memory: Option<Setting<ByteCount>>,
}

impl Limits {
    pub(super) fn read(section: Section<'_>) -> Self {
        let count = |key, default| section.take_as(key, count).unwrap_or(Setting::default_value(default));
        let limits = Self {
            max_output: section.take("max_output").unwrap_or(Setting::default_value(ByteCount(1_000_000))),
            max_concurrent_calls: count("max_concurrent_calls", 16),
            max_queue: count("max_queue", 1024),
            max_workers: count("max_workers", 32),
            max_memory: section.take_as("max_memory", memory),
        };
        section.finish(false);
        limits
    }
}

/// What happens to an executable that does not print a usable schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnSchemaFailure {
    /// It is listed, and its arguments are not checked.
    List,
    /// It is not listed.
    Skip,
}

impl Word for OnSchemaFailure {
    const WORDS: &'static [(&'static str, Self)] = &[("list", Self::List), ("skip", Self::Skip)];
}

/// Which programs are asked for their schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Those that contain `schema` or `hostler-worker`, and all in hostler's own tools folders.
    Likely,
    /// All.
    All,
}

impl Word for Ask {
    const WORDS: &'static [(&'static str, Self)] = &[("likely", Self::Likely), ("all", Self::All)];
}

/// `[executables]`: how programs are asked for their schema.
#[derive(Debug, Clone)]
pub struct Executables {
    /// How long a program may take to print its schema, from its own start.
    pub schema_timeout: Duration,
    /// Which programs are asked.
    pub ask: Ask,
    /// What happens to one that fails to.
    pub on_schema_failure: OnSchemaFailure,
}

impl Executables {
    pub(super) fn read(section: Section<'_>) -> Self {
        let (limit, failure) = (section.take_as("schema_timeout", limit), section.take("on_schema_failure"));
        let ask = section.take("ask");
        section.finish(false);
        Self {
            ask: ask.map_or(Ask::Likely, |setting| setting.value),
            schema_timeout: limit.map_or(Duration::from_secs(1), |setting| setting.value),
            on_schema_failure: failure.map_or(OnSchemaFailure::List, |setting| setting.value),
        }
    }
}
