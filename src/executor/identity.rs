//! What callers must have in common to share workers.

use sha2::{Digest, Sha256};

use crate::discovery::SourceId;

/// The identity that callers must have in common to share a pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PoolKey {
    /// The source of the tools.
    pub source: SourceId,
    /// The hash of its bytes and of the neighbours that it imports.
    pub version: [u8; 32],
    /// The hash of everything else that its workers are made of: environment variables, directory, secrets' identities,
    /// launcher, limits.
    pub effective: [u8; 32],
}

/// What workers are made of, in named parts. Names, values, their order and boundaries are part of the hash.
#[derive(Default)]
pub(super) struct Identity {
    whole: Sha256,
    parts: Parts,
}

/// What may explain why two pools are not one.
#[derive(Default)]
pub(super) struct Parts {
    /// The name of each part, with a hash of its value.
    named: Vec<(String, [u8; 32])>,
    /// Whether one belongs to a single session.
    pub is_of_one_session: bool,
}

impl Identity {
    pub fn add(&mut self, name: &str, value: impl AsRef<[u8]>) {
        for part in [name.as_bytes(), value.as_ref()] {
            self.whole.update((part.len() as u64).to_le_bytes());
            self.whole.update(part);
        }
        self.parts.named.push((name.to_owned(), Sha256::digest(value).into()));
    }

    /// A part that no other session has.
    pub fn add_of_session(&mut self, name: &str, session: u64) {
        self.add(name, session.to_le_bytes());
        self.parts.is_of_one_session = true;
    }

    pub fn finish(self) -> ([u8; 32], Parts) {
        (self.whole.finalize().into(), self.parts)
    }
}

impl Parts {
    /// The names of the parts in which they differ.
    pub fn differing(&self, other: &Self) -> Vec<String> {
        let lacks = |one: &Self, part| !one.named.contains(part);
        let own = self.named.iter().filter(|part| lacks(other, part));
        let others = other.named.iter().filter(|part| lacks(self, part));
        let mut names: Vec<String> = own.chain(others).map(|(name, _)| name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }
}
