//! What the bench reaches.

use std::net::TcpListener;
use std::sync::Arc;

use super::{AllowedHosts, Proxy};

/// A running proxy.
pub struct Proxying(#[expect(dead_code, reason = "it is dropped")] Proxy);

impl Proxying {
    /// One behind a socket, which reaches these hosts. Needs a runtime.
    pub fn serve(socket: TcpListener, hosts: &[&str]) -> Option<Self> {
        let hosts = hosts.iter().map(|host| host.parse().ok()).collect::<Option<_>>()?;
        Proxy::serve(socket, Arc::new(AllowedHosts(vec![hosts]))).ok().map(Self)
    }
}
