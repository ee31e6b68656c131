//! Files that are programs rather than tools: what runs when they are imported, and command lines whose parts would be tools.

use ruff_python_ast::{Expr, ExprCall, ModModule, Stmt};
use ruff_python_parser::Parsed;

use super::file::Subject;
use super::report::bytes_of;
use super::{Finding, rule};

/// Methods and functions that run an agent, a server or a window until that ends.
const RUNNERS: [&str; 12] = [
    "run",
    "run_sync",
    "run_until_complete",
    "run_forever",
    "serve",
    "serve_forever",
    "mainloop",
    "launch",
    "invoke",
    "ainvoke",
    "kickoff",
    "print_response",
];
/// Functions of a file that are its program.
const PROGRAMS: [&str; 2] = ["main", "cli"];
/// Modules whose `run` is over soon.
const HARMLESS: [&str; 2] = ["subprocess", "sp"];

pub(super) fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    if subject.settings.serves_program() {
        return;
    }
    findings.extend(subject.parsed.suite().iter().filter_map(call_of).filter(|call| runs(call)).map(|call| {
        let message = "this runs when the file is imported: in every worker, before its first call";
        let fix = "put it under `if __name__ == \"__main__\":`";
        Finding::new(&rule::RUNS_AT_IMPORT, bytes_of(&*call.func), message, fix)
    }));
    findings.extend(command_line(subject));
}

/// The call that a statement is, or whose value it assigns.
fn call_of(statement: &Stmt) -> Option<&ExprCall> {
    match statement {
        Stmt::Expr(expression) => expression.value.as_call_expr(),
        Stmt::Assign(assign) => assign.value.as_call_expr(),
        _ => None,
    }
}

fn runs(call: &ExprCall) -> bool {
    match &*call.func {
        Expr::Name(name) => PROGRAMS.contains(&name.id.as_str()),
        Expr::Attribute(attribute) => {
            let is_harmless = attribute.value.as_name_expr().is_some_and(|of| HARMLESS.contains(&of.id.as_str()));
            RUNNERS.contains(&attribute.attr.as_str()) && !is_harmless
        }
        _ => false,
    }
}

/// A program with a command line, of which each public function would be a tool.
fn command_line(subject: &Subject<'_>) -> Option<Finding> {
    let file = subject.file;
    let parses = file.imports.iter().any(|module| module == "argparse");
    let has_own_names = file.functions.iter().any(|function| function.symbol.is_some() || !function.role.is_tool());
    let are_marked = file.servers.marks || file.servers.makes;
    if !parses || file.functions.is_empty() || has_own_names || are_marked || names_its_tools(subject.parsed) {
        return None;
    }
    let guard =
        subject.parsed.suite().iter().filter_map(Stmt::as_if_stmt).find(|branch| is_main_guard(&branch.test))?;
    let message = "this file is a program with a command line, and its functions are tools one by one";
    let fix = "to serve it as one tool, set `serve = \"main\"` in its header or in hostler.toml; if they are tools, name them in `__all__`";
    Some(Finding::new(&rule::PROGRAM, bytes_of(&*guard.test), message, fix))
}

fn is_main_guard(test: &Expr) -> bool {
    let compared = test.as_compare_expr();
    compared.is_some_and(|it| it.left.as_name_expr().is_some_and(|name| name.id.as_str() == "__name__"))
}

fn names_its_tools(parsed: &Parsed<ModModule>) -> bool {
    let is_list = |target: &Expr| target.as_name_expr().is_some_and(|name| name.id.as_str() == "__all__");
    parsed.suite().iter().filter_map(Stmt::as_assign_stmt).any(|assign| assign.targets.iter().any(is_list))
}
