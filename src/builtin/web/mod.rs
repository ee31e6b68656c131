//! The web: pages fetched and searched for. Here is which addresses are private; those are refused where they are connected to,
//! whatever a name or a redirect says.

mod client;
mod fetch;
mod page;
mod search;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Builtins, Unregistered};
use crate::config::Config;
use crate::config::builtin::network;

pub(super) fn add(tools: &mut Builtins, config: &Config) -> Result<(), Unregistered> {
    let layer = &config.builtin;
    let allowed = layer.fetch_private.as_ref().map(|names| Allowed::new(&names.value)).unwrap_or_default();
    tools.register(fetch::FetchUrl(client::Web::allowing(allowed)))?;
    tools.register(search::WebSearch::of(config))
}

/// Private addresses that may be reached.
#[derive(Debug, Clone, Default)]
pub(super) struct Allowed {
    hosts: Vec<String>,
    networks: Vec<(IpAddr, u8)>,
}

impl Allowed {
    /// Host names, addresses, and networks such as `10.1.0.0/16`.
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

    /// Whether this address of a host may be connected to.
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
