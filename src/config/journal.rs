//! `[journal]`: what is kept of calls.

use super::origin::Setting;
use super::section::Section;
use super::value::Word;

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

/// `[journal]`.
#[derive(Debug, Clone)]
pub struct JournalSettings {
    /// Whether calls are written down at all.
    pub enabled: Setting<bool>,
    /// What is kept of them.
    pub bodies: Setting<Bodies>,
}

impl JournalSettings {
    pub(super) fn read(section: Section<'_>) -> Self {
        let settings = Self {
            enabled: section.take("enabled").unwrap_or(Setting::default_value(true)),
            bodies: section.take("bodies").unwrap_or(Setting::default_value(Bodies::Needed)),
        };
        section.finish(false);
        settings
    }
}
