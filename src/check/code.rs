//! Rules about the code of a tool file: secrets, and what differs in a worker: its environment variables, its standard input,
//! its life over many calls. Code that runs only under a condition is not judged.

use std::collections::HashMap;
use std::ops::Range;

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_keyword, walk_stmt};
use ruff_python_ast::{Expr, ExprCall, ExprContext, Identifier, Keyword, Stmt, StmtFunctionDef, StmtWith};

use super::file::Subject;
use super::report::bytes_of;
use super::written::{is_secret_name, known_form, looks_secret};
use super::{Finding, rule};
use crate::config::section::nearest;
use crate::process::reaches_workers;

/// One walk over the code; what it imports unconditionally is returned.
pub(super) fn check<'a>(subject: &Subject<'a>, findings: &mut Vec<Finding>) -> Vec<(String, &'a Identifier)> {
    let mut walk = Walk { subject, findings, names: HashMap::new(), is_conditional: false, imports: Vec::new() };
    walk.visit_body(subject.parsed.suite());
    walk.imports
}

struct Walk<'w, 'a> {
    subject: &'w Subject<'a>,
    findings: &'w mut Vec<Finding>,
    /// Imported names and what they stand for.
    names: HashMap<String, String>,
    /// Whether this runs only under a condition, or may fail without harm.
    is_conditional: bool,
    imports: Vec<(String, &'a Identifier)>,
}

impl<'a> Visitor<'a> for Walk<'_, 'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => {
                for alias in &import.names {
                    let name = alias.asname.as_ref().map(|name| (name.to_string(), alias.name.to_string()));
                    self.names.extend(name);
                    self.imported(&alias.name);
                }
            }
            Stmt::ImportFrom(import) if import.level == 0 => {
                let Some(module) = &import.module else { return };
                for alias in &import.names {
                    self.of_hostler(module, &alias.name, bytes_of(&alias.name));
                    let name = alias.asname.as_ref().unwrap_or(&alias.name).to_string();
                    self.names.insert(name, format!("{module}.{}", alias.name));
                }
                self.imported(module);
            }
            Stmt::Assign(assign) => assign.targets.iter().for_each(|target| self.assigned(target, &assign.value)),
            Stmt::AnnAssign(assign) => {
                assign.value.iter().for_each(|value| self.assigned(&assign.target, value));
            }
            Stmt::FunctionDef(function) => self.defaults(function),
            _ => {}
        }
        let is_condition = match statement {
            Stmt::If(_) | Stmt::Try(_) => true,
            Stmt::With(with) => self.suppresses(with),
            _ => false,
        };
        self.walk(is_condition, |walk| walk_stmt(walk, statement));
    }

    fn visit_keyword(&mut self, keyword: &'a Keyword) {
        keyword.arg.iter().for_each(|name| self.named(name, &keyword.value));
        walk_keyword(self, keyword);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::StringLiteral(literal) => {
                if let Some(what) = known_form(literal.value.to_str()) {
                    self.written(expression, what, "NAME");
                }
            }
            Expr::Dict(dict) => {
                for item in &dict.items {
                    if let Some(Expr::StringLiteral(key)) = &item.key {
                        self.named(key.value.to_str(), &item.value);
                    }
                }
            }
            Expr::Call(call) => self.call(call),
            Expr::Attribute(attribute) if attribute.ctx == ExprContext::Load => {
                let module = self.dotted(&attribute.value).unwrap_or_default();
                self.of_hostler(&module, &attribute.attr, bytes_of(&attribute.attr));
            }
            Expr::Subscript(read)
                if read.ctx == ExprContext::Load && self.dotted(&read.value).as_deref() == Some("os.environ") =>
            {
                self.variable(&read.slice, false);
            }
            _ => {}
        }
        self.walk(expression.is_if_expr(), |walk| walk_expr(walk, expression));
    }
}

