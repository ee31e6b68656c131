//! Which addresses are private: this machine's, its networks', those that clouds answer for their machines, and all that is no
//! address of the open internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::config::builtin::network;

/// What may be reached although it is private.
#[derive(Debug, Clone, Default)]
pub(super) struct Allowed {
    hosts: Vec<String>,
    networks: Vec<(IpAddr, u8)>,
}

impl Allowed {
    /// Hosts by name, addresses, and networks such as `10.1.0.0/16`.
    pub fn new(names: &[String]) -> Self {
        let mut allowed = Self::default();
        for name in names {
            match network(name) {
                Some(network) => allowed.networks.push(network),
                None => allowed.hosts.push(name.to_lowercase()),
            }
        }
        allowed
    }

    /// Whether an address that a host has may be connected to.
    pub fn admits(&self, host: &str, address: IpAddr) -> bool {
        let address = plain(address);
        !is_private(address)
            || self.hosts.iter().any(|name| name.eq_ignore_ascii_case(host))
            || self.networks.iter().any(|network| contains(*network, address))
    }
}

fn contains((network, bits): (IpAddr, u8), address: IpAddr) -> bool {
    let bits = u32::from(bits);
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            network.to_bits() & mask == address.to_bits() & mask
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            network.to_bits() & mask == address.to_bits() & mask
        }
        _ => false,
    }
}

/// The address that is meant by one that only carries another.
fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = address else { return address };
    let parts = six.segments();
    let four = |high: u16, low: u16| IpAddr::V4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match parts {
        // Mapped and compatible ones, translated ones, and those through relays.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            four(high, low)
        }
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => four(high, low),
        _ => address,
    }
}

/// Whether an address is none of the open internet.
pub(super) fn is_private(address: IpAddr) -> bool {
    match plain(address) {
        IpAddr::V4(four) => is_private_v4(four),
        IpAddr::V6(six) => is_private_v6(six),
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || a == 0
        // Of providers, of tests, of protocols, of groups, of the future.
        || (a == 100 && b & 0xc0 == 64)
        || (a == 198 && b & 0xfe == 18)
        || (a == 192 && b == 0 && c == 0)
        || a >= 224
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || address.is_unique_local()
        || address.is_unicast_link_local()
        // Of sites, of documents, and of tunnels whose other end nobody knows.
        || parts[0] & 0xffc0 == 0xfec0
        || (parts[0] == 0x2001 && (parts[1] == 0xdb8 || parts[1] < 0x200))
        || (parts[0] == 0x64 && parts[1] == 0xff9b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_of_the_internet_is_private() {
        for address in [
            "127.0.0.1",
            "10.0.0.1",
            "172.16.9.9",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "198.18.0.1",
            "192.0.0.8",
            "224.0.0.1",
            "255.255.255.255",
            "203.0.113.5",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "fec0::1",
            "2001:db8::1",
            "2001:0:1::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::7f00:1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
        ] {
            assert!(is_private(address.parse().unwrap()), "{address}");
        }
        for address in
            ["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
        {
            assert!(!is_private(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn what_is_allowed_is_allowed_and_nothing_beside_it() {
        let names = ["Wiki.Internal", "10.1.0.0/16", "127.0.0.1", "fd12::/16"].map(str::to_owned);
        let allowed = Allowed::new(&names);
        let admits = |host: &str, address: &str| allowed.admits(host, address.parse().unwrap());
        assert!(admits("wiki.internal", "192.168.0.9") && admits("x", "10.1.255.1") && admits("x", "127.0.0.1"));
        assert!(admits("x", "::ffff:10.1.2.3") && admits("x", "fd12:1::1") && admits("x", "9.9.9.9"));
        assert!(!admits("other", "192.168.0.9") && !admits("x", "10.2.0.1") && !admits("x", "127.0.0.2"));
        assert!(!admits("x", "fd13::1"));
    }
}
