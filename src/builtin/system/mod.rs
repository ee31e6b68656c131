//! The machine: how much it has left, whether a program runs, what its logs say.

mod logs;
mod metrics;
mod processes;
#[cfg(test)]
mod tests;

use super::{Builtins, Unregistered};

pub(super) fn add(tools: &mut Builtins) -> Result<(), Unregistered> {
    tools.register(metrics::Snapshot)?;
    tools.register(processes::Health)?;
    tools.register(logs::Logs)
}
