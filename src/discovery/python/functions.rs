//! Functions and methods as tools: what is said of them, and the schemas of what they take.

use ruff_python_ast::{Expr, ParameterWithDefault, Stmt, StmtClassDef, StmtFunctionDef};
use serde_json::{Map, Value};

use super::classes::ClassKind;
use super::constraints::{Constraints, field_call};
use super::docstring::Docstring;
use super::fields::{FieldInfo, noted_field};
use super::frameworks::{
    Arguments, Offer, imports_a_framework, imports_a_server, is_given_by_framework, is_injected, server_of, tool_name,
    words_before, written_schema,
};
use super::known_types::{KnownType, Side};
use super::literals::literal;
use super::module::{Module, docstring_of, name_of};
use super::names::Named;
use super::public::Served;
use super::results::output_schema;
use super::roles::assign;
use super::schema::{Reference, Schema, nullable, of_type};
use super::types::Hints;
use crate::discovery::{Function, JsonSchema, Role};

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
    let is_checked = !served.offer.remakes_result && served.offer.command.is_none() && !emits_result(function);
    let output = (is_checked && !leaves_results(module, &served))
        .then(|| output_schema(module, function, docs.returns.as_deref()))
        .flatten();
    // Without a schema that says it.
    let is_said =
        output.as_ref().is_some_and(|schema| schema.get("properties").is_some_and(|all| all.get("result").is_some()));
    let returns = docs.returns.as_deref().filter(|_| !is_said).map(|text| format!("Returns: {text}"));
    let description = docs.description.iter().cloned().chain(returns).collect::<Vec<_>>().join("\n\n");
    let mut described = Function {
        name: function.name.to_string(),
        symbol: None,
        input_schema: JsonSchema::of(&input_schema(module, &served, &docs)),
        output_schema: output.as_ref().map(JsonSchema::of),
        is_async: function.is_async,
        line: module.lines.of_node(&function.name),
        served_as: None,
        wanted: None,
        summary: docs.summary,
        description: Some(description).filter(|text| !text.is_empty()),
        role: Role::Tool,
        declared: None,
        hints: None,
        defined_in: None,
        server: server_of(function).map(str::to_owned),
    };
    served.offer.apply(module, &mut described);
    if served.offer.command.is_some() {
        name_command(module, function, &mut described);
    }
    described.symbol = served.symbol.or(described.symbol);
    assign(module, function, &mut described).then_some(described)
}

/// Whether it is a tool of a framework that takes results as they are, whatever the function is annotated with. Those of MCP do not.
fn leaves_results(module: &Module<'_>, served: &Served<'_>) -> bool {
    served.is_of_framework && imports_a_framework(module) && !imports_a_server(module)
}

/// Whether messages are its result, as in Open WebUI: `async def talk(text: str, __event_emitter__=None) -> None`
fn emits_result(function: &StmtFunctionDef) -> bool {
    let returns_none = function.returns.as_ref().is_some_and(|returns| returns.is_none_literal_expr());
    returns_none && function.parameters.iter().any(|parameter| parameter.name() == "__event_emitter__")
}

/// A command of a group within a group has the name of that before its own.
fn name_command(module: &Module<'_>, function: &StmtFunctionDef, described: &mut Function) {
    let before = words_before(module, function).join("_");
    let is_said = described.name.strip_prefix(&before).is_some_and(|rest| rest.starts_with('_'));
    if !before.is_empty() && !is_said {
        let whole = tool_name(&format!("{before}_{}", described.name));
        let own = std::mem::replace(&mut described.name, whole);
        described.symbol.get_or_insert(own);
    }
}

fn input_schema<'a>(module: &Module<'a>, served: &Served<'a>, docs: &Docstring) -> Schema {
    if let Some(arguments) = &served.arguments {
        return arguments.clone();
    }
    let mut hints = Hints::new(module, Side::Given);
    let mut declared = declared_arguments(module, &served.offer);
    let mut arguments = Properties::default();
    let docs_of = |group: &&StmtFunctionDef| docstring_of(&group.body).map(Docstring::parse).unwrap_or_default();
    let docs_of_groups: Vec<Docstring> = served.groups.iter().map(docs_of).collect();
    let groups = served.groups.iter().copied().zip(&docs_of_groups);
    for (function, docs) in std::iter::once((served.function, docs)).chain(groups) {
        let parameters = function.parameters.iter_non_variadic_params().skip(usize::from(served.is_bound));
        for parameter in parameters.filter(|parameter| !is_injected(module, served, parameter)) {
            let name = parameter.parameter.name.as_str();
            if !declared.hidden.contains(&name) {
                let own = property(&mut hints, parameter, docs.parameters.get(name));
                let (property, is_required) = declared.take(name).unwrap_or((own.schema, own.is_required));
                arguments.add(own.alias.as_deref().unwrap_or(name), property, is_required);
            }
        }
    }
    let further = further_arguments(&mut hints, served.function, &mut declared, &mut arguments);
    let mut schema = of_type("object");
    schema.insert("properties".to_owned(), Value::Object(arguments.named));
    if !arguments.required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(arguments.required));
    }
    schema.insert("additionalProperties".to_owned(), further);
    let definitions = module.gather(hints.references.into_iter().chain(declared.references).collect());
    if !definitions.is_empty() {
        schema.insert("$defs".to_owned(), Value::Object(definitions));
    }
    schema
}

