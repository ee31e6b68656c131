//! A network of a process's own, with one way out: a socket that hostler's proxy listens at.
//!
//! The process makes a user and a network namespace between fork and exec. The network has nothing but the process's own loopback
//! device, and a socket that listens there. That socket is passed to hostler, and accepts there what is connected to it inside.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};
use rustix::process::{DumpableBehavior, dumpable_behavior, getegid, geteuid, set_dumpable_behavior};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::process::descriptors::{receive, send};
use crate::process::keeper;

/// Where the socket listens. Nothing else is in that network.
const PROXY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 3128);

/// `IFF_UP`.
const UP: libc::c_short = 1;

/// How many connections may wait to be accepted.
const WAITING: i32 = 128;

/// The variables by which programs find their proxy. Some know the small ones only.
pub(super) const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

/// What a process needs to make its network, prepared before the fork.
pub(super) struct OwnNetwork {
    /// The lines by which the process stays the user and the group that it is.
    users: String,
    groups: String,
    report: UnixStream,
}

/// Where the socket of a process arrives.
#[derive(Debug)]
pub(super) struct Door(UnixStream);

impl OwnNetwork {
    pub fn new() -> io::Result<(Self, Door)> {
        let (report, door) = UnixStream::pair()?;
        door.set_nonblocking(true)?;
        let line = |id: u32| format!("{id} {id} 1\n");
        let (users, groups) = (line(geteuid().as_raw()), line(getegid().as_raw()));
        Ok((Self { users, groups, report }, Door(door)))
    }

    /// The address of the proxy, as the process sees it.
    pub fn proxy() -> String {
        format!("http://{PROXY}")
    }

    /// Makes the network. Called between fork and exec.
    pub fn enter(&self) -> io::Result<()> {
        // SAFETY: this process has one thread, and keeps its table of files.
        #[expect(unsafe_code, reason = "argued above")]
        unsafe {
            unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)?;
        }
        self.keep_ids()?;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        raise_loopback(&socket)?;
        bind(&socket, &PROXY)?;
        listen(&socket, WAITING)?;
        send(&self.report, b"1", &[socket.as_fd()])
    }

    /// The files belong to root where a process may not be looked into, as a copy of hostler may not: for these writes it may. Who could
    /// use that moment is outside of every tool, which is in a domain.
    fn keep_ids(&self) -> io::Result<()> {
        let before = dumpable_behavior()?;
        set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        let files = [
            (c"/proc/self/setgroups", "deny"),
            (c"/proc/self/uid_map", &self.users),
            (c"/proc/self/gid_map", &self.groups),
        ];
        for (path, line) in files {
            let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
            write(&file, line.as_bytes())?;
        }
        set_dumpable_behavior(before)?;
        Ok(())
    }
}

/// Switches the loopback device on.
fn raise_loopback(socket: &OwnedFd) -> io::Result<()> {
    // SAFETY: zeros are a valid request, and its first bytes become a name that ends with a zero.
    #[expect(unsafe_code, reason = "the request is a C structure; argued above")]
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed() as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = UP;
    // SAFETY: the request outlives the call, and has the layout that the kernel reads.
    #[expect(unsafe_code, reason = "the request has no wrapper; argued above")]
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl Door {
    /// The socket of a process that has started.
    pub fn socket(self) -> io::Result<TcpListener> {
        let (_, files) = receive(&self.0, &mut [0])?;
        let socket = files.into_iter().next().ok_or_else(|| io::Error::other("its network has no way out"))?;
        Ok(socket.into())
    }
}

/// Whether a process can make such a network here. One tries it, and starts nothing.
pub(super) fn are_supported() -> bool {
    static ARE_SUPPORTED: LazyLock<bool> = LazyLock::new(|| {
        let Ok((network, _door)) = OwnNetwork::new() else { return false };
        let _open = keeper::open_for_starts();
        let mut command = Command::new("/");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let end = Errno::CANCELED.raw_os_error();
        // SAFETY: between fork and exec only system calls are made, and errors from numbers; all memory was allocated before.
        #[expect(unsafe_code, reason = "a call between fork and exec; argued above")]
        unsafe {
            command.pre_exec(move || network.enter().and(Err(io::Error::from_raw_os_error(end))));
        }
        command.spawn().is_err_and(|error| error.raw_os_error() == Some(end))
    });
    *ARE_SUPPORTED
}
