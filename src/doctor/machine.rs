//! The machine: cache, uv, index, certificates, and what MCP clients take away.

use std::io::ErrorKind;
use std::path::Path;

use super::{Sign, State};
use crate::app::App;
use crate::environment::{OLDEST_UV, Reached};

const MEGABYTE: u64 = 1_000_000;
/// An environment with a large dependency takes this much.
const COMFORTABLE: u64 = 2_000 * MEGABYTE;
/// Not even a small one fits into less.
const TIGHT: u64 = 200 * MEGABYTE;

/// What to do about a disk that is full or nearly.
const ROOM: &str =
    "make room on that disk, or set XDG_CACHE_HOME to another; `hostler warm --prune` removes unused environments";

pub(super) fn cache(app: &App) -> Sign {
    let folder = app.dispatcher.pools.environments().cache();
    let shown = folder.display();
    if let Err(error) = try_writing(folder) {
        return unwritable(folder, &error);
    }
    let Ok(disk) = rustix::fs::statvfs(folder) else { return Sign::good("cache", shown.to_string()) };
    let room = disk.f_bavail.saturating_mul(disk.f_frsize);
    let found = format!("{shown}, {} MB free", room / MEGABYTE);
    match room {
        ..TIGHT => Sign::new("cache", State::Bad, found, ROOM),
        TIGHT..COMFORTABLE => Sign::new("cache", State::Doubtful, found, ROOM),
        COMFORTABLE.. => Sign::good("cache", found),
    }
}

/// A full disk is not made writable by permissions.
fn unwritable(folder: &Path, error: &std::io::Error) -> Sign {
    let is_full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
    let fix = if is_full { ROOM } else { "make it writable, or set XDG_CACHE_HOME to a folder that is" };
    Sign::new("cache", State::Bad, format!("{} cannot be written: {error}", folder.display()), fix)
}

fn try_writing(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let trial = folder.join(format!(".doctor.{}", std::process::id()));
    let written = std::fs::write(&trial, "can this be written?");
    let _ = std::fs::remove_file(&trial);
    written
}

pub(super) async fn uv(app: &App, online: bool) -> Vec<Sign> {
    let environments = app.dispatcher.pools.environments();
    let found = match environments.find_uv() {
        Ok(Some(found)) => found,
        Ok(None) => return vec![without_uv()],
        Err(fault) => return vec![Sign::new("uv", State::Bad, fault.message, "correct that line of hostler.toml")],
    };
    let update = "update it: `uv self update`, or however it was installed";
    let mut signs = Vec::new();
    match environments.uv_version(&found).await {
        None => {
            let fix = "install it anew (https://docs.astral.sh/uv), or name another under [environment] uv = \"…\"";
            return vec![Sign::new("uv", State::Bad, format!("{} does not run", found.display()), fix)];
        }
        Some(version) => {
            let text = format!("{} {}.{}.{}", found.display(), version.0, version.1, version.2);
            let sign = if version < OLDEST_UV {
                Sign::new("uv", State::Bad, format!("{text} is too old; 0.8 is needed"), update)
            } else {
                Sign::good("uv", text)
            };
            signs.push(sign);
        }
    }
    if online {
        signs.push(match environments.reach_index(&found).await {
            Reached::Yes => Sign::good("index", "the package index answers"),
            Reached::No { reason, advice } => {
                let fix =
                    advice.unwrap_or_else(|| "only tools whose environments are built already can start".to_owned());
                Sign::new("index", State::Bad, reason, fix)
            }
        });
    }
    signs
}

fn without_uv() -> Sign {
    let python = which::which("python3").or_else(|_| which::which("python"));
    match python {
        Ok(python) => Sign::new(
            "uv",
            State::Doubtful,
            format!("not installed; the first build fetches a private copy with {} -m pip", python.display()),
            "install it to be sure: https://docs.astral.sh/uv",
        ),
        Err(_) => Sign::new(
            "uv",
            State::Bad,
            "not installed, and there is no Python on PATH to fetch it with",
            "install it: https://docs.astral.sh/uv",
        ),
    }
}

/// What uv reads them from.
const CERTIFICATES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Certificates that are asked for and not there.
pub(super) fn certificates(app: &App) -> Vec<Sign> {
    let configured = &app.config.layer.build_env;
    let mut signs = Vec::new();
    for name in CERTIFICATES {
        let value = configured.get(name).map(|setting| setting.value.clone()).or_else(|| std::env::var(name).ok());
        let Some(value) = value.filter(|value| !value.is_empty()) else { continue };
        if Path::new(&value).exists() {
            signs.push(Sign::good("certificates", format!("{name} = {value}")));
        } else {
            let fix = format!("correct {name}, or unset it");
            signs.push(Sign::new("certificates", State::Bad, format!("{name} names {value}, which is not there"), fix));
        }
    }
    signs
}

/// What is set here, is needed for builds, and is not there when an MCP client starts hostler.
pub(super) fn stripped(app: &App) -> Vec<Sign> {
    let configured = &app.config.layer.build_env;
    let is_needed = |name: &str| {
        let upper = name.to_ascii_uppercase();
        name.starts_with("UV_") && name != "UV_CACHE_DIR"
            || CERTIFICATES.contains(&name)
            || ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"].contains(&upper.as_str())
    };
    let set = std::env::vars().filter(|(name, value)| !value.is_empty() && is_needed(name));
    let missing = set.filter(|(name, _)| !configured.contains_key(name));
    missing
        .map(|(name, value)| {
            let found = format!("{name} is set here, and MCP clients start servers without it");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_wants_room_and_a_closed_folder_permission() {
        let fix = |kind: ErrorKind| unwritable(Path::new("/c"), &kind.into()).fix.unwrap_or_default();
        assert!(fix(ErrorKind::StorageFull).starts_with("make room on that disk"));
        assert!(fix(ErrorKind::PermissionDenied).starts_with("make it writable"));
    }
}
