//! Python environments, built by uv: found by content, built in a staging folder and renamed, leased while in use.

mod build;
mod explain;
mod find;
mod pythons;
mod settings;
mod spec;
mod staging;
mod store;
mod turn;
mod uv;

pub use settings::{EnvironmentSettings, Progress, UV_PYTHON};
pub use spec::{EnvironmentSpec, lock_file};
pub use store::{Environments, Lease, Pruned, installed_modules};
pub use uv::{IndexProblem, OLDEST_UV, UvCache};
