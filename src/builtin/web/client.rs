//! HTTP requests. On every hop, also of a redirect, the name is resolved once, private addresses are removed, and the rest is
//! connected to.

use std::fmt;
use std::io::Read;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use fluent_uri::UriRef;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use ureq::config::Config as Settings;
use ureq::http::Uri;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Error, Proxy};

use super::Allowed;
use crate::builtin::Stop;
use crate::egress::CLOSED;
use crate::outcome::{Code, Fault};

/// A client for the public internet and allowed private addresses.
#[derive(Debug, Clone)]
pub(super) struct Web {
    allowed: Allowed,
    /// A proxy that decides itself which addresses are reached.
    proxy: Option<Proxy>,
}

/// The response of a server.
#[derive(Debug)]
pub(super) struct Response {
    /// The address that answered, after redirects.
    pub url: String,
    pub status: u16,
    /// The content type with its parameters.
    pub content_type: String,
    pub body: Vec<u8>,
    /// Whether the body is longer than the limit.
    pub is_cut: bool,
}

/// The most of a body that is read, in bytes.
pub(super) const MOST: usize = 5 << 20;
const REDIRECTS: u32 = 5;

impl Web {
    pub fn allowing(allowed: Allowed) -> Self {
        Self { allowed, proxy: None }
    }

    /// Sends requests through this proxy, if there is one.
    pub fn through(self, proxy: Option<&str>) -> Self {
        Self { proxy: proxy.and_then(|proxy| Proxy::new(proxy).ok()), ..self }
    }

    /// Fetches an address within a time limit. With headers, which may contain a key, no redirect is followed: no other origin may
    /// get it. Each address on the way is checked like the first.
    pub fn get(&self, url: &str, headers: &[(&str, &str)], limit: Duration, stop: &Stop) -> Result<Response, Fault> {
        let (agent, begun, mut here) = (self.agent(), Instant::now(), absolute(url)?);
        for _ in 0..=REDIRECTS {
            let left = limit.saturating_sub(begun.elapsed()).max(Duration::from_millis(1));
            let request = agent.get(&here).config().timeout_global(Some(left)).build();
            let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
            let mut answer = request.call().map_err(|error| explain(&here, &error, limit))?;
            let status = answer.status().as_u16();
            let is_redirect = matches!(status, 301..=303 | 307 | 308) && headers.is_empty();
            if let Some(next) = answer.headers().get("location").filter(|_| is_redirect) {
                here = joined(&here, &String::from_utf8_lossy(next.as_bytes()))?;
                continue;
            }
            let content_type = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok());
            let content_type = content_type.unwrap_or_default().to_owned();
            let (body, is_cut) = read(answer.body_mut().as_reader(), stop)
                .map_err(|error| fault(&here, &format!("the response was cut off: {error}")))?;
            return Ok(Response { url: here.to_string(), status, content_type, body, is_cut });
        }
        Err(fault(&here, &format!("more than {REDIRECTS} redirects")))
    }

    fn agent(&self) -> Agent {
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
        let settings = Agent::config_builder()
            .max_redirects(0)
            .http_status_as_error(false)
            .proxy(self.proxy.clone())
            .user_agent(concat!("hostler/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls)
            .build();
        if self.proxy.is_some() {
            return Agent::with_parts(settings, DefaultConnector::default(), DefaultResolver::default());
        }
        Agent::with_parts(settings, DefaultConnector::default(), Checked(self.allowed.clone()))
    }
}

/// Reads up to the limit; returns whether there was more.
pub(super) fn read(mut body: impl Read, stop: &Stop) -> std::io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let got = body.read(&mut piece)?;
        bytes.extend_from_slice(&piece[..got]);
        if got == 0 || bytes.len() > MOST || stop.is_set() {
            let is_cut = bytes.len() > MOST;
            bytes.truncate(MOST);
            return Ok((bytes, is_cut));
        }
    }
}

