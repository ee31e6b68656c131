//! What a model needs to know of a function: docstring, hints, defaults it can be told, results it can be given.

use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_ast::visitor::{Visitor, walk_expr};
use ruff_python_ast::{Expr, ParameterWithDefault, Stmt, StmtFunctionDef};

use super::file::Subject;
use super::text::bytes_of;
use super::{Finding, rule};
use crate::config::section::nearest;
use crate::discovery::{docstring_of, documented_arguments};

pub(super) fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let mut tools = Tools { subject, found: Vec::new() };
    tools.visit_body(subject.parsed.suite());
    for function in tools.found {
        described(function, findings);
        for parameter in function.parameters.iter_non_variadic_params() {
            defaults(subject, function, parameter, findings);
        }
        result(subject, function, findings);
    }
}

/// Finds the definitions of the file's tools.
struct Tools<'a, 'b> {
    subject: &'b Subject<'b>,
    found: Vec<&'a StmtFunctionDef>,
}

impl<'a> StatementVisitor<'a> for Tools<'a, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                let line = self.subject.text.line_of(bytes_of(&function.name).start);
                let is_tool = |tool: &crate::discovery::Function| tool.name == *function.name && tool.line == line;
                self.found.extend(self.subject.file.functions.iter().any(is_tool).then_some(function));
            }
            Stmt::ClassDef(_) => {}
            _ => walk_stmt(self, statement),
        }
    }
}

fn described(function: &StmtFunctionDef, findings: &mut Vec<Finding>) {
    let name = bytes_of(&function.name);
    let bare: Vec<&str> = function
        .parameters
        .iter_non_variadic_params()
        .filter(|parameter| parameter.parameter.annotation.is_none())
        .map(|parameter| parameter.parameter.name.as_str())
        .collect();
    for parameter in function.parameters.iter_non_variadic_params().filter(|it| it.parameter.annotation.is_none()) {
        let argument = parameter.parameter.name.as_str();
        let message = format!("`{argument}` has no type hint, so {} takes anything for it", function.name);
        let fix = format!("say what it is, such as `{argument}: {}`", likely_hint(parameter));
        findings.push(Finding::new(&rule::MISSING_HINT, bytes_of(&parameter.parameter), message, fix));
    }
    let Some(text) = docstring_of(&function.body).filter(|text| !text.trim().is_empty()) else {
        let known = if bare.is_empty() { "name and arguments" } else { "name" };
        let message = format!("`{}` has no docstring: a model sees its {known} and nothing else", function.name);
        let fix = "begin the body with one line that says what it does: \"\"\"Search the web.\"\"\"";
        return findings.push(Finding::new(&rule::MISSING_DOCSTRING, name, message, fix));
    };
    explained(function, text, findings);
}

/// A hint to propose, as far as the default tells.
fn likely_hint(parameter: &ParameterWithDefault) -> &'static str {
    match parameter.default() {
        Some(Expr::BooleanLiteral(_)) => "bool",
        Some(number) if is_integer(number) => "int",
        Some(Expr::NumberLiteral(_)) => "float",
        Some(Expr::List(list)) if list.elts.first().is_some_and(is_integer) => "list[int]",
        Some(Expr::List(_)) => "list[str]",
        Some(Expr::Dict(_)) => "dict[str, str]",
        Some(Expr::NoneLiteral(_)) => "str | None",
        _ => "str",
    }
}

fn is_integer(value: &Expr) -> bool {
    value.as_number_literal_expr().is_some_and(|number| number.value.is_int())
}

/// The docstring's arguments against the function's own.
fn explained(function: &StmtFunctionDef, docstring: &str, findings: &mut Vec<Finding>) {
    let explained = documented_arguments(docstring);
    if explained.is_empty() {
        return;
    }
    let parameters = &function.parameters;
    let own: Vec<&str> =
        parameters.iter_non_variadic_params().map(|parameter| parameter.parameter.name.as_str()).collect();
    for parameter in parameters.iter_non_variadic_params() {
        let argument = parameter.parameter.name.as_str();
        let has_text = explained.iter().any(|name| name == argument) || says_itself(parameter);
        if !has_text {
            let message = format!("the docstring explains other arguments of `{}`, not `{argument}`", function.name);
            let fix = format!("add a line `{argument}: …` to them");
            findings.push(Finding::new(
                &rule::MISSING_ARGUMENT_TEXT,
                bytes_of(&parameter.parameter.name),
                message,
                fix,
            ));
        }
    }
    let rest = [parameters.vararg.as_deref(), parameters.kwarg.as_deref()];
    let is_rest = |name: &str| rest.iter().flatten().any(|rest| rest.name.as_str() == name.trim_start_matches('*'));
    // What `**options` takes may well be explained one by one.
    if parameters.kwarg.is_some() {
        return;
    }
    for name in explained.iter().filter(|name| !own.contains(&name.as_str()) && !is_rest(name)) {
        let message = format!("the docstring explains `{name}`, which `{}` does not take", function.name);
        let fix = nearest(name, own.iter().copied())
            .map_or_else(|| "remove it, or add the argument".to_owned(), |near| format!("did you mean `{near}`?"));
        let range = docstring_range(function, name);
        findings.push(Finding::new(&rule::UNKNOWN_ARGUMENT_TEXT, range, message, fix));
    }
}

/// Whether a hint carries the text: `Annotated[int, "how many"]`.
fn says_itself(parameter: &ParameterWithDefault) -> bool {
    let Some(Expr::Subscript(hint)) = parameter.parameter.annotation() else { return false };
    match &*hint.value {
        Expr::Name(name) => name.id == "Annotated",
        Expr::Attribute(attribute) => attribute.attr.as_str() == "Annotated",
        _ => false,
    }
}

