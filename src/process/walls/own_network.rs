//! A network of a process's own, with one way out: a socket that hostler's proxy listens at.
//!
//! The network has nothing but a loopback device, and a socket that listens there. That socket is passed to hostler, and accepts there what
//! is connected to it inside.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};

use crate::process::descriptors::{receive, send};

/// Where the socket listens. Nothing else is in that network.
const PROXY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 3128);

/// `IFF_UP`.
const UP: libc::c_short = 1;

/// How many connections may wait to be accepted.
const WAITING: i32 = 128;

/// The variables by which programs find their proxy. Some know the small ones only.
pub(super) const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

/// What a process needs to set its network up, prepared before the fork.
pub(super) struct OwnNetwork {
    report: UnixStream,
}

/// Where the socket of a process arrives.
#[derive(Debug)]
pub(super) struct Door(UnixStream);

impl OwnNetwork {
    pub fn new() -> io::Result<(Self, Door)> {
        let (report, door) = UnixStream::pair()?;
        door.set_nonblocking(true)?;
        Ok((Self { report }, Door(door)))
    }

    /// The address of the proxy, as the process sees it.
    pub fn proxy() -> String {
        format!("http://{PROXY}")
    }

    /// Sets up the network namespace that the process has. Called between fork and exec.
    pub fn set_up(&self) -> io::Result<()> {
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        raise_loopback(&socket)?;
        bind(&socket, &PROXY)?;
        listen(&socket, WAITING)?;
        send(&self.report, b"1", &[socket.as_fd()])
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
