//! What starts a tool's processes: uv, hostler itself, or a command of the operator's, such as one that runs a container.

use std::sync::Arc;

use toml::de::DeValue;

use super::load::Config;
use super::origin::Diagnosis;
use super::section::nearest;
use super::value::{FromToml, mismatch};

/// What starts a tool's processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Launcher {
    /// Interpreters through `uv run`, whose process stays.
    #[default]
    Uv,
    /// The environment's interpreter itself: 10 ms faster, and one process fewer.
    Direct,
    /// A command, with the program and its arguments as its last words.
    Command(Arc<LauncherCommand>),
}

/// A command that starts programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LauncherCommand {
    /// The program: a name on hostler's `PATH`, or a path.
    pub program: String,
    /// Its arguments before those that it starts.
    pub arguments: Vec<Argument>,
}

/// An argument of a launcher, or several that are repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// One, with placeholders for facts of the tool.
    One(String),
    /// These for each file or folder that the program needs, named by `{path}`.
    EachPath(Vec<String>),
    /// These for each variable that the tool's settings give it, named by `{variable}`.
    EachVariable(Vec<String>),
}

/// Stands for a file or folder, or for a variable, in a list that is repeated for each.
pub const PATH: &str = "{path}";
/// The same for a variable.
pub const VARIABLE: &str = "{variable}";
/// The placeholders of single facts: the pack's name, its file, that one's folder, the working directory.
pub const FACTS: [&str; 4] = ["{name}", "{file}", "{folder}", "{directory}"];

impl Launcher {
    /// It as people write it.
    pub fn shown(&self) -> String {
        match self {
            Self::Uv => "uv".to_owned(),
            Self::Direct => "direct".to_owned(),
            Self::Command(command) => command.shown(),
        }
    }

    /// The command, if it is one.
    pub fn command(&self) -> Option<&Arc<LauncherCommand>> {
        match self {
            Self::Command(command) => Some(command),
            Self::Uv | Self::Direct => None,
        }
    }
}

impl FromToml for Launcher {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Diagnosis> {
        const FIX: &str = "write one of them, or the words of a command, like [\"docker\", \"run\", …]";
        match value {
            DeValue::Array(_) => LauncherCommand::read(value).map(|command| Self::Command(Arc::new(command))),
            DeValue::String(word) if word == "uv" => Ok(Self::Uv),
            DeValue::String(word) if word == "direct" => Ok(Self::Direct),
            other => Err(mismatch("\"uv\", \"direct\" or a list of words", other, FIX)),
        }
    }
}

impl LauncherCommand {
    fn read(value: &DeValue<'_>) -> Result<Self, Diagnosis> {
        let items: Vec<&DeValue<'_>> = value.as_array().into_iter().flatten().map(toml::Spanned::get_ref).collect();
        let Some((program, arguments)) = items.split_first() else {
            return Err(Diagnosis::new("the list is empty", "begin it with a program, like \"docker\""));
        };
        let Some(program) = program.as_str().filter(|text| !text.is_empty() && !text.contains(['{', '\0'])) else {
            let fix = "begin the list with the name of a program, or with its path";
            return Err(mismatch("a program as the first word", program, fix));
        };
        let arguments = arguments.iter().map(|item| Argument::read(item)).collect::<Result<_, _>>()?;
        Ok(Self { program: program.to_owned(), arguments })
    }

    fn shown(&self) -> String {
        let quoted = |text: &String| toml::Value::String(text.clone()).to_string();
        let list = |words: &[String]| words.iter().map(quoted).collect::<Vec<_>>().join(", ");
        let arguments = self.arguments.iter().map(|argument| match argument {
            Argument::One(text) => quoted(text),
            Argument::EachPath(words) | Argument::EachVariable(words) => format!("[{}]", list(words)),
        });
        let words: Vec<String> = std::iter::once(quoted(&self.program)).chain(arguments).collect();
        format!("[{}]", words.join(", "))
    }
}

