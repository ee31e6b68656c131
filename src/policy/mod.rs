//! Whether a call is allowed: rules and facts in, a decision out. Pure: who asks has resolved paths, counted calls and knows the mode.

mod arguments;
mod automatic;
#[cfg(feature = "bench")]
pub mod bench;
mod command;
mod decide;
mod patterns;
mod rates;
mod results;
mod rules;
mod shape;

#[cfg(test)]
mod tests;

pub use self::arguments::{Argument, Arguments};
pub use self::automatic::{AutomaticModes, Calls, InForce, Reading, Step};
pub use self::command::{Commands, Unjudged, commands};
pub use self::decide::{Because, Decision, Facts, HostFact, PathFact};
pub use self::rates::{Rate, Scope, Turn, Unit};
pub use self::results::ResultRules;
pub use self::rules::Rules;
