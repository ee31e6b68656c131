//! What the constructor of a toolkit names as its tools.

use ruff_python_ast::{Expr, ExprCall, Stmt, StmtClassDef, StmtFunctionDef};

use super::classes::own_methods;
use super::{keyword, text};
use crate::discovery::python::module::name_of;

/// The methods that the constructor of a toolkit names, and what it calls each: `tools=[self.a, self.b]`, `tools.append(self.a)`,
/// `self.register(self.a, name="search")`.
pub(super) fn registered<'a>(
    classes: &[&'a StmtClassDef],
    methods: &[&'a StmtFunctionDef],
) -> Vec<(&'a str, Option<&'a str>)> {
    let mut finder = Finder { found: Vec::new(), left: MOST };
    // Each constructor calls that of its base.
    for constructor in classes.iter().flat_map(|class| own_methods(class)).filter(|it| it.name.as_str() == "__init__") {
        constructor.body.iter().for_each(|statement| finder.statement(statement));
    }
    let is_method = |(name, _): &(&'a str, _)| methods.iter().any(|method| method.name.as_str() == *name);
    let found: Vec<_> = finder.found.into_iter().filter(is_method).collect();
    // `async_tools=[(self.asearch, "search")]` is another form of a tool.
    let is_other_form = |name: &str| found.iter().any(|(method, given)| given.is_none() && *method == name);
    found.iter().filter(|(_, given)| !given.is_some_and(is_other_form)).copied().collect()
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
            Expr::Tuple(tuple) => match &*tuple.elts {
                [Expr::Attribute(method), name] if name_of(&method.value) == Some("self") && text(name).is_some() => {
                    self.found.push((&method.attr, text(name)));
                }
                items => items.iter().for_each(|item| self.expression(item)),
            },
            Expr::Call(call) => {
                if let Some((method, name)) = registered_as(call) {
                    return self.found.push((method, Some(name)));
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

/// `self.register(self.a, name="search")`, `Function.from_callable(self.a, name="search")`
fn registered_as(call: &ExprCall) -> Option<(&str, &str)> {
    let by = call.func.as_attribute_expr()?;
    let is_own = || name_of(&by.value) == Some("self") || by.value.is_call_expr(); // `super()`
    let registers = by.attr.as_str() == "register" && is_own() || by.attr.as_str() == "from_callable";
    let call = Some(call).filter(|_| registers)?;
    let arguments = &call.arguments.args;
    let method = keyword(call, "function").or_else(|| arguments.first())?.as_attribute_expr()?;
    let name = keyword(call, "name").or_else(|| arguments.get(1)).and_then(text)?;
    (name_of(&method.value) == Some("self")).then_some((&method.attr, name))
}
