//! Python environments, built by uv: found by content, built aside and renamed, leased while in use.

mod build;
mod building;
mod circumstances;
mod conflict;
mod failure;
mod index;
mod lock;
mod find;
mod installed;
mod marker;
mod platform;
mod probe;
mod prune;
mod pythons;
mod recipe;
mod settings;
mod staging;
mod store;
mod trouble;
mod unfit;

pub use installed::installed_modules;
pub use probe::{OLDEST_UV, Reached};
pub use prune::Pruned;
pub use pythons::Minor;
pub use recipe::EnvironmentSpec;
pub use settings::{EnvironmentSettings, Said};
pub use store::{Environments, Lease};
