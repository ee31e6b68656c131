//! What a worker does not have: variables of the environment, and a keyboard.

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{BoolOp, Expr, ExprCall, ExprContext, ExprSubscript, Stmt};

use super::credentials::{declare_it, is_secret_name};
use super::file::Subject;
use super::guards::{KEY_ERRORS, catches, is_main, mentions, suppresses};
use super::text::bytes_of;
use super::{Finding, rule};
use crate::process::reaches_workers;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    Walk { subject, findings, may_lack: false, was_asked: false, has_fallback: false }
        .visit_body(subject.parsed.suite());
}

struct Walk<'b, 'c> {
    subject: &'b Subject<'b>,
    findings: &'c mut Vec<Finding>,
    /// Whether a key that is not there is caught, or was asked for before.
    may_lack: bool,
    /// Whether keys were asked for before, which holds for whatever reads them.
    was_asked: bool,
    /// Whether something else takes the place of nothing.
    has_fallback: bool,
}

impl<'a> Visitor<'a> for Walk<'_, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            // No worker runs it.
            Stmt::If(branch) if is_main(&branch.test) => {
                branch.elif_else_clauses.iter().for_each(|clause| self.visit_body(&clause.body));
            }
            Stmt::If(branch) if self.asks_for_keys(&branch.test) => self.asked(|walk| walk_stmt(walk, statement)),
            Stmt::Try(tried) if catches(tried, KEY_ERRORS) => {
                self.lacking(|walk| walk.visit_body(&tried.body));
                tried.handlers.iter().for_each(|handler| self.visit_except_handler(handler));
                self.visit_body(&tried.orelse);
                self.visit_body(&tried.finalbody);
            }
            Stmt::With(with) if suppresses(with, &self.subject.names, KEY_ERRORS) => {
                self.lacking(|walk| walk.visit_body(&with.body));
            }
            _ => walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        let had_fallback = std::mem::take(&mut self.has_fallback);
        match expression {
            Expr::BoolOp(choice) if choice.op == BoolOp::Or => {
                for (index, value) in choice.values.iter().enumerate() {
                    self.has_fallback = had_fallback || index + 1 < choice.values.len();
                    self.visit_expr(value);
                }
            }
            Expr::If(choice) if self.asks_for_keys(&choice.test) => self.asked(|walk| walk_expr(walk, expression)),
            Expr::Call(call) => {
                self.call(call, had_fallback);
                walk_expr(self, expression);
            }
            Expr::Subscript(subscript) => {
                self.subscript(subscript);
                walk_expr(self, expression);
            }
            _ => walk_expr(self, expression),
        }
        self.has_fallback = false;
    }
}

impl Walk<'_, '_> {
    fn lacking(&mut self, walk: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.may_lack, true);
        walk(self);
        self.may_lack = before;
    }

    fn asked(&mut self, walk: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.was_asked, true);
        self.lacking(walk);
        self.was_asked = before;
    }

    /// `"KEY" in os.environ`.
    fn asks_for_keys(&self, test: &Expr) -> bool {
        test.is_compare_expr() && mentions(test, &self.subject.names, &|name| name == "os.environ")
    }

    /// Setting and deleting one is no reading.
    fn subscript(&mut self, subscript: &ExprSubscript) {
        let is_environment = self.subject.names.dotted(&subscript.value).as_deref() == Some("os.environ");
        if is_environment && subscript.ctx == ExprContext::Load {
            self.read(&subscript.slice, self.may_lack);
        }
    }

    fn call(&mut self, call: &ExprCall, had_fallback: bool) {
        let Some(name) = self.subject.names.dotted(&call.func) else { return };
        match name.as_str() {
            "os.getenv" | "os.environ.get" => {
                if let Some(argument) = call.arguments.args.first() {
                    self.read(argument, had_fallback || self.was_asked || call.arguments.len() > 1);
                }
            }
            "input" => {
                let message = "a worker has no keyboard: `input` raises EOFError";
                let fix = "take what is asked for as an argument of the tool";
                self.findings.push(Finding::new(&rule::READS_INPUT, bytes_of(&*call.func), message, fix));
            }
            _ => {}
        }
    }

    fn read(&mut self, argument: &Expr, is_provided_for: bool) {
        let Expr::StringLiteral(literal) = argument else { return };
        let (name, settings) = (literal.value.to_str(), self.subject.settings);
        let is_declared = settings.secrets.value.iter().any(|declared| declared == name);
        let is_there = reaches_workers(name, &settings.pass_env.value) || settings.env.contains_key(name);
        // A declared secret is meant to be there: whatever else is provided would always be taken.
        if is_there || is_provided_for && !is_declared {
            return;
        }
        let message = format!("the variable {name} does not reach a worker, whose environment is an allow-list");
        let fix = if is_declared || is_secret_name(name) {
            declare_it(self.subject, name)
        } else {
            format!("read it from hostler.config, or let it through: `pass_env = [\"{name}\"]` in hostler.toml")
        };
        self.findings.push(Finding::new(&rule::ENVIRONMENT_READ, bytes_of(argument), message, fix));
    }
}