impl<'a> Walk<'_, 'a> {
    fn walk(&mut self, is_condition: bool, walk: impl FnOnce(&mut Self)) {
        let before = self.is_conditional;
        self.is_conditional |= is_condition;
        walk(self);
        self.is_conditional = before;
    }

    /// The dotted name of an expression, with imported names resolved: `os.environ.get`.
    fn dotted(&self, expression: &Expr) -> Option<String> {
        match expression {
            Expr::Name(name) => Some(self.names.get(name.id.as_str()).cloned().unwrap_or_else(|| name.id.to_string())),
            Expr::Attribute(attribute) => Some(format!("{}.{}", self.dotted(&attribute.value)?, attribute.attr)),
            _ => None,
        }
    }

    fn suppresses(&self, with: &StmtWith) -> bool {
        let manager = |call: &Expr| call.as_call_expr().and_then(|call| self.dotted(&call.func));
        with.items.iter().any(|item| manager(&item.context_expr).as_deref() == Some("contextlib.suppress"))
    }

    fn imported(&mut self, module: &'a Identifier) {
        if !self.is_conditional {
            self.imports.push((module.to_string(), module));
        }
    }

    /// A name of the module that hostler supplies.
    fn of_hostler(&mut self, module: &str, name: &str, place: Range<usize>) {
        let is_known = || name == "*" || name.starts_with("__") || hostler_names().any(|known| known == name);
        if module != "hostler" || self.is_conditional || is_known() {
            return;
        }
        let near = nearest(name, hostler_names());
        let all = || format!("it has {}", hostler_names().collect::<Vec<_>>().join(", "));
        let fix = near.map_or_else(all, |near| format!("did you mean `hostler.{near}`?"));
        self.findings.push(Finding::new(&rule::UNKNOWN_NAME, place, format!("`hostler` has no `{name}`"), fix));
    }

    fn call(&mut self, call: &ExprCall) {
        let (Some(name), argument) = (self.dotted(&call.func), call.arguments.args.first()) else { return };
        match (name.as_str(), argument) {
            ("hostler.secret", Some(argument @ Expr::StringLiteral(secret))) => {
                self.secret(secret.value.to_str(), argument);
            }
            ("os.getenv" | "os.environ.get", Some(argument)) => {
                // A secret without a default is needed in most cases.
                let is_needed = call.arguments.args.len() == 1
                    && call.arguments.keywords.is_empty()
                    && argument.as_string_literal_expr().is_some_and(|name| is_secret_name(name.value.to_str()));
                self.variable(argument, !is_needed);
            }
            ("input", _) if !self.is_conditional => {
                let message = "`input` raises EOFError in a worker, whose standard input is empty";
                let fix = "take the value as an argument of the tool";
                self.findings.push(Finding::new(&rule::READS_INPUT, bytes_of(&*call.func), message, fix));
            }
            _ => {}
        }
    }

    /// A variable that is read. One that may be missing is only wrong where it is a declared secret, which is never there.
    fn variable(&mut self, argument: &Expr, may_lack: bool) {
        let Expr::StringLiteral(literal) = argument else { return };
        let (name, settings) = (literal.value.to_str(), self.subject.settings);
        let is_declared = settings.secrets.value.iter().any(|declared| declared == name);
        let is_there = reaches_workers(name, &settings.pass_env.value) || settings.env.contains_key(name);
        if is_there || !is_declared && (may_lack || self.is_conditional) {
            return;
        }
        let message = format!("a worker does not inherit the environment variable {name}");
        let passed = format!("`pass_env = [\"{name}\"]` under [tool.{}] in hostler.toml", self.subject.file.pack);
        let fix = match (is_declared, is_secret_name(name)) {
            (true, _) => declare_it(self.subject, name),
            (false, true) => {
                format!("{}; or leave the file as it is, and write {passed}", declare_it(self.subject, name))
            }
            (false, false) => format!("read it from hostler.config, or write {passed}"),
        };
        self.findings.push(Finding::new(&rule::ENVIRONMENT_READ, bytes_of(argument), message, fix));
    }

    fn secret(&mut self, name: &str, argument: &Expr) {
        if !self.subject.settings.secrets.value.iter().any(|declared| declared == name) {
            let message = format!("the secret {name} is read but not declared, so the tool never receives it");
            let fix = declaring(self.subject, name);
            self.findings.push(Finding::new(&rule::UNDECLARED_SECRET, bytes_of(argument), message, fix));
        }
    }

    fn assigned(&mut self, target: &Expr, value: &Expr) {
        match target {
            Expr::Name(name) => self.named(&name.id, value),
            Expr::Attribute(attribute) => self.named(&attribute.attr, value),
            Expr::Subscript(subscript) => {
                if let Expr::StringLiteral(key) = &*subscript.slice {
                    self.named(key.value.to_str(), value);
                }
            }
            _ => {}
        }
    }

    /// A string under a name that secrets have.
    fn named(&mut self, name: &str, value: &Expr) {
        let Expr::StringLiteral(literal) = value else { return };
        let text = literal.value.to_str();
        if is_secret_name(name) && looks_secret(text) && known_form(text).is_none() {
            let secret = name.to_ascii_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
            self.written(value, &format!("the value of `{name}`"), &secret);
        }
    }

    fn written(&mut self, value: &Expr, what: &str, name: &str) {
        let message = format!("{what} looks like a secret written into the file");
        let fix = declare_it(self.subject, name);
        self.findings.push(Finding::new(&rule::WRITTEN_SECRET, bytes_of(value), message, fix));
    }

    /// Mutable defaults of a tool.
    fn defaults(&mut self, function: &StmtFunctionDef) {
        let line = self.subject.text.line_of(bytes_of(&function.name).start);
        let mut tools = self.subject.file.functions.iter();
        if !tools.any(|tool| tool.symbol() == function.name.as_str() && tool.line == line) {
            return;
        }
        for parameter in function.parameters.iter_non_variadic_params() {
            let (kind, empty) = match parameter.default() {
                Some(Expr::List(_)) => ("list", "[]"),
                Some(Expr::Dict(_)) => ("dict", "{}"),
                _ => continue,
            };
            let argument = parameter.parameter.name.as_str();
            let message = format!(
                "calls of `{}` without `{argument}` share one {kind}, with what earlier calls put into it",
                function.name
            );
            let fix = format!("default to `None`, and write `{argument} = {argument} or {empty}` in the body");
            self.findings.push(Finding::new(&rule::SHARED_DEFAULT, parameter.default().map(bytes_of), message, fix));
        }
    }
}

