//! Who may send a request, decided from its head alone: by its Host, which a page of a foreign name would have to forge, by its
//! Origin, which browsers set, and by its token.

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN, SEC_WEBSOCKET_PROTOCOL};

/// The names of this machine.
const HOSTS: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];
/// Browsers cannot set `Authorization` for a WebSocket: the token is one of the protocols that they offer, behind this.
const BEARER: &str = "bearer.";
/// The protocol that is chosen then.
pub const PROTOCOL: &str = "hostler";

/// Which hosts and origins are served.
#[derive(Debug)]
pub struct Guard {
    port: u16,
    origins: Vec<String>,
}

/// Why a request is refused before anything is read of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// It was sent to another name.
    Host,
    /// A foreign page sent it.
    Origin,
}

impl Denied {
    /// The word for programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::Host => "FOREIGN_HOST",
            Self::Origin => "FOREIGN_ORIGIN",
        }
    }

    /// The sentence for people.
    pub fn message(self) -> &'static str {
        match self {
            Self::Host => "the Host header must name this machine: 127.0.0.1, localhost or [::1]",
            Self::Origin => "this web page may not connect; list its origin in `origins` under `[control]`",
        }
    }
}

impl Guard {
    /// A guard of a server at this port.
    pub fn new(port: u16, origins: Vec<String>) -> Self {
        Self { port, origins }
    }

    /// Whether the request was meant for this server, and not sent by a page of another one.
    pub fn admits(&self, headers: &HeaderMap) -> Result<(), Denied> {
        let host = only(headers, &HOST).map_err(|_| Denied::Host)?.and_then(without_port).ok_or(Denied::Host)?;
        if !HOSTS.iter().any(|own| own.eq_ignore_ascii_case(host)) {
            return Err(Denied::Host);
        }
        match only(headers, &ORIGIN).map_err(|_| Denied::Origin)? {
            Some(origin) if !self.is_own(origin) && !self.origins.iter().any(|known| known == origin) => {
                Err(Denied::Origin)
            }
            _ => Ok(()),
        }
    }

    fn is_own(&self, origin: &str) -> bool {
        let host = origin.strip_prefix("http://").and_then(|rest| rest.strip_suffix(&format!(":{}", self.port)));
        host.is_some_and(|host| HOSTS.contains(&host))
    }
}

/// A header is there twice, or is no text.
pub struct Ambiguous;

/// The value of a header that may be there once.
pub fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, Ambiguous> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| Ambiguous),
        _ => Err(Ambiguous),
    }
}

/// The name or address of a Host header, in brackets as it is.
fn without_port(host: &str) -> Option<&str> {
    let (name, port) = match host.rfind(':').filter(|colon| !host[*colon..].contains(']')) {
        Some(colon) => (&host[..colon], &host[colon + 1..]),
        None => (host, ""),
    };
    port.bytes().all(|byte| byte.is_ascii_digit()).then_some(name)
}

/// The token of a request. One in the address does not count: addresses end in logs.
pub fn token_of(headers: &HeaderMap) -> Option<&str> {
    if headers.contains_key(AUTHORIZATION) {
        return bearer_of(headers);
    }
    let offered = only(headers, &SEC_WEBSOCKET_PROTOCOL).ok()??;
    offered.split(',').find_map(|protocol| protocol.trim().strip_prefix(BEARER))
}

/// The token of a request that no browser sends.
pub fn bearer_of(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = only(headers, &AUTHORIZATION).ok()??.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whether the client offers the protocol that stands beside a token.
pub fn offers_protocol(headers: &HeaderMap) -> bool {
    let offered = headers.get(SEC_WEBSOCKET_PROTOCOL).and_then(|value| value.to_str().ok()).unwrap_or_default();
    offered.split(',').any(|protocol| protocol.trim() == PROTOCOL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(HeaderName, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    fn admits(all: &[(HeaderName, &str)]) -> Result<(), Denied> {
        let mut map = HeaderMap::new();
        for (name, value) in all {
            map.append(name.clone(), value.parse().unwrap());
        }
        Guard::new(7411, vec!["http://localhost:5173".to_owned()]).admits(&map)
    }

    #[test]
    fn only_the_names_of_this_machine_are_hosts() {
        for host in ["127.0.0.1:7411", "localhost", "LOCALHOST:1", "[::1]:7411", "[::1]"] {
            assert_eq!(admits(&[(HOST, host)]), Ok(()), "{host}");
        }
        let foreign = [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.",
            "127.0.0.1:7411:1",
            "0.0.0.0",
            "[::]",
            "",
            "localhost:80@evil.example",
            "127.0.0.1, evil.example",
            "::1",
        ];
        for host in foreign {
            assert_eq!(admits(&[(HOST, host)]), Err(Denied::Host), "{host}");
        }
        assert_eq!(admits(&[]), Err(Denied::Host), "HTTP/1.0 needs none");
        assert_eq!(admits(&[(HOST, "localhost"), (HOST, "localhost")]), Err(Denied::Host));
    }

    #[test]
    fn only_own_and_listed_pages_are_origins() {
        let host = (HOST, "localhost:7411");
        for origin in ["http://127.0.0.1:7411", "http://localhost:7411", "http://[::1]:7411", "http://localhost:5173"] {
            assert_eq!(admits(&[host.clone(), (ORIGIN, origin)]), Ok(()), "{origin}");
        }
        for origin in [
            "null",
            "http://localhost",
            "http://localhost:80",
            "https://localhost:7411",
            "http://evil.example:7411",
            "http://localhost:7411.evil.example",
            "",
        ] {
            assert_eq!(admits(&[host.clone(), (ORIGIN, origin)]), Err(Denied::Origin), "{origin}");
        }
        let twice = [host, (ORIGIN, "http://localhost:7411"), (ORIGIN, "http://evil.example")];
        assert_eq!(admits(&twice), Err(Denied::Origin));
    }

    #[test]
    fn a_token_is_in_a_header() {
        assert_eq!(token_of(&headers(&[(AUTHORIZATION, "Bearer abc")])), Some("abc"));
        assert_eq!(token_of(&headers(&[(AUTHORIZATION, "bearer  abc ")])), Some("abc"));
        assert_eq!(token_of(&headers(&[(AUTHORIZATION, "Basic abc")])), None);
        assert_eq!(token_of(&headers(&[(AUTHORIZATION, "abc")])), None);
        assert_eq!(token_of(&headers(&[(SEC_WEBSOCKET_PROTOCOL, "hostler, bearer.abc")])), Some("abc"));
        assert_eq!(token_of(&headers(&[(SEC_WEBSOCKET_PROTOCOL, "hostler")])), None);
        assert_eq!(token_of(&HeaderMap::new()), None);
    }
}
