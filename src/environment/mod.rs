//! Python environments, built by uv: found by content, built aside and renamed, leased while in use.

mod build;
mod failure;
mod find;
mod prune;
mod recipe;
mod store;

pub use prune::Pruned;
pub use recipe::EnvironmentSpec;
pub use store::{EnvironmentSettings, Environments, Lease, Said};
