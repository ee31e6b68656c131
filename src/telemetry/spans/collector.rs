//! A collector, as the configuration names it.

use std::fmt;
use std::time::Duration;

/// Where spans go, and what they say of their process.
#[derive(Clone, PartialEq, Eq)]
pub struct Collector {
    /// The address that takes traces.
    pub address: String,
    /// Headers of each request, which may be secret.
    pub headers: Vec<(String, String)>,
    /// The longest that a request may take.
    pub timeout: Duration,
    /// Attributes of the resource, `service.name` among them.
    pub resource: Vec<(String, String)>,
}

impl fmt::Debug for Collector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Collector").field("address", &self.shown()).finish_non_exhaustive()
    }
}

impl Collector {
    /// The address without what may be secret in it.
    pub fn shown(&self) -> String {
        let address = self.address.split(['?', '#']).next().unwrap_or_default();
        match address.split_once("://") {
            Some((scheme, rest)) => {
                let host = rest.find('/').unwrap_or(rest.len());
                let from = rest[..host].rfind('@').map_or(0, |at| at + 1);
                format!("{scheme}://{}", &rest[from..])
            }
            None => address.to_owned(),
        }
    }
}
