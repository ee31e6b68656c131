//! What a system call would do to files and the network: its number and arguments in, deeds out. Reads a process by a trait, and touches
//! no file itself.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use libc::c_long;

use super::addresses::{self, Address};

/// Newer than the list of the C library, with the same number on every machine.
const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;

/// `RESOLVE_IN_ROOT` of `openat2`: absolute paths begin at the folder.
const IN_ROOT: u64 = 0x10;

/// How many messages of one call are looked at.
const MOST_MESSAGES: u64 = 64;

/// What a program does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Deed {
    /// Opens a file or lists a folder.
    Open { path: PathBuf, reads: bool, writes: bool, creates: bool },
    /// Makes a name that is not there.
    Make(PathBuf),
    /// Removes one that is there.
    Remove(PathBuf),
    /// Gives a file a new name, which may be another file's.
    Move(PathBuf, PathBuf),
    /// Gives it a second name.
    Link(PathBuf, PathBuf),
    /// Changes a file that is there: its size, or its attributes.
    Change(PathBuf),
    /// Runs a program.
    Run(PathBuf),
    /// Watches a file or a folder for changes.
    Watch(PathBuf),
    /// Sends to an address.
    Reach(Address),
    /// Takes an address for itself.
    Bind(Address),
}

/// A process that makes a call, as far as its call refers to it.
pub(super) trait Caller {
    /// Bytes of its memory; fewer, where it ends.
    fn memory(&self, address: u64, length: usize) -> Option<Vec<u8>>;
    /// A text of its memory that ends with a zero.
    fn text(&self, address: u64) -> Option<Vec<u8>>;
    /// What a descriptor of its is open for.
    fn descriptor(&self, number: i32) -> Option<PathBuf>;
    /// Its working directory.
    fn directory(&self) -> Option<PathBuf>;
}

/// Where a call has a path: the argument with the folder that it begins at, if there is one, and its own.
#[derive(Debug, Clone, Copy)]
struct At(Option<usize>, usize);

/// A part of what a call does, by its arguments.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// The flags are an argument.
    Open(At, usize),
    /// The flags are in a `struct open_how`.
    OpenHow(At, usize),
    #[cfg(target_arch = "x86_64")]
    Create(At),
    Make(At),
    Remove(At),
    Move(At, At),
    Link(At, At),
    Change(At),
    ChangeOpen(usize),
    Run(At),
    Watch(At),
    /// The arguments with an address and its length.
    Reach(usize, usize),
    Bind(usize, usize),
    /// The argument with a `struct msghdr`.
    Send(usize),
    /// The same for an array, with its length.
    SendMany(usize, usize),
}

const fn at(path: usize) -> At {
    At(None, path)
}

const fn beneath(folder: usize, path: usize) -> At {
    At(Some(folder), path)
}

