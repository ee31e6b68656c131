//! Walls that are ready to be entered: what has to be made before a process starts.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use seccompiler::BpfProgram;

use super::layers::{self, Layer};
use super::system_calls::{self, Closing};
use super::temporary::PrivateFolder;
use super::{Access, Walls, files};
use crate::process::launch::Launch;
use crate::threads::blocking_or_here;

/// Walls of one process.
pub(in crate::process) struct Prepared {
    /// The open files and the size of files.
    most: (Option<u64>, Option<u64>),
    limits_access: bool,
    rulesets: Vec<OwnedFd>,
    filters: &'static [BpfProgram],
    private: Option<PrivateFolder>,
}

impl Prepared {
    /// Makes the walls of a process, if it has some. On a thread, because a path may be on a file system that does not answer.
    pub async fn of(launch: &Launch) -> io::Result<Option<Self>> {
        let Some(walls) = launch.walls.clone() else { return Ok(None) };
        let missing = walls.missing();
        if walls.is_required && !missing.is_empty() {
            return Err(io::Error::other(layers::lacking(&missing)));
        }
        let within = launch.temporary().to_owned();
        blocking_or_here(move || Self::new(&walls, &missing, &within)).await.map(Some)
    }

    fn new(walls: &Walls, missing: &[Layer], within: &Path) -> io::Result<Self> {
        let private = if walls.need_private_folder() { Some(PrivateFolder::create(within)?) } else { None };
        let own: Vec<PathBuf> = walls.own.iter().flat_map(|own| own.paths(&walls.environment)).collect();
        let limits_files = |access: &&Access| access.limits_files() && !missing.contains(&Layer::Files);
        let limited = walls.access.iter().filter(limits_files);
        let mut rulesets = limited
            .map(|access| files::ruleset(access, &own, private.as_ref().and_then(PrivateFolder::folder)))
            .collect::<io::Result<Vec<_>>>()?;
        let limits_access = walls.limit_access();
        if limits_access && !missing.contains(&Layer::Signals) {
            rulesets.push(files::scopes()?);
        }
        let filters = if limits_access && !missing.contains(&Layer::SystemCalls) {
            system_calls::filters(Closing {
                network: walls.close_network(),
                attributes: !walls.access.iter().all(Access::changes_files),
                names: walls.access.iter().any(|access| access.read.is_some()),
            })
        } else {
            &[]
        };
        Ok(Self { most: (walls.open_files, walls.file_size), limits_access, rulesets, filters, private })
    }

    /// Makes a program start within them. Returns its private folder for temporary files, if it has one.
    pub fn surround(self, command: &mut Command) -> Option<PrivateFolder> {
        let Self { most: (open_files, file_size), limits_access, rulesets, filters, private } = self;
        if let Some(private) = &private {
            for variable in ["TMPDIR", "TMP", "TEMP"] {
                command.env(variable, private.path());
            }
        }
        let enter = move || {
            layers::lower(open_files, file_size)?;
            if limits_access {
                layers::give_up_capabilities()?;
            }
            rulesets.iter().try_for_each(|ruleset| files::enter(ruleset.as_raw_fd()))?;
            filters.iter().try_for_each(system_calls::enter)
        };
        // SAFETY: between fork and exec only system calls are made, and errors from numbers; all memory was allocated before.
        #[expect(unsafe_code, reason = "a call between fork and exec; argued above")]
        unsafe {
            command.pre_exec(enter);
        }
        private
    }
}
