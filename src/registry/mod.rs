//! The catalogue: an immutable snapshot of every tool, swapped whole when a tool file changes.

mod absent;
mod asking;
mod carried;
mod catalogue;
mod compiled;
mod filter;
mod folders;
mod last_good;
mod live;
mod news;
mod refined;
mod saving;
mod serving;
mod shown;
mod stamp;
mod watching;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod watching_tests;

pub use absent::NotFound;
pub use asking::{Asking, Asks, keep_asking};
pub use catalogue::{Catalogue, FileEntry, Tool};
pub use filter::Filter;
pub use last_good::Stale;
pub use live::Registry;
pub use serving::{KIND_WORDS, Serving};
pub use stamp::Stamps;
pub use watching::{OnCatalogue, Watching};