/// The calls that are recorded.
const CALLS: &[(c_long, Part)] = &[
    (libc::SYS_openat, Part::Open(beneath(0, 1), 2)),
    (libc::SYS_openat2, Part::OpenHow(beneath(0, 1), 2)),
    (libc::SYS_mkdirat, Part::Make(beneath(0, 1))),
    (libc::SYS_mknodat, Part::Make(beneath(0, 1))),
    (libc::SYS_unlinkat, Part::Remove(beneath(0, 1))),
    (libc::SYS_symlinkat, Part::Make(beneath(1, 2))),
    (libc::SYS_renameat2, Part::Move(beneath(0, 1), beneath(2, 3))),
    (libc::SYS_renameat, Part::Move(beneath(0, 1), beneath(2, 3))),
    (libc::SYS_linkat, Part::Link(beneath(0, 1), beneath(2, 3))),
    (libc::SYS_truncate, Part::Change(at(0))),
    (libc::SYS_fchmodat, Part::Change(beneath(0, 1))),
    (FCHMODAT2, Part::Change(beneath(0, 1))),
    (libc::SYS_fchownat, Part::Change(beneath(0, 1))),
    (libc::SYS_utimensat, Part::Change(beneath(0, 1))),
    (libc::SYS_setxattr, Part::Change(at(0))),
    (libc::SYS_lsetxattr, Part::Change(at(0))),
    (libc::SYS_removexattr, Part::Change(at(0))),
    (libc::SYS_lremovexattr, Part::Change(at(0))),
    (SETXATTRAT, Part::Change(beneath(0, 1))),
    (REMOVEXATTRAT, Part::Change(beneath(0, 1))),
    (libc::SYS_fchmod, Part::ChangeOpen(0)),
    (libc::SYS_fchown, Part::ChangeOpen(0)),
    (libc::SYS_fsetxattr, Part::ChangeOpen(0)),
    (libc::SYS_fremovexattr, Part::ChangeOpen(0)),
    (libc::SYS_execve, Part::Run(at(0))),
    (libc::SYS_execveat, Part::Run(beneath(0, 1))),
    (libc::SYS_inotify_add_watch, Part::Watch(at(1))),
    (libc::SYS_connect, Part::Reach(1, 2)),
    (libc::SYS_bind, Part::Bind(1, 2)),
    (libc::SYS_sendto, Part::Reach(4, 5)),
    (libc::SYS_sendmsg, Part::Send(1)),
    (libc::SYS_sendmmsg, Part::SendMany(1, 2)),
];

