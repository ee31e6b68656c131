//! `hostler install PATH`: a tool into the user's own folder, after showing what it is and what it may do.

mod conflicts;
mod parcel;
mod preview;
mod sandbox;
mod staging;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::options::Install;
use super::style::Refusal;
use super::{check, style};
use crate::config::origin::Origin;
use crate::config::sandbox::Preset;
use crate::config::value::Word;
use crate::config::{Config, ConfigOptions, environment};
use crate::process::shell_word;
use crate::runtime::Workspace;
use conflicts::{Conflicts, is_same};
use parcel::Parcel;
use preview::Preview;
use sandbox::{Kept, Proposal};
use staging::Staging;
pub(super) use staging::{hidden_name, sweep};

pub(super) async fn run(args: &Install, wanted: &ConfigOptions, directory: &Path) -> Result<(), Refusal> {
    let parcel = Parcel::of(&directory.join(&args.path), args.link)?;
    let (target, is_own) = match &args.to {
        Some(folder) => (directory.join(folder), false),
        None => (environment::user_tools(&wanted.environment), true),
    };
    // A source below a linked folder must be recognised as one of its entries.
    let target = plain_path(&target);
    let place = target.join(&parcel.top);
    let already = |entry: &Path| {
        let what = format!("{} is already in that folder", entry.display());
        Err(Refusal::new(what, "pass another folder with --to DIR"))
    };
    if parcel.source.canonicalize().is_ok_and(|real| real == place) {
        return already(&place);
    }
    let mut staging = Staging::within(&target, is_own)?;
    staging.fill(&parcel)?;
    if is_same(&staging.folder.join(&parcel.top), &place) {
        style::note("already installed, unchanged");
        let shown = [("path", place.display().to_string().into()), ("already", Value::Bool(true))];
        let shown = shown.map(|(key, value)| (key.to_owned(), value));
        style::report(args.json, Map::from_iter(shown), "installed", Ok(&place));
        return Ok(());
    }
    if parcel.is_executable {
        style::note(&format!("running {} --schema to read its metadata", parcel.source.display()));
    }
    let app = Workspace::build(Config::load(wanted, directory)?);
    app.ask();
    app.calls.registry.asked().await;
    let catalogue = app.look_into(&staging.folder).await.catalogue();
    let found: Vec<_> = catalogue.files.iter().map(|entry| entry.file.clone()).collect();
    let conflicts = Conflicts::of(&parcel, &found, &target, &app.config(), &app.calls.registry.catalogue());
    if let Some(entry) = conflicts.in_the_way.iter().find(|entry| parcel.overlaps(&entry.path)) {
        return already(&entry.path);
    }
    let surroundings = check::surroundings((*app.config()).clone());
    let mut preview = Preview::of(&parcel, &staging, &catalogue, &conflicts, &surroundings)?;
    let proposal = Proposal::of(&preview, &app.config());
    preview.sandbox = proposal.as_text(args.sandbox);
    preview.is_walled = match args.sandbox {
        Some(preset) => preset != Preset::Full,
        None => matches!(proposal, Proposal::Has(_)),
    };
    style::note(&preview.as_text());
    let chosen = match consented(args, &preview, &proposal).await {
        Ok(chosen) => chosen,
        Err(refusal) => {
            style::report(args.json, preview.as_json(), "installed", Err(&refusal));
            return Err(refusal);
        }
    };
    let pack = preview.entry.map_or("", |entry| &entry.file.pack);
    let kept = chosen.map(|preset| Kept::write(&app.config(), pack, preset)).transpose()?;
    if let Err(refusal) = staging.place(&parcel, &conflicts.in_the_way) {
        kept.into_iter().for_each(Kept::undo);
        return Err(refusal);
    }
    style::report(args.json, preview.as_json(), "installed", Ok(&place));
    if let (Some(preset), Some(kept)) = (chosen, &kept) {
        style::note(&format!("its sandbox is {:?}, in {}", preset.word(), kept.file().display()));
    }
    style::note(&advice(&preview, &conflicts, &app, &target, proposal == Proposal::Nothing && chosen.is_none()));
    Ok(())
}

/// Asks the person, unless everything is said already. The sandbox that was chosen.
async fn consented(args: &Install, preview: &Preview<'_>, proposal: &Proposal) -> Result<Option<Preset>, Refusal> {
    if let Some(refusal) = preview.refusal(args.force) {
        return Err(refusal);
    }
    style::consent("Install?", args.yes, "nothing was installed").await?;
    // With --yes, there may be no person to choose.
    if args.sandbox.is_some() || args.yes { Ok(args.sandbox) } else { proposal.ask().await }
}

/// A path without `.` and `..`, as far as possible.
fn plain_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

/// What to do next.
fn advice(
    preview: &Preview<'_>,
    conflicts: &Conflicts,
    app: &Workspace,
    target: &Path,
    has_no_sandbox: bool,
) -> String {
    let (Some(tool), Some(entry)) = (preview.catalogue.tools.first(), preview.entry) else { return String::new() };
    let name = &tool.name;
    // Without --tools, its name would call the tool that hides it.
    let is_found = conflicts.is_served && conflicts.hidden_by.is_empty();
    let tools = if is_found { String::new() } else { format!(" --tools {}", shell_word(&target.to_string_lossy())) };
    let mut lines = Vec::new();
    if !conflicts.is_served {
        let why = match &app.config().tools.origin {
            Origin::Default => "it is not a default folder".to_owned(),
            origin => format!("{origin} names others"),
        };
        lines.push(format!("{} is not one of the configured tools folders: {why}", target.display()));
    } else if let Some(other) = conflicts.hidden_by.first() {
        lines.push(format!("{} hides it, because its folder takes precedence", other.display()));
    }
    lines.push(format!("call it: hostler call{tools} {name} …   (arguments: hostler show{tools} {name})"));
    if entry.file.header.as_ref().is_some_and(|header| !header.dependencies.is_empty()) {
        lines.push(format!("build its environment before the first call: hostler warm{tools} {}", entry.file.pack));
    }
    let secrets = &entry.settings.secrets.value;
    if !secrets.is_empty() {
        lines.push(format!("store its secrets with `hostler secrets set NAME`: {}", secrets.join(", ")));
    }
    if has_no_sandbox {
        lines.push(format!("it has no sandbox; let hostler propose one: hostler sandbox learn{tools} {name} …"));
    }
    lines.join("\n")
}
