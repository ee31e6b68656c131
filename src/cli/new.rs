//! `hostler new NAME` and `hostler init`: files to start from.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;

use super::options::{New, NewKind};
use super::style::{self, Refusal};
use crate::config::{Config, ConfigOptions};
use crate::pep723::{is_identifier, nearest_identifier};
use crate::process::shell_word;

/// The file for a kind of tool.
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

pub(super) fn tool(args: &New, wanted: &ConfigOptions, directory: &Path) -> Result<ExitCode, Refusal> {
    check_name(args)?;
    // The tools folder with the highest precedence, which may not exist yet.
    let configured = Config::load(wanted, directory)?.tools.value.pop();
    let folder = configured.unwrap_or_else(|| directory.join("tools"));
    let template = Template::of(args.kind);
    let path = folder.join(format!("{}{}", args.name, template.ending));
    write(&path, template.text, template.mode)?;
    let below = |path: &Path| path.strip_prefix(directory).unwrap_or(path).to_string_lossy().into_owned();
    let shown = below(&path);
    style::answer(&shown);
    let is_default = wanted.tools.is_empty() && folder == directory.join("tools");
    let tools = if is_default { String::new() } else { format!(" --tools {}", shell_word(&below(&folder))) };
    let (name, file) = (args.name.replace('-', "_"), shell_word(&shown));
    let try_it = match args.kind {
        NewKind::Python => format!("  hostler call{tools} {name}.greet name=you\n  hostler dev {file}"),
        NewKind::Exec | NewKind::Node => {
            format!("  hostler call{tools} {name} name=you\n  hostler show{tools} {name}")
        }
    };
    style::note(&format!("edit it, then try it:\n{try_it}"));
    Ok(ExitCode::SUCCESS)
}

fn check_name(args: &New) -> Result<(), Refusal> {
    let name = &args.name;
    let ending = Template::of(args.kind).ending;
    let (own, whose, more) = match args.kind {
        NewKind::Python => (name.clone(), "a pack's", ""),
        // A hyphen in a program's name becomes an underscore in its tool's.
        NewKind::Exec | NewKind::Node => (name.replace('-', "_"), "a tool's", ", -"),
    };
    let near = nearest_identifier(name.strip_suffix(ending).unwrap_or(name));
    if !is_identifier(&own) {
        let fix = format!("use letters, digits{more} and _ only, such as `{near}`");
        return Err(Refusal::new(format!("`{name}` cannot be {whose} name"), fix));
    }
    if name.starts_with('_') {
        let what = format!("{name}{ending} would never be served: names of helpers begin with `_`");
        return Err(Refusal::new(what, format!("use a name such as `{near}`")));
    }
    Ok(())
}

pub(super) fn config(directory: &Path) -> Result<ExitCode, Refusal> {
    write(&directory.join("hostler.toml"), CONFIG, 0o666)?;
    // The configuration names this folder, so it must exist.
    let tools = directory.join("tools");
    let cannot = |error| Refusal::io(format!("cannot create {}", tools.display()), error);
    std::fs::create_dir_all(&tools).map_err(cannot)?;
    style::answer("hostler.toml");
    style::note("next: `hostler new NAME` writes a first tool into ./tools, `hostler doctor` checks this machine");
    Ok(ExitCode::SUCCESS)
}

/// Writes a new file; an existing one is never overwritten.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), Refusal> {
    let cannot = |error: io::Error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Refusal::new(format!("{} exists already", path.display()), "edit it, or remove it first")
        }
        _ => Refusal::io(format!("cannot write {}", path.display()), error),
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(cannot)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path).map_err(cannot)?;
    file.write_all(text.as_bytes()).map_err(cannot)
}

/// A working tool that passes `check` and shows what a file may declare.
const TOOL: &str = include_str!("templates/tool.py");

/// A program that prints its schema and answers one call. It has no extension, because `.py` would make it a tool file.
const EXECUTABLE: &str = include_str!("templates/executable.py");

/// The same for Node, as an ES module by its extension.
const NODE: &str = include_str!("templates/executable.mjs");

/// A short useful configuration, with more to uncomment.
const CONFIG: &str = include_str!("templates/hostler.toml");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Interpreters, Surroundings, check};

    #[test]
    fn templates_pass_check() {
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
    fn templates_mention_no_file_of_this_repository() {
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
