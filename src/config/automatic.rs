//! `[policy.automatic]`: when the mode changes by itself.

use std::fmt;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::declared_policy::Mode;
use super::origin::Diagnosis;
use super::section::nearest;
use super::value::{FromToml, Word, count, limit, mismatch};

/// When the mode changes by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Automatic {
    /// For how long something has to be so, before the mode changes, and before it changes back.
    pub after: Duration,
    /// Modes with what leads to them: the strictest first.
    pub modes: Vec<(Mode, Thresholds)>,
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

/// How long something has to be so, if nothing is set.
const AFTER: Duration = Duration::from_secs(30);

/// The modes that can be reached: the strictest first.
const REACHED: [Mode; 3] = [Mode::Lockdown, Mode::Alert, Mode::Degraded];

const KEYS: [&str; 4] = ["after", "lockdown", "alert", "degraded"];
const THRESHOLDS: [&str; 5] = ["cpu", "memory", "disk", "failed", "denied"];

impl Automatic {
    pub(super) fn read(value: &DeValue<'_>) -> Result<Self, Diagnosis> {
        let table = checked(value, &KEYS, "write `degraded = { disk = \"95%\" }`")?;
        let mut modes = Vec::new();
        for mode in REACHED {
            if let Some(value) = table.get(mode.word()) {
                modes.push((mode, Thresholds::read(value.get_ref()).map_err(|wrong| within(mode.word(), wrong))?));
            }
        }
        let after = table.get("after").map(|value| limit(value.get_ref()).map_err(|wrong| within("after", wrong)));
        Ok(Self { after: after.transpose()?.unwrap_or(AFTER), modes })
    }
}

impl Thresholds {
    fn read(value: &DeValue<'_>) -> Result<Self, Diagnosis> {
        let table = checked(value, &THRESHOLDS, "write `{ disk = \"95%\" }`")?;
        let share = |key: &str| -> Result<Option<u8>, Diagnosis> {
            let value = table.get(key).map(|value| percent(value.get_ref()).map_err(|wrong| within(key, wrong)));
            value.transpose()
        };
        let denied = table.get("denied").map(|value| count(value.get_ref()).map_err(|wrong| within("denied", wrong)));
        Ok(Self {
            cpu: share("cpu")?,
            memory: share("memory")?,
            disk: share("disk")?,
            failed: share("failed")?,
            denied: denied.transpose()?,
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

fn within(key: &str, wrong: Diagnosis) -> Diagnosis {
    Diagnosis { what: format!("`{key}`: {}", wrong.what), ..wrong }
}

/// A table with these keys alone.
fn checked<'v, 'i>(value: &'v DeValue<'i>, keys: &[&str], fix: &str) -> Result<&'v DeTable<'i>, Diagnosis> {
    let table = value.as_table().ok_or_else(|| mismatch("a table", value, fix))?;
    match table.keys().map(toml::Spanned::get_ref).find(|key| !keys.contains(&&***key)) {
        None => Ok(table),
        Some(unknown) => {
            let near = nearest(unknown, keys.iter().copied()).map(|near| format!("did you mean `{near}`?"));
            let fix = near.unwrap_or_else(|| format!("the keys here are {}", keys.join(", ")));
            Err(Diagnosis::new(format!("unknown key `{unknown}`"), fix))
        }
    }
}

/// A share: `"95%"`.
fn percent(value: &DeValue<'_>) -> Result<u8, Diagnosis> {
    let wrong = || mismatch("a share like \"95%\"", value, "write \"1%\" to \"100%\"");
    let text = String::from_toml(value).map_err(|_| wrong())?;
    let share = text.trim().strip_suffix('%').and_then(|number| number.trim_end().parse().ok());
    share.filter(|share| (1..=100).contains(share)).ok_or_else(wrong)
}
