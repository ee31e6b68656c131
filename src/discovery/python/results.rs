//! What functions return: the schemas of structured content, where an annotation determines it.

use ruff_python_ast::{Expr, StmtFunctionDef};
use serde_json::{Map, Value, json};

use super::containers::elements;
use super::frameworks::{Content, content, is_maker};
use super::known_types::Side;
use super::module::Module;
use super::schema::{Schema, admits_anything, of_type, schema};
use super::types::Hints;
use crate::outcome::wrapped_schema;

/// Decorators that return what the function returns.
const TRANSPARENT: [&str; 2] = ["functools.cache", "functools.lru_cache"];
/// The annotations of generators, whose values the worker collects in a list.
const GENERATORS: [&str; 4] = ["Iterator", "Generator", "AsyncIterator", "AsyncGenerator"];
/// Types that the worker returns as a file.
const FILES: [&str; 5] =
    ["hostler.File", "hostler.Image", "hostler.Audio", "PIL.Image.Image", "matplotlib.figure.Figure"];
/// The type that the worker returns as a link.
const LINK: &str = "hostler.Link";
/// The longest chain of references that is followed.
const LONGEST_WAY: usize = 16;
const POINTER: &str = "#/$defs/";

/// The schema of the structured content: an object as it is, anything else under `result`. `None` where the annotation
/// does not determine it.
pub(super) fn output_schema(module: &Module<'_>, function: &StmtFunctionDef, text: Option<&str>) -> Option<Schema> {
    let hint = function.returns.as_deref().filter(|_| is_called_itself(module, function))?;
    let mut hints = Hints::new(module, Side::Returned);
    let mut result = yielded(&mut hints, hint).unwrap_or_else(|| hints.hint(hint));
    if admits_anything(&result) || is_file_or_text(&result) || is_content(&result) {
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
        wrapped_schema(&Value::Object(result))
    };
    if !definitions.is_empty() {
        whole.insert("$defs".to_owned(), Value::Object(definitions));
    }
    Some(whole)
}

/// Whether no decorator or assignment replaces the function.
fn is_called_itself(module: &Module<'_>, function: &StmtFunctionDef) -> bool {
    let mut decorators = function.decorator_list.iter().map(|decorator| &decorator.expression);
    let is_transparent = |decorator: &Expr| {
        let called = decorator.as_call_expr().map_or(decorator, |call| &call.func);
        is_maker(module, decorator)
            || module.outside_name(called).is_some_and(|name| TRANSPARENT.contains(&name.as_str()))
    };
    !module.wrapped.contains(function.name.as_str()) && decorators.all(is_transparent)
}

/// `Annotated[bytes, "image/png"]`: the worker may return it as a file.
fn is_file_or_text(result: &Schema) -> bool {
    let text = result.get("description").and_then(Value::as_str);
    let says_kind = text.is_some_and(|text| text.contains('/') && !text.contains(char::is_whitespace));
    says_kind && result.contains_key("contentEncoding")
}

/// An object with these members is a file, whose bytes are not in the structured content.
fn holds_bytes_of_files(schema: &Schema) -> bool {
    let has = |name: &str| schema.get("properties").and_then(|all| all.get(name)).is_some();
    has("mime_type") && has("base64")
}

/// The structured content of a file or a link in a result. The bytes of a file are separate content.
pub(super) fn file_result(full: &str, side: Side) -> Option<Schema> {
    if side != Side::Returned {
        return None;
    }
    match content(full) {
        Some(Content::Text) => Some(of_type("string")),
        Some(Content::File) => Some(file_schema()),
        Some(Content::Link) => Some(link_schema()),
        Some(Content::Any) => None,
        None => FILES.contains(&full).then(file_schema).or_else(|| (full == LINK).then(link_schema)),
    }
}

fn file_schema() -> Schema {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    schema(json!({
        "type": "object",
        "properties": {"mime_type": text, "name": text, "uri": text, "size": number, "content": number},
        "required": ["mime_type"],
    }))
}

fn link_schema() -> Schema {
    let text = json!({"type": "string"});
    schema(json!({
        "type": "object",
        "properties": {"type": {"const": "resource_link"}, "uri": text, "name": text, "title": text, "description": text,
            "mime_type": text, "size": {"type": "integer"}},
        "required": ["type", "uri", "name"],
    }))
}

/// Whether a result is a file, a link, or a list of texts, files and links. Clients get content blocks for it: many that find
/// structured content beside them show that alone, so none is promised.
fn is_content(result: &Schema) -> bool {
    fn holds_block(schema: &Schema) -> bool {
        *schema == file_schema() || *schema == link_schema() || branches(schema).any(holds_block)
    }
    fn branches(schema: &Schema) -> impl Iterator<Item = &Schema> {
        schema.get("anyOf").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
    }
    let is_list = result.get("type").is_some_and(|kind| kind == "array");
    let item = if is_list { result.get("items").and_then(Value::as_object) } else { Some(result) };
    item.is_some_and(holds_block)
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

/// Whether every value of a schema is an object, or none is; `None` if it may be either.
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

/// A schema with `type: object` at its root, as MCP requires: a reference is replaced by its definition.
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
