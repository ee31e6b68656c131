//! Parameters that a framework gives, so that callers do not: `ctx: Context`, `Annotated[str, InjectedToolArg]`, `__user__`,
//! `db = Depends(connect)`. The worker's `frameworks/injected.py` gives them.

use ruff_python_ast::{Expr, ParameterWithDefault, StmtFunctionDef};

use super::{last_name, package};
use crate::discovery::python::containers::elements;
use crate::discovery::python::module::Module;
use crate::discovery::python::names::Named;
use crate::discovery::python::public::Served;
use crate::discovery::python::types::LONGEST_QUOTED_HINT;

/// The types of what frameworks give, with the packages that they are of.
const TYPES: [(&str, &[&str]); 10] = [
    ("Context", &["fastmcp", "mcp", "llama_index", "workflows", "click", "typer", "google"]),
    ("RunContextWrapper", &["agents"]),
    ("ToolContext", &["agents", "strands", "google"]),
    ("RunContext", &["pydantic_ai", "agno", "livekit"]),
    ("ToolRuntime", &["langchain", "langgraph"]),
    ("RunnableConfig", &["langchain", "langchain_core"]),
    ("CallbackManagerForToolRun", &["langchain", "langchain_core"]),
    ("AsyncCallbackManagerForToolRun", &["langchain", "langchain_core"]),
    ("CancellationToken", &["autogen_core"]),
    ("Request", &["fastapi", "starlette"]),
];
/// What agno gives by name.
const AGNO: [&str; 5] = ["agent", "team", "run_context", "session_state", "dependencies"];
/// A deeper type is no such parameter.
const DEEPEST: usize = 8;

/// Whether a framework gives this parameter.
pub(in crate::discovery::python) fn is_injected(
    module: &Module<'_>,
    served: &Served<'_>,
    parameter: &ParameterWithDefault,
) -> bool {
    let name = parameter.parameter.name.as_str();
    is_dunder(name)
        || served.offer.hides(name)
        || AGNO.contains(&name) && (served.is_of_agno || is_decorated_by(module, served.function, "agno"))
        || name == "agent" && is_decorated_by(module, served.function, "strands")
        || parameter.default().is_some_and(|value| is_dependency(module, value))
        || parameter.parameter.annotation().is_some_and(|hint| is_given(module, hint, DEEPEST))
}

/// Whether a framework gives what has this type.
pub(in crate::discovery::python) fn is_given_by_framework(module: &Module<'_>, hint: &Expr) -> bool {
    is_given(module, hint, DEEPEST)
}

/// `__user__`, `__event_emitter__`
fn is_dunder(name: &str) -> bool {
    name.len() > 4 && name.starts_with("__") && name.ends_with("__")
}

/// Whether agno gives some of a function's parameters by name.
pub(in crate::discovery::python) fn takes_from_agno(function: &StmtFunctionDef) -> bool {
    function.parameters.iter_non_variadic_params().any(|it| AGNO.contains(&it.parameter.name.as_str()))
}

fn is_decorated_by(module: &Module<'_>, function: &StmtFunctionDef, framework: &str) -> bool {
    function.decorator_list.iter().any(|decorator| {
        let called = decorator.expression.as_call_expr().map_or(&decorator.expression, |call| &call.func);
        module.outside_name(called).is_some_and(|full| package(&full) == framework)
    })
}

/// `Depends(connect)`, `CurrentContext()`
fn is_dependency(module: &Module<'_>, value: &Expr) -> bool {
    let Some(full) = value.as_call_expr().and_then(|call| module.outside_name(&call.func)) else { return false };
    last_name(&full) == "Depends" || package(&full) == "fastmcp" && full.contains(".dependencies.")
}

fn is_given(module: &Module<'_>, hint: &Expr, left: usize) -> bool {
    let Some(left) = left.checked_sub(1) else { return false };
    match hint {
        Expr::StringLiteral(text) if text.value.len() <= LONGEST_QUOTED_HINT => {
            Module::unquote(text).is_some_and(|hint| is_given(module, &hint, left))
        }
        Expr::BinOp(either) => is_given(module, &either.left, left) || is_given(module, &either.right, left),
        Expr::Name(_) | Expr::Attribute(_) => match module.resolve(hint) {
            Named::Outside(full) => is_type(&full) || is_imported_in_function(module, &full),
            Named::Value { value, .. } => is_given(module, value, left), // `Ctx = Context`
            _ => false,
        },
        Expr::Subscript(generic) => {
            let word = module.outside_name(&generic.value).unwrap_or_default();
            let parts = elements(&generic.slice);
            match last_name(&word) {
                "Optional" | "Union" => parts.iter().any(|part| is_given(module, part, left)),
                "Annotated" => parts.split_first().is_some_and(|(first, notes)| {
                    notes.iter().any(|note| is_note(module, note)) || is_given(module, first, left)
                }),
                _ => is_type(&word),
            }
        }
        _ => false,
    }
}

/// `InjectedToolArg`, `InjectedState("messages")`, `Depends(connect)`
fn is_note(module: &Module<'_>, note: &Expr) -> bool {
    let called = note.as_call_expr().map_or(note, |call| &call.func);
    let full = module.outside_name(called).unwrap_or_default();
    let word = last_name(&full);
    word.starts_with("Injected") || matches!(word, "Depends" | "Resolve")
}

/// `from fastmcp import Context` in a function that makes tools.
fn is_imported_in_function(module: &Module<'_>, full: &str) -> bool {
    let Some(name) = full.strip_prefix("builtins.") else { return false };
    module.imports.iter().any(|import| last_name(import) == name && is_type(import))
}

/// Whether frameworks give what is of a class, by its full name.
pub(in crate::discovery::python) fn is_type(full: &str) -> bool {
    TYPES.iter().any(|(name, packages)| *name == last_name(full) && packages.contains(&package(full)))
}
