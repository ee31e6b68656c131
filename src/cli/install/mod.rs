//! `hostler install PATH`: a tool into the person's own folder, after what it is and what it may do was shown.

mod digest;
mod inspected;
mod parcel;
mod placing;
mod shown;
pub(super) mod staging;
mod standing;
pub(super) mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Map, Value};

use super::consent::{self, Consent};
use super::{check, exit, style};
use crate::config::origin::Origin;
use crate::config::{Config, ConfigOptions, paths};
use crate::process::shell_word;
use crate::runtime::Workspace;
use inspected::Inspected;
use parcel::Parcel;
use staging::Staging;
use standing::Standing;
use words::Install;

pub(super) async fn run(asked: &Install, wanted: &ConfigOptions, directory: &Path) -> ExitCode {
    match install(asked, wanted, directory).await {
        Ok(code) => code,
        Err(message) => exit::complain(exit::USAGE, &message),
    }
}

async fn install(asked: &Install, wanted: &ConfigOptions, directory: &Path) -> Result<ExitCode, String> {
    let parcel = Parcel::of(&directory.join(&asked.path), asked.link)?;
    let (target, is_own) = match &asked.to {
        Some(folder) => (plain_path(&directory.join(folder)), false),
        None => (paths::user_tools(&wanted.environment), true),
    };
    let place = target.join(&parcel.top);
    if parcel.source.canonicalize().is_ok_and(|real| real == place) {
        return Err(format!("{} is where it would be installed; it is served from there already", place.display()));
    }
    let mut staging = Staging::within(&target, is_own)?;
    staging.bring(&parcel)?;
    if standing::is_there(&parcel, &staging, &target) {
        return Ok(there_already(asked, &place));
    }
    if parcel.is_executable {
        style::note(&format!("{} is run with --schema, to learn what it is.", parcel.source.display()));
    }
    let config = Config::load(wanted, directory).map_err(|error| error.to_string())?;
    let app = Workspace::build(config);
    app.ask();
    app.dispatcher.registry.asked().await;
    let catalogue = app.look_into(&staging.folder).await.catalogue();
    let surroundings = check::surroundings((*app.config).clone());
    let inspected = Inspected::of(&parcel, &staging, catalogue, &surroundings)?;
    let found: Vec<_> = inspected.catalogue.files.iter().map(|entry| entry.file.clone()).collect();
    let served = app.dispatcher.registry.catalogue();
    let standing = Standing::of(&parcel, &staging, &found, &target, &app.config, &served);
    style::note(&inspected.as_text(&parcel, &staging, &standing, &target));
    let said = inspected.as_json(&parcel, &staging, &standing, &target);
    if let Some(reason) = refusal(&inspected, &parcel, &standing, asked.force) {
        return Ok(refused(asked, said, &reason, exit::USAGE));
    }
    match consent::ask("Install it?", asked.yes).await {
        Consent::Yes => {}
        Consent::No => return Ok(refused(asked, said, "nothing was installed", exit::CANCELLED)),
        Consent::Nobody => {
            let reason =
                "nothing was installed: there is nobody at a terminal to ask; if that above is wanted, say --yes";
            return Ok(refused(asked, said, reason, exit::USAGE));
        }
    }
    staging.place(&parcel, &standing.in_the_way)?;
    tell(asked, said, &place);
    style::note(&advice(&inspected, &standing, &app, &target));
    Ok(ExitCode::SUCCESS)
}

/// A path without `.` and `..`, as far as that can be told.
fn plain_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

fn refusal(inspected: &Inspected, parcel: &Parcel, standing: &Standing, force: bool) -> Option<String> {
    let in_the_way = || {
        let against = standing.against.join("; ");
        (!standing.against.is_empty() && !force).then(|| format!("{against}; say --force to install it all the same"))
    };
    inspected.refusal(parcel).or_else(in_the_way).map(|reason| format!("nothing was installed: {reason}"))
}

fn refused(asked: &Install, said: Map<String, Value>, reason: &str, status: u8) -> ExitCode {
    if asked.json {
        answer(said, "installed", false, Some(reason));
    }
    exit::complain(status, reason)
}

fn there_already(asked: &Install, place: &Path) -> ExitCode {
    style::note("It is installed already, just so.");
    let said =
        Map::from_iter([("path".to_owned(), place.display().to_string().into()), ("already".to_owned(), true.into())]);
    tell(asked, said, place);
    ExitCode::SUCCESS
}

fn tell(asked: &Install, said: Map<String, Value>, place: &Path) {
    if asked.json {
        answer(said, "installed", true, None);
    } else {
        style::answer(&place.display().to_string());
    }
}

/// For programs: what was shown, and what came of it.
pub(super) fn answer(mut said: Map<String, Value>, done: &str, is_done: bool, reason: Option<&str>) {
    said.insert(done.to_owned(), is_done.into());
    said.insert("reason".to_owned(), reason.into());
    style::answer(&serde_json::to_string_pretty(&said).unwrap_or_default());
}

/// What to do next.
fn advice(inspected: &Inspected, standing: &Standing, app: &Workspace, target: &Path) -> String {
    let Some(tool) = inspected.catalogue.tools.first() else { return String::new() };
    let name = &tool.name;
    // By its name alone, another would be called that hides it.
    let is_meant = standing.is_served && standing.hidden_by.is_empty();
    let tools = if is_meant { String::new() } else { format!(" --tools {}", shell_word(&target.to_string_lossy())) };
    let mut lines = Vec::new();
    if !standing.is_served {
        let why = match &app.config.tools.origin {
            Origin::Default => "it is none of the usual ones".to_owned(),
            origin => format!("{origin} names others"),
        };
        lines.push(format!("{} is not among the tools folders that are in force here: {why}.", target.display()));
    } else if let Some(other) = standing.hidden_by.first() {
        lines.push(format!("It is hidden here by {}, which lies in a stronger folder.", other.display()));
    }
    lines.push(format!("Call it: hostler call{tools} {name} …   (its arguments: hostler show{tools} {name})"));
    let files = || inspected.catalogue.files.iter();
    let headers = files().filter_map(|entry| Some((&entry.file.pack, entry.file.header.as_ref()?)));
    for (pack, _) in headers.filter(|(_, header)| !header.dependencies.is_empty()).take(1) {
        lines.push(format!("Build its environment ahead of the first call: hostler warm{tools} {pack}"));
    }
    let secrets: Vec<&str> = files().flat_map(|entry| &entry.settings.secrets.value).map(String::as_str).collect();
    if !secrets.is_empty() {
        lines.push(format!("Say where its secrets are, under [secrets] in hostler.toml: {}", secrets.join(", ")));
    }
    lines.join("\n")
}
