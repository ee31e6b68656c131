//! What an import that nothing provides may have been meant to be: a module of Python's own, of a declared package, or a
//! file in the same folder, written a little otherwise.

use std::path::Path;

use super::ToolFile;
use super::standard_library::STANDARD;
use crate::config::section::is_typo_of;
use crate::pep723::{brings, is_well_known, modules_of, package_of};

/// The question to ask about a module that nothing provides, if something is called almost so.
pub fn did_you_mean(module: &str, file: &ToolFile) -> Option<String> {
    if let Some(question) = requirement(module, file) {
        return Some(question);
    }
    // A package that everybody knows is meant as it is written, whatever else is called nearly so.
    if is_well_known(module) {
        return None;
    }
    // `lib` is a folder of many projects and no `zlib`; `json5` and `glob2` are packages.
    let is_name = module.len() > 3 && !module.ends_with(|c: char| c.is_ascii_digit());
    let standard = || STANDARD.iter().find(|known| is_name && is_typo_of(module, known));
    let by_file = || {
        let name = neighbours(&file.path).into_iter().find(|name| is_typo_of(module, name))?;
        Some(format!("did you mean `{name}`, the file {name}.py beside it?"))
    };
    by_file().or_else(|| standard().map(|name| format!("did you mean `{name}`, which is Python's own?")))
}

/// A declared package that is called almost as the module: one of the two is misspelt.
fn requirement(module: &str, file: &ToolFile) -> Option<String> {
    let header = file.header.as_ref()?;
    let mut declared = header.dependencies.iter().map(|text| package_of(text));
    let is_imported = |package: &str| file.imports.iter().any(|other| brings(package, top(other)));
    let near = |package: &str| modules_of(package).into_iter().find(|known| is_typo_of(module, known));
    let (package, meant) = declared.find_map(|package| Some((package, near(package)?)))?;
    let place = header.line_of(package).map(|line| format!(" (line {line})")).unwrap_or_default();
    Some(if is_imported(package) || is_well_known(&meant) && !is_well_known(module) {
        format!("did you mean `{meant}`, which the declared package \"{package}\"{place} brings?")
    } else if is_well_known(module) {
        format!("\"{package}\" in `dependencies`{place}: did you mean \"{module}\"?")
    } else {
        format!(
            "\"{package}\" is declared{place} and nothing imports it: did you mean \"{module}\" there, or `{meant}` here?"
        )
    })
}

fn top(module: &str) -> &str {
    module.split('.').next().unwrap_or(module)
}

/// The modules that lie beside a file.
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
    use super::super::read_file;
    use super::did_you_mean;

    fn asked(module: &str, dependencies: &str, imports: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one.py");
        std::fs::write(folder.path().join("slugs.py"), "").unwrap();
        std::fs::write(&path, format!("# /// script\n# dependencies = {dependencies}\n# ///\n{imports}\n")).unwrap();
        did_you_mean(module, &read_file(&path))
    }

    #[test]
    fn what_is_called_almost_so_is_asked_about() {
        let about = |module: &str| asked(module, "[\"requests\", \"pyyaml\"]", "").unwrap_or_default();
        assert_eq!(about("jsno"), "did you mean `json`, which is Python's own?");
        assert_eq!(about("Json"), "did you mean `json`, which is Python's own?");
        assert_eq!(about("slug"), "did you mean `slugs`, the file slugs.py beside it?");
        assert_eq!(
            about("request"),
            "did you mean `requests`, which the declared package \"requests\" (line 2) brings?"
        );
        assert_eq!(about("yamll"), "did you mean `yaml`, which the declared package \"pyyaml\" (line 2) brings?");
    }

    #[test]
    fn of_two_names_the_known_one_is_right() {
        let told = asked("requests", "[\"reqeusts\"]", "import requests").unwrap();
        assert_eq!(told, "\"reqeusts\" in `dependencies` (line 2): did you mean \"requests\"?");
        let told = asked("shedlib", "[\"shedlibb\"]", "import shedlib").unwrap();
        assert!(told.ends_with("did you mean \"shedlib\" there, or `shedlibb` here?"), "{told}");
        let told = asked("shedlib", "[\"shedlibb\"]", "import shedlib, shedlibb").unwrap();
        assert!(told.starts_with("did you mean `shedlibb`, which"), "{told}");
    }

    #[test]
    fn other_names_and_well_known_packages_raise_no_question() {
        for module in ["helpers", "typer", "httpx", "dns", "rich", "toml", "six", "attr", "lib", "glob2", "json5"] {
            assert_eq!(asked(module, "[\"requests\"]", ""), None, "{module}");
        }
    }
}
