//! One request to a collector.

use std::io::Read;
use std::time::Duration;

use ureq::http::HeaderMap;
use ureq::http::header::RETRY_AFTER;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Error};

use super::Collector;
use super::answer::{Rejected, rejected};

/// How much of an answer is read.
const MOST_ANSWER: u64 = 64 << 10;
/// The longest pause that a collector may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What became of a request.
pub enum Sent {
    /// It was taken, except for these spans.
    Taken(Rejected),
    /// It may be taken later: after the pause that the collector asks for, if it does.
    Later(String, Option<Duration>),
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
            Err(error) => return Sent::Later(error.to_string(), None),
        };
        let status = answer.status();
        let pause = pause(answer.headers());
        // Read in any case, so that its connection can be used again.
        let mut text = Vec::new();
        let _ = answer.body_mut().as_reader().take(MOST_ANSWER).read_to_end(&mut text);
        match status.as_u16() {
            200..=299 => Sent::Taken(rejected(&text)),
            429 | 502..=504 => Sent::Later(format!("the collector answered {status}"), pause),
            300..=399 => {
                Sent::Refused(format!("the collector redirects ({status}); name the address that it redirects to"))
            }
            _ => Sent::Refused(format!("the collector answered {status}")),
        }
    }
}

/// How many seconds a collector asks to wait. A date, which is compared with a clock that may be set, is ignored.
fn pause(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_PAUSE))
}
