//! `hostler new NAME` and `hostler init`: files to start from.

mod templates;

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::options::{New, NewKind};
use super::{exit, style};
use crate::config::{Config, ConfigError, ConfigOptions};
use crate::pep723::{is_identifier, nearest_identifier};
use crate::process::shell_word;
use templates::{CONFIG, EXECUTABLE, NODE, TOOL};

/// What is written for a kind of tool.
struct Template {
    text: &'static str,
    ending: &'static str,
    mode: u32,
}

impl Template {
    const fn of(kind: NewKind) -> Self {
        match kind {
            NewKind::Python => Self { text: TOOL, ending: ".py", mode: 0o666 },
            NewKind::Exec => Self { text: EXECUTABLE, ending: "", mode: 0o777 },
            NewKind::Node => Self { text: NODE, ending: ".mjs", mode: 0o777 },
        }
    }
}

pub(super) fn tool(asked: &New, wanted: &ConfigOptions, directory: &Path) -> ExitCode {
    if let Some(message) = unfit(asked) {
        return exit::complain(exit::USAGE, &message);
    }
    let folder = match tools_folder(wanted, directory) {
        Ok(folder) => folder,
        Err(error) => return exit::complain(exit::USAGE, &error.to_string()),
    };
    let template = Template::of(asked.kind);
    let path = folder.join(format!("{}{}", asked.name, template.ending));
    if let Err(message) = write(&path, template.text, template.mode) {
        return exit::complain(exit::USAGE, &message);
    }
    let shown = path.strip_prefix(directory).unwrap_or(&path);
    style::answer(&shown.display().to_string());
    let tools = if wanted.tools.is_empty() && folder == directory.join("tools") {
        String::new()
    } else {
        format!(" --tools {}", shell_word(&folder.strip_prefix(directory).unwrap_or(&folder).to_string_lossy()))
    };
    let (name, file) = (&asked.name, shell_word(&shown.to_string_lossy()));
    let try_it = match asked.kind {
        NewKind::Python => format!("  hostler call{tools} {name}.greet name=you\n  hostler dev {file}"),
        NewKind::Exec | NewKind::Node => {
            let tool = name.replace('-', "_");
            format!("  hostler call{tools} {tool} name=you\n  hostler show{tools} {tool}")
        }
    };
    style::note(&format!("Edit it, then try it:\n{try_it}"));
    ExitCode::SUCCESS
}

/// Why a tool cannot be called so.
fn unfit(asked: &New) -> Option<String> {
    let name = &asked.name;
    let is_python = asked.kind == NewKind::Python;
    // A hyphen of a program's name is an underscore of its tool's.
    let meant = if is_python { name.clone() } else { name.replace('-', "_") };
    let near = nearest_identifier(name);
    if !is_identifier(&meant) {
        let (whose, more) = if is_python { ("a pack's", "") } else { ("a tool's", ", -") };
        // The name of the file is meant, where its ending is written along.
        let stem = name.strip_suffix(Template::of(asked.kind).ending).unwrap_or(name);
        let near = nearest_identifier(stem);
        return Some(format!("`{name}` cannot be {whose} name; letters, digits{more} and _ only, such as `{near}`"));
    }
    let file = format!("{name}{}", Template::of(asked.kind).ending);
    let hidden = name.starts_with('_');
    hidden.then(|| format!("{file} would never be served: `_` begins the names of helpers; such as `{near}`"))
}

/// The strongest folder that tools are looked for in, whether it is there yet or not, else `tools` right here.
fn tools_folder(wanted: &ConfigOptions, directory: &Path) -> Result<PathBuf, ConfigError> {
    let config = Config::load(wanted, directory)?;
    Ok(config.tools.value.last().cloned().unwrap_or_else(|| directory.join("tools")))
}

pub(super) fn config(directory: &Path) -> ExitCode {
    let path = directory.join("hostler.toml");
    if path.symlink_metadata().is_ok() {
        // No other name would be found.
        let message = format!("{} is there already; edit it, or remove it first to begin anew", path.display());
        return exit::complain(exit::USAGE, &message);
    }
    if let Err(message) = write(&path, CONFIG, 0o666) {
        return exit::complain(exit::USAGE, &message);
    }
    // It names the folder, which would be told as missing until a first tool is written.
    let tools = directory.join("tools");
    if let Err(error) = std::fs::create_dir_all(&tools) {
        return exit::complain(exit::USAGE, &format!("{} cannot be made: {error}", tools.display()));
    }
    style::answer("hostler.toml");
    style::note(
        "Next: `hostler new NAME` writes a first tool into ./tools, `hostler doctor` looks whether all is well.",
    );
    ExitCode::SUCCESS
}

/// Writes a new file and never over one that is there.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), String> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    match opened.and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(format!("{} is there already; choose another name or remove it first", path.display()))
        }
        Err(error) => Err(format!("{} cannot be written: {error}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Interpreters, Surroundings, check};

    #[test]
    fn what_is_written_to_start_from_has_no_flaw() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tools")).unwrap();
        std::fs::write(folder.path().join("tools/first.py"), TOOL).unwrap();
        std::fs::write(folder.path().join("hostler.toml"), CONFIG).unwrap();
        let config = Config::load(&ConfigOptions::default(), folder.path()).unwrap();
        let surroundings = Surroundings {
            config,
            interpreters: Interpreters::default(),
            installed: |_, _| None,
            built_in: Vec::new(),
            known: None,
        };
        let report = check(&[folder.path().join("tools")], &[], &surroundings);
        assert_eq!((report.files.len(), report.findings().count()), (1, 0));
    }

    #[test]
    fn what_is_written_points_at_nothing_that_only_the_project_has() {
        for text in [TOOL, CONFIG] {
            assert!(!text.contains("README") && !text.contains("example.toml") && text.contains("`hostler show TOOL`"));
        }
    }

    #[test]
    fn every_commented_setting_is_a_setting() {
        let folder = tempfile::tempdir().unwrap();
        let uncommented: String = CONFIG
            .lines()
            .map(|line| if line.contains(" = ") { line.trim_start_matches("# ") } else { line })
            .map(|line| line.to_owned() + "\n")
            .collect();
        std::fs::write(folder.path().join("hostler.toml"), uncommented).unwrap();
        Config::load(&ConfigOptions::default(), folder.path()).unwrap();
    }
}