/// The public names of the module `hostler`, from its own text.
fn hostler_names() -> impl Iterator<Item = &'static str> {
    const MODULE: &str = include_str!("../../worker-shims/python/hostler/__init__.py");
    let list = MODULE.split_once("\n__all__ = [").and_then(|(_, rest)| rest.split_once(']'));
    list.map_or("", |(names, _)| names).split('"').skip(1).step_by(2)
}

/// How to declare a secret in the file's header.
fn declaring(subject: &Subject<'_>, name: &str) -> String {
    match &subject.file.header {
        Some(header) if header.dependencies_from.is_some() => {
            format!("write `secrets = [\"{name}\"]` under [tool.{}] in hostler.toml", subject.file.pack)
        }
        Some(header) => format!("in the header, {}", header.declaring_secret(name)),
        None => format!("give the file a header with `secrets = [\"{name}\"]` under [tool.hostler]"),
    }
}

/// How to read a secret instead. Secrets are sent with calls, so code at the top level has none.
fn declare_it(subject: &Subject<'_>, name: &str) -> String {
    let read = format!("read it with hostler.secret(\"{name}\") inside the function that needs it");
    if subject.settings.secrets.value.iter().any(|declared| declared == name) {
        return format!("`import hostler` and {read}");
    }
    format!("declare it ({}), `import hostler` and {read}", declaring(subject, name))
}

#[cfg(test)]
mod tests {
    use super::hostler_names;

    #[test]
    fn the_names_of_the_module_are_known() {
        let names: Vec<&str> = hostler_names().collect();
        for name in ["Audio", "File", "Image", "Link", "call", "config", "tools"] {
            assert!(names.contains(&name), "{name}");
        }
        assert!(
            names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_')),
            "{names:?}"
        );
    }
}
