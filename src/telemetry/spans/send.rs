//! One request to a collector.

use std::io::Read;
use std::time::Duration;

use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Error};

use super::Collector;

/// How much of an answer is read, so that its connection can be used again.
const MOST_ANSWER: u64 = 64 << 10;

/// What became of a request.
pub enum Sent {
    Taken,
    /// It may be taken later.
    Later(String),
    Refused(String),
}

/// Sends requests to a collector.
pub struct Sender<'a> {
    collector: &'a Collector,
    agent: Agent,
}

impl<'a> Sender<'a> {
    pub fn to(collector: &'a Collector) -> Self {
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
        let settings = Agent::config_builder()
            // Another address would get the headers.
            .max_redirects(0)
            .http_status_as_error(false)
            // That of the process may be another client's.
            .proxy(None)
            .user_agent(concat!("hostler/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls)
            .build();
        Self { collector, agent: settings.into() }
    }

    pub fn send(&mut self, body: &[u8], limit: Duration) -> Sent {
        let mut request = self.agent.post(&self.collector.address).content_type("application/x-protobuf");
        for (name, value) in &self.collector.headers {
            request = request.header(name, value);
        }
        let request = request.config().timeout_global(Some(limit)).build();
        let mut answer = match request.send(body) {
            Ok(answer) => answer,
            Err(error @ (Error::Http(_) | Error::BadUri(_) | Error::Tls(_))) => {
                return Sent::Refused(error.to_string());
            }
            Err(error) => return Sent::Later(error.to_string()),
        };
        let status = answer.status();
        let mut rest = answer.body_mut().as_reader().take(MOST_ANSWER);
        let _ = std::io::copy(&mut rest, &mut std::io::sink());
        match status.as_u16() {
            200..=299 => Sent::Taken,
            429 | 502..=504 => Sent::Later(format!("the collector answered {status}")),
            300..=399 => {
                Sent::Refused(format!("the collector redirects ({status}); name the address that it redirects to"))
            }
            _ => Sent::Refused(format!("the collector answered {status}")),
        }
    }
}
