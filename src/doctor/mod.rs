//! `doctor`: whether everything that tools need works here, and what to do where it does not. It builds, downloads and changes
//! nothing. Here is what concerns the tools; the machine is beside it.

mod machine;
mod sandboxes;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::check::open_to_others;
use crate::config::origin::Diagnosis;
use crate::discovery::Kind;
use crate::runtime::Workspace;
use crate::secrets::{Place, named_itself};
use crate::words::plural;

/// The state of one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It works.
    Good,
    /// It works, but may fail under likely circumstances.
    Doubtful,
    /// It does not work.
    Bad,
}

/// One thing that was checked.
#[derive(Debug, Clone, Serialize)]
pub struct CheckResult {
    /// The subject: `uv`, `cache`.
    pub about: &'static str,
    /// Its state.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl CheckResult {
    fn good(about: &'static str, found: impl Into<String>) -> Self {
        Self { about, state: State::Good, found: found.into(), fix: None }
    }

    fn new(about: &'static str, state: State, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { about, state, found: found.into(), fix: Some(fix.into()) }
    }
}

/// Checks everything. The package index is only asked if `online`.
pub async fn examine(app: &Workspace, online: bool) -> Vec<CheckResult> {
    let mut results = vec![machine::cache(app)];
    results.extend(machine::uv(app, online).await);
    results.extend(machine::certificates(app));
    results.extend(machine::stripped(app, &results));
    results.push(folders(app));
    results.extend(app.config().tools_there().filter_map(|folder| {
        let Diagnosis { what, fix } = open_to_others(folder)?;
        Some(CheckResult::new("tools", State::Doubtful, what, fix))
    }));
    results.extend(broken(app));
    results.extend(launchers(app));
    results.push(machine::separation());
    results.push(sandboxes::walls(app).await);
    results.extend(sandboxes::absent(app));
    results.extend(built_in(app));
    results.extend(machine::interpreters(app).await);
    results.extend(secrets(app).await);
    results
}

fn folders(app: &Workspace) -> CheckResult {
    let catalogue = app.calls.registry.catalogue();
    let folders: Vec<String> = app.config().tools_there().map(|folder| folder.display().to_string()).collect();
    if let Some(problem) = catalogue.problems.first() {
        return CheckResult::new(
            "tools",
            State::Bad,
            problem.to_string(),
            "correct `tools` in hostler.toml, or --tools",
        );
    }
    // Built-in tools are in no folder.
    let tools = catalogue.ready().filter(|tool| tool.entry.file.kind != Kind::Builtin).count();
    let files = catalogue.files.iter().filter(|entry| entry.file.kind != Kind::Builtin).count();
    if files == 0 {
        let places = if folders.is_empty() { "no folder".to_owned() } else { folders.join(", ") };
        let fix = "write a first one with `hostler new NAME`, or set other folders: `tools = [\"…\"]` in hostler.toml";
        return CheckResult::new("tools", State::Doubtful, format!("no tools in {places}"), fix);
    }
    CheckResult::good(
        "tools",
        format!("{} in {} of {}", plural(tools, "tool"), plural(files, "file"), folders.join(", ")),
    )
}

/// The enabled built-in tools, and the folders that they may reach.
fn built_in(app: &Workspace) -> Vec<CheckResult> {
    let builtin = &app.config().builtin;
    let on: Vec<&str> = builtin.enabled().into_iter().collect();
    if on.is_empty() {
        return Vec::new();
    }
    let reached = builtin.reached();
    let folders: Vec<String> = reached.iter().map(|(root, _)| root.display().to_string()).collect();
    let places = if folders.is_empty() { String::new() } else { format!("; roots {}", folders.join(", ")) };
    let mut results = vec![CheckResult::good("built-in", on.join(", ") + &places)];
    results.extend(reached.into_iter().filter_map(|(root, why)| {
        let found = format!("`builtin.roots`: {} {}", root.display(), why?);
        Some(CheckResult::new("built-in", State::Bad, found, "create the folder, or correct the path in hostler.toml"))
    }));
    results
}

fn broken(app: &Workspace) -> Vec<CheckResult> {
    let catalogue = app.calls.registry.catalogue();
    let broken: Vec<String> =
        catalogue.files.iter().filter(|entry| entry.broken().is_some()).map(|entry| entry.file.pack.clone()).collect();
    if broken.is_empty() {
        return Vec::new();
    }
    let found = format!(
        "{} cannot be served: {}",
        if broken.len() == 1 { "one file" } else { "some files" },
        broken.join(", ")
    );
    vec![CheckResult::new("tools", State::Bad, found, "run `hostler check`")]
}

/// Commands that start tools, and are not there.
fn launchers(app: &Workspace) -> Vec<CheckResult> {
    let mut missing: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for entry in &app.calls.registry.catalogue().files {
        let launcher = entry.launcher(&app.config().environment);
        if let Some(Diagnosis { what, fix }) = launcher.and_then(|launcher| launcher.missing()) {
            missing.entry((what, fix)).or_default().push(entry.file.pack.clone());
        }
    }
    let result = |((what, fix), packs): ((String, String), Vec<String>)| {
        CheckResult::new("launcher", State::Bad, format!("{}: {what}", packs.join(", ")), fix)
    };
    missing.into_iter().map(result).collect()
}

/// Declared secrets that are not set.
async fn secrets(app: &Workspace) -> Vec<CheckResult> {
    let (config, mut results) = (app.config(), Vec::new());
    for (name, packs) in app.calls.registry.catalogue().declared_secrets() {
        let packs = packs.into_iter().collect::<Vec<_>>().join(", ");
        let configured = config.secrets.contains_key(&name);
        let is_in_environment = Place(&name, &config).kind() == "environment";
        let result = |state, found: String, fix: String| CheckResult::new("secret", state, found, fix);
        let pools = &app.calls.pools;
        results.push(match pools.secret(&name).await {
            Ok(Some(value)) if let Some((what, fix)) = named_itself(&name, &value) => {
                result(State::Bad, format!("{what} ({packs})"), fix)
            }
            Ok(Some(_)) if configured || !is_in_environment => {
                CheckResult::good("secret", format!("{name} is set ({packs})"))
            }
            Ok(Some(_)) => result(
                State::Doubtful,
                format!("{name} is set here ({packs}), but MCP clients start servers without it"),
                format!(
                    "unset it and run `hostler secrets set {name}`, or name its place under [secrets] in hostler.toml"
                ),
            ),
            Ok(None) => {
                // A secret that is not configured may still come from the client's environment.
                let state = if configured { State::Bad } else { State::Doubtful };
                result(state, format!("{name} is not set ({packs})"), pools.why_missing(&name))
            }
            Err(error) => result(State::Bad, format!("the secret {name} cannot be read: {}", error.what), error.fix),
        });
    }
    results
}
