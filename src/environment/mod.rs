//! Python environments, built by uv: found by content, built aside and renamed, leased while in use.

mod build;
mod failure;
mod find;
mod marker;
mod platform;
mod probe;
mod prune;
mod recipe;
mod settings;
mod store;
mod trouble;

pub use probe::Reached;
pub use prune::Pruned;
pub use recipe::EnvironmentSpec;
pub use settings::{EnvironmentSettings, Said};
pub use store::{Environments, Lease};
