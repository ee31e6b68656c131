//! How far a sandbox opens the network, and the hosts that it may let a tool reach: names, `*.` before all names beneath one, addresses, networks; each with a port or without.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use toml::de::DeValue;

use super::builtin::network;
use super::origin::Diagnosis;
use super::value::{FromToml, mismatch};

/// Hosts, and which of their ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    /// Which.
    pub hosts: Hosts,
    /// The port; `None` for every one.
    pub port: Option<u16>,
}

/// Which hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hosts {
    /// The one of this name, in lower case.
    Named(String),
    /// All whose names end in a dot and this one.
    Beneath(String),
    /// The addresses that begin with so many bits of this one.
    Network(IpAddr, u8),
}

impl FromStr for HostPattern {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let has_signs = text.contains('+') || text.matches('[').count() != text.matches(']').count();
        if has_signs || text.starts_with(']') {
            return Err(());
        }
        if let Some((address, bits)) = network(text) {
            return Ok(Self { hosts: Hosts::Network(address, bits), port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => {
                (host, Some(port.parse().ok().filter(|other| *other != 0 && is_number(port)).ok_or(())?))
            }
            None => (text, None),
        };
        if let Some((address, bits)) = network(host) {
            return Ok(Self { hosts: Hosts::Network(address, bits), port });
        }
        let (name, is_beneath) = host.strip_prefix("*.").map_or((host, false), |above| (above, true));
        // The last part of an address in another notation (`127.1`, `0x7f000001`) is a number, and that of a name is not.
        let last = name.rsplit('.').next().unwrap_or_default();
        let is_part = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        if !name.split('.').all(is_part) || last.starts_with(|first: char| first.is_ascii_digit()) {
            return Err(());
        }
        let name = name.to_ascii_lowercase();
        Ok(Self { hosts: if is_beneath { Hosts::Beneath(name) } else { Hosts::Named(name) }, port })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::Named(name) => f.write_str(name)?,
            Hosts::Beneath(name) => write!(f, "*.{name}")?,
            Hosts::Network(address, bits) => {
                match (address, self.port) {
                    (IpAddr::V6(six), Some(_)) => write!(f, "[{six}]")?,
                    _ => write!(f, "{address}")?,
                }
                if *bits != if address.is_ipv4() { 32 } else { 128 } {
                    write!(f, "/{bits}")?;
                }
            }
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// How far the network is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    /// No sockets.
    Off,
    /// These hosts, through a proxy of hostler.
    Hosts(Vec<HostPattern>),
    /// Sockets of the internet.
    On,
}

impl Network {
    pub(super) fn read(value: &DeValue<'_>) -> Result<Self, Diagnosis> {
        if value.as_array().is_some() {
            return host_list(value).map(Self::Hosts);
        }
        match value.as_str() {
            Some("off") => Ok(Self::Off),
            Some("on") => Ok(Self::On),
            _ => {
                let fix = "write \"on\", \"off\", or the hosts: [\"api.example.com\", \"*.example.org\"]";
                Err(mismatch("\"on\", \"off\" or a list of hosts", value, fix))
            }
        }
    }

    /// As it stands in a file.
    pub(super) fn written(&self) -> String {
        match self {
            Self::Off => "\"off\"".to_owned(),
            Self::On => "\"on\"".to_owned(),
            Self::Hosts(hosts) => {
                let hosts: Vec<String> = hosts.iter().map(|host| format!("\"{host}\"")).collect();
                format!("[{}]", hosts.join(", "))
            }
        }
    }

    /// For people.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Off => "no network".to_owned(),
            Self::On => "network".to_owned(),
            Self::Hosts(hosts) if hosts.is_empty() => "network to no host".to_owned(),
            Self::Hosts(hosts) => {
                let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
                format!("network to {}", hosts.join(", "))
            }
        }
    }
}

/// A list of hosts.
fn host_list(value: &DeValue<'_>) -> Result<Vec<HostPattern>, Diagnosis> {
    let fix = "write names (\"api.example.com\", \"*.example.com\"), addresses or networks (\"10.1.0.0/16\"), with a port \
               (\"example.com:443\") or without";
    let patterns = Vec::<String>::from_toml(value)?;
    let parsed = |text: &String| text.parse().map_err(|()| Diagnosis::new(format!("{text:?} is not a host"), fix));
    patterns.iter().map(parsed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_written_as_they_are_read() {
        for text in [
            "example.com",
            "*.example.com:443",
            "localhost",
            "10.1.0.0/16",
            "127.0.0.1:8080",
            "10.0.0.0/8:80",
            "::1",
            "[::1]:80",
            "fd00::/8",
            "[fd00::]/8:80",
            "xn--bcher-kva.example",
        ] {
            let parsed: HostPattern = text.parse().unwrap_or_else(|()| panic!("{text}"));
            assert_eq!(parsed.to_string().parse(), Ok(parsed.clone()), "{text} as {parsed}");
        }
        assert_eq!("API.Example.com".parse::<HostPattern>().unwrap().to_string(), "api.example.com");
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [
            "",
            "*",
            "*.",
            "a*.com",
            "https://example.com",
            "example.com/path",
            "example.com:0",
            "example.com:99999",
            "example.com:",
            "a..b",
            ".example.com",
            "127.1",
            "0x7f000001",
            "2130706433",
            "10.0.0.0/33",
            "bücher.example",
            "a b",
            "me@example.com",
            "[::1",
            "]::1[",
            "example.com:+443",
            "10.1.0.0/+16",
        ] {
            assert_eq!(text.parse::<HostPattern>(), Err(()), "{text}");
        }
    }
}
