//! Code that does not run in every worker, or may fail there without harm.

use ruff_python_ast::visitor::{Visitor, walk_expr};
use ruff_python_ast::{ExceptHandler, Expr, StmtTry, StmtWith};

use super::names::Names;

/// What catches an import that fails.
pub(super) const IMPORT_ERRORS: &[&str] = &["ImportError", "ModuleNotFoundError", "Exception", "BaseException"];
/// What catches a key that is not there.
pub(super) const KEY_ERRORS: &[&str] = &["KeyError", "LookupError", "Exception", "BaseException"];

/// `__name__ == "__main__"`, which holds in no worker.
pub(super) fn is_main(test: &Expr) -> bool {
    let Expr::Compare(compare) = test else { return false };
    let mut sides = std::iter::once(&*compare.left).chain(&*compare.comparators);
    compare.ops.iter().all(|op| *op == ruff_python_ast::CmpOp::Eq)
        && sides.any(|side| side.as_name_expr().is_some_and(|name| name.id == "__name__"))
}

pub(super) fn is_type_checking(test: &Expr) -> bool {
    match test {
        Expr::Name(name) => name.id == "TYPE_CHECKING",
        Expr::Attribute(attribute) => attribute.attr.as_str() == "TYPE_CHECKING",
        _ => false,
    }
}

/// Whether a test asks where it runs: the version, the system, whether a module is there.
pub(super) fn asks_where_it_runs(test: &Expr, names: &Names) -> bool {
    let asks = |name: &str| {
        let whole = ["sys.version_info", "sys.version", "sys.platform", "sys.implementation", "os.name", "find_spec"];
        let last = name.rsplit('.').next().unwrap_or(name);
        let starts = ["platform.", "sys.version_info.", "sys.implementation.", "importlib.util."];
        whole.contains(&name) || last == "TYPE_CHECKING" || starts.iter().any(|start| name.starts_with(start))
    };
    mentions(test, names, &asks)
}

/// Whether any name in an expression is one of these.
pub(super) fn mentions(expression: &Expr, names: &Names, wanted: &dyn Fn(&str) -> bool) -> bool {
    let mut search = Search { names, wanted, found: false };
    search.visit_expr(expression);
    search.found
}

struct Search<'s> {
    names: &'s Names,
    wanted: &'s dyn Fn(&str) -> bool,
    found: bool,
}

impl<'a> Visitor<'a> for Search<'_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        self.found |= self.names.dotted(expression).is_some_and(|name| (self.wanted)(&name));
        walk_expr(self, expression);
    }
}

/// Whether a `try` catches one of these.
pub(super) fn catches(tried: &StmtTry, kinds: &[&str]) -> bool {
    let is_one = |kind: &Expr| kind.as_name_expr().is_some_and(|name| kinds.contains(&name.id.as_str()));
    let is_caught = |kind: &Expr| match kind {
        Expr::Tuple(all) => all.elts.iter().any(is_one),
        kind => is_one(kind),
    };
    tried.handlers.iter().any(|ExceptHandler::ExceptHandler(handler)| handler.type_.as_deref().is_none_or(is_caught))
}

/// Whether a `with` is `contextlib.suppress` of one of these.
pub(super) fn suppresses(with: &StmtWith, names: &Names, kinds: &[&str]) -> bool {
    with.items.iter().any(|item| {
        let Expr::Call(call) = &item.context_expr else { return false };
        let is_one = |kind: &Expr| kind.as_name_expr().is_some_and(|name| kinds.contains(&name.id.as_str()));
        names.dotted(&call.func).as_deref() == Some("contextlib.suppress") && call.arguments.args.iter().any(is_one)
    })
}
