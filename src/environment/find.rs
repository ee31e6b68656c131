//! Finding uv, and downloading a private copy where there is none.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::settings::{EnvironmentSettings, place_of};
use crate::outcome::{Code, Details, Fault};
use crate::process::{Finished, Launch, run};

/// What pip installs. The part of uv's command line that hostler uses is stable within 0.x.
const REQUIREMENT: &str = "uv>=0.8,<1";

/// Looks for uv: the configured path, `PATH`, the places that installers use, hostler's own copy.
pub(super) fn find_uv(settings: &EnvironmentSettings, own_copies: &Path) -> Result<Option<PathBuf>, Fault> {
    let environment = settings.env_filter.environment();
    if let Some(setting) = &settings.uv {
        let (path, place) = (setting.value.display(), place_of(&setting.origin));
        let text =
            format!("{place}: `environment.uv`: \"{path}\" is not a program; correct the path or remove the line");
        return environment
            .find_program(&setting.value)
            .map(Some)
            .ok_or_else(|| Fault::new(Code::EnvironmentFailed, text));
    }
    if let Some(found) = environment.find_program("uv") {
        return Ok(Some(found));
    }
    let home = environment.home();
    let below_home = [".local/bin/uv", ".cargo/bin/uv"].iter().filter_map(|place| Some(home.as_ref()?.join(place)));
    let usual = ["/usr/local/bin/uv", "/opt/homebrew/bin/uv", "/usr/bin/uv"].iter().map(PathBuf::from);
    let own = own_copies.join("bin/uv");
    Ok(below_home.chain(usual).chain([own]).find(|place| place.is_file()))
}

/// Installs uv's wheel from the package index into a folder of hostler's own.
pub(super) async fn provision_uv(own_copies: &Path, settings: &EnvironmentSettings) -> Result<PathBuf, Fault> {
    let environment = settings.env_filter.environment();
    let python = environment.find_program("python3").or_else(|| environment.find_program("python"));
    let Some(python) = python else {
        return Err(no_uv("there is no Python on PATH to download it with", None));
    };
    let staging = own_copies.with_extension(format!("staging.{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&staging);
    std::fs::create_dir_all(&staging).map_err(|error| no_uv(&format!("{}: {error}", staging.display()), None))?;
    let launch = Launch::new(python)
        .args(["-m", "pip", "install", "--quiet", "--no-input", "--no-deps", "--disable-pip-version-check", "--target"])
        .arg(&staging)
        .arg(REQUIREMENT)
        .envs(settings.env_filter.inherited())
        .within_that_of(environment);
    let launch = pip_variables(settings).into_iter().fold(launch, |launch, (name, value)| launch.env(name, value));
    let done = run(&launch, Duration::from_mins(5), |line| tracing::debug!(line, "pip")).await;
    let fetched = settle(done.map_err(|error| no_uv(&error.to_string(), None)), &staging, own_copies);
    if fetched.is_err() {
        let _ = std::fs::remove_dir_all(&staging);
    }
    fetched
}

/// The configured variables, also under the names that pip has for them.
fn pip_variables(settings: &EnvironmentSettings) -> Vec<(String, String)> {
    let set = |name: &str| {
        let configured = settings.env.get(name).map(|set| set.value.clone());
        configured
            .or_else(|| settings.env_filter.environment().text(name).map(str::to_owned))
            .filter(|text| !text.is_empty())
    };
    let mut variables: Vec<(String, String)> =
        settings.variables().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let twins =
        [("PIP_INDEX_URL", "UV_DEFAULT_INDEX"), ("PIP_INDEX_URL", "UV_INDEX_URL"), ("PIP_CERT", "SSL_CERT_FILE")];
    for (pip, uv) in twins {
        let is_new = set(pip).is_none() && !variables.iter().any(|(name, _)| name == pip);
        variables.extend(set(uv).filter(|_| is_new).map(|value| (pip.to_owned(), value)));
    }
    variables
}

/// Why pip failed. Its last line is about versions even when no index was reached, so an error of the connection comes first.
fn pip_reason(stderr: &str) -> String {
    let broken =
        stderr.lines().find_map(|line| line.split_once("after connection broken by ")).map(|(_, cause)| cause.trim());
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason given").trim();
    let network = "check the network, HTTPS_PROXY and UV_DEFAULT_INDEX";
    match broken {
        Some(cause) => format!("the package index could not be reached ({cause}): {network}"),
        None if stderr.contains("(from versions: none)") => format!("{last}: {network}"),
        None => last.to_owned(),
    }
}

fn settle(done: Result<Finished, Fault>, staging: &Path, own_copies: &Path) -> Result<PathBuf, Fault> {
    let done = done?;
    if !done.succeeded() || !staging.join("bin/uv").is_file() {
        let reason = pip_reason(&done.stderr);
        return Err(no_uv(&format!("pip cannot download it: {reason}"), Some(done.stderr.clone())));
    }
    let own = own_copies.join("bin/uv");
    if std::fs::rename(staging, own_copies).is_err() {
        // Another hostler was faster; its copy works as well.
        let _ = std::fs::remove_dir_all(staging);
    }
    if own.is_file() { Ok(own) } else { Err(no_uv(&format!("{} could not be written", own.display()), None)) }
}

fn no_uv(why: &str, stderr: Option<String>) -> Fault {
    let message = format!(
        "uv is not installed, and {why}; install it (https://docs.astral.sh/uv), or set `uv = \"/path/to/uv\"` under \
         [environment] in hostler.toml"
    );
    Fault::new(Code::EnvironmentFailed, message).with(Details { stderr, ..Details::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::origin::Setting;

    #[test]
    fn pip_gets_uvs_settings_under_its_own_names() {
        let env =
            [("UV_DEFAULT_INDEX", "https://index/simple"), ("SSL_CERT_FILE", "/ca.pem"), ("HTTPS_PROXY", "http://p:1")];
        let env = env.map(|(name, value)| (name.to_owned(), Setting::default_value(value.to_owned())));
        let settings = EnvironmentSettings { env: env.into_iter().collect(), ..EnvironmentSettings::default() };
        let variables = pip_variables(&settings);
        for (name, value) in
            [("HTTPS_PROXY", "http://p:1"), ("PIP_INDEX_URL", "https://index/simple"), ("PIP_CERT", "/ca.pem")]
        {
            let found = variables.iter().find(|(known, _)| known == name);
            assert_eq!(found.map(|(_, value)| value.as_str()), Some(value), "{name}");
        }
    }

    #[test]
    fn an_unreachable_index_is_reported_before_pips_last_line() {
        let last = "ERROR: No matching distribution found for uv<1,>=0.8";
        let broken =
            format!("WARNING: Retrying after connection broken by 'ProxyError(\"no\")': /simple/uv/\n{last}\n");
        assert!(pip_reason(&broken).contains("('ProxyError(\"no\")': /simple/uv/)"));
        let silent = format!("ERROR: Could not find a version that satisfies uv (from versions: none)\n{last}\n");
        assert!(pip_reason(&silent).starts_with(last) && pip_reason(&silent).contains("HTTPS_PROXY"));
        assert_eq!(pip_reason("ERROR: something\n\n"), "ERROR: something");
    }
}
