//! The variables that OpenTelemetry defines for every program, as far as they say where spans go and what goes with them.

use percent_encoding::percent_decode_str;
use ureq::http::{HeaderName, HeaderValue, Uri};

use super::environment::Environment;

/// Where a collector takes traces, below its address.
const PATH: &str = "/v1/traces";
/// What requests have of their own. Another value would break them or send them elsewhere.
const RESERVED: [&str; 6] = ["connection", "content-length", "content-type", "expect", "host", "transfer-encoding"];
const FIX: &str = "name the collector's HTTP address by `otlp` under [telemetry] in hostler.toml";

/// Names with their values.
type Pairs = Vec<(String, String)>;

/// A variable that is set to something.
pub fn set<'a>(variables: &'a Environment, name: &str) -> Option<&'a str> {
    variables.text(name).map(str::trim).filter(|value| !value.is_empty())
}

/// A variable of OTLP with its name: the one for traces, otherwise the one for all signals.
fn of_traces<'a>(variables: &'a Environment, name: &str) -> Option<(String, &'a str)> {
    let names = [format!("OTEL_EXPORTER_OTLP_TRACES_{name}"), format!("OTEL_EXPORTER_OTLP_{name}")];
    names.into_iter().find_map(|name| set(variables, &name).map(|value| (name, value)))
}

/// Whether nothing is exported, whatever else is configured.
pub fn is_off(variables: &Environment) -> bool {
    set(variables, "OTEL_SDK_DISABLED").is_some_and(|word| word.eq_ignore_ascii_case("true"))
}

/// The address that takes traces, if there is one, or why the one that is named cannot be used.
pub fn endpoint(variables: &Environment) -> Result<Option<String>, String> {
    let exporters = set(variables, "OTEL_TRACES_EXPORTER").unwrap_or("otlp");
    if !exporters.split(',').any(|exporter| exporter.trim() == "otlp") {
        return Ok(None);
    }
    let Some((name, address)) = of_traces(variables, "ENDPOINT") else { return Ok(None) };
    if let Some((name, protocol)) = of_traces(variables, "PROTOCOL")
        && protocol != "http/protobuf"
    {
        return Err(format!("spans are not exported: {name} is {protocol}, and hostler speaks http/protobuf; {FIX}"));
    }
    let is_for_traces = name.contains("TRACES");
    let usable = if is_for_traces { is_address(address) } else { is_base(address) };
    if !usable {
        return Err(format!("spans are not exported: {name} is not an HTTP address; {FIX}"));
    }
    Ok(Some(if is_for_traces { address.to_owned() } else { with_path(address) }))
}

/// The longest that a request may take, in milliseconds.
pub fn timeout(variables: &Environment) -> Option<u64> {
    of_traces(variables, "TIMEOUT").and_then(|(_, text)| text.parse().ok()).filter(|limit| *limit > 0)
}

/// The headers of each request, or which variable has one that cannot be sent. Values may be secret and are not repeated.
pub fn headers(variables: &Environment) -> Result<Pairs, String> {
    let Some((variable, text)) = of_traces(variables, "HEADERS") else { return Ok(Pairs::new()) };
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let headers: Result<Pairs, String> = entries.map(header).collect();
    headers.map_err(|why| {
        format!("spans are not exported: {variable}: {why}; write NAME=VALUE,NAME=VALUE, with values percent-encoded")
    })
}

fn header(entry: &str) -> Result<(String, String), String> {
    let (name, value) = pair(entry).ok_or("an entry is not NAME=VALUE")?;
    let known: HeaderName = name.parse().map_err(|_| "an entry has a name that is not the name of a header")?;
    if RESERVED.contains(&known.as_str()) {
        return Err(format!("`{known}` is set by hostler itself"));
    }
    HeaderValue::try_from(&value).map_err(|_| format!("the value of `{known}` is not that of a header"))?;
    Ok((name, value))
}

/// `NAME=VALUE`, with a value that may be percent-encoded.
fn pair(entry: &str) -> Option<(String, String)> {
    let (name, value) = entry.split_once('=')?;
    let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
    Some((name.trim().to_owned(), value.into_owned()))
}

