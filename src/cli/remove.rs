//! `hostler remove NAME`: a tool out of the person's own folder.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::install::{hidden_name, sweep};
use super::options::Remove;
use super::style::{self, Refusal};
use crate::config::{Config, ConfigOptions, environment};
use crate::discovery::{Kind, ToolFile};
use crate::registry::Catalogue;
use crate::runtime::Workspace;

const MAY_BE_SHARED: &str = "which other tools may use";

/// What is removed together.
#[derive(Debug)]
struct Removal {
    /// The tool's file, its folder, or a link to one.
    top: PathBuf,
    /// Its lock.
    along: Option<PathBuf>,
    /// Neighbours that it imports. Other files may need them too, so they stay.
    stay: Vec<PathBuf>,
    tools: Vec<String>,
}

pub(super) async fn run(args: &Remove, wanted: &ConfigOptions, directory: &Path) -> Result<(), Refusal> {
    let app = Workspace::build(Config::load(wanted, directory)?);
    let folder = args
        .from
        .as_ref()
        .map_or_else(|| environment::user_tools(&wanted.environment), |folder| directory.join(folder));
    let removal = find(&args.name, &app, &folder).await?;
    style::note(&removal.as_text());
    let shown = removal.as_json();
    if let Err(refusal) = style::consent("Remove?", args.yes, "nothing was removed").await {
        style::report(args.json, shown, "removed", Err(&refusal));
        return Err(refusal);
    }
    removal.run(&folder)?;
    style::report(args.json, shown, "removed", Ok(&removal.top));
    Ok(())
}

/// What a name refers to in the folder. Executables are only asked for their tools' names when no file has that name.
async fn find(name: &str, app: &Workspace, folder: &Path) -> Result<Removal, Refusal> {
    let unasked = app.glance_into(folder).catalogue();
    if let Some(removal) = Removal::of(name, &unasked, folder) {
        return Ok(removal);
    }
    let catalogue = app.look_into(folder).await.catalogue();
    if let Some(removal) = Removal::of(name, &catalogue, folder) {
        return Ok(removal);
    }
    app.ask();
    app.calls.registry.asked().await;
    Err(elsewhere(name, &app.calls.registry.catalogue(), folder))
}

/// Why there is nothing of that name to remove.
fn elsewhere(name: &str, everything: &Catalogue, folder: &Path) -> Refusal {
    let tool = everything.resolve(name).ok().map(|tool| &tool.entry);
    let file = || everything.files.iter().find(|entry| entry.file.pack == name || is_called(&entry.file.path, name));
    if let Some(entry) = tool.or_else(file) {
        let (pack, path) = (&entry.file.pack, entry.file.path.display());
        return match entry.file.kind {
            Kind::Builtin => Refusal::new(
                format!("{pack} is built in and cannot be removed"),
                format!("disable it in hostler.toml: [builtin] disable = [\"{pack}\"]"),
            ),
            _ => Refusal::new(
                format!("{name} is in {path}, not in {}", folder.display()),
                "remove that file, or pass its folder with --from DIR",
            ),
        };
    }
    let what = format!("there is no {name} in {}", folder.display());
    Refusal::not_found(what, "`hostler list --json` shows the origin of every tool")
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
        let along = Some(PathBuf::from(lock)).filter(|lock| !goes(lock) && fs::symlink_metadata(lock).is_ok());
        let tools = catalogue.tools.iter().filter(|tool| goes(&tool.entry.file.path)).map(|tool| tool.name.clone());
        Some(Self { tools: tools.collect(), along, stay, top })
    }

    fn as_text(&self) -> String {
        let what = match fs::read_link(&self.top) {
            Ok(target) => format!("a link to {}, which stays", target.display()),
            Err(_) if self.top.is_dir() => "a folder with all its files".to_owned(),
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

    /// It is renamed first, so that it is never served in part.
    fn run(&self, folder: &Path) -> Result<(), Refusal> {
        sweep(folder);
        let aside = folder.join(hidden_name());
        let cannot = |error| Refusal::io(format!("cannot remove {}", self.top.display()), error);
        fs::rename(&self.top, &aside).map_err(cannot)?;
        let is_folder = fs::symlink_metadata(&aside).is_ok_and(|about| about.is_dir());
        let removed = if is_folder { fs::remove_dir_all(&aside) } else { fs::remove_file(&aside) };
        let left = |path: &Path, error| Refusal {
            fix: format!("remove {}", path.display()),
            ..Refusal::io(format!("{} was removed in part", self.top.display()), error)
        };
        removed.map_err(|error| left(&aside, error))?;
        match self.along.as_ref().map(|lock| (lock, fs::remove_file(lock))) {
            Some((lock, Err(error))) if error.kind() != ErrorKind::NotFound => Err(left(lock, error)),
            _ => Ok(()),
        }
    }
}

/// The entry of the folder that a path is, or is in.
fn top_of(path: &Path, folder: &Path) -> Option<PathBuf> {
    let below = path.strip_prefix(folder).ok()?;
    Some(folder.join(below.iter().next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_when_the_lock_is_gone_already() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join("pack");
        fs::create_dir(&top).unwrap();
        fs::write(top.join("pack.py"), "").unwrap();
        let gone = Some(folder.path().join("pack.py.lock"));
        let removal = Removal { top, along: gone, stay: Vec::new(), tools: Vec::new() };
        removal.run(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
