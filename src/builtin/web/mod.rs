//! The web: pages fetched and searched for. Private addresses are refused where they are connected to, whatever a name or a redirect
//! says.

mod client;
mod fetch;
mod page;
mod search;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use super::{Builtins, Unregistered};
use crate::config::builtin::{BuiltinSettings, network};
use crate::egress::{contains, is_private};
pub(super) use search::key as search_key;

/// With a proxy, that one decides which addresses may be reached.
pub(super) fn add(tools: &mut Builtins, settings: &BuiltinSettings, proxy: Option<&str>) -> Result<(), Unregistered> {
    let allowed = settings.fetch_private.as_ref().map(|names| Allowed::new(&names.value)).unwrap_or_default();
    tools.register(fetch::FetchUrl(client::Web::allowing(allowed).through(proxy)))?;
    tools.register(search::WebSearch::of(settings, proxy))
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
        !is_private(address)
            || self.hosts.iter().any(|name| name.eq_ignore_ascii_case(host))
            || self.networks.iter().any(|network| contains(*network, address))
    }
}
