//! `hostler remove NAME`: a tool out of the person's own folder.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Map, Value, json};

use super::install::{REMOVING, sweep};
use super::options::Remove;
use super::style::Consent;
use super::{install, style};
use crate::config::section::nearest;
use crate::config::{Config, ConfigOptions, environment};
use crate::discovery::{Kind, ToolFile};
use crate::outcome::Code;
use crate::registry::Catalogue;
use crate::runtime::Workspace;

/// Why nothing was removed: the exit status and the message.
struct Refused(u8, String);

pub(super) async fn run(args: &Remove, wanted: &ConfigOptions, directory: &Path) -> ExitCode {
    match remove(args, wanted, directory).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(Refused(status, message)) => style::complain(status, &message),
    }
}

const MAY_BE_SHARED: &str = "which other tools may use";

/// What is removed together.
#[derive(Debug)]
struct Removal {
    /// The tool's file, its folder, or a link to one.
    top: PathBuf,
    /// Its lock.
    along: Vec<PathBuf>,
    /// Neighbours that it imports. Other files may need them too, so they stay.
    stay: Vec<PathBuf>,
    tools: Vec<String>,
}

async fn remove(args: &Remove, wanted: &ConfigOptions, directory: &Path) -> Result<(), Refused> {
    let config = Config::load(wanted, directory).map_err(|error| Refused(style::USAGE, error.to_string()))?;
    let app = Workspace::build(config);
    let folder = args
        .from
        .as_ref()
        .map_or_else(|| environment::user_tools(&wanted.environment), |folder| directory.join(folder));
    let removal = find(args, &app, &folder).await?;
    style::note(&removal.as_text());
    let shown = removal.as_json();
    let refused = |shown, status: u8, reason: &str| {
        if args.json {
            install::answer(shown, "removed", false, Some(reason));
        }
        Err(Refused(status, reason.to_owned()))
    };
    match style::ask("Remove?", args.yes).await {
        Consent::Yes => {}
        Consent::No => return refused(shown, style::CANCELLED, "nothing was removed"),
        Consent::NoTerminal => {
            let reason = "nothing was removed: not a terminal; pass --yes to confirm";
            return refused(shown, style::USAGE, reason);
        }
    }
    removal
        .run(&folder)
        .map_err(|error| Refused(style::USAGE, format!("cannot remove {}: {error}", removal.top.display())))?;
    if args.json {
        install::answer(shown, "removed", true, None);
    } else {
        style::answer(&removal.top.display().to_string());
    }
    Ok(())
}

/// What a name refers to in the folder. Executables are only args for their tools' names when no file has that name.
async fn find(args: &Remove, app: &Workspace, folder: &Path) -> Result<Removal, Refused> {
    let unasked = app.glance_into(folder).catalogue();
    if let Some(removal) = Removal::of(&args.name, &unasked, folder) {
        return Ok(removal);
    }
    let catalogue = app.look_into(folder).await.catalogue();
    if let Some(removal) = Removal::of(&args.name, &catalogue, folder) {
        return Ok(removal);
    }
    app.ask();
    app.calls.registry.asked().await;
    Err(elsewhere(&args.name, &app.calls.registry.catalogue(), &catalogue, folder))
}

/// Why there is nothing of that name to remove.
fn elsewhere(name: &str, everything: &Catalogue, own: &Catalogue, folder: &Path) -> Refused {
    let tool = everything.resolve(name).ok().map(|tool| &tool.entry);
    let file = || everything.files.iter().find(|entry| entry.file.pack == name || is_called(&entry.file.path, name));
    if let Some(entry) = tool.or_else(file) {
        let message = match entry.file.kind {
            Kind::Builtin => format!(
                "{0} is built in and cannot be removed; disable it in hostler.toml: [builtin] disable = [\"{0}\"]",
                entry.file.pack
            ),
            _ => format!(
                "{name} is in {}, not in {}; remove that file, or pass its folder with --from DIR",
                entry.file.path.display(),
                folder.display()
            ),
        };
        return Refused(style::USAGE, message);
    }
    let packs = own.files.iter().map(|entry| entry.file.pack.as_str());
    let near = nearest(name, packs.chain(own.tools.iter().map(|tool| tool.name.as_str())));
    let advice = match near {
        Some(near) => format!("did you mean {near}?"),
        None => "`hostler list --json` shows the origin of every tool".to_owned(),
    };
    Refused(Code::ToolNotFound.exit_status(), format!("there is no {name} in {}; {advice}", folder.display()))
}

fn is_called(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|own| own == name) || path.file_stem().is_some_and(|own| own == name)
}

