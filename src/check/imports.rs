//! What a file imports and nobody provides.

use std::collections::BTreeSet;
use std::path::Path;

use ruff_python_ast::Identifier;

use super::file::Subject;
use super::imported::Imports;
use super::text::bytes_of;
use super::{Finding, Surroundings, folder_of, rule};
use crate::discovery::{Kind, did_you_mean, is_behind_the_scenes, is_standard};
use crate::pep723::{brings, distribution_of, is_well_known, package_of};

pub(super) fn check(subject: &Subject<'_>, surroundings: &Surroundings, findings: &mut Vec<Finding>) {
    let imports = Imports::of(subject.parsed.suite(), &subject.names);
    let header = subject.file.header.as_ref();
    let declared: Vec<&str> =
        header.iter().flat_map(|header| &header.dependencies).map(|text| package_of(text)).collect();
    let folder = folder_of(&subject.file.path);
    let provided = |module: &str| {
        is_standard(module)
            || is_behind_the_scenes(module)
            || is_neighbour(folder, module)
            || declared.iter().any(|name| brings(name, module))
    };
    let mut unknown: Vec<(&str, &Identifier)> = Vec::new();
    for (module, name) in &imports.found {
        let top = module.split('.').next().unwrap_or(module);
        if !provided(top) && !unknown.iter().any(|(told, _)| *told == top) {
            unknown.push((top, name));
        }
    }
    if unknown.is_empty() {
        return;
    }
    // An environment that is built already knows better than any name.
    let installed = (surroundings.installed)(&surroundings.config, subject.file);
    let asked = Asked { subject, declared: &declared, imports: &imports, installed: installed.as_ref() };
    findings.extend(unknown.into_iter().filter_map(|(module, name)| asked.about(module, name)));
}

/// A file or package in the same folder, which is the last place of `sys.path`.
fn is_neighbour(folder: &Path, module: &str) -> bool {
    folder.join(format!("{module}.py")).is_file() || folder.join(module).is_dir()
}

struct Asked<'a> {
    subject: &'a Subject<'a>,
    declared: &'a [&'a str],
    imports: &'a Imports<'a, 'a>,
    installed: Option<&'a BTreeSet<String>>,
}

impl Asked<'_> {
    /// What is wrong with the import of a module that nothing is known to provide, as far as that can be told.
    fn about(&self, module: &str, name: &Identifier) -> Option<Finding> {
        if self.installed.is_some_and(|modules| modules.contains(module)) {
            return None;
        }
        let finding = |what: String, fix: String| Finding::new(&rule::UNDECLARED_IMPORT, bytes_of(name), what, fix);
        let mut what = format!(
            "nothing provides the module `{module}`: it is neither declared, nor a file here, nor Python's own"
        );
        let question = did_you_mean(module, self.subject.file);
        let fix = self.fix(module, question.as_deref());
        if self.imports.changes_path {
            let fix = format!("if a folder that this file adds to sys.path has it, {SAY_SO}; else {fix}");
            return Some(finding(what, fix).doubtful());
        }
        if self.installed.is_some() {
            what = format!("{what}, nor in the environment of this file, which is built");
            return Some(finding(what, fix));
        }
        if self.declared.is_empty() || question.is_some() {
            return Some(finding(what, fix));
        }
        let what =
            format!("nothing is known to provide `{module}`: no declared package is called so, and no file here");
        Some(finding(what, format!("does {} bring it? then {SAY_SO}; else {fix}", self.suspects())).doubtful())
    }

    /// The packages that may bring a module under a name nobody here knows: those that no import is explained by.
    fn suspects(&self) -> String {
        let explains = |package: &str| {
            let mut modules = self.imports.found.iter().map(|(module, _)| module.split('.').next().unwrap_or(module));
            modules.any(|module| brings(package, module))
        };
        let silent: Vec<&str> = self.declared.iter().filter(|package| !explains(package)).copied().collect();
        let these = if silent.is_empty() { self.declared } else { &silent };
        if these.len() > 3 { "one of the declared packages".to_owned() } else { these.join(" or ") }
    }

    fn fix(&self, module: &str, question: Option<&str>) -> String {
        let wanted = distribution_of(module).unwrap_or(module);
        let declare = match self.subject.file.kind {
            Kind::Python => format!("add \"{wanted}\" to `dependencies` in the header"),
            _ => format!("give the file a header with `dependencies = [\"{wanted}\"]`"),
        };
        match question {
            None if is_well_known(module) => declare,
            Some(question) if is_well_known(module) => question.to_owned(),
            // The name of a package that nobody knows is whoever's: a slip of the pen must not install it.
            Some(question) => format!("{question} If not, and `{module}` is a package that you know, {declare}"),
            None => format!(
                "if `{module}` is a package, {declare}; if it is yours, put the file {module}.py or the folder {module} \
                 beside this file"
            ),
        }
    }
}

const SAY_SO: &str = "say so with `# hostler: ignore[undeclared-import]`";
