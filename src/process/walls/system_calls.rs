//! A filter of system calls: the network, and what acts on other processes or on the machine.
//!
//! It names what is closed. What it does not name, the other layers limit: files, signals, and rights that only root has, which a
//! walled process gives up.

use std::collections::BTreeMap;
use std::io;
use std::sync::LazyLock;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Op, SeccompCondition, SeccompFilter,
    SeccompRule, sock_filter,
};

/// The rules of a filter: the conditions under which each call is closed; always, if there are none.
pub(super) type Closed = BTreeMap<c_long, Vec<SeccompRule>>;

/// Closed to everything within walls.
const ALWAYS: &[c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_perf_event_open,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    // Memory and messages that are shared by number or name, and not by file.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // A second way to all other calls, which no filter sees.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // What files and names mean.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_quotactl,
    // The kernel and the machine.
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// What changes files without opening them, which Landlock does not limit. For a process that may change no file but its own temporary
/// ones they have no effect. They do not fail, because copying and unpacking files would fail with them.
const ATTRIBUTES: &[c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

/// The same, which programs do without where the file system has no such attributes.
const EXTENDED: &[c_long] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    REMOVEXATTRAT,
];

/// What tells of files that may not be read, and is no opening of them either.
const READING_EXTENDED: &[c_long] =
    &[libc::SYS_getxattr, libc::SYS_lgetxattr, GETXATTRAT, libc::SYS_listxattr, libc::SYS_llistxattr, LISTXATTRAT];

/// Requests to a file system that change attributes: flags, version, verity, encryption.
const CHANGING_REQUESTS: [u64; 6] = [0x4008_6602, 0x4004_6602, 0x401c_5820, 0x4008_7602, 0x4080_6685, 0x800c_6613];

/// Newer than the list of the C library. New calls have the same number on every machine.
const FCHMODAT2: c_long = 452;
const OPEN_TREE_ATTR: c_long = 467;
const SETXATTRAT: c_long = 463;
const GETXATTRAT: c_long = 464;
const LISTXATTRAT: c_long = 465;
const REMOVEXATTRAT: c_long = 466;
const FILE_SETATTR: c_long = 469;
/// Not in every C library.
const KEXEC_FILE_LOAD: c_long = if cfg!(target_arch = "x86_64") { 320 } else { 294 };

/// Typing into the terminal: `TIOCSTI`, `TIOCLINUX`.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// Making and removing subvolumes of btrfs, which no rule about files sees.
const SUBVOLUMES: [u64; 7] =
    [0x5000_940e, 0x5000_9418, 0x5000_9401, 0x5000_9417, 0x5000_940f, 0x5000_943f, 0x4008_941a];

/// Flags of `clone` that make namespaces, in which a process has rights that it lacks outside.
const NAMESPACES: [u64; 7] = [
    libc::CLONE_NEWNS as u64,
    libc::CLONE_NEWCGROUP as u64,
    libc::CLONE_NEWUTS as u64,
    libc::CLONE_NEWIPC as u64,
    libc::CLONE_NEWUSER as u64,
    libc::CLONE_NEWPID as u64,
    libc::CLONE_NEWNET as u64,
];

/// Whether the kernel filters system calls.
pub(super) fn is_supported() -> bool {
    static IS_SUPPORTED: LazyLock<bool> = LazyLock::new(|| {
        let action = libc::SECCOMP_RET_ERRNO;
        // SAFETY: the kernel reads one number, which outlives the call.
        #[expect(unsafe_code, reason = "the call has no wrapper; argued above")]
        let answer =
            unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0_u32, &raw const action) };
        answer == 0 && ALL.iter().all(Option::is_some)
    });
    *IS_SUPPORTED
}

/// What walls close.
#[derive(Debug, Clone, Copy)]
pub(super) struct Closing {
    /// All sockets but pairs.
    pub network: bool,
    /// Changing attributes of files.
    pub attributes: bool,
    /// Hearing of changes in folders, and reading attributes that are texts.
    pub names: bool,
}

/// The filters of each kind of walls; none for a processor that is not known.
static ALL: LazyLock<[Option<Vec<BpfProgram>>; 8]> = LazyLock::new(|| {
    let bit = |number: usize, place: usize| number >> place & 1 == 1;
    std::array::from_fn(|one| build(Closing { network: bit(one, 0), attributes: bit(one, 1), names: bit(one, 2) }))
});

/// The filters of walls.
pub(super) fn filters(closing: Closing) -> &'static [BpfProgram] {
    let Closing { network, attributes, names } = closing;
    ALL[usize::from(network) + 2 * usize::from(attributes) + 4 * usize::from(names)].as_deref().unwrap_or_default()
}

