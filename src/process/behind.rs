//! Programs behind a launcher of the operator's: its command, with what the program needs filled in, and the program as its last words.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::launch::Launch;
use super::walls::Own;
use crate::config::Environment;
use crate::config::launcher::{Argument, FACTS, LauncherCommand, PATH, VARIABLE};
use crate::config::origin::Diagnosis;
use crate::outcome::{Code, Fault};
use crate::threads::blocking_or_here;

/// A launcher's command for the programs of one tool file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLauncher {
    /// The command.
    pub command: Arc<LauncherCommand>,
    /// Its program: a name that is looked for on the path, or an absolute path.
    pub program: PathBuf,
    /// Where it is set.
    pub place: String,
    /// The pack.
    pub pack: String,
    /// The tool file.
    pub file: PathBuf,
    /// What a program needs besides itself.
    pub own: Vec<Own>,
    /// The names of variables that are for the program, as far as it gets them.
    pub variables: Vec<String>,
    /// Where programs are looked for, and whose home it is.
    pub environment: Environment,
}

/// A launcher that is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoLauncher(pub Diagnosis);

impl NoLauncher {
    /// The fault of the tool that it should have started.
    pub fn unlaunched(&self, tool: &str) -> Fault {
        Fault::new(Code::CommandNotFound, format!("{tool} was not started: {self}"))
    }
}

/// Variables that hostler itself sets for programs, besides those that begin with `HOSTLER_`.
const OWN_VARIABLES: [&str; 3] = ["PYTHONIOENCODING", "TRACEPARENT", "TRACESTATE"];

/// Variables by which the programs of containers find what runs them. They are for the launcher, not for what it starts.
const OF_LAUNCHERS: [&str; 8] = [
    "CONTAINER_HOST",
    "DOCKER_CERT_PATH",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
    "DOCKER_TLS_VERIFY",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
];

/// Folders of the system, which a container has itself.
const SYSTEM: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc"];

impl CommandLauncher {
    /// The variables that it needs of hostler's environment.
    pub fn needed(environment: &Environment) -> Environment {
        environment.only(&[&["HOME", "PATH"][..], &OF_LAUNCHERS].concat())
    }

    /// The launcher's command that starts this program. `more` is what it needs besides `own`. It is looked up on a thread: a folder may be
    /// on a mount that does not answer.
    pub async fn wrap(self: &Arc<Self>, launch: Launch, more: Vec<Own>) -> Result<Launch, NoLauncher> {
        let own = Arc::clone(self);
        blocking_or_here(move || own.around(launch, &more)).await
    }

    fn around(&self, launch: Launch, more: &[Own]) -> Result<Launch, NoLauncher> {
        let program = self.found()?;
        let paths = self.paths(more);
        let variables: Vec<OsString> = launch.env.keys().filter(|name| self.is_for_program(name)).cloned().collect();
        let mut launch = launch;
        for name in OF_LAUNCHERS {
            if let Some(value) = self.environment.text(name) {
                launch.env.entry(name.into()).or_insert_with(|| value.into());
            }
        }
        let facts = self.facts(&launch);
        let facts: Vec<Fill<'_>> = FACTS.into_iter().zip(facts.iter().map(OsString::as_os_str)).collect();
        let mut args: Vec<OsString> = Vec::new();
        for argument in &self.command.arguments {
            let (words, each) = match argument {
                Argument::One(text) => {
                    args.push(filled(text, &facts));
                    continue;
                }
                Argument::EachPath(words) => (words, paths.iter().map(|path| (PATH, path.as_os_str())).collect()),
                Argument::EachVariable(words) => {
                    (words, variables.iter().map(|name| (VARIABLE, name.as_os_str())).collect::<Vec<_>>())
                }
            };
            for one in each {
                let fills: Vec<Fill<'_>> = facts.iter().copied().chain([one]).collect();
                args.extend(words.iter().map(|word| filled(word, &fills)));
            }
        }
        args.push(launch.program.clone().into());
        args.extend(launch.args.iter().cloned());
        Ok(Launch { program, args, ..launch })
    }

    /// Why it cannot start anything, if its program is not there.
    pub fn missing(&self) -> Option<Diagnosis> {
        self.found().err().map(|missing| missing.0)
    }

