//! What a finished environment tells without uv, an interpreter or a lease: that it is complete, on which interpreter it was
//! built, which modules it has.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::spec::EnvironmentSpec;
use super::store::read_lock;

/// The file that marks an environment as complete. A lock on it marks it as in use, its time is the last use.
pub(super) const MARKER: &str = "hostler-environment.json";

/// What is recorded of a finished environment.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Marker {
    format: u32,
    header: String,
    interpreter: PathBuf,
    interpreter_modified_ms: u64,
}

impl Marker {
    pub(super) fn read(home: &Path) -> Option<Self> {
        let marker: Self = serde_json::from_slice(&std::fs::read(home.join(MARKER)).ok()?).ok()?;
        (marker.format == 1).then_some(marker)
    }

    /// Whether the environment's base interpreter is still the one it was built on.
    pub(super) fn interpreter_unchanged(&self) -> bool {
        modified_ms(&self.interpreter) == Some(self.interpreter_modified_ms)
    }

    /// The marker of an environment that uv has just built.
    pub(super) fn of(home: &Path, header: &str) -> Option<Self> {
        let interpreter = home.join("bin/python").canonicalize().ok()?;
        let interpreter_modified_ms = modified_ms(&interpreter)?;
        Some(Self { format: 1, header: header.to_owned(), interpreter, interpreter_modified_ms })
    }
}

fn modified_ms(path: &Path) -> Option<u64> {
    let modified = path.metadata().ok()?.modified().ok()?;
    u64::try_from(modified.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// The top-level modules of the environment for a tool file, if it is built and its modules all lie in it.
pub fn installed_modules(cache: &Path, spec: &EnvironmentSpec, python: Option<&str>) -> Option<BTreeSet<String>> {
    let key = spec.key(read_lock(spec).ok()?.as_deref(), python);
    let home = cache.join("environments").join(key);
    Marker::read(&home)?;
    let versions = std::fs::read_dir(home.join("lib")).ok()?.flatten();
    let mut packages = versions.map(|version| version.path().join("site-packages")).filter(|folder| folder.is_dir());
    modules_in(&packages.next()?)
}

fn modules_in(folder: &Path) -> Option<BTreeSet<String>> {
    let mut modules = BTreeSet::new();
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        // A `.pth` file adds folders to the path, whose modules are not known here.
        let (module, end) = name.split_once('.').unwrap_or((&name, ""));
        if end == "pth" && !["_virtualenv", "distutils-precedence"].contains(&module) {
            return None;
        }
        let is_module = end.is_empty() || end == "py" || end.ends_with("so") || end == "pyc";
        if is_module && !module.contains('-') {
            modules.insert(module.to_owned());
        }
    }
    Some(modules)
}

#[cfg(test)]
mod tests {
    use super::modules_in;

    #[test]
    fn modules_are_source_files_packages_and_compiled_files() {
        let folder = tempfile::tempdir().unwrap();
        for file in [
            "six.py",
            "_cffi_backend.cpython-311-x86_64-linux-gnu.so",
            "_virtualenv.pth",
            "distutils-precedence.pth",
            "barn.pyc",
            "a-script.py",
        ] {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        for name in ["bson", "pymongo-4.0.dist-info"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let modules = modules_in(folder.path()).unwrap();
        assert_eq!(modules.iter().collect::<Vec<_>>(), ["_cffi_backend", "barn", "bson", "six"]);
        std::fs::write(folder.path().join("__editable__.pth"), "/elsewhere").unwrap();
        assert_eq!(modules_in(folder.path()), None);
    }
}
