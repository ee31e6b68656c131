//! `[shared]`: whether `hostler serve` attaches to the person's shared hostler.

use std::time::Duration;

use super::origin::Setting;
use super::section::Section;
use super::value::limit;

/// `[shared]`.
#[derive(Debug, Clone)]
pub struct Shared {
    /// Whether `hostler serve` attaches. By default it does where it can.
    pub enabled: Setting<bool>,
    /// How long a shared hostler stays without a session.
    pub idle_exit: Setting<Duration>,
}

impl Shared {
    pub(super) fn read(section: Section<'_>) -> Self {
        let shared = Self {
            enabled: section.take("enabled").unwrap_or(Setting::default_value(cfg!(target_os = "linux"))),
            idle_exit: section.take_as("idle_exit", limit).unwrap_or(Setting::default_value(Duration::from_mins(10))),
        };
        section.finish(false);
        shared
    }
}
