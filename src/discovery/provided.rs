//! Which modules a Python file can import: those of Python, of its dependencies, and of the files beside it.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{ToolFile, above_own_package, is_behind_the_scenes, is_neighbour, is_standard, own_package};
use crate::config::origin::Diagnosis;
use crate::pep723::{brings, package_of, requirement_for};

/// Where the modules of a file are looked for.
pub struct Provided<'f> {
    file: &'f Path,
    declared: Vec<&'f str>,
    folders: Vec<PathBuf>,
    own_package: Option<String>,
    of_own_package: BTreeSet<String>,
}

impl<'f> Provided<'f> {
    /// For a file that also imports from these folders.
    pub fn of(file: &'f ToolFile, mut folders: Vec<PathBuf>) -> Self {
        folders.push(file.path.parent().unwrap_or(Path::new(".")).to_owned());
        let modules = file.imports.iter().map(String::as_str);
        let of_own_package = modules.filter(|module| above_own_package(&file.path, module).is_some());
        Self {
            file: &file.path,
            declared: declared(file).collect(),
            folders,
            own_package: own_package(&file.path),
            of_own_package: of_own_package.map(|module| top(module).to_owned()).collect(),
        }
    }

    /// Whether a top-level module is known to be there.
    pub fn has(&self, module: &str) -> bool {
        is_standard(module)
            || self.of_own_package.contains(module)
            || is_behind_the_scenes(module)
            || is_neighbour(self.file, self.own_package.as_deref(), &self.folders, module)
            || self.folders.iter().any(|folder| has_compiled(folder, module))
            || self.declared.iter().any(|name| brings(name, module))
    }
}

/// The packages that a file declares, or has declared for it.
pub fn declared(file: &ToolFile) -> impl Iterator<Item = &str> {
    file.header.iter().flat_map(|header| &header.dependencies).map(|text| package_of(text))
}

/// Why a file that also imports from these folders certainly fails as soon as a worker runs it: it declares no dependency, and imports
/// what neither Python nor a file beside it has.
pub fn cannot_start(file: &ToolFile, folders: Vec<PathBuf>) -> Option<Diagnosis> {
    if file.adds_modules || declared(file).next().is_some() {
        return None;
    }
    let modules = || file.imports_at_start.iter().map(String::as_str);
    let provided = Provided::of(file, folders);
    let mut seen = BTreeSet::new();
    let missing: Vec<&str> =
        modules().map(top).filter(|module| !provided.has(module) && seen.insert(*module)).collect();
    (!missing.is_empty()).then(|| nothing_provides(file, &missing, true))
}

/// What is wrong with a file without dependencies that imports these modules, and what to write.
pub fn nothing_provides(file: &ToolFile, missing: &[&str], is_certain: bool) -> Diagnosis {
    let packages: Vec<&str> = missing.iter().filter_map(|module| requirement_for(module, &file.imports)).collect();
    let is_brought = |package: &&&str| {
        packages.iter().any(|other| other != *package && brings(package_of(other), package_of(package)))
    };
    let mut listed: Vec<String> =
        packages.iter().filter(|package| !is_brought(package)).map(|it| format!("\"{it}\"")).collect();
    let is_named = |module: &&&str| {
        requirement_for(module, &file.imports).is_some()
            || packages.iter().any(|package| brings(package_of(package), module))
    };
    let above: Vec<(&str, PathBuf)> = missing
        .iter()
        .filter(|module| !is_named(module))
        .filter_map(|module| Some((*module, folder_above(&file.path, module)?)))
        .collect();
    let unnamed = missing.iter().filter(|module| !is_named(module) && !above.iter().any(|(own, _)| own == *module));
    let unnamed: Vec<String> = unnamed.map(|module| format!("`{module}`")).collect();
    if !unnamed.is_empty() {
        listed.push("…".to_owned());
    }
    let modules: Vec<String> = missing.iter().map(|module| format!("`{module}`")).collect();
    let (verb, plural) =
        (if is_certain { "provides" } else { "is known to provide" }, if modules.len() == 1 { "" } else { "s" });
    let with = if unnamed.is_empty() {
        String::new()
    } else {
        format!(", with the packages that provide {},", unnamed.join(", "))
    };
    let listed = listed.join(", ");
    let path = python_path(&file.pack, &above);
    let fix = match file.header.as_ref().map(|header| &header.dependencies_from) {
        None => {
            let place = format!("under [tool.{}] in hostler.toml, or in a header of the file", file.pack);
            format!("write `dependencies = [{listed}]`{with} {place}")
        }
        Some(None) => format!("write `dependencies = [{listed}]`{with} in the header"),
        Some(Some(place)) => format!("add {listed}{with} to what the file needs ({place})"),
    };
    let fix = match path {
        Some(path) if listed.is_empty() => path,
        Some(path) => format!("{fix}; and {path}"),
        None => fix,
    };
    Diagnosis::new(format!("nothing {verb} the module{plural} {}", modules.join(", ")), fix)
}

