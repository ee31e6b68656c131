//! Which blocks of a module run when a worker imports it.

use ruff_python_ast::{CmpOp, Expr, Stmt, StmtIf};

use super::module::name_of;

/// Whether a block runs when a worker imports the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Runs,
    /// Under `TYPE_CHECKING`: its types count, its functions do not exist.
    TypesOnly,
    /// Under `if __name__ == "__main__"` or `if False`.
    Never,
}

impl Reach {
    pub(super) fn inside(self, test: &Expr) -> Self {
        match test {
            Expr::Name(name) if name.id.as_str() == "TYPE_CHECKING" => Self::TypesOnly,
            Expr::Attribute(attribute) if attribute.attr.as_str() == "TYPE_CHECKING" => Self::TypesOnly,
            Expr::BooleanLiteral(literal) if !literal.value => Self::Never,
            test if is_main_guard(test) => Self::Never,
            _ => self,
        }
    }
}

/// `__name__ == "__main__"`
pub(super) fn is_main_guard(test: &Expr) -> bool {
    let Some(compare) = test.as_compare_expr() else { return false };
    let mut sides = std::iter::once(&*compare.left).chain(&*compare.comparators);
    compare.ops.iter().all(|op| *op == CmpOp::Eq) && sides.any(|side| name_of(side) == Some("__name__"))
}

/// Whether a branch is the program of a file, and calls its function `main`.
pub(super) fn runs_main(branch: &StmtIf) -> bool {
    is_main_guard(&branch.test) && branch.body.iter().any(calls_main)
}

/// `main()`, `sys.exit(main())`, `raise SystemExit(asyncio.run(main()))`
fn calls_main(statement: &Stmt) -> bool {
    match statement {
        Stmt::Expr(expression) => leads_to_main(&expression.value),
        Stmt::Assign(assign) => leads_to_main(&assign.value),
        Stmt::Raise(raise) => raise.exc.as_deref().is_some_and(leads_to_main),
        Stmt::Try(attempt) => attempt.body.iter().any(calls_main),
        _ => false,
    }
}

fn leads_to_main(expression: &Expr) -> bool {
    let mut at = expression;
    while let Expr::Call(call) = at {
        if name_of(&call.func) == Some("main") {
            return true;
        }
        let Some(first) = call.arguments.args.first() else { return false };
        at = first;
    }
    // `run(main)`
    name_of(at) == Some("main")
}
