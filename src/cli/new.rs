//! `hostler new NAME` and `hostler init`: files to start from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::options::{New, NewKind};
use super::style;
use crate::config::{Config, ConfigError, Wanted};
use crate::pep723::{is_identifier, nearest_identifier};
use crate::process::shell_word;

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

pub(super) fn tool(asked: &New, wanted: &Wanted, directory: &Path) -> ExitCode {
    if let Some(message) = unfit(asked) {
        return style::complain(style::USAGE, &message);
    }
    let folder = match tools_folder(wanted, directory) {
        Ok(folder) => folder,
        Err(error) => return style::complain(style::USAGE, &error.to_string()),
    };
    let template = Template::of(asked.kind);
    let path = folder.join(format!("{}{}", asked.name, template.ending));
    if let Err(message) = write(&path, template.text, template.mode) {
        return style::complain(style::USAGE, &message);
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
fn tools_folder(wanted: &Wanted, directory: &Path) -> Result<PathBuf, ConfigError> {
    let config = Config::load(wanted, directory)?;
    Ok(config.tools.value.last().cloned().unwrap_or_else(|| directory.join("tools")))
}

pub(super) fn config(directory: &Path) -> ExitCode {
    let path = directory.join("hostler.toml");
    if path.symlink_metadata().is_ok() {
        // No other name would be found.
        let message = format!("{} is there already; edit it, or remove it first to begin anew", path.display());
        return style::complain(style::USAGE, &message);
    }
    if let Err(message) = write(&path, CONFIG, 0o666) {
        return style::complain(style::USAGE, &message);
    }
    // It names the folder, which would be told as missing until a first tool is written.
    let tools = directory.join("tools");
    if let Err(error) = std::fs::create_dir_all(&tools) {
        return style::complain(style::USAGE, &format!("{} cannot be made: {error}", tools.display()));
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

/// A tool that works, passes `check`, and shows what a file may say.
const TOOL: &str = r#"# /// script
# requires-python = ">=3.9"
# dependencies = []            # what it imports, such as "httpx>=0.27"; installed by itself
#
# [tool.hostler]               # all optional; `hostler show TOOL` names them
# effects = "pure"             # what repeating a call does: "pure", "idempotent" or "once"
# ///
"""Say what this file is for, in one line."""


def greet(name: str, times: int = 1) -> str:
    """Greet somebody. The first line is what a model chooses this tool by.

    Args:
        name: Whom to greet.
        times: How often.
    """
    return " ".join([f"Good morning, {name}!"] * times)
"#;

/// A program that says what it is and answers one call. A Python file with another ending would be read as a tool file.
const EXECUTABLE: &str = r#"#!/usr/bin/env python3
"""Run once for each call: JSON in on standard input, one JSON value out on standard output, all else on standard error."""
import json
import sys

SCHEMA = {
    "description": "Greet somebody. A model chooses this tool by what stands here.",
    "parameters": {
        "name": {"type": "string", "description": "Whom to greet.", "required": True},
        "times": {"type": "integer", "description": "How often.", "default": 1},
    },
    "returns": {"type": "object", "properties": {"greeting": {"type": "string"}}},
    "effects": "pure",  # what repeating a call does: "pure", "idempotent" or "once"
}


def main(name, times=1):
    return {"greeting": " ".join([f"Good morning, {name}!"] * times)}


if "--schema" in sys.argv[1:]:
    print(json.dumps(SCHEMA))
else:
    # What went wrong for the caller is a result too: {"error": "…"}. Any other exit status than 0 says that the tool failed.
    print(json.dumps(main(**json.load(sys.stdin))))
"#;

/// The same for Node. Its ending says that it is an ES module, wherever it lies.
const NODE: &str = r#"#!/usr/bin/env node
// Run once for each call: JSON in on standard input, one JSON value out on standard output, all else on standard error.
import { readFileSync } from "node:fs";

const schema = {
  description: "Greet somebody. A model chooses this tool by what stands here.",
  parameters: {
    name: { type: "string", description: "Whom to greet.", required: true },
    times: { type: "integer", description: "How often.", default: 1 },
  },
  returns: { type: "object", properties: { greeting: { type: "string" } } },
  effects: "pure", // what repeating a call does: "pure", "idempotent" or "once"
};

async function main({ name, times = 1 }) {
  return { greeting: Array(times).fill(`Good morning, ${name}!`).join(" ") };
}

if (process.argv.includes("--schema")) {
  console.log(JSON.stringify(schema));
} else {
  // What went wrong for the caller is a result too: { error: "…" }. Any other exit status than 0 says that the tool failed.
  console.log(JSON.stringify(await main(JSON.parse(readFileSync(0, "utf8")))));
}
"#;

/// The shortest useful configuration, with the rest to be uncommented.
const CONFIG: &str = r#"# hostler.toml: `hostler show TOOL` names every setting of a tool and the line that decided it, `hostler check` finds mistakes.

# Folders of tools, from this file on.
tools = ["tools"]

# Tools that are part of hostler; `hostler builtin` lists them. Those here only look, and only from this folder on.
[builtin]
enable = ["read_file", "list_directory", "glob", "grep"]
roots = ["."]

# For every tool; a table [tool.NAME] is for one file, [tool."pack.function"] for one function.
[tool]
# timeout = "5m"               # how long one call may run
# idle_timeout = "10m"         # how long an idle worker stays
# max_memory = "2GB"           # the most memory a worker may hold

# MCP clients start servers with hardly any environment: what uv needs to reach its index stands here.
[environment.env]
# HTTPS_PROXY = "http://proxy.example:3128"
# SSL_CERT_FILE = "/etc/ssl/certs/ca-certificates.crt"

# Where the secrets are that tools declare.
[secrets]
# BRAVE_API_KEY = { file = "~/.config/hostler/brave.key" }
"#;

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
        let config = Config::load(&Wanted::default(), folder.path()).unwrap();
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
        Config::load(&Wanted::default(), folder.path()).unwrap();
    }
}
