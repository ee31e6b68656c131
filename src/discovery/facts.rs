//! What stands around a type: after the `=`, in `field(…)`, in `Field(…)`.

use ruff_python_ast::{Expr, ExprCall};
use serde_json::{Value, json};

use super::defaults::literal;
use super::limits::Limits;
use super::module::Module;

/// Facts about one field, or about a parameter whose default is a `Field(…)`.
#[derive(Default)]
pub(super) struct Facts {
    pub(super) is_required: bool,
    pub(super) default: Option<Value>,
    pub(super) description: Option<String>,
    pub(super) alias: Option<String>,
    /// Whether it goes by a name that cannot be told.
    pub(super) is_renamed: bool,
    /// Whether a caller may give it, and whether a result shows it.
    pub(super) is_hidden_from: Hidden,
    pub(super) limits: Limits,
}

/// Where a field is left out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hidden {
    #[default]
    Nowhere,
    /// `field(init=False)`: no caller can give it.
    Arguments,
    /// `Field(exclude=True)`: no result shows it.
    Results,
}

impl Facts {
    /// Of a field with nothing after its type.
    pub(super) fn required() -> Self {
        Self { is_required: true, ..Self::default() }
    }

    /// Reads `field(…)` and `Field(…)`.
    pub(super) fn of_call(module: &Module<'_>, call: &ExprCall) -> Self {
        let value = call.arguments.args.first().or_else(|| keyword(call, "default"));
        let text = |name: &str| {
            let text = keyword(call, name)?;
            literal(text, module)?.as_str().map(str::to_owned)
        };
        let factory = keyword(call, "default_factory");
        let says = |name: &str, wanted: bool| {
            keyword(call, name).and_then(|value| literal(value, module)) == Some(Value::Bool(wanted))
        };
        let names = ["validation_alias", "alias"];
        let given = names.iter().find(|name| keyword(call, name).is_some_and(|value| !value.is_none_literal_expr()));
        let alias = given.and_then(|name| text(name));
        let is_hidden_from = match () {
            () if says("init", false) => Hidden::Arguments,
            () if says("exclude", true) => Hidden::Results,
            () => Hidden::Nowhere,
        };
        Self {
            is_required: value.is_none_or(Expr::is_ellipsis_literal_expr) && factory.is_none(),
            default: value
                .and_then(|value| literal(value, module))
                .or_else(|| factory.and_then(|factory| made(module, factory))),
            description: text("description"),
            is_renamed: alias.is_none() && given.is_some(),
            alias,
            is_hidden_from,
            limits: Limits::of_keywords(module, call),
        }
    }

    /// These, and what `noted` (in `Annotated`) says besides.
    pub(super) fn or(mut self, noted: Self) -> Self {
        self.is_renamed |= self.alias.is_none() && noted.is_renamed;
        self.alias = self.alias.or(noted.alias);
        self.description = self.description.or(noted.description);
        if self.is_hidden_from == Hidden::Nowhere {
            self.is_hidden_from = noted.is_hidden_from;
        }
        self
    }
}

/// What a factory makes, when that is plain to see.
fn made(module: &Module<'_>, factory: &Expr) -> Option<Value> {
    if let Expr::Lambda(lambda) = factory {
        return literal(&lambda.body, module);
    }
    Some(match module.outside_name(factory)?.as_str() {
        "builtins.list" | "builtins.tuple" | "builtins.set" | "builtins.frozenset" => json!([]),
        "builtins.dict" => json!({}),
        "builtins.str" => json!(""),
        "builtins.int" => json!(0),
        "builtins.float" => json!(0.0),
        "builtins.bool" => json!(false),
        _ => return None,
    })
}

/// The keyword argument of a call.
pub(super) fn keyword<'e>(call: &'e ExprCall, name: &str) -> Option<&'e Expr> {
    let mut keywords = call.arguments.keywords.iter();
    keywords.find(|keyword| keyword.arg.as_ref().is_some_and(|arg| arg.as_str() == name)).map(|found| &found.value)
}
