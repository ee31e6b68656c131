//! Exit statuses, and the last word before one.

use std::process::ExitCode;

use super::style;

/// Usage, configuration, invalid parameters.
pub(super) const USAGE: u8 = 2;
/// hostler or the machine.
pub(super) const SYSTEM: u8 = 70;
/// Cancelled by the person.
pub(super) const CANCELLED: u8 = 130;

/// Says what went wrong and gives the status.
pub(super) fn complain(status: u8, message: &str) -> ExitCode {
    style::error(message);
    ExitCode::from(status)
}