/// The attributes of this process. Those of hostler come first: what is too much is cut at the end.
pub fn resource(variables: &Environment) -> Pairs {
    let mut resource = vec![
        ("service.name".to_owned(), "hostler".to_owned()),
        ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let named = set(variables, "OTEL_SERVICE_NAME").map(|name| ("service.name".to_owned(), name.to_owned()));
    let attributes = set(variables, "OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default().split(',').filter_map(pair);
    for (name, value) in attributes.filter(|(name, _)| !name.is_empty()).chain(named) {
        match resource.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = value,
            None => resource.push((name, value)),
        }
    }
    resource
}

/// A collector's address with the path of traces.
pub fn with_path(address: &str) -> String {
    let address = address.trim_end_matches('/');
    if address.ends_with(PATH) { address.to_owned() } else { format!("{address}{PATH}") }
}

/// Whether a path can be added to an address.
pub fn is_base(text: &str) -> bool {
    is_address(text) && !text.contains('?')
}

fn is_address(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else { return false };
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    // The parser drops a fragment.
    is_http && !text.contains('#') && uri.authority().is_some_and(|authority| names_a_host(authority.as_str()))
}

/// Whether this is a host, perhaps with a port. The parser takes a port that is too large as none.
fn names_a_host(authority: &str) -> bool {
    let host = authority.rsplit('@').next().unwrap_or_default();
    let (host, port) = match host.rfind(':').filter(|colon| !host[*colon..].contains(']')) {
        Some(colon) => (&host[..colon], &host[colon + 1..]),
        None => (host, "80"),
    };
    !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn variables(all: &[(&str, &str)]) -> Environment {
        all.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
    }

    #[test]
    fn only_addresses_that_mean_what_they_say_are_used() {
        for good in ["http://a", "http://a:4318/", "https://[::1]:4318", "http://me:word@a:1/x", "http://[::1]"] {
            assert!(is_base(good), "{good}");
        }
        let bad = [
            "http://127.0.0.1:99999",
            "http://a:65536",
            "http://a:0",
            "http://a:",
            "http://[::1]:70000",
            "http://me@a:99999",
            "a:4318",
            "ftp://a",
            "http://",
            "http:///x",
            "http://a#b",
            "http://a/?b=c",
        ];
        for bad in bad {
            assert!(!is_base(bad), "{bad}");
        }
        assert!(is_address("http://a/v1/traces?key=1"), "a full address may have a query");
    }

    #[test]
    fn the_variable_that_cannot_be_used_is_named() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318");
        let of = |more: &[(&str, &str)]| endpoint(&variables(&[&[base], more].concat()));
        assert_eq!(of(&[]), Ok(Some("http://a:4318/v1/traces".to_owned())));
        assert_eq!(of(&[("OTEL_TRACES_EXPORTER", "console, otlp")]), Ok(Some("http://a:4318/v1/traces".to_owned())));
        assert_eq!(of(&[("OTEL_TRACES_EXPORTER", "console")]), Ok(None));
        let traces = of(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://b/x?k=1")]);
        assert_eq!(traces, Ok(Some("http://b/x?k=1".to_owned())));
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://a:99999"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318?b=c"),
        ] {
            assert!(of(&[(name, value)]).unwrap_err().contains(&format!(" {name} is ")), "{name}");
        }
    }

    #[test]
    fn headers_are_checked_and_their_values_not_repeated() {
        let of = |text: &str| headers(&variables(&[("OTEL_EXPORTER_OTLP_TRACES_HEADERS", text)]));
        let pairs = [("x-key", "a b"), ("Other", "c=d")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(of("x-key=a%20b, Other=c=d,"), Ok(pairs.to_vec()));
        for (bad, word) in [
            ("hunter2", "NAME=VALUE"),
            ("x y=hunter2", "name of a header"),
            ("=hunter2", "name of a header"),
            ("x=hunter2%0d%0ay: z", "`x`"),
            ("Host=hunter2", "`host`"),
            ("content-length=5", "`content-length`"),
            ("Transfer-Encoding=chunked", "`transfer-encoding`"),
        ] {
            let said = of(bad).unwrap_err();
            assert!(said.contains("OTEL_EXPORTER_OTLP_TRACES_HEADERS: ") && said.contains(word), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }

    #[test]
    fn of_two_attributes_the_last_counts_and_one_without_a_name_is_left_out() {
        let named = [("OTEL_RESOURCE_ATTRIBUTES", "a=1,=2,b, c = x%2Cy ,a=3,service.name=one,service.name=two")];
        let version = env!("CARGO_PKG_VERSION");
        let pairs = |all: &[(&str, &str)]| -> Pairs {
            all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let wanted = [("service.name", "two"), ("service.version", version), ("a", "3"), ("c", "x,y")];
        assert_eq!(resource(&variables(&named)), pairs(&wanted));
        let more = resource(&variables(&[named[0], ("OTEL_SERVICE_NAME", "three")]));
        assert_eq!(more[0].1, "three");
    }
}
