//! What the constructor of a toolkit names as its tools.

use ruff_python_ast::{Expr, Stmt, StmtFunctionDef};

use super::{keyword, text};
use crate::discovery::python::module::name_of;

/// The methods that the constructor of a toolkit names, and what it calls each: `tools=[self.a, self.b]`, `tools.append(self.a)`,
/// `self.register(self.a, name="search")`.
pub(super) fn registered<'a>(methods: &[&'a StmtFunctionDef]) -> Vec<(&'a str, Option<&'a str>)> {
    let Some(constructor) = methods.iter().find(|method| method.name.as_str() == "__init__") else { return Vec::new() };
    let mut finder = Finder { found: Vec::new(), left: MOST };
    constructor.body.iter().for_each(|statement| finder.statement(statement));
    let is_method = |(name, _): &(&'a str, _)| methods.iter().any(|method| method.name.as_str() == *name);
    finder.found.into_iter().filter(is_method).collect()
}

/// Larger constructors are not looked through.
const MOST: usize = 5_000;

/// Finds `self.x` that is not called, anywhere in a body.
struct Finder<'a> {
    found: Vec<(&'a str, Option<&'a str>)>,
    left: usize,
}

impl<'a> Finder<'a> {
    fn statement(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Expr(expression) => self.expression(&expression.value),
            Stmt::Assign(assign) => self.expression(&assign.value),
            Stmt::AnnAssign(assign) => assign.value.iter().for_each(|value| self.expression(value)),
            Stmt::AugAssign(assign) => self.expression(&assign.value),
            Stmt::If(branch) => {
                let clauses = branch.elif_else_clauses.iter().flat_map(|clause| &clause.body);
                branch.body.iter().chain(clauses).for_each(|statement| self.statement(statement));
            }
            Stmt::With(with) => with.body.iter().for_each(|statement| self.statement(statement)),
            Stmt::Try(attempt) => attempt.body.iter().for_each(|statement| self.statement(statement)),
            _ => {}
        }
    }

    fn expression(&mut self, expression: &'a Expr) {
        let Some(left) = self.left.checked_sub(1) else { return };
        self.left = left;
        match expression {
            Expr::Attribute(attribute) if name_of(&attribute.value) == Some("self") => {
                self.found.push((&attribute.attr, None));
            }
            Expr::List(list) => list.elts.iter().for_each(|item| self.expression(item)),
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|item| self.expression(item)),
            Expr::Call(call) => {
                let method = call.arguments.args.first().and_then(Expr::as_attribute_expr);
                let method = method.filter(|method| name_of(&method.value) == Some("self"));
                let name = keyword(call, "name").or_else(|| call.arguments.args.get(1)).and_then(text);
                if let (Some(method), Some(_)) = (method, name) {
                    return self.found.push((&method.attr, name));
                }
                let named = call.arguments.keywords.iter().map(|keyword| &keyword.value);
                call.arguments.args.iter().chain(named).for_each(|value| self.expression(value));
            }
            Expr::If(either) => {
                self.expression(&either.body);
                self.expression(&either.orelse);
            }
            _ => {}
        }
    }
}
