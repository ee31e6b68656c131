//! The public functions of a module as tools: which they are, and the schemas of what they take and return.

use std::collections::HashSet;

use ruff_python_ast::{Expr, ParameterWithDefault, StmtFunctionDef};
use serde_json::{Map, Value, json};

use super::classes::ClassKind;
use super::constraints::call_of;
use super::docstring::Docstring;
use super::fields::{FieldInfo, literal};
use super::frameworks::{CLASS_RULE, Content, Methods, Offer, content, is_injected, is_maker, methods};
use super::known_types::{KnownType, Side};
use super::module::{Module, Named, docstring_of, name_of};
use super::roles::{assign, is_marked};
use super::schema::{Reference, Schema, admits_anything, nullable, of_type, schema};
use super::syntax::Lines;
use super::types::{Hints, elements};
use crate::config::origin::Diagnosis;
use crate::discovery::{Function, JsonSchema, Role};
use crate::outcome::wrapped_schema;
use crate::pep723::is_identifier;

/// The public names of a module.
#[derive(Default)]
pub(super) struct Exports<'a> {
    names: Option<Vec<(&'a str, usize)>>,
    /// The line of a part that is computed, and therefore unknown.
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

/// A function or method that is a tool, and what says so.
#[derive(Debug)]
pub(super) struct Served<'a> {
    pub function: &'a StmtFunctionDef,
    /// What the worker knows it by, where that is not the function's name.
    pub symbol: Option<String>,
    pub offer: Offer<'a>,
    /// Whether its first parameter is the instance or the class.
    pub is_bound: bool,
    /// Its arguments, where a class declares them apart from the function.
    pub arguments: Option<Schema>,
}

/// The functions and then the methods that are tools, with warnings about `__all__` and names.
pub(super) fn public_functions<'a>(module: &mut Module<'a>) -> Vec<Served<'a>> {
    let exported = module.exports.names.as_ref();
    let exported: Option<Vec<&'a str>> = exported.map(|names| names.iter().map(|(name, _)| *name).collect());
    let Methods { served, refused, exported } = methods(module, exported.as_deref());
    let has_classes = !served.is_empty() || !refused.is_empty();
    for (line, Diagnosis { what, fix }) in refused {
        module.warn(line, CLASS_RULE, what, &fix);
    }
    let functions = top_level(module, &exported, has_classes).into_iter().map(|function| Served {
        function,
        symbol: None,
        offer: module.offers.get(function).copied().unwrap_or_default(),
        is_bound: false,
        arguments: None,
    });
    // Of two tools of one name, the function has it.
    functions.chain(served).collect()
}

fn top_level<'a>(module: &mut Module<'a>, served_otherwise: &[&str], has_classes: bool) -> Vec<&'a StmtFunctionDef> {
    let functions = module.functions();
    if let Some(line) = module.exports.computed {
        let rest = if module.exports.names.is_some() { "only its literal names count" } else { "it is ignored" };
        let what = format!("`__all__` is computed, so {rest}");
        module.warn(line, "exports", what, "write the names as a list of strings");
    }
    let mut public: Vec<_> = match module.exports.names.clone() {
        // Whoever marks some functions as tools means no others.
        None if module.offers.are_marked || has_classes => Vec::new(),
        None => {
            let is_private = |name: &str| name.starts_with('_') || name == "main" && module.runs_main;
            functions.into_iter().filter(|function| !is_private(&function.name)).collect()
        }
        Some(mut names) => {
            names.retain(|(name, _)| !served_otherwise.contains(name));
            listed(module, &functions, &names)
        }
    };
    // What a decorator marks needs no other sign.
    let unlisted = module.functions().into_iter().filter(|function| {
        let is_listed = public.iter().any(|other: &&StmtFunctionDef| std::ptr::eq(*other, *function));
        !is_listed && (is_marked(module, function) || module.offers.get(function).is_some())
    });
    public.extend(unlisted.collect::<Vec<_>>());
    public.sort_by_key(|function| function.range.start());
    let (callable, strange): (Vec<_>, Vec<_>) = public.into_iter().partition(|function| is_identifier(&function.name));
    for function in strange {
        let what = format!("`{}` is not a valid tool name", function.name);
        module.warn(module.lines.of_node(&function.name), "name", what, "use letters a-z, digits and _");
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
            let what = format!("`__all__` names `{name}`, which is not a function of this file");
            module.warn(*line, "exports", what, "define it or remove it");
        }
    }
    let is_listed = |function: &&&StmtFunctionDef| names.iter().any(|(name, _)| function.name.as_str() == *name);
    functions.iter().filter(is_listed).copied().collect()
}