impl Removal {
    fn of(name: &str, catalogue: &Catalogue, folder: &Path) -> Option<Self> {
        // A folder can also be named by the file in it.
        let is_its_name = |path: &Path| path.file_name().is_some_and(|own| own == name);
        let by_file = |file: &ToolFile| {
            top_of(&file.path, folder).is_some_and(|top| is_its_name(&top) || is_its_name(&file.path))
        };
        let files = || catalogue.files.iter().map(|entry| &entry.file);
        let by_tool = || {
            let tool = catalogue.tools.iter().find(|tool| tool.name == name || tool.mcp_name == name);
            tool.map(|tool| &tool.entry.file)
        };
        let file =
            files().find(|file| by_file(file)).or_else(|| files().find(|file| file.pack == name)).or_else(by_tool)?;
        let top = top_of(&file.path, folder)?;
        let goes = |path: &Path| path.starts_with(&top);
        let stay = file.helpers.iter().filter(|path| !goes(path)).cloned().collect();
        let mut lock = file.path.clone().into_os_string();
        lock.push(".lock");
        let lock = Some(PathBuf::from(lock)).filter(|lock| !goes(lock) && fs::symlink_metadata(lock).is_ok());
        let tools = catalogue.tools.iter().filter(|tool| goes(&tool.entry.file.path)).map(|tool| tool.name.clone());
        Some(Self { tools: tools.collect(), along: lock.into_iter().collect(), stay, top })
    }

    fn as_text(&self) -> String {
        let what = match fs::read_link(&self.top) {
            Ok(target) => format!("a link to {}, which stays", target.display()),
            Err(_) if self.top.is_dir() => format!("a folder with {} files", count(&self.top)),
            Err(_) => "a file".to_owned(),
        };
        let mut rows = vec![("removes", format!("{}, {what}", self.top.display()))];
        rows.extend(self.along.iter().map(|path| ("removes", path.display().to_string())));
        rows.extend(self.stay.iter().map(|path| ("leaves", format!("{}, {MAY_BE_SHARED}", path.display()))));
        rows.extend((!self.tools.is_empty()).then(|| ("tools", self.tools.join(", "))));
        let rows: Vec<_> = rows.into_iter().map(|(key, value)| vec![format!("  {key}"), value]).collect();
        style::table(&rows, None).trim_end().to_owned()
    }

    fn as_json(&self) -> Map<String, Value> {
        let shown = |path: &PathBuf| path.display().to_string();
        let stay = self.stay.iter().map(|path| json!({"path": shown(path), "reason": MAY_BE_SHARED}));
        let all = json!({
            "path": shown(&self.top), "along": self.along.iter().map(shown).collect::<Value>(), "stay": stay.collect::<Value>(),
            "tools": self.tools, "link": self.top.is_symlink(),
        });
        if let Value::Object(all) = all { all } else { Map::new() }
    }

    /// A folder is renamed first, so that it is never served in part.
    fn run(&self, folder: &Path) -> std::io::Result<()> {
        if self.top.is_symlink() || !self.top.is_dir() {
            fs::remove_file(&self.top)?;
        } else {
            sweep(folder);
            let aside = folder.join(format!("{REMOVING}{}", std::process::id()));
            fs::rename(&self.top, &aside)?;
            let left = |error| std::io::Error::other(format!("{error}; what is left of it is in {}", aside.display()));
            fs::remove_dir_all(&aside).map_err(left)?;
        }
        forget_compiled(&self.top);
        for path in &self.along {
            forget_compiled(path);
            let stays = |error| std::io::Error::other(format!("{error}; {} is left", path.display()));
            fs::remove_file(path).or_else(ignore_absent).map_err(stays)?;
        }
        Ok(())
    }
}

/// A file that disappeared meanwhile is not an error.
fn ignore_absent(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Removes Python's compiled copies of a file. Python recreates them on demand, so errors do not matter.
fn forget_compiled(path: &Path) {
    let (Some(folder), Some(stem)) = (path.parent(), path.file_stem()) else { return };
    let (cache, begin) = (folder.join("__pycache__"), format!("{}.", stem.to_string_lossy()));
    for entry in fs::read_dir(&cache).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with(&begin) && path.extension().is_some_and(|end| end == "pyc") {
            let _ = fs::remove_file(path);
        }
    }
    let _ = fs::remove_dir(cache);
}

/// The entry of the folder that a path is, or is in.
fn top_of(path: &Path, folder: &Path) -> Option<PathBuf> {
    let below = path.strip_prefix(folder).ok()?;
    Some(folder.join(below.iter().next()?))
}

fn count(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.file_type().is_ok_and(|kind| kind.is_dir()) { count(&entry.path()) } else { 1 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_a_killed_run_with_the_same_process_id_are_not_in_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join(format!("{REMOVING}{}", std::process::id()));
        let top = folder.path().join("pack");
        for place in [&left, &top] {
            fs::create_dir(place).unwrap();
            fs::write(place.join("pack.py"), "").unwrap();
        }
        let gone = folder.path().join("pack.py.lock");
        let removal = Removal { top, along: vec![gone], stay: Vec::new(), tools: Vec::new() };
        removal.run(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
