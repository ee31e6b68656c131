//! `[limits]`: what holds for all tools together.

use super::layer::FileLayer;
use super::origin::Setting;
use super::value::ByteCount;

/// Limits of everything together.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The most output kept of one call.
    pub max_output: Setting<ByteCount>,
    /// How many calls may run at once.
    pub max_concurrent_calls: Setting<usize>,
    /// How many calls may wait.
    pub max_queue: Setting<usize>,
    /// How many workers may be alive.
    pub max_workers: Setting<usize>,
    /// The most memory that all workers may hold; no limit when nobody set one.
    pub max_memory: Option<Setting<ByteCount>>,
}

impl Limits {
    pub(super) fn of(layer: &FileLayer) -> Self {
        let or =
            |setting: &Option<Setting<usize>>, otherwise| setting.clone().unwrap_or(Setting::default_value(otherwise));
        Self {
            max_output: layer.max_output.clone().unwrap_or(Setting::default_value(ByteCount(1_000_000))),
            max_concurrent_calls: or(&layer.max_concurrent_calls, 16),
            max_queue: or(&layer.max_queue, 1024),
            max_workers: or(&layer.max_workers, 32),
            max_memory: layer.max_memory.clone(),
        }
    }
}
