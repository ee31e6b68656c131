//! The tools: their folders, those that are broken, the secrets they ask for.

use std::collections::{BTreeMap, BTreeSet};

use super::{Sign, State};
use crate::discovery::Kind;
use crate::executor::named_itself;
use crate::runtime::Workspace;

pub(super) fn folders(app: &Workspace) -> Sign {
    let catalogue = app.dispatcher.registry.catalogue();
    let folders: Vec<String> = app.config.tools_there().map(|folder| folder.display().to_string()).collect();
    if let Some(problem) = catalogue.problems.first() {
        return Sign::new("tools", State::Bad, problem.to_string(), "correct `tools` in hostler.toml, or --tools");
    }
    // What is part of hostler lies in no folder.
    let tools = catalogue.ready().filter(|tool| tool.entry.file.kind != Kind::Builtin).count();
    let files = catalogue.files.iter().filter(|entry| entry.file.kind != Kind::Builtin).count();
    if files == 0 {
        let places = if folders.is_empty() { "no folder".to_owned() } else { folders.join(", ") };
        let fix = "`hostler new NAME` writes a first one; `tools = [\"…\"]` in hostler.toml names other folders";
        return Sign::new("tools", State::Doubtful, format!("none in {places}"), fix);
    }
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    Sign::good("tools", format!("{} in {} of {}", plural(tools, "tool"), plural(files, "file"), folders.join(", ")))
}

/// The built-in tools that are on, and the folders that they may reach.
pub(super) fn built_in(app: &Workspace) -> Vec<Sign> {
    let builtin = &app.config.layer.builtin;
    let on: Vec<&str> = builtin.enabled().into_iter().collect();
    if on.is_empty() {
        return Vec::new();
    }
    let reached = builtin.reached();
    let folders: Vec<String> = reached.iter().map(|(root, _)| root.display().to_string()).collect();
    let places = if folders.is_empty() { String::new() } else { format!("; roots {}", folders.join(", ")) };
    let mut signs = vec![Sign::good("built-in", on.join(", ") + &places)];
    signs.extend(reached.into_iter().filter_map(|(root, why)| {
        let found = format!("`builtin.roots`: {} {}", root.display(), why?);
        Some(Sign::new("built-in", State::Bad, found, "create the folder, or correct the path in hostler.toml"))
    }));
    signs
}

pub(super) fn broken(app: &Workspace) -> Vec<Sign> {
    let catalogue = app.dispatcher.registry.catalogue();
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
    vec![Sign::new("tools", State::Bad, found, "`hostler check` shows what is wrong, and where")]
}

/// Declared secrets that are not set.
pub(super) async fn secrets(app: &Workspace) -> Vec<Sign> {
    let catalogue = app.dispatcher.registry.catalogue();
    let mut wanted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in &catalogue.files {
        for name in &entry.settings.secrets.value {
            wanted.entry(name.clone()).or_default().insert(entry.file.pack.clone());
        }
    }
    let mut signs = Vec::new();
    for (name, packs) in wanted {
        let packs = packs.into_iter().collect::<Vec<_>>().join(", ");
        let configured = app.config.layer.secrets.contains_key(&name);
        let sign = |state, found: String, fix: String| Sign::new("secret", state, found, fix);
        let pools = &app.dispatcher.pools;
        signs.push(match pools.secret(&name).await {
            Ok(Some(value)) if let Some((what, fix)) = named_itself(&name, &value) => {
                sign(State::Bad, format!("{what} ({packs})"), fix)
            }
            Ok(Some(_)) if configured => Sign::good("secret", format!("{name} is set ({packs})")),
            Ok(Some(_)) => sign(
                State::Doubtful,
                format!("{name} is set here ({packs}), and MCP clients start servers without it"),
                format!("add `{name} = {{ file = \"/path/to/it\" }}` under [secrets] in hostler.toml"),
            ),
            Ok(None) => {
                // Nobody but this configuration says where it is; what it says nothing of, a client may bring.
                let state = if configured { State::Bad } else { State::Doubtful };
                sign(state, format!("{name} is not set ({packs})"), pools.why_missing(&name))
            }
            Err(fault) => match fault.message.rsplit_once("; ") {
                Some((found, fix)) => sign(State::Bad, found.to_owned(), fix.to_owned()),
                None => sign(State::Bad, fault.message, "correct its line in [secrets]".to_owned()),
            },
        });
    }
    signs
}
