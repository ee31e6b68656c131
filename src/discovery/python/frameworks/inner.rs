//! Tools that a function makes when it is called: `def register(mcp): @mcp.tool …`. They are not known without running it.

use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_ast::{Decorator, Stmt, StmtFunctionDef};

use super::MAKERS;

/// The rule of `check` about them.
pub(in crate::discovery::python) const RULE: &str = "inner-tools";
/// What decorates the handlers of a low-level server.
const HANDLERS: [&str; 2] = ["list_tools", "call_tool"];

/// The outermost functions of a file that make tools, in the order of their lines.
pub(in crate::discovery::python) fn makers_of_tools(body: &[Stmt]) -> Vec<&StmtFunctionDef> {
    let mut search = Search::default();
    search.visit_body(body);
    search.found
}

#[derive(Default)]
struct Search<'a> {
    /// The outermost function around the statement that is visited.
    around: Option<&'a StmtFunctionDef>,
    found: Vec<&'a StmtFunctionDef>,
}

impl<'a> StatementVisitor<'a> for Search<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let Stmt::FunctionDef(function) = statement else { return walk_stmt(self, statement) };
        let outer = self.around;
        if let Some(around) = outer {
            let is_known = self.found.last().is_some_and(|last| std::ptr::eq(*last, around));
            if !is_known && function.decorator_list.iter().any(makes_tool) {
                self.found.push(around);
            }
        }
        self.around = outer.or(Some(function));
        walk_stmt(self, statement);
        self.around = outer;
    }
}

/// `@mcp.tool()`, `@self.server.call_tool()`
fn makes_tool(decorator: &Decorator) -> bool {
    let called = decorator.expression.as_call_expr().map_or(&decorator.expression, |call| &*call.func);
    let word = called.as_attribute_expr().map(|attribute| attribute.attr.as_str());
    word.is_some_and(|word| MAKERS.contains(&word) || HANDLERS.contains(&word))
}
