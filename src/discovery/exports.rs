//! `__all__`, as far as it is literal, and which functions are public.

use ruff_python_ast::{Expr, StmtFunctionDef};

use super::lines::Lines;
use super::module::{Module, name_of};
use crate::pep723::is_identifier;

/// What the module says about its public names.
#[derive(Default)]
pub(super) struct Exports<'a> {
    names: Option<Vec<(&'a str, usize)>>,
    /// The line of a part that is computed, so that it cannot be read.
    computed: Option<usize>,
}

impl<'a> Exports<'a> {
    /// `__all__ = …`
    pub(super) fn set(&mut self, value: &'a Expr, lines: &Lines) {
        *self = Self::default();
        if literal_names(value).is_some() {
            self.names = Some(Vec::new());
        }
        self.add(value, lines);
    }

    /// `__all__ += …`
    pub(super) fn add(&mut self, value: &'a Expr, lines: &Lines) {
        match literal_names(value) {
            Some(added) => {
                let added = added.into_iter().map(|(node, name)| (name, lines.of_node(node)));
                self.names.get_or_insert_default().extend(added);
            }
            None => self.computed = Some(lines.of_node(value)),
        }
    }

    /// `__all__.append("x")`, `__all__.extend(["x"])`
    pub(super) fn call(&mut self, expression: &'a Expr, lines: &Lines) {
        let Some(call) = expression.as_call_expr() else { return };
        let Some(method) = call.func.as_attribute_expr().filter(|it| name_of(&it.value) == Some("__all__")) else {
            return;
        };
        match (method.attr.as_str(), &*call.arguments.args) {
            ("extend", [value]) => self.add(value, lines),
            ("append", [Expr::StringLiteral(name)]) => {
                self.names.get_or_insert_default().push((name.value.to_str(), lines.of_node(name)));
            }
            _ => self.computed = Some(lines.of_node(call)),
        }
    }
}

fn literal_names(value: &Expr) -> Option<Vec<(&Expr, &str)>> {
    let items = match value {
        Expr::List(list) => &list.elts,
        Expr::Tuple(tuple) => &tuple.elts,
        _ => return None,
    };
    items.iter().map(|item| Some((item, item.as_string_literal_expr()?.value.to_str()))).collect()
}

/// The functions that are tools, in the order of their lines. What is odd about the choice becomes a warning.
pub(super) fn public_functions<'a>(module: &mut Module<'a>) -> Vec<&'a StmtFunctionDef> {
    let functions = module.functions();
    if let Some(line) = module.exports.computed {
        let rest = if module.exports.names.is_some() { "only its literal names count" } else { "it is not used" };
        module.warn(
            line,
            "exports",
            format!("`__all__` is computed here, so {rest}; write the names as a list of strings"),
        );
    }
    let public = match module.exports.names.clone() {
        None => functions.into_iter().filter(|function| !function.name.starts_with('_')).collect(),
        Some(names) => listed(module, &functions, &names),
    };
    let (callable, strange): (Vec<_>, Vec<_>) = public.into_iter().partition(|function| is_identifier(&function.name));
    for function in strange {
        let text = format!("`{}` is not offered: use letters a-z, digits and _ in its name", function.name);
        module.warn(module.lines.of_node(&function.name), "name", text);
    }
    callable
}

fn listed<'a>(
    module: &mut Module<'a>,
    functions: &[&'a StmtFunctionDef],
    names: &[(&'a str, usize)],
) -> Vec<&'a StmtFunctionDef> {
    for (name, line) in names {
        let is_function = functions.iter().any(|function| function.name.as_str() == *name);
        if !is_function {
            let text = format!("`__all__` names `{name}`, which is no function of this file; define it or remove it");
            module.warn(*line, "exports", text);
        }
    }
    let is_listed = |function: &&&StmtFunctionDef| names.iter().any(|(name, _)| function.name.as_str() == *name);
    functions.iter().filter(is_listed).copied().collect()
}