/// What `**kwargs` takes: the keys of a typed dictionary and the fields that a class declares are added to the arguments.
fn further_arguments(
    hints: &mut Hints<'_, '_>,
    function: &StmtFunctionDef,
    declared: &mut DeclaredArguments<'_>,
    arguments: &mut Properties,
) -> Value {
    let Some(rest) = &function.parameters.kwarg else { return Value::Bool(false) };
    let mut further = match unpacked(hints, rest.annotation()) {
        Some(options) => {
            let required = options.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            let named = options.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
            for (name, schema) in named {
                let is_required = required.iter().any(|other| *other == name);
                arguments.named.entry(&name).or_insert(schema);
                arguments.require(&name, is_required);
            }
            Value::Bool(false)
        }
        None => hints.further_arguments(rest.annotation()),
    };
    for (name, (schema, is_required)) in std::mem::take(&mut declared.fields) {
        arguments.add(&name, schema, is_required);
        further = Value::Bool(false);
    }
    further
}

/// The arguments of a tool. Of two of one name, the first counts.
#[derive(Default)]
struct Properties {
    named: Map<String, Value>,
    required: Vec<Value>,
}

impl Properties {
    fn add(&mut self, name: &str, schema: Schema, is_required: bool) {
        if !self.named.contains_key(name) {
            self.named.insert(name.to_owned(), Value::Object(schema));
            self.require(name, is_required);
        }
    }

    fn require(&mut self, name: &str, is_required: bool) {
        if is_required && self.required.iter().all(|other| other != name) {
            self.required.push(name.into());
        }
    }
}

/// Arguments that a class declares by its fields, or a schema: `@tool(args_schema=Search)`.
#[derive(Default)]
struct DeclaredArguments<'a> {
    /// The schema of each, and whether it must be given.
    fields: Vec<(String, (Schema, bool))>,
    references: Vec<Reference<'a>>,
    /// Those that the framework gives.
    hidden: Vec<&'a str>,
}

impl DeclaredArguments<'_> {
    fn take(&mut self, name: &str) -> Option<(Schema, bool)> {
        let place = self.fields.iter().position(|(other, _)| other == name)?;
        Some(self.fields.remove(place).1)
    }
}

fn declared_arguments<'a>(module: &Module<'a>, offer: &Offer<'a>) -> DeclaredArguments<'a> {
    let Arguments::Declared(written) = offer.arguments else { return DeclaredArguments::default() };
    let schema = match module.resolve(written) {
        Named::Class(class) => return declared_by_class(module, class),
        Named::Value { value, is_alias: false, .. } => value,
        _ => written,
    };
    let schema = written_schema(module, schema);
    // Definitions are not taken over.
    let fields = if schema.keys().any(|key| key.starts_with('$')) { Vec::new() } else { fields_of(module, schema) };
    DeclaredArguments { fields, ..DeclaredArguments::default() }
}

fn declared_by_class<'a>(module: &Module<'a>, class: &'a StmtClassDef) -> DeclaredArguments<'a> {
    let mut hints = Hints::new(module, Side::Validated);
    let mut fields = fields_of(module, hints.definition_of(class));
    let annotated = module.ancestry(class);
    let annotated = annotated.classes.iter().flat_map(|class| &class.body).filter_map(Stmt::as_ann_assign_stmt);
    let given = annotated.filter(|field| is_given_by_framework(module, &field.annotation));
    let hidden: Vec<&str> = given.filter_map(|field| name_of(&field.target)).collect();
    fields.retain(|(name, _)| !hidden.contains(&name.as_str()));
    DeclaredArguments { fields, references: hints.references, hidden }
}

/// The properties of a schema, and whether each must be given.
fn fields_of(module: &Module<'_>, mut schema: Schema) -> Vec<(String, (Schema, bool))> {
    let required = schema.remove("required").unwrap_or_default();
    let is_required = |name: &str| required.as_array().is_some_and(|all| all.iter().any(|other| other == name));
    let Some(Value::Object(fields)) = schema.remove("properties") else { return Vec::new() };
    if !module.budget.spend(fields.len()) {
        return Vec::new();
    }
    let field = |(name, schema): (String, Value)| match schema {
        Value::Object(schema) => {
            let is_required = is_required(&name);
            Some((name, (schema, is_required)))
        }
        _ => None,
    };
    fields.into_iter().filter_map(field).collect()
}

/// One argument.
struct Property {
    schema: Schema,
    is_required: bool,
    /// What callers call it, instead of the parameter's name.
    alias: Option<String>,
}

/// One parameter as an argument.
fn property(hints: &mut Hints<'_, '_>, parameter: &ParameterWithDefault, text: Option<&String>) -> Property {
    let mut schema = parameter.parameter.annotation().map(|hint| hints.hint(hint)).unwrap_or_default();
    let noted = parameter.parameter.annotation().and_then(|hint| noted_field(hints.module, hint));
    // Its constraints were read with the type.
    let noted = noted.map(|noted| FieldInfo { constraints: Constraints::default(), ..noted });
    let info = match parameter.default() {
        None => noted.unwrap_or_else(FieldInfo::required),
        // As in FastMCP: `count: int = Field(10, ge=1)`. The worker replaces it by the default.
        Some(value) => match field_call(hints.module, value) {
            Some(call) => FieldInfo::of_call(hints.module, call),
            None => FieldInfo { default: literal(value, hints.module), ..FieldInfo::default() }
                .or(noted.unwrap_or_default()),
        },
    };
    info.constraints.constrain(&mut schema, Side::Given);
    // `x: int = None` is a common way to write an optional parameter.
    if parameter.default().is_some_and(Expr::is_none_literal_expr) {
        schema = nullable(schema);
    }
    schema.extend(info.annotations);
    schema.extend(info.description.map(|text| ("description".to_owned(), Value::String(text))));
    if let Some(text) = text {
        schema.entry("description").or_insert_with(|| Value::String(text.clone()));
    }
    schema.extend(info.default.map(|value| ("default".to_owned(), value)));
    Property { schema, is_required: info.is_required, alias: info.alias.or(info.choice) }
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
