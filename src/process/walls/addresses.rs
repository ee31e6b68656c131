//! Addresses of sockets, as a program passes them to the kernel. Pure.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The longest address that the kernel takes: `struct sockaddr_storage`.
pub(super) const LONGEST: usize = 128;

/// Where a socket connects to, or what it binds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// An address of the internet, which may be one of this machine.
    Internet(SocketAddr),
    /// A Unix socket in a folder.
    Unix(PathBuf),
    /// Anything else: abstract Unix sockets, the kernel's own, and the address that disconnects.
    Other,
}

/// Reads a `struct sockaddr`. `None` for one that is cut off.
pub(super) fn parse(bytes: &[u8]) -> Option<Address> {
    let family = i32::from(u16::from_ne_bytes(piece(bytes, 0)?));
    Some(match family {
        libc::AF_INET => {
            let address = Ipv4Addr::from(piece::<4>(bytes, 4)?);
            Address::Internet(SocketAddr::from((address, port(bytes)?)))
        }
        libc::AF_INET6 => {
            let address = Ipv6Addr::from(piece::<16>(bytes, 8)?);
            Address::Internet(SocketAddr::from((address.to_canonical(), port(bytes)?)))
        }
        libc::AF_UNIX => {
            let path = bytes[2..].split(|byte| *byte == 0).next().unwrap_or_default();
            if path.is_empty() { Address::Other } else { Address::Unix(OsStr::from_bytes(path).into()) }
        }
        _ => Address::Other,
    })
}

fn port(bytes: &[u8]) -> Option<u16> {
    piece(bytes, 2).map(u16::from_be_bytes)
}

fn piece<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(family: i32, rest: &[u8]) -> Vec<u8> {
        let family = u16::try_from(family).unwrap().to_ne_bytes();
        family.into_iter().chain(rest.iter().copied()).collect()
    }

    #[test]
    fn addresses_of_the_internet_and_of_folders_are_read() {
        let internet = |text: &str| Some(Address::Internet(text.parse().unwrap()));
        let four = written(libc::AF_INET, &[0x1f, 0x90, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(parse(&four), internet("127.0.0.1:8080"));
        assert_eq!(parse(&four[..7]), None);
        let six = |address: &str| {
            let address = address.parse::<Ipv6Addr>().unwrap().octets();
            written(libc::AF_INET6, &[&[1, 187, 0, 0, 0, 0], address.as_slice(), &[0; 4]].concat())
        };
        assert_eq!(parse(&six("::1")), internet("[::1]:443"));
        assert_eq!(parse(&six("::ffff:10.1.2.3")), internet("10.1.2.3:443"));
        assert_eq!(parse(&written(libc::AF_UNIX, b"/run/x\0rest")), Some(Address::Unix("/run/x".into())));
        assert_eq!(parse(&written(libc::AF_UNIX, b"\0name")), Some(Address::Other));
        assert_eq!(parse(&written(libc::AF_NETLINK, &[0; 10])), Some(Address::Other));
        assert_eq!(parse(&written(libc::AF_UNSPEC, &[])), Some(Address::Other));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..LONGEST)) {
            let _ = parse(&bytes);
        }
    }
}
