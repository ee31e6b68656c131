//! Rules about files and signals, by Landlock.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, Scope,
};

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;

use super::Access;

/// The newest version of Landlock whose rights are handled; an older kernel handles what it knows.
const NEWEST: ABI = ABI::V7;

/// `LANDLOCK_CREATE_RULESET_VERSION`.
const VERSION: u32 = 1;

/// What every program may read and run: the system's programs, libraries and data, and what of `/etc` says how to use them.
/// Neither `/home`, `/root`, `/tmp` nor the rest of `/etc`, `/run` and `/var` is among it.
pub(super) const SYSTEM: [&str; 50] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/nix/store",
    "/gnu/store",
    "/proc",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/login.defs",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
    "/run/NetworkManager",
    "/run/resolvconf",
    "/run/systemd/resolve",
    "/var/lib/ca-certificates",
];

/// Devices without content of others.
pub(super) const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The version of Landlock that the kernel offers; 0 for none.
pub(in crate::process) fn version() -> u32 {
    static VERSION_HERE: LazyLock<u32> = LazyLock::new(|| {
        let none = std::ptr::null::<u64>();
        // SAFETY: asking for the version reads no memory.
        #[expect(unsafe_code, reason = "Landlock's system calls have no wrapper; argued above")]
        let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION) };
        u32::try_from(version).unwrap_or(0)
    });
    *VERSION_HERE
}

/// The rules of an access. `own` can be read whatever it says, and `private` also written.
pub(super) fn ruleset(access: &Access, own: &[PathBuf], private: Option<BorrowedFd<'_>>) -> io::Result<OwnedFd> {
    let (read, all) = (AccessFs::from_read(NEWEST), AccessFs::from_all(NEWEST));
    let mut rules = Rules(begin(|rules| rules.handle_access(all))?);
    match &access.read {
        None => rules.allow(Path::new("/"), read)?,
        Some(folders) => {
            let system = SYSTEM.iter().map(Path::new);
            system
                .chain(folders.iter().chain(own).map(PathBuf::as_path))
                .try_for_each(|path| rules.allow(path, read))?;
        }
    }
    DEVICES.iter().try_for_each(|device| rules.allow(Path::new(device), all))?;
    match &access.write {
        None => rules.allow(Path::new("/"), AccessFs::from_write(NEWEST))?,
        Some(folders) => {
            folders.iter().try_for_each(|path| rules.allow(path, all & !DEVICE_FILES))?;
            if let Some(private) = private {
                rules.allow_in(private, all & !DEVICE_FILES)?;
            }
        }
    }
    finished(rules.0)
}

/// Files that stand for a device can reach what no rule names.
const DEVICE_FILES: BitFlags<AccessFs> = landlock::make_bitflags!(AccessFs::{MakeChar | MakeBlock});

/// Whether the kernel has rules about signals.
pub(super) fn has_scopes() -> bool {
    version() >= 6
}

/// Lets what a process in a namespace of pids sees as `/proc` be read. It has just been mounted, so no rule names it. Called between fork and
/// exec.
pub(super) fn allow_own_processes(ruleset: libc::c_int) -> io::Result<()> {
    let proc = open(c"/proc", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    add_rule(ruleset, proc.as_fd(), AccessFs::from_read(ABI::V1).bits())
}

/// Allows what a folder has beneath it, without an allocation.
pub(in crate::process) fn add_rule(ruleset: libc::c_int, folder: BorrowedFd<'_>, allowed: u64) -> io::Result<()> {
    let rule = Beneath { allowed, folder: folder.as_raw_fd() };
    // SAFETY: the rule has the kernel's layout, and both descriptors are open; the kernel only reads it.
    #[expect(unsafe_code, reason = "Landlock's system calls have no wrapper; argued above")]
    let added = unsafe { libc::syscall(libc::SYS_landlock_add_rule, ruleset, BENEATH, &raw const rule, 0_u32) };
    if added < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// `LANDLOCK_RULE_PATH_BENEATH`.
const BENEATH: libc::c_int = 1;

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct Beneath {
    allowed: u64,
    folder: libc::c_int,
}

/// No signals to processes outside, and no sockets by an abstract name.
pub(super) fn scopes() -> io::Result<OwnedFd> {
    finished(begin(|rules| rules.scope(Scope::Signal | Scope::AbstractUnixSocket))?)
}

fn begin(handle: impl FnOnce(Ruleset) -> Result<Ruleset, RulesetError>) -> io::Result<RulesetCreated> {
    let rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    handle(rules).and_then(Ruleset::create).map_err(io::Error::other)
}

fn finished(rules: RulesetCreated) -> io::Result<OwnedFd> {
    Option::<OwnedFd>::from(rules).ok_or_else(|| io::Error::other("the kernel has no Landlock"))
}

struct Rules(RulesetCreated);

impl Rules {
    /// Allows what a path has beneath it. One that does not exist, or that this user cannot reach, has nothing.
    fn allow(&mut self, path: &Path, access: BitFlags<AccessFs>) -> io::Result<()> {
        let file = match open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let is_folder = FileType::from_raw_mode(fstat(&file)?.st_mode).is_dir();
        let access = if is_folder { access } else { access & AccessFs::from_file(NEWEST) };
        self.allow_in(file, access)
    }

    fn allow_in(&mut self, file: impl AsFd, access: BitFlags<AccessFs>) -> io::Result<()> {
        (&mut self.0).add_rule(PathBeneath::new(file, access)).map(drop).map_err(io::Error::other)
    }
}

/// Restricts the calling process, for good. Called between fork and exec.
pub(super) fn enter(ruleset: libc::c_int) -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    // SAFETY: takes two numbers.
    #[expect(unsafe_code, reason = "Landlock's system calls have no wrapper; argued above")]
    let entered = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0_u32) };
    if entered < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
