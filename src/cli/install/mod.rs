//! `hostler install PATH`: a tool into the user's own folder, after showing what it is and what it may do.

mod conflicts;
mod parcel;
mod preview;
mod staging;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Map, Value};

use super::options::Install;
use super::style::Consent;
use super::{check, style};
use crate::config::origin::Origin;
use crate::config::{Config, ConfigOptions, environment};
use crate::process::shell_word;
use crate::runtime::Workspace;
use conflicts::Conflicts;
use parcel::Parcel;
use preview::Preview;
use staging::Staging;
pub(super) use staging::{REMOVING, sweep};

pub(super) async fn run(args: &Install, wanted: &ConfigOptions, directory: &Path) -> ExitCode {
    match install(args, wanted, directory).await {
        Ok(code) => code,
        Err(message) => style::complain(style::USAGE, &message),
    }
}

async fn install(args: &Install, wanted: &ConfigOptions, directory: &Path) -> Result<ExitCode, String> {
    let parcel = Parcel::of(&directory.join(&args.path), args.link)?;
    let (target, is_own) = match &args.to {
        Some(folder) => (plain_path(&directory.join(folder)), false),
        None => (environment::user_tools(&wanted.environment), true),
    };
    let place = target.join(&parcel.top);
    if parcel.source.canonicalize().is_ok_and(|real| real == place) {
        return Err(format!("{} is already in that folder", place.display()));
    }
    let mut staging = Staging::within(&target, is_own)?;
    staging.fill(&parcel)?;
    if conflicts::is_installed(&parcel, &staging, &target) {
        return Ok(already_installed(args, &place));
    }
    if parcel.is_executable {
        style::note(&format!("running {} --schema to read its metadata", parcel.source.display()));
    }
    let config = Config::load(wanted, directory).map_err(|error| error.to_string())?;
    let app = Workspace::build(config);
    app.ask();
    app.calls.registry.asked().await;
    let catalogue = app.look_into(&staging.folder).await.catalogue();
    let surroundings = check::surroundings((*app.config).clone());
    let preview = Preview::of(&parcel, &staging, catalogue, &surroundings)?;
    let found: Vec<_> = preview.catalogue.files.iter().map(|entry| entry.file.clone()).collect();
    let served = app.calls.registry.catalogue();
    let conflicts = Conflicts::of(&parcel, &staging, &found, &target, &app.config, &served);
    style::note(&preview.as_text(&parcel, &staging, &conflicts, &target));
    let shown = preview.as_json(&parcel, &staging, &conflicts, &target);
    if let Some(reason) = syntax_error(&preview, &parcel, &conflicts, args.force) {
        return Ok(refused(args, shown, &reason, style::USAGE));
    }
    match style::ask("Install?", args.yes).await {
        Consent::Yes => {}
        Consent::No => return Ok(refused(args, shown, "nothing was installed", style::CANCELLED)),
        Consent::NoTerminal => {
            let reason = "nothing was installed: not a terminal; pass --yes to confirm";
            return Ok(refused(args, shown, reason, style::USAGE));
        }
    }
    staging.place(&parcel, &conflicts.in_the_way)?;
    report(args, shown, &place);
    style::note(&advice(&preview, &conflicts, &app, &target));
    Ok(ExitCode::SUCCESS)
}

/// A path without `.` and `..`, as far as possible.
fn plain_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

fn syntax_error(preview: &Preview, parcel: &Parcel, conflicts: &Conflicts, force: bool) -> Option<String> {
    let in_the_way = || {
        let against = conflicts.against.join("; ");
        (!conflicts.against.is_empty() && !force).then(|| format!("{against}; pass --force to replace it"))
    };
    preview.syntax_error(parcel).or_else(in_the_way).map(|reason| format!("nothing was installed: {reason}"))
}

fn refused(args: &Install, shown: Map<String, Value>, reason: &str, status: u8) -> ExitCode {
    if args.json {
        answer(shown, "installed", false, Some(reason));
    }
    style::complain(status, reason)
}

fn already_installed(args: &Install, place: &Path) -> ExitCode {
    style::note("already installed, unchanged");
    let shown =
        Map::from_iter([("path".to_owned(), place.display().to_string().into()), ("already".to_owned(), true.into())]);
    report(args, shown, place);
    ExitCode::SUCCESS
}

fn report(args: &Install, shown: Map<String, Value>, place: &Path) {
    if args.json {
        answer(shown, "installed", true, None);
    } else {
        style::answer(&place.display().to_string());
    }
}

/// The JSON answer: what was shown, and what was done.
pub(super) fn answer(mut shown: Map<String, Value>, done: &str, is_done: bool, reason: Option<&str>) {
    shown.insert(done.to_owned(), is_done.into());
    shown.insert("reason".to_owned(), reason.into());
    style::answer(&serde_json::to_string_pretty(&shown).unwrap_or_default());
}

/// What to do next.
fn advice(preview: &Preview, conflicts: &Conflicts, app: &Workspace, target: &Path) -> String {
    let Some(tool) = preview.catalogue.tools.first() else { return String::new() };
    let name = &tool.name;
    // Without --tools, its name would call the tool that hides it.
    let is_found = conflicts.is_served && conflicts.hidden_by.is_empty();
    let tools = if is_found { String::new() } else { format!(" --tools {}", shell_word(&target.to_string_lossy())) };
    let mut lines = Vec::new();
    if !conflicts.is_served {
        let why = match &app.config.tools.origin {
            Origin::Default => "it is not a default folder".to_owned(),
            origin => format!("{origin} names others"),
        };
        lines.push(format!("{} is not one of the configured tools folders: {why}", target.display()));
    } else if let Some(other) = conflicts.hidden_by.first() {
        lines.push(format!("{} hides it, because its folder takes precedence", other.display()));
    }
    lines.push(format!("call it: hostler call{tools} {name} …   (arguments: hostler show{tools} {name})"));
    let files = || preview.catalogue.files.iter();
    let headers = files().filter_map(|entry| Some((&entry.file.pack, entry.file.header.as_ref()?)));
    for (pack, _) in headers.filter(|(_, header)| !header.dependencies.is_empty()).take(1) {
        lines.push(format!("build its environment before the first call: hostler warm{tools} {pack}"));
    }
    let secrets: Vec<&str> = files().flat_map(|entry| &entry.settings.secrets.value).map(String::as_str).collect();
    if !secrets.is_empty() {
        lines.push(format!("set its secrets under [secrets] in hostler.toml: {}", secrets.join(", ")));
    }
    lines.join("\n")
}
