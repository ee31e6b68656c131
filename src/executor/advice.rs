//! The last sentence of faults that a setting can fix: it names the setting in force and where it is set.

use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use pep440_rs::VersionSpecifiers;

use super::secrets::{how_to_fill, lack_of};
use crate::config::Config;
use crate::config::origin::Origin;
use crate::config::section::is_typo_of;
use crate::config::tables::SecretSource;
use crate::discovery::{ToolFile, did_you_mean, enough_for, is_standard, syntax_tree, unknown_to};
use crate::outcome::{Code, Fault, Missing};
use crate::pep723::{self, Metadata, OLDEST_PYTHON, brings, distribution_of, is_well_known, oldest_minor, package_of};
use crate::registry::{FileEntry, Registry, Tool};

/// Completes the fault of a call.
pub(super) fn complete(fault: &mut Fault, tool: &Tool, timeout: Duration, config: &Config) {
    let advice = match fault.code {
        Code::ToolTimeout if timeout != tool.settings.timeout.value => {
            "The caller set this limit: allow more time, or reduce the work".to_owned()
        }
        Code::ToolTimeout => {
            let place = where_to_set_for(&tool.entry, &tool.settings.timeout.origin);
            format!("Raise its `timeout` {place}, or reduce the work")
        }
        _ => {
            let told = match &fault.details.missing {
                Some(Missing::Secret(name)) => Some(why_missing(name, config)),
                Some(Missing::Module(name)) => missing_module(name, &tool.entry.file),
                Some(Missing::Declaration(name)) if !tool.entry.serving().has_environment() => Some(format!(
                    "Declare it with `\"secrets\": [\"{name}\"]` in the output of `--schema`, or write \
                     `secrets = [\"{name}\"]` under [tool.{}] in hostler.toml",
                    tool.entry.file.pack
                )),
                Some(Missing::Declaration(name)) => Some(undeclared(name, tool)),
                Some(Missing::Variable(name)) => Some(missing_variable(name, tool)),
                Some(Missing::Memory) => memory(tool),
                None if fault.details.exception.as_deref() == Some("SyntaxError") => newer_syntax(&tool.entry.file),
                None => None,
            };
            let Some(told) = told else { return };
            told
        }
    };
    if fault.code == Code::ToolTimeout && tool.entry.serving().is_bare() && !Registry::is_known_good(&tool.entry) {
        fault.message.push_str(NO_ANSWER);
    }
    fault.message.push_str(". ");
    fault.message.push_str(&advice);
}

/// The likely cause when a bare worker never answered.
const NO_ANSWER: &str = ". It has never answered: an answer is one line, `{\"result\": …, \"error\": null}`, flushed";

/// Where to set a limit of this file.
pub(super) fn where_to_set_for(entry: &FileEntry, origin: &Origin) -> String {
    match origin {
        // The file has no header.
        Origin::Default | Origin::Tool if !entry.serving().has_environment() => {
            format!("under [tool.{}] in hostler.toml", entry.file.pack)
        }
        origin => where_to_set(origin),
    }
}

/// Where to set a limit.
pub(super) fn where_to_set(origin: &Origin) -> String {
    match origin {
        Origin::Default | Origin::Tool => {
            "under [tool.hostler] in its header or under [tool] in hostler.toml".to_owned()
        }
        Origin::Header(place) => format!("in its header ({place})"),
        Origin::File(place) => format!("at {place}, which is in force"),
        Origin::Flag(_) | Origin::Environment(_) => format!("where it is set ({origin})"),
    }
}

/// How to declare a secret.
fn declaration(name: &str, header: Option<&Metadata>) -> String {
    match header {
        Some(header) => format!("in the header, {}", header.declaring_secret(name)),
        None => format!(
            "begin the file with a header, the four lines `# /// script`, `# [tool.hostler]`, `# secrets = [\"{name}\"]` and \
             `# ///`"
        ),
    }
}

/// An undeclared secret, perhaps a misspelled declared one.
fn undeclared(name: &str, tool: &Tool) -> String {
    let declaration = declaration(name, tool.entry.file.header.as_ref());
    let declared = &tool.entry.settings.secrets.value;
    match declared.iter().find(|declared| is_typo_of(name, declared)) {
        Some(near) => format!("Did you mean {near}, which is declared? If not: {declaration}"),
        None => capital(&declaration),
    }
}

pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A variable that is set in the user's shell but not passed to workers.
fn missing_variable(name: &str, tool: &Tool) -> String {
    if tool.entry.settings.secrets.value.iter().any(|secret| secret == name) {
        return format!(
            "{name} is a declared secret, which is not in the environment: `import hostler` and read it inside the function that \
             needs it, during a call, with `hostler.secret(\"{name}\")`"
        );
    }
    let declaration = declaration(name, tool.entry.file.header.as_ref());
    let pack = &tool.entry.file.pack;
    format!(
        "Workers get few variables of hostler's environment. If {name} is a secret, declare it: {declaration}; \
         then `import hostler` and read it inside the function that needs it, during a call, with `hostler.secret(\"{name}\")`. \
         Otherwise pass it with `pass_env = [\"{name}\"]` under \
         [tool.{pack}] in hostler.toml"
    )
}