/// What to write where a module is in a folder above that of the file.
pub fn import_from_above(file: &ToolFile, module: &str) -> Option<String> {
    python_path(&file.pack, &[(module, folder_above(&file.path, module)?)])
}

/// What makes modules of these folders importable.
fn python_path(pack: &str, above: &[(&str, PathBuf)]) -> Option<String> {
    let modules: Vec<String> = above.iter().map(|(module, _)| format!("`{module}`")).collect();
    let quoted = |folder: &Path| toml::Value::from(folder.display().to_string()).to_string();
    let folders: BTreeSet<String> = above.iter().map(|(_, folder)| quoted(folder)).collect();
    let folders = folders.into_iter().collect::<Vec<_>>().join(", ");
    let modules = (!modules.is_empty()).then(|| modules.join(", "))?;
    Some(format!("write `python_path = [{folders}]` under [tool.{pack}] in hostler.toml, for {modules}"))
}

/// The nearest of the three folders above a file's folder, up to the top of its project, that has a module: as where the project is run
/// from there.
fn folder_above(file: &Path, module: &str) -> Option<PathBuf> {
    let has_python = |folder: &Path| {
        let mut entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.any(|entry| entry.path().extension().is_some_and(|end| end == "py"))
    };
    let is_top = |folder: &&Path| [".git", "pyproject.toml"].iter().any(|name| folder.join(name).exists());
    let own = file.parent()?;
    let above = own.ancestors().skip(1).take(if is_top(&own) { 0 } else { 3 });
    let top = above.clone().position(|folder| is_top(&folder)).map_or(3, |place| place + 1);
    // Not the folder of temporary files, where any user may put a module.
    let is_ours = |folder: &&Path| {
        let is_shared = |metadata: std::fs::Metadata| metadata.permissions().mode() & 0o1002 == 0o1002;
        std::fs::metadata(folder).is_ok_and(|metadata| !is_shared(metadata))
    };
    let mut folders = above.take(top).filter(is_ours);
    let has = |folder: &&Path| folder.join(format!("{module}.py")).is_file() || has_python(&folder.join(module));
    folders.find(has).map(Path::to_owned)
}

/// Whether a folder has a compiled module. An archive of modules may have any.
fn has_compiled(folder: &Path, module: &str) -> bool {
    let is_one = |name: &str| {
        let rest = name.strip_prefix(module).and_then(|rest| rest.strip_prefix('.'));
        rest.is_some_and(|rest| {
            ["so", "pyd", "pyc"].iter().any(|end| rest == *end || rest.ends_with(&format!(".{end}")))
        })
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    folder.is_file() || entries.into_iter().any(|entry| entry.file_name().to_str().is_some_and(is_one))
}

/// The first part of a dotted name.
pub fn top(module: &str) -> &str {
    module.split('.').next().unwrap_or(module)
}