impl Argument {
    fn read(value: &DeValue<'_>) -> Result<Self, Diagnosis> {
        if let Some(text) = value.as_str() {
            known(text)?;
            return match [PATH, VARIABLE].into_iter().find(|each| text.contains(each)) {
                None => Ok(Self::One(text.to_owned())),
                Some(each) => Err(Diagnosis::new(
                    format!("`{each}` stands outside of an inner list"),
                    format!("write [\"{text}\"]: an inner list is repeated for each"),
                )),
            };
        }
        let words = Vec::<String>::from_toml(value)?;
        words.iter().try_for_each(|word| known(word))?;
        let has = |each: &str| words.iter().any(|word| word.contains(each));
        match (has(PATH), has(VARIABLE)) {
            (true, false) => Ok(Self::EachPath(words)),
            (false, true) => Ok(Self::EachVariable(words)),
            _ => Err(Diagnosis::new(
                "an inner list names neither `{path}` nor `{variable}`, or both",
                "name one of the two, for each of which it is repeated, like [\"--volume={path}:{path}:ro\"]",
            )),
        }
    }
}

/// Refuses what looks like a placeholder and is none.
fn known(text: &str) -> Result<(), Diagnosis> {
    if text.contains('\0') {
        return Err(Diagnosis::new("a word of the command has a NUL character", "remove it"));
    }
    let mut rest = text;
    while let Some((_, behind)) = rest.split_once('{') {
        let Some((name, after)) = behind.split_once('}') else { return Ok(()) };
        let is_name = !name.is_empty() && name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
        let whole = format!("{{{name}}}");
        let mut all = FACTS.into_iter().chain([PATH, VARIABLE]);
        if is_name && !all.clone().any(|placeholder| placeholder == whole) {
            let near = nearest(&whole, all.clone()).map(|near| format!("did you mean `{near}`?"));
            let list = all.by_ref().collect::<Vec<_>>().join(", ");
            return Err(Diagnosis::new(
                format!("unknown placeholder `{whole}`"),
                near.unwrap_or_else(|| format!("the placeholders are {list}")),
            ));
        }
        rest = if is_name { after } else { behind };
    }
    Ok(())
}

impl Config {
    /// The launchers that are set, for every tool and for single ones.
    pub fn launchers(&self) -> Vec<(Option<&str>, &Launcher)> {
        let every = self.every.launcher.iter().map(|set| (None, &set.value));
        let own =
            self.packs.iter().filter_map(|(pack, own)| Some((Some(pack.as_str()), &own.launcher.as_ref()?.value)));
        every.chain(own).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Launcher, Diagnosis> {
        let line = format!("x = {text}");
        let table = toml::de::DeTable::parse(&line).unwrap();
        Launcher::from_toml(table.get_ref().get("x").unwrap().get_ref())
    }

    #[test]
    fn words_and_commands_are_read() {
        assert_eq!(read("\"uv\""), Ok(Launcher::Uv));
        let text = "[\"run\", \"--name={name}\", [\"-v\", \"{path}:{path}\"], [\"-e\", \"{variable}\"], \"{{.X}}\"]";
        let launcher = read(text).unwrap();
        let command = launcher.command().unwrap();
        assert_eq!((command.program.as_str(), command.arguments.len()), ("run", 4));
        assert!(matches!(&command.arguments[1], Argument::EachPath(words) if words.len() == 2));
        assert_eq!(launcher.shown(), text);
        assert_eq!(read(&launcher.shown()), Ok(launcher), "it reads back");
    }

    #[test]
    fn what_is_wrong_is_named_with_what_to_write() {
        for (text, what, fix) in [
            ("[]", "empty", "docker"),
            ("\"docker\"", "\"docker\"", "[\"docker\""),
            ("[\"{file}\"]", "first word", "program"),
            ("[\"a\", \"{paths}\"]", "`{paths}`", "`{path}`"),
            ("[\"a\", \"{path}\"]", "outside", "[\"{path}\"]"),
            ("[\"a\", [\"-v\"]]", "inner list", "{path}"),
            ("[\"a\", [\"{path}\", \"{variable}\"]]", "inner list", "{path}"),
            ("[\"a\", 1]", "a list", "["),
        ] {
            let wrong = read(text).unwrap_err();
            assert!(wrong.what.contains(what) && wrong.fix.contains(fix), "{text}: {wrong:?}");
        }
    }
}