/// Those that only older machines have.
#[cfg(target_arch = "x86_64")]
const OLDER_CALLS: &[(c_long, Part)] = &[
    (libc::SYS_open, Part::Open(at(0), 1)),
    (libc::SYS_creat, Part::Create(at(0))),
    (libc::SYS_mkdir, Part::Make(at(0))),
    (libc::SYS_mknod, Part::Make(at(0))),
    (libc::SYS_rmdir, Part::Remove(at(0))),
    (libc::SYS_unlink, Part::Remove(at(0))),
    (libc::SYS_symlink, Part::Make(at(1))),
    (libc::SYS_rename, Part::Move(at(0), at(1))),
    (libc::SYS_link, Part::Link(at(0), at(1))),
    (libc::SYS_chmod, Part::Change(at(0))),
    (libc::SYS_chown, Part::Change(at(0))),
    (libc::SYS_lchown, Part::Change(at(0))),
    (libc::SYS_utime, Part::Change(at(0))),
    (libc::SYS_utimes, Part::Change(at(0))),
    (libc::SYS_futimesat, Part::Change(beneath(0, 1))),
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_CALLS: &[(c_long, Part)] = &[];

/// The numbers of the calls that are recorded.
pub(super) fn calls() -> impl Iterator<Item = c_long> {
    CALLS.iter().chain(OLDER_CALLS).map(|(call, _)| *call)
}

/// What a call does; `None` if that cannot be read.
pub(super) fn deeds(call: c_long, arguments: &[u64; 6], caller: &impl Caller) -> Option<Vec<Deed>> {
    let Some((_, part)) = CALLS.iter().chain(OLDER_CALLS).find(|(number, _)| *number == call) else {
        return Some(Vec::new());
    };
    let read = Reading { arguments, caller };
    Some(match *part {
        Part::Open(at, flags) => opened(read.path(at)?, arguments[flags]),
        Part::OpenHow(at, how) => {
            let how = caller.memory(arguments[how], 24)?;
            let word = |number: usize| -> Option<u64> {
                Some(u64::from_ne_bytes(how.get(8 * number..8 * number + 8)?.try_into().ok()?))
            };
            let path = if word(2)? & IN_ROOT == 0 { read.path(at)? } else { read.path_in_root(at)? };
            opened(path, word(0)?)
        }
        #[cfg(target_arch = "x86_64")]
        Part::Create(at) => opened(read.path(at)?, bits(libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC)),
        Part::Make(at) => vec![Deed::Make(read.path(at)?)],
        Part::Remove(at) => vec![Deed::Remove(read.path(at)?)],
        Part::Move(old, new) => vec![Deed::Move(read.path(old)?, read.path(new)?)],
        Part::Link(old, new) => vec![Deed::Link(read.path(old)?, read.path(new)?)],
        Part::Change(at) => vec![Deed::Change(read.path(at)?)],
        Part::ChangeOpen(at) => vec![Deed::Change(caller.descriptor(number(arguments[at]))?)],
        Part::Run(at) => vec![Deed::Run(read.path(at)?)],
        Part::Watch(at) => vec![Deed::Watch(read.path(at)?)],
        Part::Reach(at, length) => {
            read.address(arguments[at], arguments[length])?.map(Deed::Reach).into_iter().collect()
        }
        Part::Bind(at, length) => read.address(arguments[at], arguments[length])?.map(Deed::Bind).into_iter().collect(),
        Part::Send(at) => read.sent(arguments[at])?.map(Deed::Reach).into_iter().collect(),
        Part::SendMany(at, count) => {
            let each = (0..arguments[count].min(MOST_MESSAGES)).map(|number| arguments[at].wrapping_add(64 * number));
            let sent = each.map(|message| read.sent(message)).collect::<Option<Vec<_>>>()?;
            sent.into_iter().flatten().map(Deed::Reach).collect()
        }
    })
}

fn bits(flags: libc::c_int) -> u64 {
    u64::from(flags.cast_unsigned())
}

/// A descriptor: the lower half of an argument.
#[expect(clippy::cast_possible_truncation, reason = "the kernel reads no more of it")]
fn number(argument: u64) -> i32 {
    (argument as u32).cast_signed()
}

fn opened(path: PathBuf, flags: u64) -> Vec<Deed> {
    let has = |flag: libc::c_int| flags & bits(flag) == bits(flag);
    if has(libc::O_PATH) {
        // It names a file, and opens nothing.
        return Vec::new();
    }
    if has(libc::O_TMPFILE) {
        return vec![Deed::Make(path.join("a file without a name"))];
    }
    if has(libc::O_CREAT | libc::O_EXCL) {
        return vec![Deed::Make(path)];
    }
    let way = flags & bits(libc::O_ACCMODE);
    let (reads, writes) = (way != bits(libc::O_WRONLY), way != bits(libc::O_RDONLY) || has(libc::O_TRUNC));
    vec![Deed::Open { path, reads, writes, creates: has(libc::O_CREAT) }]
}

struct Reading<'a, C> {
    arguments: &'a [u64; 6],
    caller: &'a C,
}

