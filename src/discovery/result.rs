//! What a function returns, where its annotation says so for certain.

use ruff_python_ast::{Expr, StmtFunctionDef};
use serde_json::{Map, Value, json};

use super::generics::elements;
use super::hints::Hints;
use super::module::Module;
use super::schema::{Schema, admits_anything, of_type, schema};
use super::side::Side;

/// Decorators that return what the function returns.
const TRANSPARENT: [&str; 2] = ["functools.cache", "functools.lru_cache"];
/// What a generator is annotated as. The worker collects what it yields in a list.
const GENERATORS: [&str; 4] = ["Iterator", "Generator", "AsyncIterator", "AsyncGenerator"];
/// Types that the worker returns as a file.
const FILES: [&str; 4] = ["hostler.File", "hostler.Image", "PIL.Image.Image", "matplotlib.figure.Figure"];
/// Definitions that only lead to others end somewhere.
const LONGEST_WAY: usize = 16;
const POINTER: &str = "#/$defs/";

/// The schema of what clients get as structured content: an object as it is, anything else under `result`. `None` where
/// the annotation says nothing, says something that has no certain form in JSON, or could be either.
pub(super) fn output_schema(module: &Module<'_>, function: &StmtFunctionDef, text: Option<&str>) -> Option<Schema> {
    let hint = function.returns.as_deref().filter(|_| is_called_itself(module, function))?;
    let mut hints = Hints::new(module, Side::Returned);
    let mut result = yielded(&mut hints, hint).unwrap_or_else(|| hints.hint(hint));
    if admits_anything(&result) || is_file_or_text(&result) {
        return None;
    }
    let mut definitions = module.gather(hints.references);
    if holds_bytes_of_files(&result) || definitions.values().filter_map(Value::as_object).any(holds_bytes_of_files) {
        return None;
    }
    let mut whole = if is_object(&result, &definitions, LONGEST_WAY)? {
        written_out(result, &mut definitions)
    } else {
        result.extend(text.map(|text| ("description".to_owned(), text.into())));
        schema(json!({"type": "object", "properties": {"result": result}, "required": ["result"]}))
    };
    if !definitions.is_empty() {
        whole.insert("$defs".to_owned(), Value::Object(definitions));
    }
    Some(whole)
}

/// Whether the name still means this function when it is called, and not what somebody made of it.
fn is_called_itself(module: &Module<'_>, function: &StmtFunctionDef) -> bool {
    let mut decorators = function.decorator_list.iter().map(|decorator| &decorator.expression);
    let is_transparent = |decorator: &Expr| {
        let called = decorator.as_call_expr().map_or(decorator, |call| &call.func);
        module.outside_name(called).is_some_and(|name| TRANSPARENT.contains(&name.as_str()))
    };
    !module.wrapped.contains(function.name.as_str()) && decorators.all(is_transparent)
}

/// `Annotated[bytes, "image/png"]`: what becomes of it depends on how it came into the annotation.
fn is_file_or_text(result: &Schema) -> bool {
    let text = result.get("description").and_then(Value::as_str);
    let says_kind = text.is_some_and(|text| text.contains('/') && !text.contains(char::is_whitespace));
    says_kind && result.contains_key("contentEncoding")
}

/// An object with these members is a file, and clients get its bytes elsewhere.
fn holds_bytes_of_files(schema: &Schema) -> bool {
    let has = |name: &str| schema.get("properties").and_then(|all| all.get(name)).is_some();
    has("mime_type") && has("base64")
}

/// What clients get of a file in a result: its bytes are content of their own.
pub(super) fn file(full: &str, side: Side) -> Option<Schema> {
    let is_file = FILES.contains(&full) && side == Side::Returned;
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    is_file.then(|| {
        schema(json!({
            "type": "object",
            "properties": {"mime_type": text, "name": text, "size": number, "content": number},
            "required": ["mime_type"],
        }))
    })
}

fn yielded(hints: &mut Hints<'_, '_>, hint: &Expr) -> Option<Schema> {
    let generic = hint.as_subscript_expr()?;
    let name = hints.module.outside_name(&generic.value)?;
    let (module, name) = name.rsplit_once('.')?;
    if !GENERATORS.contains(&name) || !matches!(module, "typing" | "collections.abc" | "typing_extensions") {
        return None;
    }
    let item = hints.inner(elements(&generic.slice).first()?);
    let mut list = of_type("array");
    list.extend((!item.is_empty()).then_some(("items".to_owned(), Value::Object(item))));
    Some(list)
}

/// Whether every value of a schema is an object, or none is; `None` when it may be either.
fn is_object(schema: &Schema, definitions: &Map<String, Value>, left: usize) -> Option<bool> {
    let left = left.checked_sub(1)?;
    if let Some(definition) = definition(schema, definitions) {
        return is_object(definition.as_object()?, definitions, left);
    }
    if let Some(Value::Array(branches)) = schema.get("anyOf") {
        let mut forms = branches.iter().map(|branch| is_object(branch.as_object()?, definitions, left));
        let first = forms.next()??;
        return forms.all(|form| form == Some(first)).then_some(first);
    }
    match schema.get("type") {
        Some(kind) => Some(kind == "object"),
        None => schema.contains_key("enum").then_some(false), // no object is a literal, or a member
    }
}

fn definition<'d>(schema: &Schema, definitions: &'d Map<String, Value>) -> Option<&'d Value> {
    definitions.get(schema.get("$ref")?.as_str()?.strip_prefix(POINTER)?)
}

/// An object schema that says so at its root, where MCP wants it: a reference is replaced by what it refers to.
fn written_out(result: Schema, definitions: &mut Map<String, Value>) -> Schema {
    let Some(target) = definition(&result, definitions).and_then(Value::as_object).cloned() else {
        let mut whole = of_type("object");
        whole.extend(result);
        return whole;
    };
    let name =
        result.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix(POINTER)).unwrap_or_default();
    let pointer = format!("\"{POINTER}{name}\"");
    if !definitions.values().any(|other| other.to_string().contains(&pointer)) {
        definitions.shift_remove(name);
    }
    written_out(target, definitions)
}
