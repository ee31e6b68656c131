//! `[policy.automatic]`: when the mode changes by itself.

use std::fmt;
use std::time::Duration;

use toml::de::DeValue;

use super::inline::{table_of, taken};
use super::mode::KnownMode;
use super::origin::Diagnosis;
use super::value::{FromToml, Word, count, limit, mismatch};

/// When the mode changes by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Automatic {
    /// For how long a threshold has to be crossed before the mode changes.
    pub after: Duration,
    /// Modes with what leads to them: the strictest first.
    pub modes: Vec<(KnownMode, Thresholds)>,
}

/// What leads to a mode: each by itself. Shares are in percent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thresholds {
    /// The share of the processors' time that is used.
    pub cpu: Option<u8>,
    /// The share of the memory that is in use.
    pub memory: Option<u8>,
    /// The share of the disk that is full on which hostler keeps its state.
    pub disk: Option<u8>,
    /// The share of calls that failed, in ten minutes.
    pub failed: Option<u8>,
    /// How many calls were denied, in ten minutes.
    pub denied: Option<usize>,
}

/// The default of `after`.
const AFTER: Duration = Duration::from_secs(30);

/// The modes that can be reached: the strictest first.
const REACHED: [KnownMode; 3] = [KnownMode::Lockdown, KnownMode::Alert, KnownMode::Degraded];

const KEYS: [&str; 4] = ["after", "lockdown", "alert", "degraded"];
const THRESHOLDS: [&str; 5] = ["cpu", "memory", "disk", "failed", "denied"];

impl Automatic {
    pub(super) fn read(value: &DeValue<'_>) -> Result<Self, Diagnosis> {
        let table = table_of(value, &KEYS, "a table", "write `degraded = { disk = \"95%\" }`")?;
        let mut modes = Vec::new();
        for mode in REACHED {
            modes.extend(taken(table, mode.word(), Thresholds::read)?.map(|thresholds| (mode, thresholds)));
        }
        Ok(Self { after: taken(table, "after", limit)?.unwrap_or(AFTER), modes })
    }
}

impl Thresholds {
    fn read(value: &DeValue<'_>) -> Result<Self, Diagnosis> {
        let table = table_of(value, &THRESHOLDS, "a table", "write `{ disk = \"95%\" }`")?;
        Ok(Self {
            cpu: taken(table, "cpu", percent)?,
            memory: taken(table, "memory", percent)?,
            disk: taken(table, "disk", percent)?,
            failed: taken(table, "failed", percent)?,
            denied: taken(table, "denied", count)?,
        })
    }
}

impl fmt::Display for Automatic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (mode, thresholds) in &self.modes {
            let Thresholds { cpu, memory, disk, failed, denied } = thresholds;
            let shares = [("cpu", cpu), ("memory", memory), ("disk", disk), ("failed", failed)];
            let shares = shares.iter().filter_map(|(name, share)| share.map(|share| format!("{name} {share}%")));
            let all: Vec<String> = shares.chain(denied.map(|denied| format!("denied {denied}"))).collect();
            write!(f, "{} at {}; ", mode.word(), all.join(", "))?;
        }
        write!(f, "after {}", humantime::format_duration(self.after))
    }
}

/// A share: `"95%"`.
fn percent(value: &DeValue<'_>) -> Result<u8, Diagnosis> {
    let wrong = || mismatch("a share like \"95%\"", value, "write \"1%\" to \"100%\"");
    let text = String::from_toml(value).map_err(|_| wrong())?;
    let share = text.trim().strip_suffix('%').and_then(|number| number.trim_end().parse().ok());
    share.filter(|share| (1..=100).contains(share)).ok_or_else(wrong)
}
