//! Walls of a system that has none.

use std::io;
use std::process::Command;
use std::time::Duration;

use super::layers;
use crate::process::launch::Launch;

/// No walls.
pub(in crate::process) struct Prepared;

/// No folder.
#[derive(Debug)]
pub(in crate::process) struct PrivateFolder;

impl Prepared {
    /// Refuses what requires walls.
    #[expect(clippy::unused_async, reason = "where there are walls, it waits")]
    pub async fn of(launch: &Launch) -> io::Result<Option<Self>> {
        match &launch.walls {
            Some(walls) if walls.is_required => Err(io::Error::other(layers::lacking(&walls.missing()))),
            _ => Ok(None),
        }
    }

    /// It starts without.
    pub fn surround(self, _: &mut Command) -> Option<PrivateFolder> {
        None
    }
}

/// There are none.
pub async fn private_folders_removed(_: Duration) {}
