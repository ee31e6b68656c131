//! Open files that travel over a Unix socket with the bytes of a message.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// The most files of one message.
const MOST: usize = 4;

/// Sends bytes with open files, which arrive with the first of them.
pub fn send(socket: &UnixStream, bytes: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
    send_with(socket, bytes, files, flags())
}

/// The same with these flags.
pub fn send_with(socket: &UnixStream, mut bytes: &[u8], files: &[BorrowedFd<'_>], flags: SendFlags) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::Error::other("too many files for one message"));
    }
    while !bytes.is_empty() {
        match sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, flags) {
            Ok(count) => {
                bytes = &bytes[count..];
                ancillary.clear();
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn flags() -> SendFlags {
    SendFlags::NOSIGNAL
}

#[cfg(not(target_os = "linux"))]
fn flags() -> SendFlags {
    SendFlags::empty()
}

/// Files that arrive are not passed on to programs.
#[cfg(target_os = "linux")]
const CLOSED_AT_EXEC: RecvFlags = RecvFlags::CMSG_CLOEXEC;

/// It cannot be asked for with the message; nothing is received where sharing is not supported.
#[cfg(not(target_os = "linux"))]
const CLOSED_AT_EXEC: RecvFlags = RecvFlags::empty();

/// Receives bytes, and the files that came with them. 0 bytes are the end.
pub fn receive(socket: impl AsFd, into: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(into)], &mut ancillary, CLOSED_AT_EXEC)?;
    let files = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let files: Vec<OwnedFd> = files.flatten().collect();
    // Some did not fit, and were closed.
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "more files than a message may have"));
    }
    Ok((received.bytes, files))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn files_arrive_with_their_bytes() {
        let (one, other) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        send(&one, b"hello", &[writer.as_fd()]).unwrap();
        drop(writer);
        let mut bytes = [0; 64];
        let (count, mut files) = receive(&other, &mut bytes).unwrap();
        assert_eq!((&bytes[..count], files.len()), (&b"hello"[..], 1));
        let mut passed = std::fs::File::from(files.remove(0));
        passed.write_all(b"x").unwrap();
        drop(passed);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x");
        drop(one);
        assert_eq!(receive(&other, &mut bytes).unwrap().0, 0);
    }

    #[test]
    fn more_files_than_allowed_are_refused_and_closed() {
        let (one, other) = UnixStream::pair().unwrap();
        let files = [one.as_fd(); 2 * MOST + 1];
        assert!(send(&one, b"x", &files).is_err());
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(9))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let many = [one.as_fd(); 9];
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&many)));
        sendmsg(&one, &[IoSlice::new(b"x")], &mut ancillary, flags()).unwrap();
        let refused = receive(&other, &mut [0; 8]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
    }
}
