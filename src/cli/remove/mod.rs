//! `hostler remove NAME`: a tool out of the person's own folder.

mod alone;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Map, Value, json};

pub(super) use self::alone::Helpers;
use super::consent::{self, Consent};
use super::install::staging::{REMOVING, sweep};
use super::install::words::Remove;
use super::{exit, install, style};
use crate::config::section::nearest;
use crate::config::{Config, ConfigOptions, paths};
use crate::discovery::{Kind, ToolFile};
use crate::outcome::Code;
use crate::registry::Catalogue;
use crate::runtime::Workspace;

/// Why nothing was removed: the exit status, and what is said.
struct Refused(u8, String);

pub(super) async fn run(asked: &Remove, wanted: &ConfigOptions, directory: &Path) -> ExitCode {
    match remove(asked, wanted, directory).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(Refused(status, message)) => exit::complain(status, &message),
    }
}

/// What goes together.
#[derive(Debug)]
struct Going {
    /// The tool's file, its folder, or a link to one.
    top: PathBuf,
    /// Neighbours that nothing else there needs, and the lock.
    along: Vec<PathBuf>,
    /// Neighbours that stay though no tool is known to need them, and why.
    stay: Vec<(PathBuf, String)>,
    tools: Vec<String>,
}

async fn remove(asked: &Remove, wanted: &ConfigOptions, directory: &Path) -> Result<(), Refused> {
    let config = Config::load(wanted, directory).map_err(|error| Refused(exit::USAGE, error.to_string()))?;
    let app = Workspace::build(config);
    let folder =
        asked.from.as_ref().map_or_else(|| paths::user_tools(&wanted.environment), |folder| directory.join(folder));
    let going = find(asked, &app, &folder).await?;
    style::note(&going.as_text());
    let said = going.as_json();
    let refused = |said, status: u8, reason: &str| {
        if asked.json {
            install::answer(said, "removed", false, Some(reason));
        }
        Err(Refused(status, reason.to_owned()))
    };
    match consent::ask("Remove it?", asked.yes).await {
        Consent::Yes => {}
        Consent::No => return refused(said, exit::CANCELLED, "nothing was removed"),
        Consent::Nobody => {
            let reason = "nothing was removed: there is nobody at a terminal to ask; if that above is meant, say --yes";
            return refused(said, exit::USAGE, reason);
        }
    }
    going
        .go(&folder)
        .map_err(|error| Refused(exit::USAGE, format!("{} cannot be removed: {error}", going.top.display())))?;
    if asked.json {
        install::answer(said, "removed", true, None);
    } else {
        style::answer(&going.top.display().to_string());
    }
    Ok(())
}

/// What a name means in the folder. Executables are run to learn their tools' names only when no file has that name.
async fn find(asked: &Remove, app: &Workspace, folder: &Path) -> Result<Going, Refused> {
    let unasked = app.glance_into(folder).catalogue();
    if let Some(going) = Going::of(&asked.name, &unasked, folder) {
        return Ok(going);
    }
    let catalogue = app.look_into(folder).await.catalogue();
    if let Some(going) = Going::of(&asked.name, &catalogue, folder) {
        return Ok(going);
    }
    app.ask();
    app.dispatcher.registry.asked().await;
    Err(elsewhere(&asked.name, &app.dispatcher.registry.catalogue(), &catalogue, folder))
}

/// Why there is nothing of that name to remove.
fn elsewhere(name: &str, everything: &Catalogue, own: &Catalogue, folder: &Path) -> Refused {
    let helps = own.files.iter().find(|entry| entry.file.helpers.iter().any(|path| is_called(path, name)));
    if let Some(entry) = helps {
        let user = entry.file.path.display();
        return Refused(exit::USAGE, format!("{name} is a helper of {user}, which imports it, and goes with that"));
    }
    let tool = everything.resolve(name).ok().map(|tool| &tool.entry);
    let file = || everything.files.iter().find(|entry| entry.file.pack == name || is_called(&entry.file.path, name));
    if let Some(entry) = tool.or_else(file) {
        let message = match entry.file.kind {
            Kind::Builtin => format!(
                "{0} is built in and cannot be removed; switch it off in hostler.toml: [builtin] disable = [\"{0}\"]",
                entry.file.pack
            ),
            _ => format!(
                "{name} lies in {}, which is not below {}; remove that file, or name its folder with --from DIR",
                entry.file.path.display(),
                folder.display()
            ),
        };
        return Refused(exit::USAGE, message);
    }
    let packs = own.files.iter().map(|entry| entry.file.pack.as_str());
    let near = nearest(name, packs.chain(own.tools.iter().map(|tool| tool.name.as_str())));
    let advice = match near {
        Some(near) => format!("did you mean {near}?"),
        None => "`hostler list --json` shows where every tool lies".to_owned(),
    };
    Refused(Code::ToolNotFound.exit_status(), format!("there is no {name} in {}; {advice}", folder.display()))
}

