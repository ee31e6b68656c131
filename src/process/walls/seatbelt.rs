//! Walls of macOS: its `sandbox-exec` starts a program within a profile. Compiled, but no machine of the project has run it.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Resource};

use super::profile::profile;
use super::{Access, Walls, layers};
use crate::config::sandbox::Network;
use crate::process::keeper;
use crate::process::launch::Launch;

/// What starts a program within a profile. Its place, and not its name: a tool must not choose it.
const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// Walls of one process.
pub(in crate::process) struct Prepared {
    profile: Option<String>,
    most: [(Resource, Option<u64>); 2],
    private: Option<PrivateFolder>,
}

/// What belongs to a process within walls, and ends with it.
#[derive(Debug, Default)]
pub(in crate::process) struct Surroundings {
    _private: Option<PrivateFolder>,
}

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
    /// Makes the walls of a process, if it has some.
    #[expect(clippy::unused_async, reason = "on Linux it waits")]
    pub async fn of(launch: &Launch) -> io::Result<Option<Self>> {
        let Some(walls) = &launch.walls else { return Ok(None) };
        let missing = walls.missing();
        if walls.are_refused_without(&missing) {
            return Err(io::Error::other(layers::lacking(&missing)));
        }
        let most = [(Resource::Nofile, walls.open_files), (Resource::Fsize, walls.file_size)];
        if !walls.limit_access() || !has_profiles() {
            return Ok(Some(Self { profile: None, most, private: None }));
        }
        let private = walls.need_private_folder().then(|| PrivateFolder::create(launch.temporary())).transpose()?;
        let own: Vec<PathBuf> = walls.own.iter().flat_map(|own| own.paths(&walls.environment)).collect();
        let profile = profile(walls, &own, private.as_ref().map(|private| private.0.as_path()));
        Ok(Some(Self { profile: Some(profile), most, private }))
    }

    /// No process has one.
    pub fn has_monitor(&self) -> bool {
        false
    }

    /// The command that starts a program within them.
    pub fn command(&self, launch: &Launch) -> Command {
        match &self.profile {
            Some(profile) => {
                let mut command = Command::new(PROGRAM);
                command.arg("-p").arg(profile).arg(&launch.program).args(&launch.args);
                command
            }
            None => launch.command(),
        }
    }

    /// It stays where it is.
    pub fn depart(&mut self, _: &mut Command, _: Option<Pid>) {}

    /// Makes a program start within them.
    pub fn surround(self, command: &mut Command) -> Surroundings {
        let Self { profile: _, most, private } = self;
        if let Some(private) = &private {
            for variable in ["TMPDIR", "TMP", "TEMP"] {
                command.env(variable, &private.0);
            }
        }
        // SAFETY: between fork and exec only system calls are made, and errors from numbers.
        #[expect(unsafe_code, reason = "a call between fork and exec; argued above")]
        unsafe {
            command.pre_exec(move || layers::lower(&most));
        }
        Surroundings { _private: private }
    }
}

/// Whether this system starts programs within profiles: one that allows a program to run, and nothing else, is tried.
pub(super) fn has_profiles() -> bool {
    static KNOWN: LazyLock<bool> = LazyLock::new(|| {
        let access = Access { read: Some(Vec::new()), write: Some(Vec::new()), network: Network::Off };
        let open = Access { network: Network::On, ..access.clone() };
        [access, open].into_iter().all(|access| {
            let walls = Walls { access: vec![access], hidden: vec!["/private/var/empty".into()], ..Walls::default() };
            let _open = keeper::open_for_starts();
            let mut command = Command::new(PROGRAM);
            command
                .arg("-p")
                .arg(profile(&walls, &[], Some(Path::new("/private/tmp"))))
                .arg("/bin/sh")
                .args(["-c", ":"]);
            command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        })
    });
    *KNOWN
}

/// A folder for temporary files that is removed when this is dropped.
#[derive(Debug)]
struct PrivateFolder(PathBuf);

impl PrivateFolder {
    /// A new one, which only this user can open.
    fn create(within: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("hostler.{}.{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = within.join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // It follows no link.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Those that a killed hostler left lie in the user's own temporary folder, which the system empties.
pub async fn private_folders_removed(_: Duration) {}

/// Nothing is recorded.
pub fn can_record() -> io::Result<()> {
    Err(io::Error::other("this system does not report the system calls of a process"))
}
