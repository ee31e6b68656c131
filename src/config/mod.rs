//! `hostler.toml`: typed settings, each with the place that set it.

pub mod audit;
pub mod automatic;
pub mod builtin;
pub mod call_site;
pub mod control;
pub mod declared_policy;
pub mod effective;
pub mod environment;
mod folders;
pub mod hosts;
pub mod icon;
mod inline;
pub mod kept_mode;
pub mod launcher;
pub mod learned;
pub mod load;
pub mod mcp;
pub mod mode;
pub mod needs;
pub mod origin;
mod otel;
pub mod private_file;
pub mod recorder;
pub mod section;
pub mod journal;
pub mod rules;
pub mod sandbox;
pub mod sandbox_edit;
pub mod shared;
pub mod secrets;
pub mod tables;
pub mod task;
pub mod telemetry;
pub mod tool;
pub mod turns;
pub mod value;

#[cfg(test)]
mod stacking_tests;
#[cfg(test)]
mod tests;

pub use effective::{EffectiveTool, FunctionSettings};
pub use environment::Environment;
pub use load::{Config, ConfigError, ConfigOptions};
