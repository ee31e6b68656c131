//! The hosts that a process may reach. Pure: names are resolved elsewhere.

use std::fmt;
use std::net::IpAddr;

use super::addresses::{contains, is_private};
use crate::config::hosts::{HostPattern, Hosts};

/// What the proxy says first where it refuses; the host and its port follow.
pub const CLOSED: &str = "Closed by the sandbox: ";

/// The hosts that may be reached: each of these lists has to have them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedHosts(pub Vec<Vec<HostPattern>>);

/// Why a host is not connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// No pattern has it.
    NotListed,
    /// A listed name leads to an address of a private network that is not listed.
    Private(IpAddr),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotListed => f.write_str("it is not among the hosts of its sandbox"),
            Self::Private(address) => write!(f, "{address} is an address of a private network"),
        }
    }
}

impl AllowedHosts {
    /// Whether a host may be resolved and connected to. The name is as a client wrote it.
    pub fn admit(&self, host: &str, port: u16) -> Result<(), Refusal> {
        let name = plain_name(host);
        let address = name.parse().ok();
        let has = |pattern: &HostPattern| {
            let is_it = match (&pattern.hosts, address) {
                (Hosts::Network(network, bits), Some(address)) => contains((*network, *bits), address),
                (Hosts::Named(listed), None) => *listed == name,
                (Hosts::Beneath(above), None) => {
                    name.strip_suffix(above.as_str()).is_some_and(|part| part.len() > 1 && part.ends_with('.'))
                }
                _ => false,
            };
            is_it && is_port(pattern, port)
        };
        if self.0.iter().all(|list| list.iter().any(has)) { Ok(()) } else { Err(Refusal::NotListed) }
    }

    /// Whether an address that an admitted host has may be connected to. Whoever says what a name means could point it at this
    /// machine or its neighbours, so those addresses have to be listed themselves.
    pub fn admit_address(&self, host: &str, address: IpAddr, port: u16) -> Result<(), Refusal> {
        let is_local = plain_name(host) == "localhost" && address.to_canonical().is_loopback();
        let has = |pattern: &HostPattern| {
            matches!(pattern.hosts, Hosts::Network(network, bits) if contains((network, bits), address))
                && is_port(pattern, port)
        };
        let is_listed = self.0.iter().all(|list| list.iter().any(has));
        if is_listed || is_local || !is_private(address) { Ok(()) } else { Err(Refusal::Private(address)) }
    }
}

fn is_port(pattern: &HostPattern, port: u16) -> bool {
    pattern.port.is_none_or(|listed| listed == port)
}

/// A name in lower case, without the brackets of an address and the dot of a whole name.
pub(super) fn plain_name(host: &str) -> String {
    let host = host.strip_suffix('.').unwrap_or(host);
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.to_ascii_lowercase()
}
