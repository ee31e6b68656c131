//! The audit log: what was decided about calls, and which mode was set when, in records that cannot be changed or cut unnoticed.
//!
//! Each record has the hash of the one before. Now and then a checkpoint signs all so far with a key that is replaced by the next one at
//! once: a program that gets hold of the key cannot make an earlier signature again. Records are lines of JSON, in files that begin with the
//! number of their first record. All hostlers of a person write to one log.

mod head;
mod key;
mod log;
mod modes;
mod read;
mod record;
mod segments;
mod signing;
#[cfg(test)]
mod tests;
mod verify;

pub use self::log::{AuditLog, WriteError};
pub use self::modes::record_mode;
pub use self::read::{RecordFilter, records};
pub use self::record::{DecidedRule, DecisionRecord, Kind, ModeSet, Record};
pub use self::signing::Signing;
pub use self::verify::{Checkpoint, Finding, Verified, verify};

use std::path::PathBuf;

use crate::config::Environment;
use crate::config::environment::state;

/// Where the log of a person is.
pub fn folder(environment: &Environment) -> PathBuf {
    state(environment).join("audit")
}
