//! The last sentence of faults that a setting can fix: it names the setting in force and where it is set.

use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use pep440_rs::VersionSpecifiers;

use crate::config::Config;
use crate::config::origin::Origin;
use crate::discovery::{
    Kind, ToolFile, did_you_mean, enough_for, import_from_above, is_standard, syntax_tree, unknown_to,
};
use crate::outcome::{Code, Fault, Missing};
use crate::pep723::{
    self, Metadata, OLDEST_PYTHON, brings, is_well_known, oldest_minor, package_of, package_of_part, requirement_for,
};
use crate::registry::{FileEntry, Registry, Tool};
use crate::secrets::why_missing;

use super::variables::said_to_miss;

/// Completes the fault of a call.
pub(super) fn complete(fault: &mut Fault, tool: &Tool, timeout: Duration, config: &Config) {
    let entry = &tool.entry;
    let advice = match (fault.code, &fault.details.missing) {
        (Code::ToolTimeout, _) => Some(more_time(tool, timeout)),
        (_, Some(Missing::Secret(name))) => Some(why_missing(name, config)),
        (_, Some(Missing::Module(name))) if entry.serving().has_environment() => missing_module(name, &entry.file),
        (_, Some(Missing::Declaration(name))) => Some(capital(&declaration(name, entry))),
        (_, Some(Missing::Variable(name))) => Some(missing_variable(name, entry)),
        (_, Some(Missing::Arguments)) => Some(missing_arguments(entry)),
        (_, Some(Missing::Memory)) => entry
            .settings
            .max_memory
            .as_ref()
            .map(|limit| format!("Process less at once, or raise its `max_memory` {}", where_to_set(&limit.origin))),
        (Code::StartupFailed | Code::ToolCrashed, None) if may_not_mount(fault, entry) => Some(format!(
            "A launcher that mounts something needs `new_privileges = true` under [tool.{}] in hostler.toml",
            entry.file.pack
        )),
        (_, Some(Missing::ProcessorTime)) => {
            entry.settings.max_cpu.as_ref().map(|limit| {
                format!("Compute less in one call, or raise its `max_cpu` {}", where_to_set(&limit.origin))
            })
        }
        (Code::StartupFailed | Code::ToolCrashed, None) if may_be_the_launchers(fault, entry) => {
            Some(format!("Its launcher may be the reason ({})", entry.settings.launcher.origin))
        }
        (Code::ToolCrashed, None) if let Some(option) = asked_option(fault, entry) => Some(format!(
            "If its program takes its arguments as the value of `{option}`, write `input_option = \"{option}\"` under \
                 [tool.{}] in hostler.toml",
            entry.file.pack
        )),
        (_, None) if let Some(name) = said_to_miss(fault, entry) => Some(missing_variable(&name, entry)),
        (_, None) if fault.details.exception.as_deref() == Some("SyntaxError") => newer_syntax(&entry.file),
        _ => None,
    };
    if let Some(advice) = advice {
        fault.message.push_str(". ");
        fault.message.push_str(&advice);
    }
}

/// Whether a launcher may have failed, and not the tool: in a start, or with one of the statuses that are theirs.
fn may_be_the_launchers(fault: &Fault, entry: &FileEntry) -> bool {
    let is_status = matches!(fault.details.exit_code, Some(125..=127));
    entry.settings.launcher.value.command().is_some() && (fault.code == Code::StartupFailed || is_status)
}

/// Whether a launcher ended with the words of a program that may not mount: processes of hostler may not, in general.
fn may_not_mount(fault: &Fault, entry: &FileEntry) -> bool {
    let words = fault.details.stderr.as_deref().unwrap_or_default();
    let settings = &entry.settings;
    let mounts = |line: &str| ["mount", "slave", "namespace", "unshare"].iter().any(|word| line.contains(word));
    let is_refused = |line: &str| line.contains("Operation not permitted") || line.contains("ermission denied");
    words.lines().any(|line| mounts(line) && is_refused(line))
        && settings.launcher.value.command().is_some()
        && !settings.new_privileges.value
}

/// Options that programs have for arguments as JSON.
const INPUT_OPTIONS: [&str; 7] = ["--execute", "--input", "--json", "--args", "--arguments", "--params", "--payload"];

