//! `[audit]`: what is written down of decisions.

use std::path::Path;
use std::time::Duration;

use super::origin::{Origin, Setting};
use super::section::{Entry, Section};
use super::value::{ByteCount, FromToml, Word, limit};

/// Which decisions are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Audited {
    /// None.
    Off,
    /// Those against a call, and those that a person made.
    #[default]
    Denied,
    /// All.
    All,
}

impl Word for Audited {
    const WORDS: &'static [(&'static str, Self)] = &[("off", Self::Off), ("denied", Self::Denied), ("all", Self::All)];
}

const KEEP: Duration = Duration::from_hours(365 * 24);
const KEEP_SIZE: ByteCount = ByteCount(256_000_000);

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// How long.
    pub time: Duration,
    /// How many bytes.
    pub size: u64,
}

/// `[audit]`.
#[derive(Debug, Clone)]
pub struct AuditSettings {
    /// Which decisions are written down.
    pub log: Setting<Audited>,
    /// How long records are kept.
    pub keep: Setting<Duration>,
    /// The most that they may take on the disk.
    pub keep_size: Setting<ByteCount>,
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self {
            log: Setting::default_value(Audited::default()),
            keep: Setting::default_value(KEEP),
            keep_size: Setting::default_value(KEEP_SIZE),
        }
    }
}

impl AuditSettings {
    /// `person` is the person's own file: the log is theirs. A project may only have more written down, and does not say how long that
    /// is kept.
    pub(super) fn read(section: &Section<'_>, person: &Path) -> Self {
        let is_own = |origin: &Origin| matches!(origin, Origin::File(place) if *place.file == person);
        let log = section.take_each::<Audited>("log", FromToml::from_toml);
        if log.iter().any(|setting| setting.value < Audited::default() && !is_own(&setting.origin)) {
            let of_project = |entry: &Entry<'_>| entry.key == "log" && !is_own(&entry.origin());
            let (what, fix) = ("a project cannot have less written down than by default", person.display());
            let fix = format!("set it in {fix}, or remove it");
            section.entries().filter(of_project).for_each(|entry| section.report(&entry, what, fix.clone()));
        }
        let usual = Self::default();
        let keep = section.take_each("keep", limit).into_iter().filter(|setting| is_own(&setting.origin));
        let size = section.take_each("keep_size", FromToml::from_toml).into_iter();
        Self {
            log: log.into_iter().max_by_key(|setting| setting.value).unwrap_or(usual.log),
            keep: keep.last().unwrap_or(usual.keep),
            keep_size: size.filter(|setting| is_own(&setting.origin)).last().unwrap_or(usual.keep_size),
        }
    }

    /// What counts where no file can be read: nothing is removed by guess.
    pub fn unknown() -> Self {
        Self {
            keep: Setting::default_value(Duration::MAX),
            keep_size: Setting::default_value(ByteCount(usize::MAX)),
            ..Self::default()
        }
    }

    /// How much is kept.
    pub fn keep(&self) -> Keep {
        Keep { time: self.keep.value, size: self.keep_size.value.0 as u64 }
    }
}
