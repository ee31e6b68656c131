//! The catalogue: an immutable snapshot of every tool, swapped whole when a tool file changes.

mod catalogue;
mod compiled;
mod live;
mod saving;
mod shown;
mod stamp;
#[cfg(test)]
mod tests;

pub use catalogue::{Catalogue, FileEntry, NotFound, Tool};
pub use live::Registry;
pub use stamp::Stamps;