/// Describes a public function, with a warning about `*args`. `None` if it cannot be served, with a warning that says why.
pub(super) fn describe<'a>(module: &mut Module<'a>, served: Served<'a>) -> Option<Function> {
    let function = served.function;
    if let Some(rest) = &function.parameters.vararg {
        let what = format!(
            "`{}` has the parameter *{}, which stays empty: arguments are passed by name",
            function.name, rest.name
        );
        module.warn(module.lines.of_node(&**rest), "star-args", what, "use a list instead");
    }
    let docs = docstring_of(&function.body).map(Docstring::parse).unwrap_or_default();
    let output =
        (!served.offer.remakes_result).then(|| output_schema(module, function, docs.returns.as_deref())).flatten();
    let mut described = Function {
        name: function.name.to_string(),
        symbol: None,
        input_schema: JsonSchema::of(&input_schema(module, &served, &docs)),
        output_schema: output.as_ref().map(JsonSchema::of),
        is_async: function.is_async,
        line: module.lines.of_node(&function.name),
        summary: docs.summary,
        description: docs.description,
        role: Role::Tool,
        declared: None,
    };
    served.offer.apply(&mut described);
    described.symbol = served.symbol.or(described.symbol);
    assign(module, function, &mut described).then_some(described)
}

fn input_schema<'a>(module: &Module<'a>, served: &Served<'a>, docs: &Docstring) -> Schema {
    if let Some(arguments) = &served.arguments {
        return arguments.clone();
    }
    let function = served.function;
    let mut hints = Hints::new(module, Side::Given);
    let mut schema = of_type("object");
    let (mut properties, mut required) = (Map::new(), Vec::new());
    let mut declared = declared_arguments(module, &served.offer);
    let is_given_by_caller = |parameter: &&ParameterWithDefault| !is_injected(module, function, parameter);
    let parameters = function.parameters.iter_non_variadic_params().skip(usize::from(served.is_bound));
    for parameter in parameters.filter(is_given_by_caller) {
        let name = parameter.parameter.name.as_str();
        let own = property(&mut hints, parameter, docs.parameters.get(name));
        let (property, is_required) = declared.take(name).unwrap_or(own);
        properties.insert(name.to_owned(), Value::Object(property));
        if is_required {
            required.push(Value::String(name.to_owned()));
        }
    }
    let further = match &function.parameters.kwarg {
        Some(rest) => match unpacked(&mut hints, rest.annotation()) {
            Some(mut options) => {
                if let Some(Value::Object(named)) = options.remove("properties") {
                    properties.extend(named);
                }
                if let Some(Value::Array(needed)) = options.remove("required") {
                    required.extend(needed);
                }
                Value::Bool(false)
            }
            None => hints.further_arguments(rest.annotation()),
        },
        None => Value::Bool(false),
    };
    let mut further = further;
    if function.parameters.kwarg.is_some() && !declared.fields.is_empty() {
        let rest = std::mem::take(&mut declared.fields);
        required.extend(rest.iter().filter(|(_, (_, is_required))| *is_required).map(|(name, _)| name.as_str().into()));
        properties.extend(rest.into_iter().map(|(name, (schema, _))| (name, Value::Object(schema))));
        further = Value::Bool(false);
    }
    schema.insert("properties".to_owned(), Value::Object(properties));
    // Duplicate names are parsed, although Python rejects them.
    let mut seen = HashSet::new();
    required.retain(|name: &Value| name.as_str().is_some_and(|name| seen.insert(name.to_owned())));
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    schema.insert("additionalProperties".to_owned(), further);
    let definitions = module.gather(hints.references.into_iter().chain(declared.references).collect());
    if !definitions.is_empty() {
        schema.insert("$defs".to_owned(), Value::Object(definitions));
    }
    schema
}