fn docstring_range(function: &StmtFunctionDef, name: &str) -> std::ops::Range<usize> {
    let Some(Stmt::Expr(first)) = function.body.first() else { return bytes_of(&function.name) };
    let whole = bytes_of(&*first.value);
    let at = docstring_of(&function.body).and_then(|text| text.find(&format!("{name}:")).or_else(|| text.find(name)));
    // The quotes come first; a docstring with escapes is pointed at roughly.
    let start = whole.start + 3 + at.unwrap_or(0);
    if start + name.len() <= whole.end { start..start + name.len() } else { whole }
}

fn defaults(
    subject: &Subject<'_>,
    function: &StmtFunctionDef,
    parameter: &ParameterWithDefault,
    findings: &mut Vec<Finding>,
) {
    let Some(default) = parameter.default() else { return };
    let argument = parameter.parameter.name.as_str();
    let range = bytes_of(default);
    let shared = match default {
        Expr::List(_) => Some(("list", "[]")),
        Expr::Dict(_) => Some(("dict", "{}")),
        _ => None,
    };
    if let Some((kind, empty)) = shared {
        let message = format!(
            "every call of `{}` that leaves `{argument}` out gets the same {kind}, with what earlier calls put into it",
            function.name
        );
        let hint = hint_or_none(subject, parameter);
        let fix = format!("write `{argument}: {hint} = None`, and `{argument} = {argument} or {empty}` in the body");
        findings.push(Finding::new(&rule::SHARED_DEFAULT, range, message, fix));
    } else if let Some(what) = no_json(subject, default) {
        let message = format!("the default of `{argument}` is {what}, which has no JSON");
        let fix = "write `None`, and put the value in its place in the body";
        findings.push(Finding::new(&rule::DEFAULT_NOT_JSON, range, message, fix));
    }
}

/// The hint of a parameter that may be None as well.
fn hint_or_none(subject: &Subject<'_>, parameter: &ParameterWithDefault) -> String {
    let Some(hint) = parameter.parameter.annotation() else { return format!("{} | None", likely_hint(parameter)) };
    let written = subject.text.source.get(bytes_of(hint)).unwrap_or_default();
    let written = written.split_whitespace().collect::<Vec<_>>().join(" ");
    match hint {
        _ if written.contains("None") || written.contains("Optional") => written,
        // Python has no `|` for texts.
        Expr::StringLiteral(_) if written.len() > 2 => {
            let (inner, quote) = written.split_at(written.len() - 1);
            format!("{inner} | None{quote}")
        }
        _ => format!("{written} | None"),
    }
}

/// What a default is, when JSON has no word for it.
fn no_json(subject: &Subject<'_>, default: &Expr) -> Option<&'static str> {
    match default {
        Expr::Lambda(_) => Some("a function"),
        Expr::Set(_) | Expr::SetComp(_) => Some("a set"),
        Expr::Generator(_) => Some("a generator"),
        Expr::EllipsisLiteral(_) => Some("`...`"),
        Expr::NumberLiteral(number) if number.value.is_complex() => Some("a complex number"),
        Expr::Call(call) => match subject.names.dotted(&call.func)?.as_str() {
            "object" => Some("an object of its own"),
            "set" | "frozenset" => Some("a set"),
            _ => None,
        },
        Expr::Name(name) => subject.parsed.suite().iter().find_map(|statement| {
            let Stmt::Assign(assign) = statement else { return None };
            let names_it = assign.targets.iter().any(|target| target.as_name_expr().is_some_and(|it| it.id == name.id));
            if names_it && !assign.value.is_name_expr() { no_json(subject, &assign.value) } else { None }
        }),
        _ => None,
    }
}

/// Types whose values never become JSON, and what to return instead.
const NOT_RESULTS: &[(&str, &str)] = &[
    ("set", "list"),
    ("frozenset", "list"),
    ("typing.Set", "list"),
    ("typing.FrozenSet", "list"),
    ("collections.abc.Set", "list"),
    ("typing.AbstractSet", "list"),
    ("complex", "list[float]"),
    ("typing.Callable", "str"),
    ("collections.abc.Callable", "str"),
    ("typing.IO", "str"),
    ("typing.TextIO", "str"),
    ("typing.BinaryIO", "bytes"),
    ("types.ModuleType", "str"),
];

fn result(subject: &Subject<'_>, function: &StmtFunctionDef, findings: &mut Vec<Finding>) {
    struct Walk<'b, 'c> {
        subject: &'b Subject<'b>,
        found: &'c mut Vec<(std::ops::Range<usize>, String, &'static str)>,
    }
    impl<'a> Visitor<'a> for Walk<'_, '_> {
        fn visit_expr(&mut self, hint: &'a Expr) {
            let name = self.subject.names.dotted(hint);
            let known = name.as_deref().and_then(|name| NOT_RESULTS.iter().find(|(bad, _)| *bad == name));
            match known {
                Some((_, instead)) => self.found.push((bytes_of(hint), name.unwrap_or_default(), instead)),
                None => walk_expr(self, hint),
            }
        }
    }
    let Some(hint) = function.returns.as_deref() else { return };
    let mut found = Vec::new();
    Walk { subject, found: &mut found }.visit_expr(hint);
    for (range, name, instead) in found {
        let message =
            format!("`{}` returns {name}, which is not JSON: every call would end in INVALID_OUTPUT", function.name);
        let fix = format!("return {instead} instead");
        findings.push(Finding::new(&rule::RESULT_NOT_JSON, range, message, fix));
    }
}
