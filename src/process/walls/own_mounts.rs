//! Mounts of a process's own: over what is hidden from it lies something empty, and what it may not change is read-only.
//!
//! The rules about files do neither: they can only add to what may be reached, and they do not see changes of attributes.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{MountFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind, move_mount, open_tree};
use rustix::process::chdir;

/// What a process needs to make its mounts, prepared before the fork.
pub(super) struct OwnMounts {
    hidden: Vec<Hidden>,
    /// The folders and files that stay as they are, if everything else becomes read-only.
    writable: Option<Vec<Kept>>,
    /// The working directory, which is entered anew: it may be hidden.
    directory: CString,
}

struct Hidden {
    path: CString,
    is_folder: bool,
}

/// A folder with its own mount, once that is made.
struct Kept {
    path: CString,
    mount: Option<OwnedFd>,
}

impl OwnMounts {
    /// Of existing files and folders; what may be written to and does not exist is left out. None, if a path has a zero in it.
    pub fn new(hidden: &[PathBuf], writable: Option<&[PathBuf]>, directory: &Path) -> Option<Self> {
        let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).ok();
        let hide = |path: &PathBuf| Some(Hidden { path: text(path)?, is_folder: path.is_dir() });
        let keep = |path: &Path| Some(Kept { path: text(path)?, mount: None });
        let hidden = hidden.iter().map(hide).collect::<Option<_>>()?;
        let writable = match writable {
            Some(paths) => {
                let real = paths.iter().filter_map(|path| path.canonicalize().ok());
                Some(real.map(|path| keep(&path)).collect::<Option<_>>()?)
            }
            None => None,
        };
        Some(Self { hidden, writable, directory: text(directory)? })
    }

    /// Changes the namespace of mounts that the process has. Called between fork and exec.
    pub fn set_up(&mut self) -> io::Result<()> {
        if let Some(writable) = &mut self.writable {
            for kept in writable.iter_mut() {
                let flags =
                    OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
                kept.mount = Some(open_tree(CWD, kept.path.as_c_str(), flags)?);
            }
            make_read_only()?;
            for kept in writable.iter_mut() {
                let Some(mount) = kept.mount.take() else { continue };
                move_mount(mount.as_fd(), c"", CWD, kept.path.as_c_str(), MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
            }
        }
        self.hidden.iter().try_for_each(Hidden::cover)?;
        match chdir(self.directory.as_c_str()) {
            // It is hidden, or in something hidden.
            Err(Errno::NOENT | Errno::ACCESS) => Ok(chdir(c"/")?),
            entered => Ok(entered?),
        }
    }
}

impl Hidden {
    fn cover(&self) -> io::Result<()> {
        let path = self.path.as_c_str();
        if self.is_folder {
            let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
            mount(c"hidden", path, c"tmpfs", flags, c"size=4k,nr_inodes=1,mode=555")?;
        } else {
            mount_bind(c"/dev/null", path)?;
        }
        Ok(())
    }
}

/// `struct mount_attr`.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    users: u64,
}

/// `MOUNT_ATTR_RDONLY`.
const READ_ONLY: u64 = 1;

/// `AT_RECURSIVE`.
const RECURSIVE: libc::c_uint = 0x8000;

/// Makes every mount read-only.
fn make_read_only() -> io::Result<()> {
    let attributes = MountAttributes { set: READ_ONLY, clear: 0, propagation: 0, users: 0 };
    let (root, size) = (c"/", size_of::<MountAttributes>());
    // SAFETY: the path ends with a zero, and the attributes have the size that is given; the kernel reads both.
    #[expect(unsafe_code, reason = "the call has no wrapper; argued above")]
    let answer = unsafe {
        libc::syscall(libc::SYS_mount_setattr, libc::AT_FDCWD, root.as_ptr(), RECURSIVE, &raw const attributes, size)
    };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