/// The option of a program that ended with words about how it is used, where it is given its arguments on standard input.
fn asked_option(fault: &Fault, entry: &FileEntry) -> Option<&'static str> {
    let is_given_input = entry.file.kind == Kind::Executable && entry.settings.input_option.is_none();
    let words = fault.details.stderr.as_deref().filter(|_| is_given_input)?;
    let shows_usage = |line: &str| line.trim_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("usage:"));
    if fault.details.exit_code != Some(2) && !words.lines().any(shows_usage) {
        return None;
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let mut named = words.split(|c: char| !is_word(c));
    named.find_map(|word| INPUT_OPTIONS.into_iter().find(|option| *option == word))
}

fn more_time(tool: &Tool, timeout: Duration) -> String {
    let settings = &tool.settings.timeout;
    let raise = if timeout == settings.value {
        format!("Raise its `timeout` {}, or reduce the work", where_to_set_for(&tool.entry, &settings.origin))
    } else {
        "The caller set this limit: allow more time, or reduce the work".to_owned()
    };
    let is_silent = tool.entry.serving().is_bare() && !Registry::is_known_good(&tool.entry);
    if is_silent { format!("{NO_ANSWER}. {raise}") } else { raise }
}

/// The likely cause when a bare worker never answered.
const NO_ANSWER: &str = "It has never answered: an answer is one line, `{\"result\": …, \"error\": null}`, flushed";

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
        Origin::Folder(_) | Origin::Flag(_) | Origin::Environment(_) | Origin::Command(_) => {
            format!("where it is set ({origin})")
        }
    }
}

/// How to write a line into a file's header, or how to begin one with it.
fn in_header(header: Option<&Metadata>, known: impl Fn(&Metadata) -> String, lines: &str, count: &str) -> String {
    match header {
        Some(header) if header.dependencies_from.is_some() => known(header),
        Some(header) => format!("in the header, {}", known(header)),
        None => format!("begin the file with a header, the {count} lines `# /// script`, {lines} and `# ///`"),
    }
}

/// How to declare a secret.
fn declaration(name: &str, entry: &FileEntry) -> String {
    if !entry.serving().has_environment() {
        return format!(
            "declare it with `\"secrets\": [\"{name}\"]` in the output of `--schema`, or write `secrets = [\"{name}\"]` under \
             [tool.{}] in hostler.toml",
            entry.file.pack
        );
    }
    if entry.file.header.as_ref().is_some_and(|header| header.dependencies_from.is_some()) {
        return format!("write `secrets = [\"{name}\"]` under [tool.{}] in hostler.toml", entry.file.pack);
    }
    let lines = format!("`# [tool.hostler]`, `# secrets = [\"{name}\"]`");
    in_header(entry.file.header.as_ref(), |header| header.declaring_secret(name), &lines, "four")
}

pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Arguments of the program's command line.
fn missing_arguments(entry: &FileEntry) -> String {
    match &entry.settings.needs.args {
        Some(set) => format!("Correct its command line, `args` ({})", set.origin),
        None => format!(
            "Set its command line with `args = [\"--name\", \"value\"]` under [tool.{}] in hostler.toml",
            entry.file.pack
        ),
    }
}

/// A variable that is set in the user's shell but not passed to workers.
fn missing_variable(name: &str, entry: &FileEntry) -> String {
    let read =
        format!("`import hostler` and read it during a call, inside the function, with `hostler.secret(\"{name}\")`");
    if entry.settings.secrets.value.iter().any(|secret| secret == name) {
        return format!("{name} is a declared secret, which is not in the environment: {read}");
    }
    format!(
        "Workers get few variables of hostler's environment. If {name} is a secret, declare it: {}; then {read}. Otherwise pass \
         it with `pass_env = [\"{name}\"]` under [tool.{}] in hostler.toml",
        declaration(name, entry),
        entry.file.pack
    )
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
    unknown_to(source, oldest)?;
    let enough = enough_for(source, oldest)?;
    let line = format!("`# requires-python = \">=3.{enough}\"`");
    let known = |header: &Metadata| match header.line_of("requires-python") {
        Some(number) => format!("write line {number} as {line}"),
        None => format!("write the line {line} after line {}", header.first_line - 1),
    };
    let how = in_header(header, known, &line, "three");
    Some(format!("The file needs Python 3.{enough}: {how}, or avoid the newer syntax"))
}

/// The module that only Open WebUI has.
const OPEN_WEBUI: &str = "open_webui";