fn memory(tool: &Tool) -> Option<String> {
    let limit = tool.entry.settings.max_memory.as_ref()?;
    Some(format!("Process less at once, or raise its `max_memory` {}", where_to_set(&limit.origin)))
}

/// Why a secret is not set, and what to do.
pub(super) fn why_missing(name: &str, config: &Config) -> String {
    let secrets = &config.secrets;
    let near = secrets.keys().find(|other| is_typo_of(other, name));
    missing_secret(name, secrets.get(name).map(|setting| &setting.value), near)
}

fn missing_secret(name: &str, source: Option<&SecretSource>, near: Option<&String>) -> String {
    match source {
        Some(SecretSource::File(path)) => {
            let why = lack_of(path);
            format!("[secrets] in hostler.toml reads it from {}, which {why}: {}", path.display(), how_to_fill(path))
        }
        Some(SecretSource::Environment(variable)) => format!(
            "[secrets] in hostler.toml reads it from the variable {variable} of hostler's environment, which is not set \
             or empty"
        ),
        Some(SecretSource::Command(words)) => {
            format!("[secrets] in hostler.toml reads it from the output of `{}`, which is empty", words.join(" "))
        }
        None => {
            let place = format!("{name} = {{ file = \"/path/to/it\" }}");
            let otherwise = format!(
                "ut it into hostler's environment as {name}, or into a file that only you can read (`chmod 600`), and write under \
                 [secrets] in hostler.toml: {place}"
            );
            match near {
                Some(near) => format!(
                    "[secrets] in hostler.toml has {near}: rename it if you meant {name}. Otherwise p{otherwise}"
                ),
                None => format!("P{otherwise}"),
            }
        }
    }
}

/// The advice after a `SyntaxError`; `None` if another Python version would not help.
pub(super) fn newer_syntax(file: &ToolFile) -> Option<String> {
    let source = pep723::decode(&std::fs::read(&file.path).ok()?).ok()?;
    // Deeply nested code is not parsed again.
    syntax_tree(&source)?;
    syntax_advice(&source, file.header.as_ref())
}

fn syntax_advice(source: &str, header: Option<&Metadata>) -> Option<String> {
    let wanted = header.and_then(|header| VersionSpecifiers::from_str(header.requires_python.as_deref()?).ok());
    let oldest = wanted.as_ref().and_then(oldest_minor).unwrap_or(OLDEST_PYTHON).1;
    let error = unknown_to(source, oldest)?;
    let enough = enough_for(source, oldest)?;
    let line = format!("# requires-python = \">=3.{enough}\"");
    let how = match header {
        None => format!("begin the file with a header, the three lines `# /// script`, `{line}` and `# ///`"),
        Some(header) => match header.line_of("requires-python") {
            Some(number) => format!("write line {number} as `{line}`"),
            None => format!("write the line `{line}` after line {}", header.first_line - 1),
        },
    };
    // The parser's message ends with its assumed version, which need not be the one that ran.
    let what = error.to_string();
    let what = what.split(" on Python ").next().unwrap_or_default();
    let (first, rest) = what.split_at(what.chars().next().map_or(0, char::len_utf8));
    let what = first.to_lowercase() + rest;
    Some(format!("The file needs Python 3.{enough} (before it, {what}): {how}, or avoid the newer syntax"))
}

/// The advice for a missing module; `None` if the file declares its package or has the module beside it.
pub(super) fn missing_module(module: &str, file: &ToolFile) -> Option<String> {
    let folder = file.path.parent().unwrap_or(Path::new("."));
    let top = module.split('.').next().unwrap_or(module);
    let is_neighbour = folder.join(format!("{top}.py")).is_file() || folder.join(top).is_dir();
    if is_neighbour {
        return None;
    }
    if let (true, Some((_, part))) = (is_standard(top), module.split_once('.')) {
        return Some(format!(
            "`{top}` is in the standard library, but has no `{part}`: correct the name, or, if a newer Python has it, set \
             `requires-python` in the header to that version"
        ));
    }
    let told = module_advice(top, file.header.as_ref())?;
    Some(match did_you_mean(top, file) {
        Some(question) => format!("{} If not: {}", capital(&question), told.replacen("If", "if", 1)),
        None if is_well_known(top) || is_standard(top) => told,
        None => format!("{told}. If it is yours, put the file {top}.py or the folder {top} into {}", folder.display()),
    })
}

