//! `[control]`: where the control face is served to programs and browsers of this machine.

use std::net::{Ipv4Addr, SocketAddr};

use toml::de::DeValue;

use super::origin::{Diagnosis, Setting};
use super::section::Section;
use super::value::mismatch;

/// `[control]`.
#[derive(Debug, Clone)]
pub struct ControlSettings {
    /// The address of the HTTP server; none by default.
    pub listen: Option<Setting<SocketAddr>>,
    /// Web pages besides hostler's own that may connect, such as `http://localhost:5173`.
    pub origins: Vec<String>,
}

impl ControlSettings {
    pub(super) fn read(section: Section<'_>) -> Self {
        let settings = Self {
            listen: section.take_as("listen", address),
            origins: section.take("origins").map(|origins: Setting<_>| origins.value).unwrap_or_default(),
        };
        section.finish(false);
        settings
    }
}

/// An address of this machine alone: tools run with the rights of the person who serves them.
fn address(value: &DeValue<'_>) -> Result<SocketAddr, Diagnosis> {
    let fix = "write one like \"127.0.0.1:7411\"; from another machine, connect through an SSH tunnel";
    let text = value.as_str().unwrap_or_default();
    local_address(text).ok_or_else(|| mismatch("a loopback address and a port", value, fix))
}

/// Reads `127.0.0.1:PORT`, `[::1]:PORT` or `localhost:PORT`.
pub fn local_address(text: &str) -> Option<SocketAddr> {
    let named = || Some(SocketAddr::from((Ipv4Addr::LOCALHOST, text.strip_prefix("localhost:")?.parse().ok()?)));
    text.parse().ok().or_else(named).filter(|address: &SocketAddr| address.ip().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_listened_to() {
        for text in ["127.0.0.1:7411", "[::1]:7411", "localhost:7411", "127.0.0.2:0"] {
            assert!(local_address(text).is_some(), "{text}");
        }
        for text in ["0.0.0.0:7411", "[::]:7411", "192.168.0.1:7411", "127.0.0.1", ":7411", "example.com:80", ""] {
            assert_eq!(local_address(text), None, "{text}");
        }
    }
}
