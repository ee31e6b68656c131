//! `hostler.toml`: typed settings whose every value knows where it came from.

pub mod builtin;
pub mod effective;
pub mod environment;
pub mod executables;
pub mod facts;
pub(crate) mod homes;
pub mod layer;
mod limits;
pub mod load;
pub mod mcp;
mod mistaken;
pub mod origin;
pub mod paths;
mod python;
pub mod secrets;
pub mod section;
pub mod tool;
pub mod value;

#[cfg(test)]
mod stacking_tests;
#[cfg(test)]
mod tests;

pub use effective::{EffectiveTool, FunctionSettings};
pub use environment::Environment;
pub use limits::Limits;
pub use load::{Config, ConfigError, Wanted};
