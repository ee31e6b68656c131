//! The machine: caches, uv, the package index, certificates, interpreters, and variables that MCP clients remove.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::str::FromStr;

use pep440_rs::VersionSpecifiers;

use super::{CheckResult, State};
use crate::check::Interpreters;
use crate::config::Environment;
use crate::environment::{IndexProblem, OLDEST_UV, UvCache};
use crate::pep723::{OLDEST_PYTHON, UnsupportedPython};
use crate::process::has_domains;
use crate::runtime::Workspace;

const MEGABYTE: u64 = 1_000_000;
/// Enough space for an environment with large dependencies.
const COMFORTABLE: u64 = 2_000 * MEGABYTE;
/// Too little even for a small environment.
const TIGHT: u64 = 200 * MEGABYTE;

/// What to do about a full disk.
const ROOM: &str =
    "free space on that disk (`hostler warm --prune` removes unused environments), or set XDG_CACHE_HOME to another";

pub(super) fn cache(app: &Workspace) -> CheckResult {
    let environments = app.calls.pools.environments();
    let folder = environments.cache();
    let shown = folder.display();
    if let Err(error) = try_writing(folder) {
        return unwritable(folder, &error);
    }
    let Ok(disk) = rustix::fs::statvfs(folder) else { return CheckResult::good("cache", shown.to_string()) };
    let room = disk.f_bavail.saturating_mul(disk.f_frsize);
    let found = format!("{shown}, {} MB free", room / MEGABYTE);
    match room {
        ..TIGHT => CheckResult::new("cache", State::Bad, found, ROOM),
        TIGHT..COMFORTABLE => CheckResult::new("cache", State::Doubtful, found, ROOM),
        COMFORTABLE.. => CheckResult::good("cache", found),
    }
}

/// A full disk and missing permissions need different fixes.
fn unwritable(folder: &Path, error: &std::io::Error) -> CheckResult {
    let is_full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
    let fix = if is_full { ROOM } else { "make it writable, or set XDG_CACHE_HOME to a folder that is" };
    CheckResult::new("cache", State::Bad, format!("{} is not writable: {error}", folder.display()), fix)
}

fn try_writing(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let trial = folder.join(format!(".doctor.{}", std::process::id()));
    let written = std::fs::write(&trial, "can this be written?");
    let _ = std::fs::remove_file(&trial);
    written
}

pub(super) async fn uv(app: &Workspace, online: bool) -> Vec<CheckResult> {
    let environments = app.calls.pools.environments();
    let found = match environments.find_uv() {
        Ok(Some(found)) => found,
        Ok(None) => return vec![without_uv(&app.config().environment)],
        Err(fault) => {
            return vec![CheckResult::new("uv", State::Bad, fault.message, "correct that line of hostler.toml")];
        }
    };
    let update = "update it (`uv self update`, or as it was installed)";
    let mut results = Vec::new();
    match environments.uv_version(&found).await {
        None => {
            let other = match &app.config().uv {
                Some(set) => format!("correct `environment.uv` at {}", set.origin),
                None => "set another as `uv` under [environment]".to_owned(),
            };
            let fix = format!("install it again (https://docs.astral.sh/uv), or {other}");
            return vec![CheckResult::new("uv", State::Bad, format!("{} does not run", found.display()), fix)];
        }
        Some(version) => {
            let text = format!("{} {}.{}.{}", found.display(), version.0, version.1, version.2);
            let result = if version < OLDEST_UV {
                CheckResult::new("uv", State::Bad, format!("{text} is too old; hostler needs 0.8 or newer"), update)
            } else {
                CheckResult::good("uv", text)
            };
            results.push(result);
        }
    }
    if let Some(cache) = environments.uv_cache(&found).await {
        results.extend(uv_cache(&cache));
    }
    if online {
        results.push(match environments.ask_index(&found).await {
            Ok(()) => CheckResult::good("index", "the package index answers"),
            Err(IndexProblem { reason, fix }) => {
                let fix = fix.unwrap_or_else(|| "only tools whose environments exist already can start".to_owned());
                CheckResult::new("index", State::Bad, reason, fix)
            }
        });
    }
    results
}

