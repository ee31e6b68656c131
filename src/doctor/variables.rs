//! Variables that builds need: certificates that are there, and what MCP clients take away.

use std::path::Path;

use super::{Sign, State};
use crate::runtime::Workspace;

/// What uv reads them from.
const CERTIFICATES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Certificates that are asked for and not there.
pub(super) fn certificates(app: &Workspace) -> Vec<Sign> {
    let configured = &app.config.layer.build_env;
    let mut signs = Vec::new();
    for name in CERTIFICATES {
        let value = configured
            .get(name)
            .map(|setting| setting.value.clone())
            .or_else(|| app.config.environment.text(name).map(str::to_owned));
        let Some(value) = value.filter(|value| !value.is_empty()) else { continue };
        signs.push(match wrong_with(name, Path::new(&value)) {
            None => Sign::good("certificates", format!("{name} = {value}")),
            Some(wrong) => {
                let place = configured.get(name).map(|said| format!(" at {}", said.origin)).unwrap_or_default();
                let fix = format!("correct {name}{place}, or unset it");
                Sign::new("certificates", State::Bad, format!("{name} names {value}, which {wrong}"), fix)
            }
        });
    }
    signs
}

/// What is wrong with a file or a folder that certificates are read from.
fn wrong_with(name: &str, path: &Path) -> Option<String> {
    if !path.exists() {
        return Some("is not there".to_owned());
    }
    if name == "SSL_CERT_DIR" {
        return (!path.is_dir()).then(|| "is no folder".to_owned());
    }
    match std::fs::read(path) {
        Ok(bytes) => {
            let is_pem = String::from_utf8_lossy(&bytes).contains("CERTIFICATE-----");
            (!is_pem).then(|| "holds no certificate (-----BEGIN CERTIFICATE-----)".to_owned())
        }
        Err(error) => Some(format!("cannot be read: {error}")),
    }
}

/// What is set here, is needed for builds, and is not there when an MCP client starts hostler.
///
/// What is itself the trouble is not to be kept: `signs` are those of the machine.
pub(super) fn stripped(app: &Workspace, signs: &[Sign]) -> Vec<Sign> {
    let bad: Vec<&Sign> = signs.iter().filter(|sign| sign.state == State::Bad).collect();
    let configured = &app.config.layer.build_env;
    let is_needed = |name: &str| {
        let upper = name.to_ascii_uppercase();
        name.starts_with("UV_") && name != "UV_CACHE_DIR"
            || CERTIFICATES.contains(&name)
            || ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"].contains(&upper.as_str())
    };
    // What is no text could not stand in hostler.toml.
    let all = app
        .config
        .environment
        .iter()
        .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())));
    let set = all.filter(|(name, value)| !value.is_empty() && is_needed(name));
    let missing = set.filter(|(name, _)| !configured.contains_key(name));
    missing
        .map(|(name, value)| {
            let found = format!("{name} is set here, and MCP clients start servers without it");
            if bad.iter().any(|sign| blames(sign, &name)) {
                let fix = "correct or unset it, as said above; only a right one belongs under [environment.env] in hostler.toml".to_owned();
                return Sign::new("client", State::Doubtful, found, fix);
            }
            let shown = if value.contains('@') { "…" } else { value.as_str() };
            Sign::new(
                "client",
                State::Doubtful,
                found,
                format!("add `{name} = \"{shown}\"` under [environment.env] in hostler.toml"),
            )
        })
        .collect()
}

/// Whether a variable that is set is among what a sign suspects.
fn blames(sign: &Sign, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = |text: &str| text.split(|c| !is_part(c)).any(|word| word == name);
    words(&sign.found) || sign.fix.as_deref().is_some_and(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_certificates_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        let told = |name, text: &str| {
            std::fs::write(&file, text).unwrap();
            wrong_with(name, &file)
        };
        assert_eq!(told("SSL_CERT_FILE", "-----BEGIN CERTIFICATE-----\nMII\n"), None);
        for text in ["", "not a certificate"] {
            assert!(told("SSL_CERT_FILE", text).unwrap().starts_with("holds no certificate"), "{text}");
        }
        assert_eq!(told("SSL_CERT_DIR", "").unwrap(), "is no folder");
        assert_eq!(wrong_with("SSL_CERT_FILE", Path::new("/nowhere")).unwrap(), "is not there");
    }

    #[test]
    fn what_is_the_trouble_is_known_by_its_name() {
        let sign = Sign::new("index", State::Bad, "x", "uv is offline (UV_OFFLINE is set in y). Unset UV_OFFLINE");
        let found = Sign::new("certificates", State::Bad, "SSL_CERT_FILE names /x, which is not there", "correct it");
        assert!(blames(&found, "SSL_CERT_FILE"));
        assert!(blames(&sign, "UV_OFFLINE") && !blames(&sign, "UV_OFF") && !blames(&sign, "HTTPS_PROXY"));
    }
}