/// Arguments that a framework is told of by the fields of a class: `@tool(args_schema=Search)`.
#[derive(Default)]
struct DeclaredArguments<'a> {
    /// The schema of each, and whether it must be given.
    fields: Vec<(String, (Schema, bool))>,
    references: Vec<Reference<'a>>,
}

impl DeclaredArguments<'_> {
    fn take(&mut self, name: &str) -> Option<(Schema, bool)> {
        let place = self.fields.iter().position(|(other, _)| other == name)?;
        Some(self.fields.remove(place).1)
    }
}

fn declared_arguments<'a>(module: &Module<'a>, offer: &Offer<'a>) -> DeclaredArguments<'a> {
    let Some(class) = offer.arguments else { return DeclaredArguments::default() };
    let Named::Class(class) = module.resolve(class) else { return DeclaredArguments::default() };
    let mut hints = Hints::new(module, Side::Validated);
    let mut definition = hints.definition_of(class);
    let required = definition.remove("required").unwrap_or_default();
    let is_required = |name: &str| required.as_array().is_some_and(|all| all.iter().any(|other| other == name));
    let Some(Value::Object(fields)) = definition.remove("properties") else { return DeclaredArguments::default() };
    let field = |(name, schema): (String, Value)| match schema {
        Value::Object(schema) => Some((name.clone(), (schema, is_required(&name)))),
        _ => None,
    };
    let fields = fields.into_iter().filter_map(field);
    DeclaredArguments { fields: fields.collect(), references: hints.references }
}

/// The schema of a parameter, and whether it must be given.
fn property(hints: &mut Hints<'_, '_>, parameter: &ParameterWithDefault, text: Option<&String>) -> (Schema, bool) {
    let mut schema = parameter.parameter.annotation().map(|hint| hints.hint(hint)).unwrap_or_default();
    let info = match parameter.default() {
        None => FieldInfo::required(),
        // As in FastMCP: `count: int = Field(10, ge=1)`. The worker replaces it by the default.
        Some(value) => match call_of(hints.module, value, "pydantic.Field") {
            Some(call) => FieldInfo::of_call(hints.module, call),
            None => FieldInfo { default: literal(value, hints.module), ..FieldInfo::default() },
        },
    };
    info.constraints.constrain(&mut schema, Side::Given);
    // `x: int = None` is a common way to write an optional parameter.
    if parameter.default().is_some_and(Expr::is_none_literal_expr) {
        schema = nullable(schema);
    }
    schema.extend(info.description.map(|text| ("description".to_owned(), Value::String(text))));
    if let Some(text) = text {
        schema.entry("description").or_insert_with(|| Value::String(text.clone()));
    }
    schema.extend(info.default.map(|value| ("default".to_owned(), value)));
    (schema, info.is_required)
}

/// `**options: Unpack[Options]`: the keys of a typed dictionary, as arguments.
fn unpacked(hints: &mut Hints<'_, '_>, hint: Option<&Expr>) -> Option<Schema> {
    let generic = hint?.as_subscript_expr()?;
    if hints.known(&generic.value) != Some(KnownType::Unpack) {
        return None;
    }
    let Named::Class(class) = hints.module.resolve(&generic.slice) else { return None };
    let is_dictionary = hints.module.ancestry(class).kind == ClassKind::TypedDict;
    is_dictionary.then(|| hints.definition_of(class)).filter(|schema| schema.contains_key("properties"))
}

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
