//! What is noted beside a type: `Annotated[X, …]`, and types that are made by a call (`conint(ge=1)`, `NewType(…)`).

use ruff_python_ast::{Expr, ExprCall, Stmt};
use serde_json::Value;

use super::facts::Facts;
use super::hints::Hints;
use super::known::Known;
use super::limits::Limits;
use super::names::Named;
use super::schema::Schema;
use super::side::Side;

/// pydantic's notes that take a value before its type does, so that anything may come.
const COME_FIRST: [&str; 4] =
    ["pydantic.BeforeValidator", "pydantic.PlainValidator", "pydantic.WrapValidator", "pydantic.WithJsonSchema"];
/// pydantic's notes after which a value is written as nobody here knows.
const WRITE_ANYHOW: [&str; 3] = ["pydantic.PlainSerializer", "pydantic.WrapSerializer", "pydantic.WithJsonSchema"];

impl Hints<'_, '_> {
    /// `Annotated[X, …]`: a text describes; limits of pydantic and of `annotated_types` count for arguments.
    pub(super) fn annotated(&mut self, inner: &Expr, notes: &[Expr]) -> Schema {
        let mut schema = self.hint(inner);
        for note in notes {
            if let Expr::StringLiteral(text) = note {
                schema.insert("description".to_owned(), text.value.to_str().into());
                continue;
            }
            let call = note.as_call_expr();
            if self.goes_its_own_way(call.map_or(note, |call| &call.func)) {
                return Schema::new();
            }
            let Some(name) = self.module.outside_name(call.map_or(note, |call| &call.func)) else { continue };
            if self.is_overruled_by(&name) {
                return Schema::new();
            }
            if let Some(call) = call {
                self.note(&name, call, &mut schema);
            }
        }
        schema
    }

    /// Whether a note is of a class of the file that tells pydantic itself what it takes and writes.
    fn goes_its_own_way(&self, note: &Expr) -> bool {
        let Named::Class(class) = self.module.resolve(note) else { return false };
        let mut functions = class.body.iter().filter_map(Stmt::as_function_def_stmt);
        functions.any(|function| function.name.as_str() == "__get_pydantic_core_schema__")
    }

    fn is_overruled_by(&self, note: &str) -> bool {
        match self.side {
            Side::Given | Side::Validated => COME_FIRST.contains(&note),
            Side::Dumped => WRITE_ANYHOW.contains(&note),
            Side::Returned => false,
        }
    }

    fn note(&self, name: &str, call: &ExprCall, schema: &mut Schema) {
        let description = match name {
            "pydantic.Field" => {
                let facts = Facts::of_call(self.module, call);
                facts.limits.constrain(schema, self.side);
                facts.description
            }
            "typing_extensions.Doc" | "annotated_doc.Doc" => {
                let text = call.arguments.args.first().and_then(|text| text.as_string_literal_expr());
                text.map(|text| text.value.to_str().to_owned())
            }
            _ => {
                Limits::of_note(self.module, name, call).constrain(schema, self.side);
                None
            }
        };
        schema.extend(description.map(|text| ("description".to_owned(), Value::String(text))));
    }
}

/// A type that a call makes.
pub(super) fn called_type(hints: &mut Hints<'_, '_>, call: &ExprCall) -> Schema {
    let Some(name) = hints.module.outside_name(&call.func) else { return Schema::new() };
    let first = call.arguments.args.first();
    let mut schema = match (name.as_str(), &*call.arguments.args) {
        ("pydantic.conint", []) => Known::Integer.bare(hints.side),
        ("pydantic.confloat", []) => Known::Number.bare(hints.side),
        ("pydantic.constr", []) => Known::Text.bare(hints.side),
        ("pydantic.condecimal", []) => Known::Decimal.bare(hints.side),
        ("pydantic.conlist", [_]) => Known::List.bare(hints.side),
        ("pydantic.conset" | "pydantic.confrozenset", [_]) => Known::Set.bare(hints.side),
        _ => match (Known::named(&name), &*call.arguments.args) {
            (Some(Known::NewType | Known::MadeAlias), [_, inner]) => return hints.hint(inner),
            _ => return Schema::new(),
        },
    };
    if let Some(item) = first.filter(|_| !schema.is_empty()) {
        let item = hints.inner(item);
        schema.extend((!item.is_empty()).then_some(("items".to_owned(), Value::Object(item))));
    }
    Limits::of_keywords(hints.module, call).constrain(&mut schema, hints.side);
    schema
}
