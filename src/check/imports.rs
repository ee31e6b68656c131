//! Imports that nothing declared provides.

use std::collections::BTreeSet;
use std::path::Path;

use ruff_python_ast::Identifier;

use super::file::Subject;
use super::report::bytes_of;
use super::rule::Level;
use super::{Finding, Surroundings, rule};
use crate::discovery::{is_behind_the_scenes, is_standard};
use crate::pep723::{brings, distribution_of, is_well_known, package_of};

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
    let is_neighbour = |module: &str| {
        folders.iter().any(|folder| folder.join(format!("{module}.py")).is_file() || folder.join(module).is_dir())
    };
    let is_provided = |module: &str| {
        is_standard(module)
            || is_behind_the_scenes(module)
            || is_neighbour(module)
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
    for (module, name) in unknown {
        if installed.as_ref().is_some_and(|modules| modules.contains(module)) {
            continue;
        }
        let (message, also) = if is_certain {
            (format!("nothing provides the module `{module}`"), "")
        } else {
            let also =
                "; if a dependency or a folder on sys.path provides it, add `# hostler: ignore[undeclared-import]`";
            (format!("nothing is known to provide the module `{module}`"), also)
        };
        let level = if is_certain { Level::Error } else { Level::Warning };
        let declared_by = header.and_then(|header| header.dependencies_from.as_deref());
        let fix = declare(module, header.is_some(), declared_by) + also;
        findings.push(Finding { level, ..Finding::new(&rule::UNDECLARED_IMPORT, bytes_of(*name), message, fix) });
    }
}

/// A package is only named where it is well known: a misspelt name must not lead to an unknown package.
fn declare(module: &str, has_header: bool, declared_by: Option<&str>) -> String {
    let package = match distribution_of(module) {
        Some(package) => format!("\"{package}\""),
        None if is_well_known(module) => format!("\"{module}\""),
        None => format!("the package that provides `{module}`"),
    };
    if let Some(place) = declared_by {
        return format!("add {package} to `dependencies` ({place})");
    }
    if has_header {
        return format!("add {package} to `dependencies` in the header");
    }
    format!("give the file a header with {package} in `dependencies`")
}
