//! Which modules a built environment has: names, looked up without uv, without an interpreter and without a lease.

use std::collections::BTreeSet;
use std::path::Path;

use super::marker::Marker;
use super::recipe::EnvironmentSpec;
use super::store::read_lock;

/// The top-level modules of the environment for a recipe, if it is built and nothing in it points elsewhere.
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
        // A line of such a file is a folder that belongs to the path as well: what is there is not known here.
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
    fn modules_are_files_folders_and_compiled_ones() {
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