    fn found(&self) -> Result<PathBuf, NoLauncher> {
        self.environment.find_program(&self.program).ok_or_else(|| {
            let shown = self.program.display();
            let (what, fix) = if self.program.is_absolute() {
                ("does not exist or is not executable", "correct the path")
            } else {
                ("is not on hostler's PATH", "install it, or write its path")
            };
            NoLauncher(Diagnosis::new(format!("its launcher `{shown}` ({}) {what}", self.place), fix))
        })
    }

    fn is_for_program(&self, name: &OsStr) -> bool {
        name.to_str().is_some_and(|name| {
            name.starts_with("HOSTLER_")
                || OWN_VARIABLES.contains(&name)
                || self.variables.iter().any(|one| one == name)
        })
    }

    /// The values of [`FACTS`], in their order.
    fn facts(&self, launch: &Launch) -> [OsString; 4] {
        let own = || launch.directory.clone().or_else(|| self.environment.directory().map(Path::to_owned));
        let directory = own().or_else(|| std::env::current_dir().ok()).unwrap_or_else(|| "/".into());
        let folder = self.file.parent().unwrap_or(Path::new("/"));
        [self.pack.clone().into(), self.file.clone().into(), folder.into(), directory.into_os_string()]
    }

    /// The files and folders that exist, by the names under which they are used, without those beneath another.
    fn paths(&self, more: &[Own]) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = self.own.iter().chain(more).flat_map(|own| self.paths_of(own)).collect();
        all.retain(|path| path.exists());
        // A folder comes before what is beneath it.
        all.sort();
        let mut kept: Vec<PathBuf> = Vec::new();
        for path in all {
            if !kept.iter().any(|folder| path.starts_with(folder)) {
                kept.push(path);
            }
        }
        kept
    }

    fn paths_of(&self, own: &Own) -> Vec<PathBuf> {
        match own {
            Own::Path(path) => vec![path.clone()],
            Own::FolderOf(file) | Own::Program(file) => {
                let real = file.canonicalize().ok().filter(|real| !is_of_system(real));
                std::iter::once(file.clone()).chain(real).map(|file| self.folder_of(file)).collect()
            }
            Own::Installation(program) => self.installation_of(program),
        }
    }

    /// The folder of a file; the file alone, if that is the home folder or one above it.
    fn folder_of(&self, file: PathBuf) -> PathBuf {
        let is_wide = |folder: &Path| self.homes().any(|home| home.starts_with(folder));
        file.parent().filter(|folder| !is_wide(folder)).map(Path::to_owned).unwrap_or(file)
    }

    /// The home folder, by its name and by where that leads.
    fn homes(&self) -> impl Iterator<Item = PathBuf> {
        let home = self.environment.home();
        let real = home.as_ref().and_then(|home| home.canonicalize().ok());
        home.into_iter().chain(real)
    }

    /// The folders that a program is installed in, under each name that its links use, but not those of the system.
    fn installation_of(&self, program: &Path) -> Vec<PathBuf> {
        let mut names = vec![program.to_owned()];
        while names.len() < 8
            && let Some(last) = names.last()
            && let Ok(target) = std::fs::read_link(last)
        {
            let folder = last.parent().unwrap_or(Path::new("/"));
            names.push(without_dots(&folder.join(target)));
        }
        names.extend(program.canonicalize());
        names.into_iter().filter(|name| !is_of_system(name)).map(|name| self.prefix_of(name)).collect()
    }

    /// `/opt/x` of `/opt/x/bin/y`, or the file alone where that is a folder that others use, too.
    fn prefix_of(&self, program: PathBuf) -> PathBuf {
        let folder = program.parent().filter(|folder| folder.ends_with("bin")).and_then(Path::parent);
        let is_shared = |prefix: &Path| {
            let is_of = |home: PathBuf| home.starts_with(prefix) || home.join(".local") == prefix;
            self.homes().any(is_of) || prefix.parent().is_none()
        };
        folder.filter(|prefix| !is_shared(prefix)).map(Path::to_owned).unwrap_or(program)
    }
}

fn is_of_system(path: &Path) -> bool {
    SYSTEM.iter().any(|folder| path.starts_with(folder))
}

/// The path without `.` and `..`, by its text.
fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            part => clean.push(part),
        }
    }
    clean
}

/// A placeholder with its value.
type Fill<'v> = (&'static str, &'v OsStr);

