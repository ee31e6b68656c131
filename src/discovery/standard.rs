//! Which modules come with Python, and what a module that nothing provides may have been meant to be.

use std::collections::HashSet;
use std::path::Path;
use std::sync::LazyLock;

use super::ToolFile;
use crate::config::section::is_typo_of;
use crate::pep723::{is_well_known, modules_of, package_of};

/// The modules of Python 3.9 to 3.14 and `hostler`, which the worker provides; private ones begin with an underscore.
static STANDARD: LazyLock<HashSet<&str>> = LazyLock::new(|| include_str!("standard_library.txt").lines().collect());

/// Whether a top-level module comes with Python or with the worker. A tool file's folder is last on `sys.path`, so a
/// neighbour of such a name is never imported.
pub fn is_standard(module: &str) -> bool {
    module.starts_with("__") || !module.starts_with('_') && STANDARD.contains(module)
}

/// Whether some Python has a private module of that name. Not every Python has each of them, so a neighbour of that name
/// may be what is imported.
pub fn is_behind_the_scenes(module: &str) -> bool {
    module.starts_with('_') && STANDARD.contains(module)
}

/// A module with almost this name: of a declared package, a neighbouring file, or the standard library. It is asked about one
/// that nothing provides.
pub fn did_you_mean(module: &str, file: &ToolFile) -> Option<String> {
    if is_well_known(module) {
        return None;
    }
    let dependencies = file.header.iter().flat_map(|header| &header.dependencies);
    let declared = dependencies.flat_map(|text| modules_of(package_of(text)));
    // Short names and names with a version are more likely packages: `lib`, `json5`.
    let may_be_typo = module.len() > 3 && !module.ends_with(|c: char| c.is_ascii_digit());
    let mut standard: Vec<&str> =
        STANDARD.iter().filter(|known| may_be_typo && !known.starts_with('_')).copied().collect();
    standard.sort_unstable();
    let mut known = declared.chain(neighbours(&file.path)).chain(standard.into_iter().map(str::to_owned));
    known.find(|known| is_typo_of(module, known)).map(|near| format!("did you mean `{near}`?"))
}

/// The modules beside a file, sorted.
fn neighbours(path: &Path) -> Vec<String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|other| other != path);
    let files = paths.filter(|other| other.extension().is_some_and(|extension| extension == "py"));
    let mut names: Vec<String> = files.filter_map(|other| Some(other.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::read_file;

    fn question(module: &str, dependencies: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one.py");
        std::fs::write(folder.path().join("slugs.py"), "").unwrap();
        std::fs::write(&path, format!("# /// script\n# dependencies = {dependencies}\n# ///\n")).unwrap();
        did_you_mean(module, &read_file(&path))
    }

    #[test]
    fn standard_modules_are_known() {
        assert!(is_standard("json") && is_standard("__future__") && is_behind_the_scenes("_thread"));
        assert!(!is_standard("markdown") && !is_standard("_thread") && !is_behind_the_scenes("json"));
    }

    #[test]
    fn near_names_are_suggested() {
        for (module, right) in [
            ("jsno", "`json`"),
            ("Json", "`json`"),
            ("slug", "`slugs`"),
            ("request", "`requests`"),
            ("yamll", "`yaml`"),
        ] {
            let question = question(module, "[\"requests\", \"pyyaml\"]").unwrap_or_default();
            assert!(question.contains(right), "{module}: {question}");
        }
        for module in ["helpers", "typer", "httpx", "dns", "rich", "toml", "six", "attr", "lib", "glob2", "json5"] {
            assert_eq!(question(module, "[\"requests\"]"), None, "{module}");
        }
    }
}