/// The advice for a missing module; `None` if the file declares its package or has the module beside it.
pub(super) fn missing_module(module: &str, file: &ToolFile) -> Option<String> {
    let folder = file.path.parent().unwrap_or(Path::new("."));
    let top = module.split('.').next().unwrap_or(module);
    if folder.join(format!("{top}.py")).is_file() || folder.join(top).is_dir() {
        return None;
    }
    if is_standard(top) {
        return Some(format!(
            "`{top}` is in the standard library, but this Python version has no `{module}`: correct the name, or set \
             `requires-python` in the header to a version that has it"
        ));
    }
    if top == OPEN_WEBUI {
        return Some(format!("`{top}` is Open WebUI itself: replace what the file uses of it"));
    }
    let declared = || file.header.iter().flat_map(|header| &header.dependencies);
    let part = package_of_part(module, &file.imports).filter(|_| module != top);
    let part = part.filter(|package| declared().all(|spec| package_of(spec) != *package));
    let known = part.or_else(|| requirement_for(top, &file.imports));
    if part.is_none() && declared().any(|spec| brings(package_of(spec), top)) {
        let older = known.filter(|known| module != top && known.contains('<'))?;
        return Some(format!("Its newest release has no `{module}`: declare \"{older}\""));
    }
    if known.is_none()
        && let Some(fix) = import_from_above(file, top)
    {
        return Some(capital(&fix));
    }
    let package = known.unwrap_or(top);
    let lines = format!("`# dependencies = [\"{package}\"]`");
    let how = match &file.header {
        None => format!(
            "{}; or write `dependencies = [\"{package}\"]` under [tool.{}] in hostler.toml",
            in_header(None, |_| String::new(), &lines, "three"),
            file.pack
        ),
        header => in_header(header.as_ref(), |header| header.declaring(package), &lines, "three"),
    };
    // A misspelled name may be that of a malicious package.
    let question = did_you_mean(top, file).map(|question| capital(&question));
    Some(match (known, question) {
        (_, Some(question)) if is_well_known(top) => question,
        (Some(_), _) => {
            format!("`{}` comes with the package \"{}\": {how}", part.map_or(top, |_| module), package_of(package))
        }
        (None, question) => format!(
            "{}If `{top}` is a package from the index, declare it: {how}. If it is yours, put {top}.py into {}",
            question.map(|question| question + " ").unwrap_or_default(),
            folder.display()
        ),
    })
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
        assert!(bare.starts_with("The file needs Python 3.12: ") && bare.contains("three lines"), "{bare}");
        assert_eq!(syntax_advice("x = 1\n", None), None);
    }

    #[test]
    fn the_package_or_the_way_to_a_missing_module_is_named() {
        let read = |text: &str| crate::discovery::read_bytes(&PathBuf::from("/nowhere/a.py"), text.as_bytes());
        let bare = read("import yaml\n");
        for (module, words) in [
            ("os.pth", "`os` is in the standard library, but this Python version has no `os.pth`: correct the name"),
            ("tomllib", "`requires-python`"),
            ("lib", "If it is yours, put lib.py into /nowhere"),
            ("httpx", "begin the file with a header, the three lines `# /// script`, `# dependencies = [\"httpx\"]`"),
            ("jsno", "Did you mean `json`?"),
        ] {
            let advice = missing_module(module, &bare).unwrap();
            assert!(advice.contains(words), "{advice}");
        }
        let file = read("# /// script\n# dependencies = [\"ruamel.yaml\"]\n# ///\n");
        let shared = read(
            "# /// script\n# dependencies = [\"google-adk\"]\n# ///\nimport google.adk\nfrom google.cloud import bigquery\n",
        );
        let advice = missing_module("google.cloud", &shared).unwrap();
        assert!(advice.contains("\"google-cloud-bigquery\" to `dependencies` on line 2"), "{advice}");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("helpers.py"), "").unwrap();
        let inside = crate::discovery::read_bytes(&folder.path().join("tools/a.py"), b"import helpers\n");
        let advice = missing_module("helpers.text", &inside).unwrap();
        let path = format!("`python_path = [\"{}\"]` under [tool.a]", folder.path().display());
        assert!(advice.contains(&path), "{advice}");
        assert_eq!(
            missing_module("yaml", &file).unwrap(),
            "`yaml` comes with the package \"pyyaml\": in the header, add \"pyyaml\" to `dependencies` on line 2"
        );
        assert_eq!(missing_module("ruamel", &file), None, "a missing part of a declared package");
    }
}
