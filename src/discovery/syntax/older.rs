//! `except ValueError, e:` of Python 2, which Python 3.14 reads as two kinds of exceptions and versions before it refuse.

use ruff_python_ast::visitor::{Visitor, walk_alias, walk_expr, walk_parameter, walk_stmt};
use ruff_python_ast::{Alias, ExceptHandler, Expr, ExprContext, ExprTuple, Parameter, Stmt};
use ruff_text_size::Ranged;

use super::Refusal;

/// The first such line. What is bound anywhere in the file may be a kind of exception.
pub(super) fn except(source: &str, body: &[Stmt]) -> Option<Refusal> {
    // Most files are not walked for it.
    let may_have = source.lines().any(|line| {
        let line = line.trim_start();
        line.starts_with("except ") && line.contains(',') && !line.contains(" as ")
    });
    let mut search = Search::default();
    if may_have {
        search.visit_body(body);
    }
    if search.bound.contains(&"*") {
        return None;
    }
    let (tuple, name) = search.found.into_iter().find(|(_, name)| !search.bound.contains(name))?;
    let kind = &source[tuple.elts[0].start().to_usize()..tuple.elts[0].end().to_usize()];
    let range = tuple.start().to_usize()..tuple.end().to_usize();
    let what = format!("this is Python 2: `except {}`", &source[range.clone()]);
    Some(Refusal::new(range, &what, format!("write `except {kind} as {name}:`")))
}

#[derive(Default)]
struct Search<'a> {
    found: Vec<(&'a ExprTuple, &'a str)>,
    bound: Vec<&'a str>,
}

impl<'a> Visitor<'a> for Search<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::ClassDef(class) => self.bound.push(&class.name),
            Stmt::FunctionDef(function) => self.bound.push(&function.name),
            _ => {}
        }
        walk_stmt(self, statement);
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(handler) = handler;
        self.bound.extend(handler.name.as_ref().map(ruff_python_ast::Identifier::as_str));
        if let Some(Expr::Tuple(tuple)) = handler.type_.as_deref()
            && let [_, Expr::Name(name)] = &*tuple.elts
            && !tuple.parenthesized
            && name.id.starts_with(|c: char| c.is_lowercase())
        {
            self.found.push((tuple, &name.id));
        }
        self.visit_body(&handler.body);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Name(name) = expression
            && name.ctx == ExprContext::Store
        {
            self.bound.push(&name.id);
        }
        walk_expr(self, expression);
    }

    fn visit_alias(&mut self, alias: &'a Alias) {
        self.bound.push(alias.asname.as_ref().unwrap_or(&alias.name));
        walk_alias(self, alias);
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.bound.push(&parameter.name);
        walk_parameter(self, parameter);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::syntax_tree;
    use super::super::refusal;

    #[test]
    fn a_name_that_is_bound_nowhere_is_no_kind_of_exception() {
        let told = |source: &str| refusal(source, &syntax_tree(source).unwrap()).map(|refusal| refusal.sentence());
        let old = "try:\n    x = 1\nexcept (ValueError, KeyError), e:\n    print(e)\n";
        assert_eq!(
            told(old).as_deref(),
            Some(
                "not valid Python: this is Python 2: `except (ValueError, KeyError), e`; write `except (ValueError, KeyError) as e:`"
            )
        );
        for new in [
            "try:\n    x = 1\nexcept ValueError, KeyError:\n    pass\n",
            "from socket import error, timeout\ntry:\n    x = 1\nexcept error, timeout:\n    pass\n",
            "from socket import *\ntry:\n    x = 1\nexcept error, timeout:\n    pass\n",
            "import socket\ntry:\n    x = 1\nexcept socket.error, socket.timeout:\n    pass\n",
            "e = ValueError\ntry:\n    x = 1\nexcept KeyError, e:\n    pass\n",
        ] {
            assert_eq!(told(new), None, "{new}");
        }
    }
}
