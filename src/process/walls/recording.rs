//! Records what a process reaches instead of limiting it: a filter has the kernel report system calls to hostler, which looks at their
//! arguments and lets them go on.
//!
//! The process waits while a call is looked at, so that its memory still has what the call is about. A program that changes its arguments
//! from another thread meanwhile can deceive the record: it is a proposal to a person and no wall.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock};
use std::thread;

use libc::{seccomp_notif, seccomp_notif_resp};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;
use seccompiler::{BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter};

use super::files::{DEVICES, SYSTEM};
use super::reported::{Caller, calls, deeds};
use super::system_calls::{self, Closed, is_not, rule};
use super::{layers, recorded};
use crate::config::recorder::Recorder;
use crate::process::descriptors::{receive, send_with};
use crate::process::keeper;

/// The flags of the one message that is sent within the filter: it carries the listener, and nothing answers before that has arrived.
/// `CONFIRM` means nothing to a Unix socket.
const UNREPORTED: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::CONFIRM);

/// The longest path, with its zero.
const LONGEST_PATH: usize = 4096;

/// The filter that reports calls; none for a processor that is not known.
static REPORTING: LazyLock<Option<BpfProgram>> = LazyLock::new(build);

/// What would go past it: rings of calls that no filter sees.
static CLOSING: LazyLock<Option<BpfProgram>> = LazyLock::new(|| {
    let rings = [libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];
    system_calls::program(rings.into_iter().map(|call| (call, Vec::new())).collect(), libc::EPERM)
});

fn build() -> Option<BpfProgram> {
    let mut reported: Closed = calls().map(|call| (call, Vec::new())).collect();
    let is_other = is_not(2, u64::from(UNREPORTED.bits()));
    reported.insert(libc::SYS_sendmsg, vec![rule([is_other])?]);
    // Most have no address: their socket is connected.
    let has_address = SeccompCondition::new(4, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0).ok();
    reported.insert(libc::SYS_sendto, vec![rule([has_address])?]);
    let machine = std::env::consts::ARCH.try_into().ok()?;
    // The crate has no such action: another one that is used nowhere else stands for it.
    let filter = SeccompFilter::new(reported, SeccompAction::Allow, SeccompAction::Log, machine).ok()?;
    let mut program = BpfProgram::try_from(filter).ok()?;
    let returns = u16::try_from(libc::BPF_RET | libc::BPF_K).ok()?;
    for step in program.iter_mut().filter(|step| step.code == returns && step.k == libc::SECCOMP_RET_LOG) {
        step.k = libc::SECCOMP_RET_USER_NOTIF;
    }
    Some(program)
}

/// What a process needs to be recorded, prepared before the fork.
pub(super) struct Reporting {
    report: UnixStream,
    reported: &'static BpfProgram,
    closing: &'static BpfProgram,
}

impl Reporting {
    /// Starts to listen for a process that can read these paths and has this folder whatever its sandbox says.
    pub fn begin(recorder: &Arc<Recorder>, own: &[PathBuf], private: Option<&Path>) -> io::Result<Self> {
        let real = |path: &Path| path.canonicalize().ok();
        let readable: Vec<_> = SYSTEM.iter().map(Path::new).chain(own.iter().map(PathBuf::as_path)).collect();
        let writable: Vec<_> = DEVICES.iter().map(Path::new).chain(private).collect();
        recorder.add(|record| {
            record.readable.extend(readable.into_iter().filter_map(real));
            record.writable.extend(writable.into_iter().filter_map(real));
        });
        let prepared = Self::prepare();
        let (prepared, door) = prepared?.ok_or_else(|| io::Error::other("this processor is not known"))?;
        let recorder = Arc::clone(recorder);
        thread::Builder::new().name("recorder".to_owned()).spawn(move || listen(&door, &recorder))?;
        Ok(prepared)
    }

    fn prepare() -> io::Result<Option<(Self, UnixStream)>> {
        let (Some(reported), Some(closing)) = (REPORTING.as_ref(), CLOSING.as_ref()) else { return Ok(None) };
        let (report, door) = UnixStream::pair()?;
        Ok(Some((Self { report, reported, closing }, door)))
    }

    /// Has the kernel report the calls of this process, and passes on where they are heard. Called between fork and exec.
    pub fn enter(&self) -> io::Result<()> {
        system_calls::enter(self.closing)?;
        let listener = install(self.reported)?;
        send_with(&self.report, b"1", &[listener.as_fd()], UNREPORTED)
    }
}

