//! The catalogue: an immutable snapshot of every tool, swapped whole when a tool file changes.

mod asking;
mod catalogue;
mod changes;
mod compiled;
mod file_entry;
mod governed;
mod last_good;
mod launched;
mod listing;
mod live;
mod lookup;
mod refined;
mod watching;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod watching_tests;

pub use asking::{SchemaProgress, keep_asking};
pub use catalogue::{Catalogue, RoleKind, Tool};
pub use compiled::Check;
pub use file_entry::{FileEntry, KIND_WORDS, Serving};
pub use governed::Governed;
pub use listing::{Listing, Row};
pub use live::{Registry, Stamps};
pub use lookup::{Filter, NotFound};
pub use watching::{Follower, Look, Watching};
