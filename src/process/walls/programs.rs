//! What a program needs besides itself: the interpreter that its first line names, with its libraries.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::config::Environment;

/// An interpreter may be a script as well, as those of version managers are.
pub(super) const DEEPEST: usize = 4;

/// The files and folders that running a program needs: its folder, and its interpreters.
pub(super) fn needed_by(program: &Path, environment: &Environment) -> Vec<PathBuf> {
    let find = |name: &OsStr| environment.find_program(name);
    folder_of(program, environment)
        .into_iter()
        .chain(interpreters_of(program, environment.home().as_deref(), find))
        .collect()
}

/// The folder that a file is in, whatever links lead there; the file alone, if that is the home folder or one above it.
pub(super) fn folder_of(file: &Path, environment: &Environment) -> Option<PathBuf> {
    let real = file.canonicalize().ok()?;
    let folder = real.parent()?;
    let home = environment.home().map(|home| home.canonicalize().unwrap_or(home));
    let is_wide = home.is_some_and(|home| home.starts_with(folder));
    Some(if is_wide { real } else { folder.to_owned() })
}

/// `home` is the user's, which is never among them; `find` looks on the path.
fn interpreters_of(program: &Path, home: Option<&Path>, find: impl Fn(&OsStr) -> Option<PathBuf>) -> Vec<PathBuf> {
    let mut needed = Vec::new();
    let mut program = program.to_owned();
    for _ in 0..DEEPEST {
        let Some(interpreter) = interpreter_of(&program, &find) else { break };
        needed.extend(installation_of(&interpreter, home));
        program = interpreter;
    }
    needed
}

/// What belongs to a program that is installed beneath a folder.
const INSTALLED: [&str; 7] = ["bin", "include", "lib", "lib64", "libexec", "pyvenv.cfg", "share"];
/// The same for a version manager, whose programs look for the version to start.
const MANAGED: [&str; 7] = ["bin", "libexec", "lib", "plugins", "shims", "version", "versions"];

/// The folders of an installed program, by where its file really is: `/opt/x/lib` and its like of `/opt/x/bin/y`; or that file alone.
pub(super) fn installation_of(program: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let of = |program: &Path| -> Vec<PathBuf> {
        let parts = match program.parent().and_then(Path::file_name).and_then(OsStr::to_str) {
            Some("bin" | "sbin") => &INSTALLED,
            Some("shims") => &MANAGED,
            _ => return Vec::new(),
        };
        let Some(whole) = program.parent().and_then(Path::parent) else { return Vec::new() };
        // `~/.local/share` has the data of every program.
        let is_shared = home.is_some_and(|home| home.starts_with(whole) || home.join(".local") == whole);
        if is_shared { Vec::new() } else { parts.iter().map(|part| whole.join(part)).collect() }
    };
    let real = program.canonicalize().ok();
    let beneath = of(program).into_iter().chain(real.as_deref().map(of).unwrap_or_default());
    beneath.chain(real.clone()).collect()
}

/// What the first line of a script names; with `env`, what that finds.
fn interpreter_of(script: &Path, find: impl Fn(&OsStr) -> Option<PathBuf>) -> Option<PathBuf> {
    interpreter_in(File::open(script).ok()?, find)
}

/// The same of a script that is open.
pub(super) fn interpreter_in(script: impl Read, find: impl Fn(&OsStr) -> Option<PathBuf>) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    script.take(512).read_to_end(&mut bytes).ok()?;
    let line = bytes.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let program = Path::new(OsStr::from_bytes(words.next()?));
    if !program.ends_with("env") {
        return Some(program.to_owned());
    }
    let mut word = words.next()?;
    if word == b"-S" || word == b"--split-string" {
        word = words.next()?;
    }
    // With other options, `env` itself says what is missing.
    let is_name = !word.starts_with(b"-") && !word.contains(&b'=');
    if is_name { find(OsStr::from_bytes(word)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_is_needed_with_its_libraries_but_not_the_home() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap().join("home");
        let (shim, real) = (home.join(".pyenv/shims/python3"), home.join(".pyenv/versions/3.12/bin/python3"));
        let tool = home.join("tools/tool");
        for (file, text) in [(&shim, "#!/bin/sh\n"), (&real, "ELF"), (&tool, "#!/usr/bin/env -S python3 -u\n")] {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let needed = interpreters_of(&tool, Some(&home), |name| (name == "python3").then(|| shim.clone()));
        assert!(needed.contains(&home.join(".pyenv/versions")), "{needed:?}");
        assert!(!needed.contains(&home) && !needed.contains(&home.join(".pyenv")), "{needed:?}");
        for wide in ["bin/x", ".local/bin/x"] {
            assert_eq!(installation_of(&home.join(wide), Some(&home)), Vec::<PathBuf>::new());
        }
        let project = home.join("project/bin/go");
        std::fs::create_dir_all(project.parent().unwrap()).unwrap();
        std::fs::write(&project, "").unwrap();
        assert!(!installation_of(&project, Some(&home)).contains(&home.join("project")));
        std::fs::write(&tool, format!("#!/usr/bin/env -S -u {} sh\n", project.display())).unwrap();
        assert_eq!(interpreters_of(&tool, Some(&home), |name| Some(name.into())), Vec::<PathBuf>::new());
    }
}