fn module_advice(module: &str, header: Option<&Metadata>) -> Option<String> {
    if is_standard(module) {
        return Some(format!(
            "`{module}` is in the standard library, but not in the Python version of this file: set `requires-python` in the \
             header to a version that has it, or avoid it"
        ));
    }
    let declared = header.map(|header| header.dependencies.as_slice()).unwrap_or_default();
    if declared.iter().any(|spec| brings(package_of(spec), module)) {
        return None;
    }
    let known = distribution_of(module);
    let package = known.unwrap_or(module);
    let whence = match known {
        Some(_) => format!("`{module}` comes with the package \"{package}\""),
        None => format!("If `{module}` is a package from the index, declare it"),
    };
    let how = match header {
        Some(header) => format!("in the header, {}", header.declaring(package)),
        None => format!(
            "begin the file with a header, the three lines `# /// script`, `# dependencies = [\"{package}\"]` and `# ///`"
        ),
    };
    Some(format!("{whence}: {how}"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::*;
    use crate::config::origin::Place;

    #[test]
    fn the_setting_in_force_is_named() {
        let place = Place { file: Arc::new(PathBuf::from("/etc/hostler.toml")), line: 3 };
        assert_eq!(where_to_set(&Origin::File(place.clone())), "at /etc/hostler.toml:3, which is in force");
        assert_eq!(where_to_set(&Origin::Header(place)), "in its header (/etc/hostler.toml:3)");
        assert!(where_to_set(&Origin::Default).contains("[tool.hostler]"));
    }

    #[test]
    fn a_missing_secret_names_where_it_was_looked_up() {
        assert!(missing_secret("KEY", None, None).contains("under [secrets] in hostler.toml: KEY = {"));
        let file = SecretSource::File("/run/key".into());
        assert!(missing_secret("KEY", Some(&file), None).contains("/run/key, which does not exist"));
        let variable = SecretSource::Environment("OTHER".to_owned());
        assert!(missing_secret("KEY", Some(&variable), None).contains("the variable OTHER"));
        let near = missing_secret("API_KEY", None, Some(&"API_KEYS".to_owned()));
        assert!(near.contains("has API_KEYS: rename it if you meant API_KEY"), "{near}");
        let command = SecretSource::Command(vec!["pass".to_owned(), "show".to_owned()]);
        assert!(missing_secret("KEY", Some(&command), None).contains("`pass show`"));
    }

    #[test]
    fn the_required_python_version_is_named_with_the_line() {
        let header = |toml: &str| Metadata::from_toml(toml, 2, &Arc::new(PathBuf::from("a.py"))).unwrap();
        let except = "try:\n    pass\nexcept ValueError, KeyError:\n    pass\n";
        let advice = |toml: &str| syntax_advice(except, Some(&header(toml)));
        assert!(
            advice("requires-python = \">=3.9\"\n")
                .unwrap()
                .contains("write line 2 as `# requires-python = \">=3.14\"`")
        );
        assert!(advice("dependencies = []\n").unwrap().contains("`# requires-python = \">=3.14\"` after line 1"));
        assert_eq!(advice("requires-python = \">=3.14\"\n"), None);
        let bare = syntax_advice("type X = int\n", None).unwrap();
        assert!(bare.starts_with("The file needs Python 3.12 (") && bare.contains("three lines"), "{bare}");
        assert_eq!(syntax_advice("x = 1\n", None), None);
    }

    #[test]
    fn a_missing_part_of_the_standard_library_is_no_package() {
        let file = crate::discovery::read_bytes(&PathBuf::from("/nowhere/a.py"), b"import os.pth\n");
        let told = missing_module("os.pth", &file).unwrap();
        assert!(told.starts_with("`os` is in the standard library, but has no `pth`: correct the name"), "{told}");
        let told = missing_module("lib", &file).unwrap();
        assert!(told.ends_with("If it is yours, put the file lib.py or the folder lib into /nowhere"), "{told}");
        for known in ["yaml", "tomllib"] {
            let told = missing_module(known, &file).unwrap();
            assert!(!told.contains("If it is yours"), "{told}");
        }
    }

    #[test]
    fn the_package_and_the_header_line_are_named() {
        let toml = "dependencies = [\"ruamel.yaml\"]\n";
        let header = Metadata::from_toml(toml, 2, &Arc::new(PathBuf::from("a.py"))).unwrap();
        assert_eq!(
            module_advice("yaml", Some(&header)).unwrap(),
            "`yaml` comes with the package \"pyyaml\": in the header, add \"pyyaml\" to `dependencies` on line 2"
        );
        assert_eq!(
            module_advice("httpx", None).unwrap(),
            "If `httpx` is a package from the index, declare it: begin the file with a header, the three lines \
             `# /// script`, `# dependencies = [\"httpx\"]` and `# ///`"
        );
        assert!(module_advice("tomllib", None).unwrap().contains("`requires-python`"));
        assert_eq!(module_advice("ruamel", Some(&header)), None, "a missing part of a declared package");
    }
}
