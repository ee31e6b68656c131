//! `[telemetry]`: where the spans of calls go. Without it the variables count that OpenTelemetry defines for every program.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use toml::de::DeValue;

use super::environment::Environment;
use super::origin::{Diagnosis, Setting};
use super::section::Section;
use super::value::{FromToml, Word};
use crate::telemetry::{Collector, LogFormat};

/// What OpenTelemetry says of the longest that a request may take.
const TIMEOUT: Duration = Duration::from_secs(10);
const PATH: &str = "/v1/traces";

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
        let of_traces = |name: &'static str| {
            let own = match name {
                "PROTOCOL" => "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
                "HEADERS" => "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
                _ => "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
            };
            let usual = format!("OTEL_EXPORTER_OTLP_{name}");
            set(variables, own).or_else(|| set(variables, &usual))
        };
        let is_off = set(variables, "OTEL_SDK_DISABLED").is_some_and(|word| word.eq_ignore_ascii_case("true"));
        let found = match named {
            _ if is_off => Ok(None),
            Some(named) => Ok(Some(with_path(&named.value))),
            None => of_variables(variables, of_traces("PROTOCOL")),
        };
        let (address, unusable) = match found {
            Ok(address) => (address, None),
            Err(why) => (None, Some(why)),
        };
        let timeout = of_traces("TIMEOUT").and_then(|text| text.parse().ok()).filter(|limit| *limit > 0);
        let collector = address.map(|address| Collector {
            address,
            headers: of_traces("HEADERS").map(pairs).unwrap_or_default(),
            timeout: timeout.map_or(TIMEOUT, Duration::from_millis),
            resource: resource(variables),
        });
        Self { collector, unusable }
    }
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

/// A variable that is set to something.
fn set<'a>(variables: &'a Environment, name: &str) -> Option<&'a str> {
    variables.text(name).map(str::trim).filter(|value| !value.is_empty())
}

fn of_variables(variables: &Environment, protocol: Option<&str>) -> Result<Option<String>, String> {
    if set(variables, "OTEL_TRACES_EXPORTER").is_some_and(|word| word != "otlp") {
        return Ok(None);
    }
    let own = set(variables, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").map(|address| ("_TRACES", address.to_owned()));
    let usual = || set(variables, "OTEL_EXPORTER_OTLP_ENDPOINT").map(|address| ("", with_path(address)));
    let Some((which, address)) = own.or_else(usual) else { return Ok(None) };
    let fix = "name the collector's HTTP address by `otlp` under [telemetry] in hostler.toml";
    if protocol == Some("grpc") {
        return Err(format!(
            "spans are not exported: OTEL_EXPORTER_OTLP_PROTOCOL is grpc, and hostler speaks HTTP; {fix}"
        ));
    }
    if !is_address(&address) {
        let variable = format!("OTEL_EXPORTER_OTLP{which}_ENDPOINT");
        return Err(format!("spans are not exported: {variable} is not an HTTP address; {fix}"));
    }
    Ok(Some(address))
}

fn with_path(address: &str) -> String {
    let address = address.trim_end_matches('/');
    if address.ends_with(PATH) { address.to_owned() } else { format!("{address}{PATH}") }
}

fn is_address(text: &str) -> bool {
    text.parse::<ureq::http::Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty())
    })
}

fn address(value: &DeValue<'_>) -> Result<String, Diagnosis> {
    let text = String::from_toml(value)?;
    let fix = "write one like \"http://127.0.0.1:4318\"";
    if is_address(&text) { Ok(text) } else { Err(Diagnosis::new("expected the HTTP address of a collector", fix)) }
}

/// `name=value,name=value`, with values that may be percent-encoded.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        Some((name.trim().to_owned(), value.into_owned()))
    };
    text.split(',').filter_map(pair).collect()
}

fn resource(variables: &Environment) -> Vec<(String, String)> {
    let mut resource = set(variables, "OTEL_RESOURCE_ATTRIBUTES").map(pairs).unwrap_or_default();
    if let Some(name) = set(variables, "OTEL_SERVICE_NAME") {
        resource.retain(|(key, _)| key != "service.name");
        resource.push(("service.name".to_owned(), name.to_owned()));
    }
    let own = [("service.name", "hostler".to_owned()), ("service.version", env!("CARGO_PKG_VERSION").to_owned())];
    for (name, value) in own {
        if !resource.iter().any(|(key, _)| key == name) {
            resource.push((name.to_owned(), value));
        }
    }
    resource
}
