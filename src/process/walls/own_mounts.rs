//! Mounts of a process's own: over what is hidden from it lies something empty, and what it may not change is read-only.
//!
//! The rules about files do neither: they can only add to what may be reached, and they do not see changes of attributes.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{MountFlags, MoveMountFlags, OpenTreeFlags, mount, move_mount, open_tree};
use rustix::process::chdir;

/// What a process needs to make its mounts, prepared before the fork.
pub(super) struct OwnMounts {
    hidden: Vec<Hidden>,
    /// Folders that get a mount of their own, so that they cannot be renamed: something in them is hidden. The outermost first.
    pinned: Vec<CString>,
    /// The folders and files that stay as they are, if everything else becomes read-only.
    writable: Option<Vec<Copied>>,
    /// The working directory, which is entered anew: it may be hidden.
    directory: CString,
}

struct Hidden {
    path: CString,
    /// For a file, what lies over it.
    empty: Option<Copied>,
}

/// A folder or a file, and a copy of its mount once that is made.
struct Copied {
    path: CString,
    mount: Option<OwnedFd>,
}

impl OwnMounts {
    /// Of paths that exist and contain no link. None, if one has a zero in it.
    pub fn new(hidden: &[PathBuf], pinned: &[PathBuf], writable: Option<&[PathBuf]>, directory: &Path) -> Option<Self> {
        let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).ok();
        let hide = |path: &PathBuf| {
            let empty = (!path.is_dir()).then(|| Copied { path: NOTHING.to_owned(), mount: None });
            Some(Hidden { path: text(path)?, empty })
        };
        let keep = |path: &PathBuf| Some(Copied { path: text(path)?, mount: None });
        let writable = match writable {
            Some(paths) => Some(paths.iter().map(keep).collect::<Option<_>>()?),
            None => None,
        };
        Some(Self {
            hidden: hidden.iter().map(hide).collect::<Option<_>>()?,
            pinned: pinned.iter().map(|path| text(path)).collect::<Option<_>>()?,
            writable,
            directory: text(directory)?,
        })
    }

    /// Changes the namespace of mounts that the process has. Called between fork and exec.
    pub fn set_up(&mut self) -> io::Result<()> {
        // What something is made of may be hidden later.
        for empty in self.hidden.iter_mut().filter_map(|hidden| hidden.empty.as_mut()) {
            let mount = copy_of(&empty.path)?;
            make_read_only(mount.as_fd(), c"", OF_DESCRIPTOR)?;
            empty.mount = Some(mount);
        }
        if let Some(writable) = &mut self.writable {
            for kept in writable.iter_mut() {
                kept.mount = Some(copy_of(&kept.path)?);
            }
            make_read_only(CWD, c"/", RECURSIVE)?;
            for kept in writable.iter_mut() {
                let Some(mount) = kept.mount.take() else { continue };
                put(&mount, &kept.path)?;
            }
        }
        self.pinned.iter().try_for_each(|path| put(&copy_of(path)?, path))?;
        self.hidden.iter_mut().try_for_each(Hidden::cover)?;
        match chdir(self.directory.as_c_str()) {
            // It is hidden, or in something hidden.
            Err(Errno::NOENT | Errno::ACCESS) => Ok(chdir(c"/")?),
            entered => Ok(entered?),
        }
    }
}

/// A file without content.
const NOTHING: &CStr = c"/dev/null";

impl Hidden {
    fn cover(&mut self) -> io::Result<()> {
        if let Some(mount) = self.empty.as_mut().and_then(|empty| empty.mount.take()) {
            return put(&mount, &self.path);
        }
        let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        Ok(mount(c"hidden", self.path.as_c_str(), c"tmpfs", flags, c"size=4k,nr_inodes=1,mode=555")?)
    }
}

/// A copy of what is mounted at a path, with all beneath it.
fn copy_of(path: &CStr) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(CWD, path, flags)?)
}

fn put(mount: &OwnedFd, path: &CStr) -> io::Result<()> {
    Ok(move_mount(mount.as_fd(), c"", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
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

/// `AT_RECURSIVE`: of all mounts beneath, too.
const RECURSIVE: libc::c_uint = 0x8000;
/// `AT_EMPTY_PATH`: of the descriptor.
const OF_DESCRIPTOR: libc::c_uint = 0x1000;

fn make_read_only(folder: BorrowedFd<'_>, path: &CStr, flags: libc::c_uint) -> io::Result<()> {
    let attributes = MountAttributes { set: READ_ONLY, clear: 0, propagation: 0, users: 0 };
    let (folder, size) = (folder.as_raw_fd(), size_of::<MountAttributes>());
    // SAFETY: the path ends with a zero, and the attributes have the size that is given; the kernel reads both.
    #[expect(unsafe_code, reason = "the call has no wrapper; argued above")]
    let answer =
        unsafe { libc::syscall(libc::SYS_mount_setattr, folder, path.as_ptr(), flags, &raw const attributes, size) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
