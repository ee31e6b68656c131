//! `[telemetry]`: where the spans of calls go. Without it the variables count that OpenTelemetry defines for every program.

use std::time::Duration;

use toml::de::DeValue;

use super::environment::Environment;
use super::origin::{Diagnosis, Setting};
use super::otel::{self, set};
use super::section::Section;
use super::value::{FromToml, Word};
use crate::telemetry::{Collector, LogFormat};

/// What OpenTelemetry says of the longest that a request may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// `[telemetry]`.
#[derive(Debug, Clone)]
pub struct Telemetry {
    /// Where spans go.
    pub collector: Option<Collector>,
    /// Which variable cannot be used, and why.
    pub unusable: Option<String>,
}

impl Telemetry {
    pub(super) fn read(section: Section<'_>, variables: &Environment) -> Self {
        let named: Option<Setting<String>> = section.take_as("otlp", address);
        section.finish(false);
        let collector = if otel::is_off(variables) { Ok(None) } else { collector(named, variables) };
        let (collector, unusable) = match collector {
            Ok(collector) => (collector, None),
            Err(why) => (None, Some(why)),
        };
        Self { collector, unusable }
    }
}

fn collector(named: Option<Setting<String>>, variables: &Environment) -> Result<Option<Collector>, String> {
    let address = match named {
        Some(named) => Some(otel::with_path(&named.value)),
        None => otel::endpoint(variables)?,
    };
    let Some(address) = address else { return Ok(None) };
    Ok(Some(Collector {
        address,
        headers: otel::headers(variables)?,
        timeout: otel::timeout(variables).map_or(TIMEOUT, Duration::from_millis),
        resource: otel::resource(variables),
    }))
}

impl Word for LogFormat {
    const WORDS: &'static [(&'static str, Self)] = &[("text", Self::Text), ("json", Self::Json)];
}

/// `log_format`, below `$HOSTLER_LOG_FORMAT`.
pub(super) fn log_format(top: &Section<'_>, variables: &Environment) -> LogFormat {
    let of_file = top.take("log_format").map(|setting: Setting<LogFormat>| setting.value);
    let named = |word: &str| LogFormat::WORDS.iter().find(|(known, _)| *known == word).map(|(_, format)| *format);
    set(variables, "HOSTLER_LOG_FORMAT").and_then(named).or(of_file).unwrap_or_default()
}

fn address(value: &DeValue<'_>) -> Result<String, Diagnosis> {
    let text = String::from_toml(value)?;
    let fix = "write one like \"http://127.0.0.1:4318\", without a query";
    if otel::is_base(&text) { Ok(text) } else { Err(Diagnosis::new("expected the HTTP address of a collector", fix)) }
}