fn build(closing: Closing) -> Option<Vec<BpfProgram>> {
    let whole = |calls: &[c_long]| -> Closed { calls.iter().map(|call| (*call, Vec::new())).collect() };
    let mut closed = whole(ALWAYS);
    closed.extend(whole(&[FILE_SETATTR, KEXEC_FILE_LOAD, OPEN_TREE_ATTR]));
    closed.insert(libc::SYS_clone, NAMESPACES.iter().filter_map(|flag| rule([has(0, *flag)])).collect());
    closed.extend(of_others());
    let requests =
        TYPING.into_iter().chain(SUBVOLUMES).chain(CHANGING_REQUESTS.into_iter().filter(|_| closing.attributes));
    closed.insert(libc::SYS_ioctl, requests.filter_map(|what| rule([is(1, what)])).collect());
    closed.insert(libc::SYS_socket, if closing.network { Vec::new() } else { other_sockets() });
    // A pair that is not connected for good can send to any socket with a name.
    let loose = [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_RDM].into_iter();
    let loose = loose.filter_map(|kind| rule([condition(1, Op::MaskedEq(0xf), u64::from(kind.unsigned_abs()))]));
    let of_others = rule([is_not(0, u64::from(libc::AF_UNIX.unsigned_abs()))]);
    closed.insert(libc::SYS_socketpair, loose.chain(of_others).collect());
    if closing.names {
        closed.insert(libc::SYS_inotify_add_watch, Vec::new());
    }
    let mut absent = Closed::new();
    if closing.attributes {
        absent.extend(whole(EXTENDED));
    }
    if closing.names {
        absent.extend(whole(READING_EXTENDED));
    }
    let ignored = if closing.attributes { whole(ATTRIBUTES) } else { Closed::new() };
    // The C library then uses `clone`, whose flags a filter can see.
    let unseen = whole(&[libc::SYS_clone3]);
    let made = [(closed, libc::EPERM), (absent, libc::EOPNOTSUPP), (ignored, 0), (unseen, libc::ENOSYS)];
    let made = made.into_iter().filter(|(closed, _)| !closed.is_empty());
    made.map(|(closed, error)| program(closed, error)).collect()
}

/// Calls by which any process of a user changes how others of that user run. A process can use them on itself, as 0: a filter does not
/// know its number.
fn of_others() -> Closed {
    let not_itself = |argument| -> Vec<SeccompRule> { rule([is_not(argument, 0)]).into_iter().collect() };
    let by_number = [
        libc::SYS_prlimit64,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
        libc::SYS_sched_setaffinity,
    ];
    let mut closed: Closed = by_number.into_iter().map(|call| (call, not_itself(0))).collect();
    // The first argument says of what: a process, a group, a user.
    for (call, process) in [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)] {
        closed.insert(call, [rule([is_not(0, process)]), rule([is_not(1, 0)])].into_iter().flatten().collect());
    }
    closed
}

/// Sockets of anything but the internet, and those that carry raw packets. Asking the kernel for the machine's own addresses is needed to
/// resolve names.
fn other_sockets() -> Vec<SeccompRule> {
    let (inet, inet6, netlink) = (libc::AF_INET as u64, libc::AF_INET6 as u64, libc::AF_NETLINK as u64);
    let raw = condition(1, Op::MaskedEq(0xf), libc::SOCK_RAW as u64);
    let rules = [
        rule([is_not(0, inet), is_not(0, inet6), is_not(0, netlink)]),
        rule([is_not(0, netlink), raw]),
        rule([is(0, netlink), is_not(2, 0)]),
    ];
    rules.into_iter().flatten().collect()
}

fn condition(argument: u8, op: Op, value: u64) -> Option<SeccompCondition> {
    SeccompCondition::new(argument, Length::Dword, op, value).ok()
}

fn is(argument: u8, value: u64) -> Option<SeccompCondition> {
    condition(argument, Op::Eq, value)
}

pub(super) fn is_not(argument: u8, value: u64) -> Option<SeccompCondition> {
    condition(argument, Op::Ne, value)
}

fn has(argument: u8, flag: u64) -> Option<SeccompCondition> {
    condition(argument, Op::MaskedEq(flag), flag)
}

/// A rule of conditions that all hold.
pub(super) fn rule<const N: usize>(conditions: [Option<SeccompCondition>; N]) -> Option<SeccompRule> {
    SeccompRule::new(conditions.into_iter().collect::<Option<Vec<_>>>()?).ok()
}

pub(super) fn program(closed: Closed, error: libc::c_int) -> Option<BpfProgram> {
    let answer = SeccompAction::Errno(error.unsigned_abs());
    let machine = std::env::consts::ARCH.try_into().ok()?;
    let filter = SeccompFilter::new(closed, SeccompAction::Allow, answer, machine).ok()?;
    let mut program = without_other_numbers();
    program.extend(BpfProgram::try_from(filter).ok()?);
    Some(program)
}

/// On `x86_64`, every call has a second number, with this bit, that a filter of numbers would let through.
#[cfg(target_arch = "x86_64")]
fn without_other_numbers() -> BpfProgram {
    const X32: u32 = 0x4000_0000;
    let step = |code: u32, jt, jf, k| sock_filter { code: u16::try_from(code).unwrap_or_default(), jt, jf, k };
    vec![
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()),
    ]
}

#[cfg(not(target_arch = "x86_64"))]
fn without_other_numbers() -> BpfProgram {
    BpfProgram::new()
}

/// Filters the calls of the calling process, for good. Called between fork and exec.
pub(super) fn enter(filter: &BpfProgram) -> io::Result<()> {
    seccompiler::apply_filter(filter).map_err(|_| io::Error::last_os_error())
}
