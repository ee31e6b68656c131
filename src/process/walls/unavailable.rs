//! Walls of a system that has none.

use std::io;
use std::process::Command;
use std::time::Duration;

use rustix::process::Pid;

use super::layers;
use crate::process::launch::Launch;

/// No walls.
pub(in crate::process) struct Prepared;

/// Nothing.
#[derive(Debug, Default)]
pub(in crate::process) struct Surroundings;

impl Surroundings {
    /// No process has one.
    pub fn has_monitor(&self) -> bool {
        false
    }

    /// Nothing is to be opened.
    pub fn open(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Prepared {
    /// Refuses what requires walls.
    #[expect(clippy::unused_async, reason = "where there are walls, it waits")]
    pub async fn of(launch: &Launch) -> io::Result<Option<Self>> {
        let Some(walls) = &launch.walls else { return Ok(None) };
        let missing = walls.missing();
        if walls.are_refused_without(&missing) { Err(io::Error::other(layers::lacking(&missing))) } else { Ok(None) }
    }

    /// No process has one.
    pub fn has_monitor(&self) -> bool {
        false
    }

    /// The command that starts a program within them.
    #[expect(clippy::unused_self, reason = "on macOS they are part of it")]
    pub fn command(&self, launch: &Launch) -> Command {
        launch.command()
    }

    /// It stays where it is.
    pub fn depart(&mut self, _: &mut Command, _: Option<Pid>) {}

    /// It starts without.
    pub fn surround(self, _: &mut Command) -> Surroundings {
        Surroundings
    }
}

/// There are none.
pub async fn private_folders_removed(_: Duration) {}

/// Nothing is recorded.
pub fn can_record() -> io::Result<()> {
    Err(io::Error::other("this system does not report the system calls of a process"))
}
