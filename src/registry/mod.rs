//! The catalogue: an immutable snapshot of every tool, swapped whole when a tool file changes.

mod asking;
mod catalogue;
mod changes;
mod last_good;
mod live;
mod lookup;
mod refined;
mod watching;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod watching_tests;

pub use asking::{Asking, Asks, keep_asking};
pub use catalogue::{Catalogue, FileEntry, KIND_WORDS, RoleKind, Serving, Tool};
pub use live::Registry;
pub use lookup::{Filter, NotFound};
pub use watching::Watching;
