//! `hostler new NAME` and `hostler init`: files to start from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::options::{New, NewKind};
use super::style;
use crate::config::{Config, ConfigError, ConfigOptions};
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

pub(super) fn tool(args: &New, wanted: &ConfigOptions, directory: &Path) -> ExitCode {
    if let Some(message) = invalid_name(args) {
        return style::complain(style::USAGE, &message);
    }
    let folder = match tools_folder(wanted, directory) {
        Ok(folder) => folder,
        Err(error) => return style::complain(style::USAGE, &error.to_string()),
    };
    let template = Template::of(args.kind);
    let path = folder.join(format!("{}{}", args.name, template.ending));
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
    let (name, file) = (&args.name, shell_word(&shown.to_string_lossy()));
    let try_it = match args.kind {
        NewKind::Python => format!("  hostler call{tools} {name}.greet name=you\n  hostler dev {file}"),
        NewKind::Exec | NewKind::Node => {
            let tool = name.replace('-', "_");
            format!("  hostler call{tools} {tool} name=you\n  hostler show{tools} {tool}")
        }
    };
    style::note(&format!("edit it, then try it:\n{try_it}"));
    ExitCode::SUCCESS
}

/// Why a tool cannot have that name.
fn invalid_name(args: &New) -> Option<String> {
    let name = &args.name;
    let is_python = args.kind == NewKind::Python;
    // A hyphen in a program's name becomes an underscore in its tool's.
    let own = if is_python { name.clone() } else { name.replace('-', "_") };
    let near = nearest_identifier(name);
    if !is_identifier(&own) {
        let (whose, more) = if is_python { ("a pack's", "") } else { ("a tool's", ", -") };
        // A file name with its extension.
        let stem = name.strip_suffix(Template::of(args.kind).ending).unwrap_or(name);
        let near = nearest_identifier(stem);
        return Some(format!(
            "`{name}` cannot be {whose} name; use letters, digits{more} and _ only, such as `{near}`"
        ));
    }
    let file = format!("{name}{}", Template::of(args.kind).ending);
    let hidden = name.starts_with('_');
    hidden
        .then(|| format!("{file} would never be served: names of helpers begin with `_`; use a name such as `{near}`"))
}

/// The tools folder with the highest precedence, which may not exist yet, or `tools` here.
fn tools_folder(wanted: &ConfigOptions, directory: &Path) -> Result<PathBuf, ConfigError> {
    let config = Config::load(wanted, directory)?;
    Ok(config.tools.value.last().cloned().unwrap_or_else(|| directory.join("tools")))
}

pub(super) fn config(directory: &Path) -> ExitCode {
    let path = directory.join("hostler.toml");
    if path.symlink_metadata().is_ok() {
        let message = format!("{} exists already; edit it, or remove it first", path.display());
        return style::complain(style::USAGE, &message);
    }
    if let Err(message) = write(&path, CONFIG, 0o666) {
        return style::complain(style::USAGE, &message);
    }
    // The configuration names this folder, so it must exist.
    let tools = directory.join("tools");
    if let Err(error) = std::fs::create_dir_all(&tools) {
        return style::complain(style::USAGE, &format!("cannot create {}: {error}", tools.display()));
    }
    style::answer("hostler.toml");
    style::note("next: `hostler new NAME` writes a first tool into ./tools, `hostler doctor` checks this machine");
    ExitCode::SUCCESS
}

/// Writes a new file; an existing one is never overwritten.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), String> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    match opened.and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(format!("{} exists already; choose another name or remove it first", path.display()))
        }
        Err(error) => Err(format!("cannot write {}: {error}", path.display())),
    }
}

/// A working tool that passes `check` and shows what a file may declare.
const TOOL: &str = r#"# /// script
# requires-python = ">=3.9"
# dependencies = []            # packages it imports, such as "httpx>=0.27"; installed on demand
#
# [tool.hostler]               # all optional; `hostler show TOOL` lists them
# effects = "pure"             # the effect of repeating a call: "pure", "idempotent" or "once"
# ///
"""Describe this file in one line."""


def greet(name: str, times: int = 1) -> str:
    """Greet somebody. A model chooses the tool by this line.

    Args:
        name: Whom to greet.
        times: How often.
    """
    return " ".join([f"Good morning, {name}!"] * times)
"#;

/// A program that prints its schema and answers one call. It has no extension, because `.py` would make it a tool file.
const EXECUTABLE: &str = r#"#!/usr/bin/env python3
"""Runs once per call: JSON arguments on standard input, one JSON value on standard output, messages on standard error."""
import json
import sys

SCHEMA = {
    "description": "Greet somebody. A model chooses the tool by this text.",
    "parameters": {
        "name": {"type": "string", "description": "Whom to greet.", "required": True},
        "times": {"type": "integer", "description": "How often.", "default": 1},
    },
    "returns": {"type": "object", "properties": {"greeting": {"type": "string"}}},
    "effects": "pure",  # the effect of repeating a call: "pure", "idempotent" or "once"
}


def main(name, times=1):
    return {"greeting": " ".join([f"Good morning, {name}!"] * times)}


if "--schema" in sys.argv[1:]:
    print(json.dumps(SCHEMA))
else:
    # Report an expected failure as a result: {"error": "…"}. An exit status other than 0 means that the tool itself failed.
    print(json.dumps(main(**json.load(sys.stdin))))
"#;

/// The same for Node, as an ES module by its extension.
const NODE: &str = r#"#!/usr/bin/env node
// Runs once per call: JSON arguments on standard input, one JSON value on standard output, messages on standard error.
import { readFileSync } from "node:fs";

const schema = {
  description: "Greet somebody. A model chooses the tool by this text.",
  parameters: {
    name: { type: "string", description: "Whom to greet.", required: true },
    times: { type: "integer", description: "How often.", default: 1 },
  },
  returns: { type: "object", properties: { greeting: { type: "string" } } },
  effects: "pure", // the effect of repeating a call: "pure", "idempotent" or "once"
};

async function main({ name, times = 1 }) {
  return { greeting: Array(times).fill(`Good morning, ${name}!`).join(" ") };
}

if (process.argv.includes("--schema")) {
  console.log(JSON.stringify(schema));
} else {
  // Report an expected failure as a result: { error: "…" }. An exit status other than 0 means that the tool itself failed.
  console.log(JSON.stringify(await main(JSON.parse(readFileSync(0, "utf8")))));
}
"#;

/// A short useful configuration, with more to uncomment.
const CONFIG: &str = r#"# hostler.toml: `hostler show TOOL` lists every setting of a tool and its origin, `hostler check` finds mistakes.

# Folders of tools, relative to this file.
tools = ["tools"]

# Tools that are part of hostler; `hostler builtin` lists them. These only read, and only below this folder.
[builtin]
enable = ["read_file", "list_directory", "glob", "grep"]
roots = ["."]

# For every tool; [tool.NAME] is for one file, [tool."pack.function"] for one function.
[tool]
# timeout = "5m"               # time limit of a call
# idle_timeout = "10m"         # how long an idle worker is kept
# max_memory = "2GB"           # memory limit of a worker

# MCP clients start servers with an almost empty environment, so variables that uv needs go here.
[environment.env]
# HTTPS_PROXY = "http://proxy.example:3128"
# SSL_CERT_FILE = "/etc/ssl/certs/ca-certificates.crt"

# Where to find the secrets that tools declare.
[secrets]
# BRAVE_API_KEY = { file = "~/.config/hostler/brave.key" }
"#;

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
