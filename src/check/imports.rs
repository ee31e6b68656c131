//! Imports that nothing declared provides.

use std::collections::BTreeSet;

use ruff_python_ast::Identifier;

use super::file::Subject;
use super::report::bytes_of;
use super::rule::Level;
use super::{Finding, Surroundings, rule};
use crate::config::origin::Diagnosis;
use crate::discovery::{Provided, declared, import_from_above, nothing_provides, top};
use crate::pep723::requirement_for;

/// Checks the modules that a file imports unconditionally. An error only where it is certain that the module is missing.
pub(super) fn check(
    subject: &Subject<'_>,
    imports: &[(String, &Identifier)],
    surroundings: &Surroundings,
    findings: &mut Vec<Finding>,
) {
    let folders = subject.settings.import_folders(&surroundings.config.environment);
    let provided = Provided::of(subject.file, folders);
    let mut seen = BTreeSet::new();
    let tops = imports.iter().map(|(module, name)| (top(module), name));
    let unknown: Vec<_> = tops.filter(|(top, _)| !provided.has(top) && seen.insert((*top).to_owned())).collect();
    if unknown.is_empty() {
        return;
    }
    // An environment that is built already knows better than any name.
    let installed = (surroundings.installed)(&surroundings.config, subject.file);
    let declares_nothing = declared(subject.file).next().is_none();
    let is_certain = !subject.file.adds_modules && (installed.is_some() || declares_nothing);
    let (of_open_webui, unknown): (Vec<_>, Vec<_>) =
        unknown.into_iter().partition(|(module, _)| *module == "open_webui");
    findings.extend(of_open_webui.into_iter().map(|(module, name)| {
        let message = format!("`{module}` is Open WebUI itself, which is not there");
        Finding::new(&rule::UNDECLARED_IMPORT, bytes_of(*name), message, "replace what the file uses of it")
    }));
    let is_missing = |module: &str| installed.as_ref().is_none_or(|modules| !modules.contains(module));
    let missing: Vec<_> = unknown.into_iter().filter(|(module, _)| is_missing(module)).collect();
    let Some(header) = &subject.file.header else {
        let Some((_, first)) = missing.first() else { return };
        let modules: Vec<&str> = missing.iter().map(|(module, _)| *module).collect();
        let Diagnosis { what, fix } = nothing_provides(subject.file, &modules, is_certain);
        let level = if is_certain { Level::Error } else { Level::Warning };
        findings.push(Finding { level, ..Finding::new(&rule::UNDECLARED_IMPORT, bytes_of(**first), what, fix) });
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
        // A package is only named where it is well known: a misspelt name must not lead to an unknown package.
        let known = requirement_for(module, &subject.file.imports);
        let package =
            known.map_or_else(|| format!("the package that provides `{module}`"), |known| format!("\"{known}\""));
        let place =
            header.dependencies_from.as_deref().map_or("in the header".to_owned(), |place| format!("({place})"));
        let from_above = known.is_none().then(|| import_from_above(subject.file, module)).flatten();
        let fix = from_above.unwrap_or_else(|| format!("add {package} to `dependencies` {place}{also}"));
        findings.push(Finding { level, ..Finding::new(&rule::UNDECLARED_IMPORT, bytes_of(*name), message, fix) });
    }
}
