//! The web: pages fetched and searched for. Addresses of private networks are refused where they are connected to, whatever a
//! name or a redirect says.

mod addresses;
mod client;
mod fetch;
mod page;
mod search;
#[cfg(test)]
mod tests;

use super::{Builtins, Unregistered};
use crate::config::Config;
use addresses::Allowed;

pub(super) fn add(tools: &mut Builtins, config: &Config) -> Result<(), Unregistered> {
    let layer = &config.layer.builtin;
    let allowed = layer.fetch_private.as_ref().map(|names| Allowed::new(&names.value)).unwrap_or_default();
    tools.register(fetch::FetchUrl(client::Web::allowing(allowed)))?;
    tools.register(search::WebSearch::of(config))
}
