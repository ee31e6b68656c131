//! Modes that are set and that end.

use std::path::Path;
use std::time::Duration;

use super::{AuditLog, Kind, ModeSet, WriteError, folder};
use crate::config::Environment;
use crate::config::audit::{AuditSettings, Audited};
use crate::config::kept_mode::KeptMode;

/// How long other processes are waited for, and the pause between two tries.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_millis(2));

/// Writes down that a mode was set, or that it ended, and by what. `project` is the file for which it counts. What cannot be written is
/// said in the log: a mode must not wait for a full disk. Blocks.
pub fn record_mode(
    environment: &Environment,
    settings: &AuditSettings,
    project: Option<&Path>,
    kept: Option<&KeptMode>,
    by: &str,
) {
    if settings.log.value == Audited::Off {
        return;
    }
    let set = ModeSet {
        mode: kept.map(|kept| kept.mode.clone()),
        by: by.to_owned(),
        reason: kept.and_then(|kept| kept.reason.clone()),
        until_ms: kept.and_then(|kept| kept.until_ms),
        counts_for: project.map(|file| file.display().to_string()),
    };
    if let Err(error) = recorded(&AuditLog::in_folder(folder(environment)), settings, &Kind::Mode(set)) {
        tracing::warn!("a change of the mode is not in the audit log: {error}");
    }
}

fn recorded(log: &AuditLog, settings: &AuditSettings, kind: &Kind) -> Result<(), WriteError> {
    let keep = settings.keep();
    let mut waited = Duration::ZERO;
    loop {
        match log.add(kind, keep) {
            Err(WriteError::Busy) if waited < PATIENCE.0 => {
                std::thread::sleep(PATIENCE.1);
                waited += PATIENCE.1;
            }
            Err(error) => return Err(error),
            Ok(_) => break,
        }
    }
    match log.sign(keep) {
        // The process that writes just now signs next.
        Err(WriteError::Busy) => Ok(()),
        signed => signed,
    }
}
