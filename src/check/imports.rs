//! What a file imports and nobody provides.

use std::path::Path;

use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_ast::{ExceptHandler, Expr, Identifier, Stmt, StmtTry};

use super::file::Subject;
use super::text::bytes_of;
use super::{Finding, folder_of, rule};
use crate::discovery::{Kind, did_you_mean, is_standard};
use crate::pep723::{brings, distribution_of, is_well_known, package_of};

pub(super) fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let mut imports = Imports { found: Vec::new() };
    imports.visit_body(subject.parsed.suite());
    let declared: Vec<&str> =
        subject.file.header.iter().flat_map(|header| &header.dependencies).map(|text| package_of(text)).collect();
    let folder = folder_of(&subject.file.path);
    let provided = |module: &str| {
        is_standard(module) || is_neighbour(folder, module) || declared.iter().any(|name| brings(name, module))
    };
    let mut told: Vec<&str> = Vec::new();
    for (module, name) in &imports.found {
        let top = module.split('.').next().unwrap_or(module);
        if !provided(top) && !told.contains(&top) {
            told.push(top);
            findings.push(undeclared(subject, top, name, &declared, &imports));
        }
    }
}

/// A file or package in the same folder, which is the last place of `sys.path`.
fn is_neighbour(folder: &Path, module: &str) -> bool {
    folder.join(format!("{module}.py")).is_file() || folder.join(module).is_dir()
}

fn undeclared(
    subject: &Subject<'_>,
    module: &str,
    name: &Identifier,
    declared: &[&str],
    imports: &Imports<'_>,
) -> Finding {
    let wanted = distribution_of(module).unwrap_or(module);
    let message =
        format!("nothing provides the module `{module}`: it is neither declared, nor a file here, nor Python's own");
    // A declared package that no import is explained by may bring this module under a name nobody here knows.
    let explains = |package: &&&str| {
        imports.found.iter().any(|(module, _)| brings(package, module.split('.').next().unwrap_or(module)))
    };
    let silent: Vec<&str> = declared.iter().filter(|package| !explains(package)).copied().collect();
    let declare = match subject.file.kind {
        Kind::Python => format!("add \"{wanted}\" to `dependencies` in the header"),
        Kind::Internal | Kind::Executable => format!("give the file a header with `dependencies = [\"{wanted}\"]`"),
    };
    let mut fix = match did_you_mean(module, subject.file) {
        // The name of a package that nobody knows is whoever's: a slip of the pen must not install it.
        Some(question) => {
            return Finding::new(
                &rule::UNDECLARED_IMPORT,
                bytes_of(name),
                message,
                otherwise(&question, module, &declare),
            );
        }
        None if is_well_known(module) => declare,
        None => {
            format!("if `{module}` is a package, {declare}; if it is a file of yours, put {module}.py beside this one")
        }
    };
    if !silent.is_empty() {
        let these = silent.join(" or ");
        fix = format!(
            "{fix}; if {these} brings it, say so here with `# hostler: ignore[{}]`",
            rule::UNDECLARED_IMPORT.name
        );
    }
    Finding::new(&rule::UNDECLARED_IMPORT, bytes_of(name), message, fix)
}

/// A question, and what to do where its answer is no.
fn otherwise(question: &str, module: &str, declare: &str) -> String {
    if is_well_known(module) {
        question.to_owned()
    } else {
        format!("{question} If not, and `{module}` is a package that you know, {declare}")
    }
}

/// Imports that have to succeed, with the name to point at.
struct Imports<'a> {
    found: Vec<(String, &'a Identifier)>,
}

impl<'a> StatementVisitor<'a> for Imports<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => {
                self.found.extend(import.names.iter().map(|alias| (alias.name.to_string(), &alias.name)));
            }
            Stmt::ImportFrom(import) if import.level == 0 => {
                self.found.extend(import.module.iter().map(|module| (module.to_string(), module)));
            }
            // What is caught, or is for type checkers only, may be missing.
            Stmt::Try(tried) if catches_import_errors(tried) => {
                for handler in &tried.handlers {
                    let ExceptHandler::ExceptHandler(handler) = handler;
                    self.visit_body(&handler.body);
                }
                self.visit_body(&tried.finalbody);
            }
            Stmt::If(branch) if is_type_checking(&branch.test) => {
                for clause in &branch.elif_else_clauses {
                    self.visit_body(&clause.body);
                }
            }
            _ => walk_stmt(self, statement),
        }
    }
}

fn catches_import_errors(tried: &StmtTry) -> bool {
    let names = |kind: &Expr| match kind {
        Expr::Tuple(kinds) => kinds.elts.iter().any(is_import_error),
        kind => is_import_error(kind),
    };
    tried.handlers.iter().any(|ExceptHandler::ExceptHandler(handler)| handler.type_.as_deref().is_none_or(names))
}

fn is_import_error(kind: &Expr) -> bool {
    let known = ["ImportError", "ModuleNotFoundError", "Exception", "BaseException"];
    kind.as_name_expr().is_some_and(|name| known.contains(&name.id.as_str()))
}

fn is_type_checking(test: &Expr) -> bool {
    match test {
        Expr::Name(name) => name.id == "TYPE_CHECKING",
        Expr::Attribute(attribute) => attribute.attr.as_str() == "TYPE_CHECKING",
        _ => false,
    }
}
