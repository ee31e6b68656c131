//! Which addresses are private: not on the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether a network, which is the first bits of an address, has an address. A mapped one is an IPv4 address; what leads to one by a
/// translator or a relay is another host.
pub fn contains((network, bits): (IpAddr, u8), address: IpAddr) -> bool {
    let is_whole = bits == if network.is_ipv4() { 32 } else { 128 };
    if is_whole {
        return network.to_canonical() == address.to_canonical();
    }
    let bits = u32::from(bits);
    match (network, address.to_canonical()) {
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

/// The IPv4 address inside an IPv6 address that carries one.
fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = address else { return address };
    let parts = six.segments();
    let four = |high: u16, low: u16| IpAddr::V4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match parts {
        // Mapped, translated (NAT64) and relayed (6to4) addresses; below, compatible ones.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            four(high, low)
        }
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => four(high, low),
        _ => address,
    }
}

/// Whether an address is not on the public internet.
pub fn is_private(address: IpAddr) -> bool {
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
        // What clouds answer their machines at besides link-local addresses.
        || address == Ipv4Addr::new(168, 63, 129, 16)
        // Carrier NAT, benchmarks, protocol assignments, multicast, reserved.
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
        // Site-local, documentation, Teredo and other tunnels.
        || parts[0] & 0xffc0 == 0xfec0
        || (parts[0] == 0x2001 && (parts[1] == 0xdb8 || parts[1] < 0x200))
        || (parts[0] == 0x64 && parts[1] == 0xff9b)
}
