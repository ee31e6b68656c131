//! The process at the other end of a socket, and whether it may reach what this one may reach.
//!
//! Everything here is what the kernel says. Descriptors of namespaces that the process would pass could be those of another
//! process; a name or number that it says could be copied.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};

use super::confinement::visible_facts;
use super::proc_file;

/// A handle of the process that connected, from Linux 6.5 on.
const SO_PEERPIDFD: libc::c_int = 77;

/// A process at the other end of a Unix socket.
#[derive(Debug)]
pub struct Peer {
    /// Its user.
    pub user: u32,
    /// Its number.
    pub pid: Pid,
    /// Shows whether it still lives: only then what was read of its number was its own.
    handle: OwnedFd,
}

impl Peer {
    /// The process that connected a socket, or that listens at it.
    pub fn of(socket: &impl AsFd) -> io::Result<Self> {
        let nothing = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let credentials = option(socket, libc::SO_PEERCRED, nothing)?;
        let pid = Pid::from_raw(credentials.pid).filter(|_| credentials.pid > 0);
        let pid = pid.ok_or_else(|| io::Error::other("it is in another PID namespace"))?;
        let handle = match option::<libc::c_int>(socket, SO_PEERPIDFD, -1) {
            // SAFETY: the kernel has just made this descriptor, and no other value owns it.
            #[expect(unsafe_code, reason = "a descriptor in an option; argued above")]
            Ok(handle) => unsafe { OwnedFd::from_raw_fd(handle) },
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => pidfd_open(pid, PidfdFlags::empty())?,
            Err(error) => return Err(error),
        };
        Ok(Self { user: credentials.uid, pid, handle })
    }

    /// The first fact in which it differs from this process. `NotFound` if it has ended.
    pub fn difference(&self) -> io::Result<Option<&'static str>> {
        let difference = difference(self.pid);
        let is_alive = poll(&mut [PollFd::new(&self.handle, PollFlags::IN)], Some(&Timespec::default()))? == 0;
        match difference {
            Ok(difference) if is_alive => Ok(difference),
            Err(error) if is_alive && !is_ending(self.pid, &error) => {
                Err(io::Error::other(format!("the system does not show it: {error}")))
            }
            _ => Err(io::Error::new(io::ErrorKind::NotFound, "it has ended")),
        }
    }
}

/// Whether a process that is not yet dead has given up its files and mounts, by the error of reading them.
fn is_ending(pid: Pid, error: &io::Error) -> bool {
    let is_shown = || std::fs::exists(format!("/proc/{pid}")).unwrap_or_default();
    error.raw_os_error() == Some(libc::EINVAL) || error.kind() == io::ErrorKind::NotFound && is_shown()
}

fn difference(other: Pid) -> io::Result<Option<&'static str>> {
    for (name, read) in SHOWN {
        let mut is_equal = false;
        // Mounts may change between two reads.
        for _ in 0..3 {
            is_equal = is_equal || read(getpid())? == read(other)?;
        }
        if !is_equal {
            return Ok(Some(name));
        }
    }
    let (own, others) = (visible_facts(getpid())?, visible_facts(other)?);
    let differing = own.iter().zip(&others).find(|(own, other)| own != other).map(|(own, _)| own.0);
    // Without files, it has no mask for new ones.
    if differing == Some("Umask") {
        SHOWN[0].1(other)?;
    }
    Ok(differing)
}

type Shown = fn(Pid) -> io::Result<Vec<u8>>;

/// Namespaces, and with the mounts the root folder. Of a process that keeps its memory closed, the system does not name them,
/// but it shows what is in them: each mount in each namespace has a number of its own, and so has each network's table of
/// sockets.
const SHOWN: [(&str, Shown); 3] = [
    ("mnt", |pid| proc_file::read(format!("/proc/{pid}/mountinfo"))),
    ("net", |pid| Ok(std::fs::metadata(format!("/proc/{pid}/net/unix"))?.ino().to_le_bytes().into())),
    ("user", |pid| {
        let map = |kind: &str| proc_file::read(format!("/proc/{pid}/{kind}_map"));
        Ok([map("uid")?, map("gid")?].concat())
    }),
];

/// An option of a socket whose value is a plain structure of integers.
fn option<T: Copy>(socket: &impl AsFd, name: libc::c_int, mut value: T) -> io::Result<T> {
    let mut length = libc::socklen_t::try_from(size_of::<T>()).map_err(io::Error::other)?;
    let (socket, into) = (socket.as_fd().as_raw_fd(), std::ptr::from_mut(&mut value).cast());
    // SAFETY: the kernel writes at most `length` bytes, which is the size of `value`; `T` is made of integers, for which every
    // pattern of bits is a value.
    #[expect(
        unsafe_code,
        reason = "options that rustix does not have, or has without the case of no pid; argued above"
    )]
    let result = unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, name, into, &raw mut length) };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::process::{Child, Launch};

    #[test]
    fn a_process_is_its_own_peer() {
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = Peer::of(&one).unwrap();
        assert_eq!((peer.pid, peer.user), (getpid(), rustix::process::geteuid().as_raw()));
        assert_eq!(peer.difference().unwrap(), None);
    }

    #[tokio::test]
    async fn a_process_with_fewer_rights_differs_and_a_dead_one_is_none() {
        // Everything that hostler starts may gain no privileges.
        let mut child = Child::start(&Launch::new("/bin/cat")).await.unwrap();
        let pid = Pid::from_raw(i32::try_from(child.pid()).unwrap()).unwrap();
        let own = visible_facts(getpid()).unwrap().contains(&("NoNewPrivs", "1".to_owned()));
        let peer = Peer { user: 0, pid, handle: pidfd_open(pid, PidfdFlags::empty()).unwrap() };
        assert_eq!(peer.difference().unwrap(), (!own).then_some("NoNewPrivs"));
        drop(child.stdin.take());
        child.exited().await;
        // Its number may belong to another process now.
        let peer = Peer { pid: getpid(), ..peer };
        assert_eq!(peer.difference().unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