fn is_called(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|own| own == name) || path.file_stem().is_some_and(|own| own == name)
}

impl Going {
    fn of(name: &str, catalogue: &Catalogue, folder: &Path) -> Option<Self> {
        // A folder goes by the name of the file in it, too.
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
        let helpers = if top == file.path { Helpers::of(file, files(), folder) } else { Helpers::default() };
        let Helpers { alone: mut along, stay } = helpers;
        let mut lock = file.path.clone().into_os_string();
        lock.push(".lock");
        along.extend(Some(PathBuf::from(lock)).filter(|lock| !goes(lock) && fs::symlink_metadata(lock).is_ok()));
        let tools = catalogue.tools.iter().filter(|tool| goes(&tool.entry.file.path)).map(|tool| tool.name.clone());
        Some(Self { tools: tools.collect(), along, stay, top })
    }

    fn as_text(&self) -> String {
        let what = match fs::read_link(&self.top) {
            Ok(target) => format!("a link to {}, which stays", target.display()),
            Err(_) if self.top.is_dir() => format!("a folder with {} files", count(&self.top)),
            Err(_) => "a file".to_owned(),
        };
        let mut rows = vec![vec!["  goes".to_owned(), format!("{}, {what}", self.top.display())]];
        rows.extend(
            self.along
                .iter()
                .map(|path| vec![String::new(), format!("{}, which nothing else there needs", path.display())]),
        );
        for (number, (path, reason)) in self.stay.iter().enumerate() {
            let key = if number == 0 { "  stays" } else { "" };
            rows.push(vec![key.to_owned(), format!("{}, which {reason}", path.display())]);
        }
        if !self.tools.is_empty() {
            rows.push(vec!["  with its tools".to_owned(), self.tools.join(", ")]);
        }
        style::table(&rows, None).trim_end().to_owned()
    }

    fn as_json(&self) -> Map<String, Value> {
        let shown = |path: &PathBuf| path.display().to_string();
        let stay = self.stay.iter().map(|(path, reason)| json!({"path": shown(path), "reason": reason}));
        let said = json!({
            "path": shown(&self.top), "along": self.along.iter().map(shown).collect::<Value>(), "stay": stay.collect::<Value>(),
            "tools": self.tools, "link": self.top.is_symlink(),
        });
        if let Value::Object(said) = said { said } else { Map::new() }
    }

    /// The tool first, at once: nobody is to see it without its helpers.
    fn go(&self, folder: &Path) -> std::io::Result<()> {
        if self.top.is_symlink() || !self.top.is_dir() {
            fs::remove_file(&self.top)?;
        } else {
            sweep(folder);
            let aside = folder.join(format!("{REMOVING}{}", std::process::id()));
            fs::rename(&self.top, &aside)?;
            let left =
                |error| std::io::Error::other(format!("{error}; what is left of it lies in {}", aside.display()));
            fs::remove_dir_all(&aside).map_err(left)?;
        }
        forget_compiled(&self.top);
        for path in &self.along {
            forget_compiled(path);
            let stays = |error| std::io::Error::other(format!("{error}; {} stays, without the tool", path.display()));
            fs::remove_file(path).or_else(absent_already).map_err(stays)?;
            // Of a folder of helpers that is empty now, nothing is left.
            let parent = path.parent().filter(|parent| *parent != folder);
            parent.map(fs::remove_dir).and_then(Result::ok);
        }
        Ok(())
    }
}

/// What was to go and has gone by itself meanwhile is no trouble.
fn absent_already(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Takes away what Python keeps of a file it imported. It is made anew where it is missed, so nothing depends on this.
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

/// What of a path lies directly in the folder.
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
    fn what_a_killed_run_of_the_same_number_left_is_not_in_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join(format!("{REMOVING}{}", std::process::id()));
        let top = folder.path().join("pack");
        for place in [&left, &top] {
            fs::create_dir(place).unwrap();
            fs::write(place.join("pack.py"), "").unwrap();
        }
        let going = Going { top, along: Vec::new(), stay: Vec::new(), tools: Vec::new() };
        going.go(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_neighbour_that_went_by_itself_keeps_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let [top, gone, other] = ["a.py", "_gone.py", "_other.py"].map(|name| folder.path().join(name));
        for path in [&top, &other] {
            fs::write(path, "").unwrap();
        }
        let going = Going { top, along: vec![gone, other], stay: Vec::new(), tools: Vec::new() };
        going.go(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