/// Installs a filter that reports, where the kernel can with waits that only a deadly signal ends: others would interrupt calls that
/// nothing interrupts otherwise.
fn install(filter: &BpfProgram) -> io::Result<OwnedFd> {
    let with = |flags: libc::c_ulong| {
        let length = u16::try_from(filter.len()).unwrap_or(u16::MAX);
        let program = libc::sock_fprog { len: length, filter: filter.as_ptr().cast_mut().cast() };
        // SAFETY: the program outlives the call and has the length that is given; the kernel copies it.
        #[expect(unsafe_code, reason = "the call has no wrapper; argued above")]
        let answer =
            unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
        i32::try_from(answer).ok().filter(|number| *number >= 0).ok_or_else(io::Error::last_os_error)
    };
    let listens = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    let number = with(listens | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV).or_else(|_| with(listens))?;
    // SAFETY: the kernel has just opened it, with close-on-exec, for this owner alone.
    #[expect(unsafe_code, reason = "a descriptor from a system call; argued above")]
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Whether processes can be recorded here. A child tries it and runs no program: a container may forbid it, or record hostler itself,
/// and the kernel reports a call once.
pub fn can_record() -> io::Result<()> {
    let unknown = || io::Error::other("the processor is not known");
    let (reporting, _door) = Reporting::prepare()?.ok_or_else(unknown)?;
    let _open = keeper::open_for_starts();
    let mut command = Command::new("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let enter = move || {
        layers::give_up_capabilities()?;
        reporting.enter().and(Err(Errno::CANCELED.into()))
    };
    // SAFETY: between fork and exec only system calls are made, and errors from numbers; all memory was allocated before.
    #[expect(unsafe_code, reason = "a call between fork and exec; argued above")]
    unsafe {
        command.pre_exec(enter);
    }
    match command.spawn() {
        Ok(_) => Ok(()),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::CANCELED) => Ok(()),
            Some(Errno::BUSY) => Err(io::Error::other("the calls of hostler itself are reported to another program")),
            _ => Err(error),
        },
    }
}

/// Hears the calls of a process and of all that it starts, until they are gone.
fn listen(door: &UnixStream, recorder: &Recorder) {
    // Its process may fail to start: then there is none.
    let Ok((_, files)) = receive(door, &mut [0]) else { return };
    let Some(listener) = files.into_iter().next() else { return };
    let mut has_begun = false;
    loop {
        let mut asked = [PollFd::new(&listener, PollFlags::IN)];
        match poll(&mut asked, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return,
        }
        if !asked[0].revents().contains(PollFlags::IN) {
            return;
        }
        // It may have been killed meanwhile.
        let Some(reported) = next(&listener) else { continue };
        look(&listener, &reported, recorder, has_begun);
        has_begun = true;
        go_on(&listener, reported.id);
    }
}

/// Looks at a call while its thread waits.
fn look(listener: &OwnedFd, reported: &seccomp_notif, recorder: &Recorder, has_begun: bool) {
    let call = libc::c_long::from(reported.data.nr);
    let thread = Thread { id: reported.pid, memory: File::open(format!("/proc/{}/mem", reported.pid)).ok() };
    let found = deeds(call, &reported.data.args, &thread);
    // Its number may be another thread's by now.
    if !is_waiting(listener, reported.id) {
        return;
    }
    match found {
        Some(deeds) => deeds.into_iter().for_each(|deed| recorded::note(recorder, reported.pid, deed)),
        // The program that hostler starts is known, and this copy of hostler is closed to everyone before it runs.
        None if !has_begun && call == libc::SYS_execve => {}
        None => recorder.add(|record| record.unread += 1),
    }
}

/// A thread that waits for its call.
struct Thread {
    id: u32,
    memory: Option<File>,
}

impl Caller for Thread {
    fn memory(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        let count = self.memory.as_ref()?.read_at(&mut bytes, address).ok()?;
        bytes.truncate(count);
        Some(bytes)
    }

    fn text(&self, address: u64) -> Option<Vec<u8>> {
        let mut bytes = self.memory(address, LONGEST_PATH)?;
        bytes.truncate(bytes.iter().position(|byte| *byte == 0)?);
        Some(bytes)
    }

    fn descriptor(&self, number: i32) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{}/fd/{number}", self.id)).ok()
    }

    fn directory(&self) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{}/cwd", self.id)).ok()
    }
}

/// The next call that waits.
fn next(listener: &OwnedFd) -> Option<seccomp_notif> {
    // SAFETY: zeros are a valid structure, and what the kernel demands; it has the size that the number of the request says, and the
    // kernel fills it.
    #[expect(unsafe_code, reason = "the request has no wrapper; argued above")]
    unsafe {
        let mut reported: seccomp_notif = std::mem::zeroed();
        let answer = libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut reported);
        (answer == 0).then_some(reported)
    }
}

/// Whether a call still waits.
fn is_waiting(listener: &OwnedFd, id: u64) -> bool {
    // SAFETY: the kernel reads one number, which outlives the call.
    #[expect(unsafe_code, reason = "the request has no wrapper; argued above")]
    unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) == 0
    }
}

/// Lets a call go on. It fails only for one that waits no more.
fn go_on(listener: &OwnedFd, id: u64) {
    let flags = u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).unwrap_or_default();
    let answer = seccomp_notif_resp { id, val: 0, error: 0, flags };
    // SAFETY: the answer has the size that the number of the request says and outlives the call; the kernel reads it.
    #[expect(unsafe_code, reason = "the request has no wrapper; argued above")]
    unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer);
    }
}
