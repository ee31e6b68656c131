//! Finding uv, and fetching a private copy where there is none.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::in_force::unreached;
use super::settings::{EnvironmentSettings, place_of};
use crate::outcome::{Code, Details, Fault};
use crate::process::{Finished, Launch, run};

/// What pip is asked for. uv's command line is stable within 0.x as far as hostler uses it.
const WANTED: &str = "uv>=0.8,<1";

/// Looks for uv: the configured path, `PATH`, the places its installers use, hostler's own copy.
pub(super) fn find_uv(settings: &EnvironmentSettings, own_copies: &Path) -> Result<Option<PathBuf>, Fault> {
    let environment = settings.withheld.environment();
    if let Some(setting) = &settings.uv {
        let (path, place) = (setting.value.display(), place_of(&setting.origin));
        let text = format!(
            "{place}: `environment.uv` is \"{path}\", which is not a program; correct the path or remove the line"
        );
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
    let environment = settings.withheld.environment();
    let python = environment.find_program("python3").or_else(|| environment.find_program("python"));
    let Some(python) = python else {
        return Err(no_uv("there is no Python on PATH to fetch it with", None));
    };
    let staging = own_copies.with_extension(format!("staging.{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&staging);
    std::fs::create_dir_all(&staging).map_err(|error| no_uv(&format!("{}: {error}", staging.display()), None))?;
    let launch = Launch::new(python)
        .args(["-m", "pip", "install", "--quiet", "--no-input", "--no-deps", "--disable-pip-version-check", "--target"])
        .arg(&staging)
        .arg(WANTED)
        .envs(settings.withheld.inherited());
    let launch = pip_variables(settings).into_iter().fold(launch, |launch, (name, value)| launch.env(name, value));
    let done = run(&launch, Duration::from_mins(5), |line| tracing::debug!(line, "pip")).await;
    let fetched = settle(done.map_err(|error| no_uv(&error.to_string(), None)), &staging, own_copies, settings);
    if fetched.is_err() {
        let _ = std::fs::remove_dir_all(&staging);
    }
    fetched
}

/// What the operator says for builds, in pip's words too: uv and pip call the same things differently.
fn pip_variables(settings: &EnvironmentSettings) -> Vec<(String, String)> {
    let set = |name: &str| {
        let said = settings.env.get(name).map(|said| said.value.clone());
        said.or_else(|| settings.withheld.environment().text(name).map(str::to_owned)).filter(|text| !text.is_empty())
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

/// Why pip gave up. Its last line speaks of versions even where nothing was reached.
fn pip_reason(stderr: &str, settings: &EnvironmentSettings) -> String {
    let broken =
        stderr.lines().find_map(|line| line.split_once("after connection broken by ")).map(|(_, cause)| cause.trim());
    let network = unreached(&settings.suspects("", None));
    if let Some(cause) = broken {
        return format!("the package index was not reached ({cause}). {network}");
    }
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("pip gave no reason").trim();
    if stderr.contains("(from versions: none)") {
        return format!("the package index was not reached, refused, or has no uv ({last}). {network}");
    }
    last.to_owned()
}

fn settle(
    done: Result<Finished, Fault>,
    staging: &Path,
    own_copies: &Path,
    settings: &EnvironmentSettings,
) -> Result<PathBuf, Fault> {
    let done = done?;
    if !done.succeeded() || !staging.join("bin/uv").is_file() {
        let reason = pip_reason(&done.stderr, settings);
        return Err(no_uv(&format!("pip could not fetch it: {reason}"), Some(done.stderr.clone())));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::origin::Setting;
    use crate::environment::in_force::quiet;

    #[test]
    fn pip_hears_what_uv_is_told() {
        let env =
            [("UV_DEFAULT_INDEX", "https://index/simple"), ("SSL_CERT_FILE", "/ca.pem"), ("HTTPS_PROXY", "http://p:1")];
        let env = env.map(|(name, value)| (name.to_owned(), Setting::default_value(value.to_owned())));
        let settings = EnvironmentSettings { env: env.into_iter().collect(), ..EnvironmentSettings::default() };
        let variables = pip_variables(&settings);
        for (name, value) in
            [("HTTPS_PROXY", "http://p:1"), ("PIP_INDEX_URL", "https://index/simple"), ("PIP_CERT", "/ca.pem")]
        {
            let found = variables.iter().find(|(known, _)| known == name);
            // What the machine itself says for pip is stronger.
            if settings.env.contains_key(name) || !name.is_empty() {
                assert_eq!(found.map(|(_, value)| value.as_str()), Some(value), "{name}");
            }
        }
    }

    #[test]
    fn an_unreachable_index_is_told_as_one() {
        let stderr = "WARNING: Retrying (Retry(total=4)) after connection broken by 'ProxyError(\"no\")': /simple/uv/\nERROR: \
                      No matching distribution found for uv<1,>=0.8\n";
        let told = pip_reason(stderr, &quiet(&[]));
        assert!(
            told.starts_with("the package index was not reached ('ProxyError(\"no\")': /simple/uv/). Check"),
            "{told}"
        );
        let silent = "ERROR: Could not find a version that satisfies the requirement uv<1,>=0.8 (from versions: none)\nERROR: No \
                      matching distribution found for uv<1,>=0.8\n";
        let told = pip_reason(silent, &quiet(&[]));
        assert!(
            told.contains("was not reached, refused, or has no uv (ERROR: No matching") && told.contains("HTTPS_PROXY")
        );
        assert_eq!(pip_reason("ERROR: something\n\n", &quiet(&[])), "ERROR: something");
    }
}
