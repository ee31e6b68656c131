//! `hostler new NAME` and `hostler init`: files to start from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::options::New;
use super::{exit, style};
use crate::config::{Config, ConfigError, Wanted};
use crate::pep723::{is_identifier, nearest_identifier};
use crate::process::shell_word;

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

pub(super) fn tool(asked: &New, wanted: &Wanted, directory: &Path) -> ExitCode {
    if !is_identifier(&asked.name) {
        let near = nearest_identifier(&asked.name);
        let message = format!("`{}` cannot be a pack's name; letters, digits and _ only, such as `{near}`", asked.name);
        return exit::complain(exit::USAGE, &message);
    }
    if asked.name.starts_with('_') {
        let near = nearest_identifier(&asked.name);
        let message =
            format!("{}.py would never be served: `_` begins the names of helpers; such as `{near}`", asked.name);
        return exit::complain(exit::USAGE, &message);
    }
    let folder = match tools_folder(wanted, directory) {
        Ok(folder) => folder,
        Err(error) => return exit::complain(exit::USAGE, &error.to_string()),
    };
    let path = folder.join(format!("{}.py", asked.name));
    if let Err(message) = write(&path, TOOL) {
        return exit::complain(exit::USAGE, &message);
    }
    let shown = path.strip_prefix(directory).unwrap_or(&path);
    style::answer(&shown.display().to_string());
    let tools = if wanted.tools.is_empty() && folder == directory.join("tools") {
        String::new()
    } else {
        format!(" --tools {}", shell_word(&folder.strip_prefix(directory).unwrap_or(&folder).to_string_lossy()))
    };
    style::note(&format!(
        "Edit it, then try it:\n  hostler call{tools} {}.greet name=you\n  hostler dev {}",
        asked.name,
        shell_word(&shown.to_string_lossy())
    ));
    ExitCode::SUCCESS
}

/// The strongest folder that tools are looked for in, else `tools` right here.
fn tools_folder(wanted: &Wanted, directory: &Path) -> Result<PathBuf, ConfigError> {
    let config = Config::load(wanted, directory)?;
    Ok(config.tools.value.last().cloned().unwrap_or_else(|| directory.join("tools")))
}

pub(super) fn config(directory: &Path) -> ExitCode {
    let path = directory.join("hostler.toml");
    if let Err(message) = write(&path, CONFIG) {
        return exit::complain(exit::USAGE, &message);
    }
    style::answer("hostler.toml");
    style::note(
        "Next: `hostler new NAME` writes a first tool into ./tools, `hostler doctor` looks whether all is well.",
    );
    ExitCode::SUCCESS
}

/// Writes a new file and never over one that is there.
fn write(path: &Path, text: &str) -> Result<(), String> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let opened = OpenOptions::new().write(true).create_new(true).open(path);
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
        let config = Config::load(&Wanted::default(), folder.path()).unwrap();
        let surroundings = Surroundings { config, interpreters: Interpreters::default(), installed: |_, _| None };
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
