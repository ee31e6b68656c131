//! The machine: the caches, uv, the index.

use std::io::ErrorKind;
use std::path::Path;

use super::{Sign, State};
use crate::app::App;
use crate::environment::{IndexProblem, OLDEST_UV, UvCache};

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
            let other = match &app.config.uv {
                Some(said) => format!("correct `environment.uv` at {}", said.origin),
                None => "name another under [environment] uv = \"…\"".to_owned(),
            };
            let fix = format!("install it anew (https://docs.astral.sh/uv), or {other}");
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
    if let Some(cache) = environments.uv_cache(&found).await {
        signs.extend(uv_cache(&cache));
    }
    if online {
        signs.push(match environments.ask_index(&found).await {
            Ok(()) => Sign::good("index", "the package index answers"),
            Err(IndexProblem { reason, fix }) => {
                let fix = fix.unwrap_or_else(|| "only tools whose environments are built already can start".to_owned());
                Sign::new("index", State::Bad, reason, fix)
            }
        });
    }
    signs
}

/// uv keeps what it fetched in a cache of its own. One that is not there yet is as good as the folder that it would come into.
fn uv_cache(cache: &UvCache) -> Option<Sign> {
    let there = cache.folder.ancestors().find(|folder| folder.exists())?;
    let error = try_writing(there).err()?;
    let is_full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
    let shown = cache.folder.display();
    let (found, fix) = match &cache.place {
        Some(place) => (
            format!("uv's cache {shown} (UV_CACHE_DIR in {place}) cannot be written: {error}"),
            "correct UV_CACHE_DIR or unset it, or make the folder writable",
        ),
        None => (
            format!("uv's cache {shown} cannot be written: {error}"),
            "make it writable, or set UV_CACHE_DIR under [environment.env] in hostler.toml",
        ),
    };
    Some(Sign::new("uv", State::Bad, found, if is_full { "make room on that disk" } else { fix }))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_wants_room_and_a_closed_folder_permission() {
        let fix = |kind: ErrorKind| unwritable(Path::new("/c"), &kind.into()).fix.unwrap_or_default();
        assert!(fix(ErrorKind::StorageFull).starts_with("make room on that disk"));
        assert!(fix(ErrorKind::PermissionDenied).starts_with("make it writable"));
    }

    #[test]
    fn a_cache_of_uvs_that_cannot_be_written_is_told_with_where_it_is_set() {
        let folder = tempfile::tempdir().unwrap();
        let told = |path: &str, place: Option<&str>| {
            uv_cache(&UvCache { folder: folder.path().join(path), place: place.map(str::to_owned) })
        };
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert!(told("not/yet/there", None).is_none(), "it can be made");
        assert!(!folder.path().join("not").exists(), "looking makes nothing");
        let bad = told("file/cache", Some("/p/hostler.toml:3")).unwrap();
        assert!(bad.state == State::Bad && bad.found.contains("(UV_CACHE_DIR in /p/hostler.toml:3) cannot be written"));
        assert!(bad.fix.unwrap().starts_with("correct UV_CACHE_DIR"));
        assert!(told("file/cache", None).unwrap().fix.unwrap().contains("set UV_CACHE_DIR"));
    }
}