/// The text with the values of its placeholders. What was filled in is not looked at again: it may look like a placeholder.
fn filled(text: &str, fills: &[Fill<'_>]) -> OsString {
    let (mut whole, mut rest) = (OsString::new(), text);
    while let Some(at) = rest.find('{') {
        let (before, behind) = rest.split_at(at);
        whole.push(before);
        let found = fills.iter().find(|(placeholder, _)| behind.starts_with(placeholder));
        let (value, length) = found.map_or((OsStr::new("{"), 1), |(placeholder, value)| (*value, placeholder.len()));
        whole.push(value);
        rest = &behind[length..];
    }
    whole.push(rest);
    whole
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn launcher(home: &Path, arguments: Vec<Argument>) -> CommandLauncher {
        let environment = [("HOME", home.to_str().unwrap()), ("PATH", "/bin:/usr/bin")];
        CommandLauncher {
            command: Arc::new(LauncherCommand { program: "sh".to_owned(), arguments }),
            program: "sh".into(),
            place: "/hostler.toml:1".to_owned(),
            pack: "{file}".to_owned(),
            file: home.join("tools/a.py"),
            own: vec![Own::FolderOf(home.join("tools/a.py"))],
            variables: vec!["KEY".to_owned(), "UNSET".to_owned()],
            environment: Environment::from_iter(environment),
        }
    }

    fn words(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn what_a_program_needs_is_named() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap();
        std::fs::create_dir_all(home.join("tools")).unwrap();
        std::fs::write(home.join("tools/a.py"), "").unwrap();
        let arguments = vec![
            Argument::One("--name={name}{x}".to_owned()),
            Argument::EachPath(words(&["--bind", "{path}:{path}"])),
            Argument::EachVariable(words(&["-e{variable}"])),
        ];
        let launch = Launch::new("/x/python").arg("{path}").env("KEY", "v").env("HOME", "/h").env("HOSTLER_TOOL", "t");
        let around = launcher(&home, arguments).around(launch, &[]).unwrap();
        let tools = home.join("tools").display().to_string();
        let expected = [
            "--name={file}{x}",
            "--bind",
            &format!("{tools}:{tools}"),
            "-eHOSTLER_TOOL",
            "-eKEY",
            "/x/python",
            "{path}",
        ];
        assert_eq!(around.args, expected.map(OsString::from));
        assert!(around.program.ends_with("sh") && around.program.is_absolute());
    }

    #[test]
    fn an_interpreter_is_named_by_each_of_its_links() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap();
        for folder in ["env/bin", "python-3.12.7/bin", "tools"] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        std::fs::write(home.join("python-3.12.7/bin/python3"), "").unwrap();
        symlink("python-3.12.7", home.join("python-3.12")).unwrap();
        symlink("../../python-3.12/bin/python3", home.join("env/bin/python")).unwrap();
        let found = launcher(&home, Vec::new()).paths(&[Own::Installation(home.join("env/bin/python"))]);
        let expected = ["env", "python-3.12", "python-3.12.7", "tools"].map(|name| home.join(name));
        assert_eq!(found, expected);
        let of_system = launcher(&home, Vec::new()).paths(&[Own::Installation("/usr/bin/env".into())]);
        assert_eq!(of_system, [home.join("tools")]);
    }

    #[test]
    fn the_home_folder_is_never_among_them() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap();
        std::fs::create_dir_all(home.join("bin")).unwrap();
        for file in ["a.sh", "bin/x"] {
            std::fs::write(home.join(file), "").unwrap();
        }
        let needs = [Own::FolderOf(home.join("a.sh")), Own::Installation(home.join("bin/x"))];
        let expected = ["a.sh", "bin/x"].map(|name| home.join(name));
        assert_eq!(launcher(&home, Vec::new()).paths(&needs), expected);
    }

    #[test]
    fn a_launcher_that_is_not_there_is_named_with_its_place() {
        let place = tempfile::tempdir().unwrap();
        let missing = CommandLauncher { program: "no-such-launcher".into(), ..launcher(place.path(), Vec::new()) };
        let wrong = missing.around(Launch::new("/x"), &[]).unwrap_err().to_string();
        assert!(wrong.contains("no-such-launcher") && wrong.contains("/hostler.toml:1"), "{wrong}");
    }
}
