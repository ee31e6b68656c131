//! Imports that nothing declared provides.

use std::collections::BTreeSet;
use std::path::Path;

use ruff_python_ast::Identifier;

use super::file::Subject;
use super::report::bytes_of;
use super::rule::Level;
use super::{Finding, Surroundings, rule};
use crate::discovery::{ToolFile, above_own_package, is_behind_the_scenes, is_neighbour, is_standard, own_package};
use crate::pep723::{brings, package_of, requirement_for};

/// Checks the modules that a file imports unconditionally. An error only where it is certain that the module is missing.
pub(super) fn check(
    subject: &Subject<'_>,
    imports: &[(String, &Identifier)],
    surroundings: &Surroundings,
    findings: &mut Vec<Finding>,
) {
    let header = subject.file.header.as_ref();
    let declared: Vec<&str> =
        header.iter().flat_map(|header| &header.dependencies).map(|text| package_of(text)).collect();
    let folder = subject.file.path.parent().unwrap_or(Path::new("."));
    let mut folders = subject.settings.needs.folders(&surroundings.config.environment);
    folders
        .extend(subject.settings.env.get("PYTHONPATH").into_iter().flat_map(|path| std::env::split_paths(&path.value)));
    folders.push(folder.to_owned());
    let own = own_package(&subject.file.path);
    let of_own = imports.iter().filter(|(module, _)| above_own_package(&subject.file.path, module).is_some());
    let of_own: BTreeSet<&str> = of_own.filter_map(|(module, _)| module.split('.').next()).collect();
    let is_provided = |module: &str| {
        is_standard(module)
            || of_own.contains(module)
            || is_behind_the_scenes(module)
            || is_neighbour(own.as_deref(), &folders, module)
            || declared.iter().any(|name| brings(name, module))
    };
    let mut seen = BTreeSet::new();
    let tops = imports.iter().map(|(module, name)| (module.split('.').next().unwrap_or(module), name));
    let unknown: Vec<_> = tops.filter(|(top, _)| !is_provided(top) && seen.insert((*top).to_owned())).collect();
    if unknown.is_empty() {
        return;
    }
    // An environment that is built already knows better than any name.
    let installed = (surroundings.installed)(&surroundings.config, subject.file);
    let extends_path = ["sys.path", "addsitedir"].iter().any(|word| subject.text.source.contains(word));
    let is_certain = !extends_path && (installed.is_some() || declared.is_empty());
    let (of_open_webui, unknown): (Vec<_>, Vec<_>) =
        unknown.into_iter().partition(|(module, _)| *module == "open_webui");
    findings.extend(of_open_webui.into_iter().map(|(module, name)| {
        let message = format!("`{module}` is Open WebUI itself, which is not there");
        Finding::new(&rule::UNDECLARED_IMPORT, bytes_of(*name), message, "replace what the file uses of it")
    }));
    let is_missing = |module: &str| installed.as_ref().is_none_or(|modules| !modules.contains(module));
    let missing: Vec<_> = unknown.into_iter().filter(|(module, _)| is_missing(module)).collect();
    let Some(header) = header else {
        findings.extend(none_declared(subject.file, &missing, is_certain));
        return;
    };
    for (module, name) in missing {
        let (message, also) = if is_certain {
            (format!("nothing provides the module `{module}`"), "")
        } else {
            let also =
                "; if a dependency or a folder on sys.path provides it, add `# hostler: ignore[undeclared-import]`";
            (format!("nothing is known to provide the module `{module}`"), also)
        };
        let level = if is_certain { Level::Error } else { Level::Warning };
        let package = declared_as(module, &subject.file.imports);
        let place =
            header.dependencies_from.as_deref().map_or("in the header".to_owned(), |place| format!("({place})"));
        let fix = format!("add {package} to `dependencies` {place}{also}");
        findings.push(Finding { level, ..Finding::new(&rule::UNDECLARED_IMPORT, bytes_of(*name), message, fix) });
    }
}

/// All that a file without a header imports, with what to write for it.
fn none_declared(file: &ToolFile, missing: &[(&str, &&Identifier)], is_certain: bool) -> Option<Finding> {
    let (_, first) = missing.first()?;
    let modules: Vec<String> = missing.iter().map(|(module, _)| format!("`{module}`")).collect();
    let packages: Vec<&str> = missing.iter().filter_map(|(module, _)| requirement_for(module, &file.imports)).collect();
    let is_brought = |package: &&&str| {
        packages.iter().any(|other| other != *package && brings(package_of(other), package_of(package)))
    };
    let mut listed: Vec<String> =
        packages.iter().filter(|package| !is_brought(package)).map(|it| format!("\"{it}\"")).collect();
    let unnamed =
        missing.iter().map(|(module, _)| *module).filter(|module| requirement_for(module, &file.imports).is_none());
    let unnamed: Vec<String> = unnamed.map(|module| format!("`{module}`")).collect();
    if !unnamed.is_empty() {
        listed.push("…".to_owned());
    }
    let (level, verb) = if is_certain { (Level::Error, "provides") } else { (Level::Warning, "is known to provide") };
    let message =
        format!("nothing {verb} the module{} {}", if modules.len() == 1 { "" } else { "s" }, modules.join(", "));
    let with = if unnamed.is_empty() {
        String::new()
    } else {
        format!(", with the packages that provide {},", unnamed.join(", "))
    };
    let fix = format!(
        "write `dependencies = [{}]`{with} under [tool.{}] in hostler.toml, or in a header of the file",
        listed.join(", "),
        file.pack
    );
    Some(Finding { level, ..Finding::new(&rule::UNDECLARED_IMPORT, bytes_of(**first), message, fix) })
}

/// A package is only named where it is well known: a misspelt name must not lead to an unknown package.
fn declared_as(module: &str, imports: &[String]) -> String {
    match requirement_for(module, imports) {
        Some(package) => format!("\"{package}\""),
        None => format!("the package that provides `{module}`"),
    }
}