/// uv's own cache. One that does not exist yet must be creatable.
fn uv_cache(cache: &UvCache) -> Option<CheckResult> {
    let there = cache.folder.ancestors().find(|folder| folder.exists())?;
    let error = try_writing(there).err()?;
    let is_full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
    let shown = cache.folder.display();
    let (found, fix) = match &cache.place {
        Some(place) => (
            format!("uv's cache {shown} (UV_CACHE_DIR in {place}) is not writable: {error}"),
            "correct UV_CACHE_DIR or unset it, or make the folder writable",
        ),
        None => (
            format!("uv's cache {shown} is not writable: {error}"),
            "make it writable, or set UV_CACHE_DIR under [environment.env] in hostler.toml",
        ),
    };
    Some(CheckResult::new("uv", State::Bad, found, if is_full { "free space on that disk" } else { fix }))
}

fn without_uv(environment: &Environment) -> CheckResult {
    let python = environment.find_program("python3").or_else(|| environment.find_program("python"));
    match python {
        Some(python) => CheckResult::new(
            "uv",
            State::Doubtful,
            format!("not installed; the first build downloads a private copy with {} -m pip", python.display()),
            "install it (https://docs.astral.sh/uv)",
        ),
        None => CheckResult::new(
            "uv",
            State::Bad,
            "not installed, and there is no Python on PATH to download it with",
            "install it (https://docs.astral.sh/uv)",
        ),
    }
}

/// The interpreters that run here, and headers that none of them satisfies. A file name is not enough: version managers put names
/// on `PATH` that do not run.
pub(super) async fn interpreters(app: &Workspace) -> Vec<CheckResult> {
    let environments = app.calls.pools.environments();
    let named = Interpreters::of_this_machine(&app.config().environment);
    let mut running = None;
    if let Ok(Some(uv)) = environments.find_uv() {
        running = environments.pythons(&uv).await;
        // Only the configured one is used for builds.
        if let Some((what, fix)) = environments.missing_python(&uv).await.filter(|_| running.is_some()) {
            return vec![CheckResult::new("python", State::Bad, what, fix)];
        }
    }
    let Some(running) = running.map(|running| Interpreters(running.into_iter().collect())) else {
        let have = if named.0.is_empty() { "none".to_owned() } else { format!("{} by name", named.list()) };
        let found = format!("found {have}; not tried, because uv is needed for that");
        let fix = "fix uv first, then run this again";
        return vec![CheckResult::new("python", State::Doubtful, found, fix)];
    };
    let broken = |minor: &&(u64, u64)| **minor >= OLDEST_PYTHON && !running.0.contains(*minor);
    let broken = Interpreters(named.0.iter().filter(broken).copied().collect());
    let beside = if broken.0.is_empty() { String::new() } else { format!(" (do not run: {})", broken.list()) };
    let have = if running.0.is_empty() { "none".to_owned() } else { running.list() };
    let have = format!("found {have}{beside}");
    let mut unmet: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in &app.calls.registry.catalogue().files {
        let wanted = entry.file.header.as_ref().and_then(|header| header.requires_python.as_ref());
        let Some(wanted) = wanted else { continue };
        if VersionSpecifiers::from_str(wanted).is_ok_and(|range| !running.fits(&range)) {
            unmet.entry(wanted.clone()).or_default().push(entry.file.pack.clone());
        }
    }
    if unmet.is_empty() {
        return vec![CheckResult::good("python", have)];
    }
    unmet.iter().map(|(wanted, packs)| unmet_sign(wanted, packs, &have)).collect()
}

fn unmet_sign(wanted: &str, packs: &[String], have: &str) -> CheckResult {
    let found = format!("{} requires {wanted}; {have}", packs.join(", "));
    if let Some(hindrance) = UnsupportedPython::of(wanted) {
        return CheckResult::new("python", State::Bad, found, hindrance.explain("").1);
    }
    let fix = "install one with `uv python install`; uv also tries to download it at the first call";
    CheckResult::new("python", State::Doubtful, found, fix)
}

/// Whether tools are separated from each other and from hostler.
pub(super) fn separation() -> CheckResult {
    if has_domains() {
        return CheckResult::good("isolation", "no tool can read the memory or the environment of another (Landlock)");
    }
    let found = "tools can read each other's memory: this system has no Landlock";
    let fix = "use Linux 5.19 or newer with Landlock enabled, or run only tools you trust (docs/security.md)";
    CheckResult::new("isolation", State::Doubtful, found, fix)
}

/// The variables that uv reads certificates from.
const CERTIFICATES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// The configured certificates.
pub(super) fn certificates(app: &Workspace) -> Vec<CheckResult> {
    let configured = &app.config().build_env;
    let mut results = Vec::new();
    for name in CERTIFICATES {
        let value = configured
            .get(name)
            .map(|setting| setting.value.clone())
            .or_else(|| app.config().environment.text(name).map(str::to_owned));
        let Some(value) = value.filter(|value| !value.is_empty()) else { continue };
        results.push(match wrong_with(name, Path::new(&value)) {
            None => CheckResult::good("certificates", format!("{name} = {value}")),
            Some(wrong) => {
                let place = configured.get(name).map(|set| format!(" at {}", set.origin)).unwrap_or_default();
                let fix = format!("correct {name}{place}, or unset it");
                CheckResult::new("certificates", State::Bad, format!("{name} names {value}, which {wrong}"), fix)
            }
        });
    }
    results
}

