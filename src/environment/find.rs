//! Finding uv, and fetching a private copy where there is none.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::outcome::{Code, Details, Fault};
use crate::process::{Finished, Launch, inherited_environment, run};

/// What pip is asked for. uv's command line is stable within 0.x as far as hostler uses it.
const WANTED: &str = "uv>=0.8,<1";

/// Looks for uv: the configured path, `PATH`, the places its installers use, hostler's own copy.
pub(super) fn find_uv(configured: Option<&Path>, own_copies: &Path) -> Result<Option<PathBuf>, Fault> {
    if let Some(path) = configured {
        return match which::which(path) {
            Ok(found) => Ok(Some(found)),
            Err(_) => Err(Fault::new(
                Code::EnvironmentFailed,
                format!(
                    "[environment] uv = \"{}\" is not a program; correct the path or remove the line",
                    path.display()
                ),
            )),
        };
    }
    if let Ok(found) = which::which("uv") {
        return Ok(Some(found));
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let below_home = [".local/bin/uv", ".cargo/bin/uv"].iter().filter_map(|place| Some(home.as_ref()?.join(place)));
    let usual = ["/usr/local/bin/uv", "/opt/homebrew/bin/uv", "/usr/bin/uv"].iter().map(PathBuf::from);
    let own = own_copies.join("bin/uv");
    Ok(below_home.chain(usual).chain([own]).find(|place| place.is_file()))
}

/// Installs uv's wheel from the package index into a folder of hostler's own.
pub(super) async fn provision_uv(own_copies: &Path, hidden: &[String]) -> Result<PathBuf, Fault> {
    let python = which::which("python3").or_else(|_| which::which("python"));
    let Ok(python) = python else {
        return Err(no_uv("there is no Python on PATH to fetch it with", None));
    };
    let staging = own_copies.with_extension(format!("staging.{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&staging);
    std::fs::create_dir_all(&staging).map_err(|error| no_uv(&format!("{}: {error}", staging.display()), None))?;
    let launch = Launch::new(python)
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--target"])
        .arg(&staging)
        .arg(WANTED)
        .envs(inherited_environment(hidden));
    let done = run(&launch, Duration::from_mins(5), |line| tracing::debug!(line, "pip")).await;
    let fetched = settle(done.map_err(|error| no_uv(&error.to_string(), None)), &staging, own_copies);
    if fetched.is_err() {
        let _ = std::fs::remove_dir_all(&staging);
    }
    fetched
}

fn settle(done: Result<Finished, Fault>, staging: &Path, own_copies: &Path) -> Result<PathBuf, Fault> {
    let done = done?;
    if !done.succeeded() || !staging.join("bin/uv").is_file() {
        let reason = done.stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("pip gave no reason");
        return Err(no_uv(&format!("pip could not fetch it: {}", reason.trim()), Some(done.stderr.clone())));
    }
    let own = own_copies.join("bin/uv");
    if std::fs::rename(staging, own_copies).is_err() {
        // Another hostler was faster, and its copy serves as well.
        let _ = std::fs::remove_dir_all(staging);
    }
    if own.is_file() { Ok(own) } else { Err(no_uv(&format!("{} could not be written", own.display()), None)) }
}

fn no_uv(why: &str, stderr: Option<String>) -> Fault {
    let message = format!(
        "uv, which builds the tools' environments, is not installed, and {why}. Install it (https://docs.astral.sh/uv), \
         or set `uv = \"/path/to/uv\"` under [environment] in hostler.toml"
    );
    Fault::new(Code::EnvironmentFailed, message).with(Details { stderr, ..Details::default() })
}
