//! Python environments, built by uv: found by content, built aside and renamed, leased while in use.

mod build;
mod building;
mod circumstances;
mod conflict;
mod failure;
mod find;
mod in_force;
mod index;
mod lock;
mod installed;
mod marker;
mod missing;
mod platform;
mod probe;
mod prune;
mod pythons;
mod reach;
mod recipe;
mod renamed;
mod settings;
mod staging;
mod store;
mod trouble;
mod unfit;

pub use installed::installed_modules;
pub use probe::OLDEST_UV;
pub use prune::Pruned;
pub use pythons::Minor;
pub use reach::{Reached, UvCache};
pub use recipe::EnvironmentSpec;
pub use settings::{EnvironmentSettings, Said};
pub use store::{Environments, Lease};