/// What is wrong with a file or a folder of certificates.
fn wrong_with(name: &str, path: &Path) -> Option<String> {
    if !path.exists() {
        return Some("does not exist".to_owned());
    }
    if name == "SSL_CERT_DIR" {
        return (!path.is_dir()).then(|| "is not a folder".to_owned());
    }
    match std::fs::read(path) {
        Ok(bytes) => {
            let is_pem = String::from_utf8_lossy(&bytes).contains("CERTIFICATE-----");
            (!is_pem).then(|| "contains no certificate (-----BEGIN CERTIFICATE-----)".to_owned())
        }
        Err(error) => Some(format!("cannot be read: {error}")),
    }
}

/// Variables that builds need and that MCP clients do not pass on. One that a bad result names is to be corrected first.
pub(super) fn stripped(app: &Workspace, results: &[CheckResult]) -> Vec<CheckResult> {
    let is_bad = |name: &str| {
        let names = |result: &CheckResult| {
            result.found.contains(name) || result.fix.as_ref().is_some_and(|fix| fix.contains(name))
        };
        results.iter().any(|result| result.state == State::Bad && names(result))
    };
    let configured = &app.config().build_env;
    let is_needed = |name: &str| {
        let upper = name.to_ascii_uppercase();
        name.starts_with("UV_") && name != "UV_CACHE_DIR"
            || CERTIFICATES.contains(&name)
            || ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"].contains(&upper.as_str())
    };
    // Only text can be written into hostler.toml.
    let config = app.config();
    let all = config.environment.iter();
    let all = all.filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
    let missing = all.filter(|(name, value)| !value.is_empty() && is_needed(name) && !configured.contains_key(*name));
    missing
        .filter(|(name, _)| !is_bad(name))
        .map(|(name, value)| {
            let found = format!("{name} is set here, but MCP clients start servers without it");
            // A proxy's address may contain a password.
            let shown = if value.contains('@') { "…" } else { value };
            let fix = format!("add `{name} = \"{shown}\"` under [environment.env] in hostler.toml");
            CheckResult::new("client", State::Doubtful, found, fix)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_and_a_closed_folder_have_different_fixes() {
        let fix = |kind: ErrorKind| unwritable(Path::new("/c"), &kind.into()).fix.unwrap_or_default();
        assert!(fix(ErrorKind::StorageFull).starts_with("free space on that disk"));
        assert!(fix(ErrorKind::PermissionDenied).starts_with("make it writable"));
    }

    #[test]
    fn an_unwritable_cache_of_uv_is_reported_with_its_origin() {
        let folder = tempfile::tempdir().unwrap();
        let problem = |path: &str, place: Option<&str>| {
            uv_cache(&UvCache { folder: folder.path().join(path), place: place.map(str::to_owned) })
        };
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert!(problem("not/yet/there", None).is_none(), "it can be created");
        assert!(!folder.path().join("not").exists(), "nothing is created");
        let bad = problem("file/cache", Some("/p/hostler.toml:3")).unwrap();
        assert!(bad.state == State::Bad && bad.found.contains("(UV_CACHE_DIR in /p/hostler.toml:3) is not writable"));
        assert!(bad.fix.unwrap().starts_with("correct UV_CACHE_DIR"));
        assert!(problem("file/cache", None).unwrap().fix.unwrap().contains("set UV_CACHE_DIR"));
    }

    #[test]
    fn a_file_without_certificates_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        let problem = |name, text: &str| {
            std::fs::write(&file, text).unwrap();
            wrong_with(name, &file)
        };
        assert_eq!(problem("SSL_CERT_FILE", "-----BEGIN CERTIFICATE-----\nMII\n"), None);
        for text in ["", "not a certificate"] {
            assert!(problem("SSL_CERT_FILE", text).unwrap().starts_with("contains no certificate"), "{text}");
        }
        assert_eq!(problem("SSL_CERT_DIR", "").unwrap(), "is not a folder");
        assert_eq!(wrong_with("SSL_CERT_FILE", Path::new("/nowhere")).unwrap(), "does not exist");
    }
}