fn absolute(url: &str) -> Result<Uri, Fault> {
    let wrong = |why: &str| Fault::new(Code::InvalidParams, format!("cannot fetch `{}`: {why}", hidden(url)));
    let (scheme, _) = url.split_once("://").ok_or_else(|| wrong("it does not begin with https:// or http://"))?;
    if !["http", "https"].contains(&scheme.to_ascii_lowercase().as_str()) {
        return Err(wrong(&format!("expected http or https, got {scheme}")));
    }
    let uri: Uri = url.parse().map_err(|_| wrong("it is not a valid URL; write one like https://example.com/page"))?;
    if uri.host().is_none_or(str::is_empty) {
        return Err(wrong("it has no host"));
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(wrong("it contains credentials, which are not allowed in a URL"));
    }
    Ok(uri)
}

/// The target of a redirect (RFC 3986, section 5).
fn joined(here: &Uri, next: &str) -> Result<Uri, Fault> {
    let target = fluent_uri::Uri::parse(encoded(&here.to_string())).ok().and_then(|base| {
        let next = UriRef::parse(encoded(next)).ok()?;
        next.resolve_against(&base).ok()
    });
    let invalid = || fault(here, &format!("it redirects to `{}`, which is not a valid URL", hidden(next)));
    absolute(target.ok_or_else(invalid)?.as_str())
}

/// An address as servers and people write it, with what URLs do not allow percent-encoded.
fn encoded(url: &str) -> String {
    const PATH: &AsciiSet =
        &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\').add(b'^').add(b'`').add(b'{').add(b'|').add(b'}');
    // Before the query, brackets hold the address of a host.
    const QUERY: &AsciiSet = &PATH.add(b'[').add(b']');
    let (path, query) = url.split_at(url.find(['?', '#']).unwrap_or(url.len()));
    format!("{}{}", utf8_percent_encode(path, PATH), utf8_percent_encode(query, QUERY))
}

/// An address without credentials.
fn hidden(url: &str) -> String {
    let shown: String = url.chars().take(200).collect();
    match shown.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?.1))) {
        Some((scheme, rest)) => format!("{scheme}://…@{rest}"),
        None => shown,
    }
}

fn fault(url: &Uri, why: &str) -> Fault {
    Fault::new(Code::ToolError, format!("cannot fetch {url}: {why}"))
}

fn explain(url: &Uri, error: &Error, limit: Duration) -> Fault {
    match error {
        Error::Other(other) if other.is::<Private>() => Fault::new(
            Code::PermissionDenied,
            format!(
                "cannot fetch {url}: {other}; the operator can allow it with `allow_private` under [builtin.fetch_url] in \
                 hostler.toml"
            ),
        ),
        Error::Timeout(_) => {
            let limit = humantime::format_duration(Duration::from_secs(limit.as_secs()));
            Fault::new(Code::ToolTimeout, format!("{url} did not answer within {limit}"))
        }
        // The proxy's own words do not come with it.
        Error::ConnectProxyFailed(why) if why.contains("403") => {
            let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("http") { 80 } else { 443 });
            fault(url, &format!("{CLOSED}{}:{port}", url.host().unwrap_or_default()))
        }
        Error::HostNotFound => fault(url, "host not found, or no network"),
        other => fault(url, &other.to_string()),
    }
}

/// A host that has only private addresses.
#[derive(Debug)]
struct Private {
    host: String,
    address: IpAddr,
}

impl fmt::Display for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, address } = self;
        let named = host.parse::<IpAddr>().is_err();
        let which = if named { format!("{host} is {address},") } else { format!("{address} is") };
        write!(f, "{which} an address of a private network")
    }
}

impl std::error::Error for Private {}

/// A resolver that returns only addresses that may be connected to.
#[derive(Debug)]
struct Checked(Allowed);

impl Resolver for Checked {
    fn resolve(&self, uri: &Uri, _: &Settings, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let host = uri.host().ok_or(Error::HostNotFound)?;
        let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let all: Vec<SocketAddr> = (name, port).to_socket_addrs().map_err(|_| Error::HostNotFound)?.collect();
        let mut found = self.empty();
        for address in all.iter().filter(|address| self.0.admits(name, address.ip())).take(8) {
            found.push(*address);
        }
        match (found.is_empty(), all.first()) {
            (false, _) => Ok(found),
            (true, Some(first)) => Err(Error::Other(Box::new(Private { host: name.to_owned(), address: first.ip() }))),
            (true, None) => Err(Error::HostNotFound),
        }
    }
}