impl<C: Caller> Reading<'_, C> {
    /// A path, absolute.
    fn path(&self, at: At) -> Option<PathBuf> {
        let path = self.written(at)?;
        if path.is_absolute() { Some(path) } else { self.joined(at, &path) }
    }

    /// The same for a call that takes the folder for the root.
    fn path_in_root(&self, at: At) -> Option<PathBuf> {
        let path = self.written(at)?;
        self.joined(at, path.strip_prefix("/").unwrap_or(&path))
    }

    /// The path as it is; empty, if the call means the folder itself, as a null pointer does.
    fn written(&self, At(_, path): At) -> Option<PathBuf> {
        match self.arguments[path] {
            0 => Some(PathBuf::new()),
            address => Some(OsStr::from_bytes(&self.caller.text(address)?).into()),
        }
    }

    fn joined(&self, At(folder, _): At, path: &std::path::Path) -> Option<PathBuf> {
        let folder = match folder.map(|folder| number(self.arguments[folder])) {
            None | Some(libc::AT_FDCWD) => self.caller.directory()?,
            Some(descriptor) => self.caller.descriptor(descriptor)?,
        };
        Some(if path.as_os_str().is_empty() { folder } else { folder.join(path) })
    }

    /// An address; `Some(None)` where the call has none, because its socket is connected.
    #[expect(clippy::option_option, reason = "what cannot be read is another thing than what is not there")]
    fn address(&self, address: u64, length: u64) -> Option<Option<Address>> {
        let length = usize::try_from(length & u64::from(u32::MAX)).ok()?.min(addresses::LONGEST);
        if address == 0 || length < 2 {
            return Some(None);
        }
        addresses::parse(&self.caller.memory(address, length)?).map(Some)
    }

    /// The address in a `struct msghdr`, which begins with a pointer and a length.
    #[expect(clippy::option_option, reason = "as above")]
    fn sent(&self, message: u64) -> Option<Option<Address>> {
        let head = self.caller.memory(message, 12)?;
        let address = u64::from_ne_bytes(head.get(..8)?.try_into().ok()?);
        let length = u32::from_ne_bytes(head.get(8..12)?.try_into().ok()?);
        self.address(address, length.into())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// A process with some memory, whose descriptor 3 is open for `/three`.
    #[derive(Default)]
    struct Process(BTreeMap<u64, Vec<u8>>);

    impl Caller for Process {
        fn memory(&self, address: u64, length: usize) -> Option<Vec<u8>> {
            let (start, bytes) = self.0.range(..=address).next_back()?;
            let bytes = bytes.get(usize::try_from(address - start).ok()?..)?;
            Some(bytes[..bytes.len().min(length)].to_vec())
        }

        fn text(&self, address: u64) -> Option<Vec<u8>> {
            Some(self.memory(address, 4096)?.split(|byte| *byte == 0).next()?.to_vec())
        }

        fn descriptor(&self, number: i32) -> Option<PathBuf> {
            (number == 3).then(|| "/three".into())
        }

        fn directory(&self) -> Option<PathBuf> {
            Some("/here".into())
        }
    }

    /// `AT_FDCWD`, with an upper half that means nothing.
    const HERE: u64 = 0xffff_ffff_ffff_ff9c;

    fn process() -> Process {
        let how = |flags: i32, resolve: u64| [bits(flags), 0, resolve].map(u64::to_ne_bytes).concat();
        let four = [&[2, 0, 0, 80, 10, 0, 0, 1][..], &[0; 8]].concat();
        let message = [100_u64.to_ne_bytes(), 16_u64.to_ne_bytes()].concat();
        Process(BTreeMap::from([
            (10, b"/a\0".to_vec()),
            (20, b"b/c\0".to_vec()),
            (30, b"\0".to_vec()),
            (40, b"b/d\0".to_vec()),
            (100, four),
            (200, how(libc::O_RDWR | libc::O_CREAT, 0)),
            (300, how(libc::O_RDONLY, IN_ROOT)),
            (400, [message.clone(), vec![0; 48], 0_u64.to_ne_bytes().to_vec(), vec![0; 56]].concat()),
        ]))
    }

    fn of(call: c_long, arguments: [u64; 6]) -> Option<Vec<Deed>> {
        deeds(call, &arguments, &process())
    }

    fn open(path: &str, reads: bool, writes: bool, creates: bool) -> Vec<Deed> {
        vec![Deed::Open { path: path.into(), reads, writes, creates }]
    }

    #[test]
    fn paths_begin_where_the_call_says() {
        let read = |folder, path| of(libc::SYS_openat, [folder, path, 0, 0, 0, 0]);
        assert_eq!(read(HERE, 10), Some(open("/a", true, false, false)));
        assert_eq!(read(HERE, 20), Some(open("/here/b/c", true, false, false)));
        assert_eq!(read(3, 20), Some(open("/three/b/c", true, false, false)));
        assert_eq!(read(3, 10), Some(open("/a", true, false, false)), "an absolute one begins at the root");
        assert_eq!(read(4, 20), None, "a descriptor that cannot be read");
        assert_eq!(read(HERE, 1), None, "memory that cannot be read");
        assert_eq!(of(libc::SYS_openat2, [HERE, 20, 200, 24, 0, 0]), Some(open("/here/b/c", true, true, true)));
        assert_eq!(of(libc::SYS_openat2, [3, 10, 300, 24, 0, 0]), Some(open("/three/a", true, false, false)));
        let itself = |path| Some(vec![Deed::Change(PathBuf::from(path))]);
        assert_eq!(of(libc::SYS_utimensat, [3, 0, 0, 0, 0, 0]), itself("/three"));
        assert_eq!(of(libc::SYS_fchownat, [3, 30, 0, 0, 0x1000, 0]), itself("/three"));
        assert_eq!(of(libc::SYS_fchmod, [3, 0, 0, 0, 0, 0]), itself("/three"));
    }

    #[test]
    fn what_is_opened_is_read_or_written() {
        let opened = |flags: i32| of(libc::SYS_openat, [HERE, 10, bits(flags), 0, 0, 0]);
        assert_eq!(opened(libc::O_WRONLY | libc::O_CREAT), Some(open("/a", false, true, true)));
        assert_eq!(opened(libc::O_RDWR), Some(open("/a", true, true, false)));
        assert_eq!(opened(libc::O_RDONLY | libc::O_TRUNC), Some(open("/a", true, true, false)));
        assert_eq!(opened(libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL), Some(vec![Deed::Make("/a".into())]));
        assert_eq!(opened(libc::O_PATH), Some(Vec::new()));
        assert!(matches!(opened(libc::O_TMPFILE | libc::O_RDWR).unwrap()[..], [Deed::Make(_)]));
    }

    #[test]
    fn names_are_made_and_moved() {
        let path = |text: &str| PathBuf::from(text);
        assert_eq!(of(libc::SYS_unlinkat, [3, 20, 0, 0, 0, 0]), Some(vec![Deed::Remove(path("/three/b/c"))]));
        assert_eq!(of(libc::SYS_mkdirat, [3, 20, 0, 0, 0, 0]), Some(vec![Deed::Make(path("/three/b/c"))]));
        assert_eq!(of(libc::SYS_symlinkat, [10, 3, 20, 0, 0, 0]), Some(vec![Deed::Make(path("/three/b/c"))]));
        let moved = Deed::Move(path("/here/b/c"), path("/three/b/d"));
        assert_eq!(of(libc::SYS_renameat2, [HERE, 20, 3, 40, 0, 0]), Some(vec![moved]));
        let linked = Deed::Link(path("/a"), path("/here/b/d"));
        assert_eq!(of(libc::SYS_linkat, [HERE, 10, HERE, 40, 0, 0]), Some(vec![linked]));
    }

    #[test]
    fn addresses_are_found_in_each_call() {
        let reached = Some(vec![Deed::Reach(Address::Internet("10.0.0.1:80".parse().unwrap()))]);
        assert_eq!(of(libc::SYS_connect, [3, 100, 16, 0, 0, 0]), reached);
        assert_eq!(of(libc::SYS_sendto, [3, 0, 0, 0, 100, 16]), reached);
        assert_eq!(of(libc::SYS_sendmsg, [3, 400, 0, 0, 0, 0]), reached);
        assert_eq!(of(libc::SYS_sendmmsg, [3, 400, 2, 0, 0, 0]), reached, "the second one has no address");
        assert_eq!(of(libc::SYS_sendto, [3, 0, 0, 0, 0, 0]), Some(Vec::new()));
        assert!(matches!(of(libc::SYS_bind, [3, 100, 16, 0, 0, 0]).unwrap()[..], [Deed::Bind(_)]));
    }

    proptest! {
        #[test]
        fn no_arguments_are_too_strange(call in 0..470_i64, arguments in any::<[u64; 6]>()) {
            let _ = deeds(call, &arguments, &process());
        }
    }
}
