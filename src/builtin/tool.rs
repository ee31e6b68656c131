//! What a built-in tool is: a type with arguments and a result of its own, whose schemas are derived from them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::call::Call;
use crate::config::declared_policy::{Declared, Risk};
use crate::config::tool::Effects;
use crate::discovery::{Function, JsonSchema as SchemaText};
use crate::outcome::{Code, Fault};

/// What a tool says of itself.
#[derive(Debug, Clone)]
pub struct About {
    /// Its name, which clients call it by: letters, digits and `_`.
    pub name: String,
    /// What it does, for the model that chooses it. The first paragraph stands in lists.
    pub description: String,
    /// How it wants to be treated; whoever operates hostler has the last word.
    pub declared: Declared,
}

impl About {
    /// A tool that may be called again only by whoever knows what that does.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self { name: name.into(), description: description.into(), declared: Declared::default() }
    }

    /// Says what repeating a call does.
    #[must_use]
    pub fn effects(mut self, effects: Effects) -> Self {
        self.declared.effects = Some(effects);
        self
    }

    /// Says what kind of thing it does, and how much harm it can do.
    #[must_use]
    pub fn risk(mut self, category: impl Into<String>, risk: Risk) -> Self {
        self.declared.category = Some(category.into());
        self.declared.risk_level = Some(risk);
        self
    }

    /// Gives words it can be found by.
    #[must_use]
    pub fn tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
        self.declared.tags = Some(tags.into_iter().map(Into::into).collect());
        self
    }

    /// Says how long a call may run, where nobody decides otherwise.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.declared.timeout = Some(limit);
        self
    }
}

/// A tool that runs inside this program.
///
/// ```
/// use hostler::builtin::{About, Builtin, Call};
/// use hostler::outcome::Fault;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Wanted {
///     /// How many times.
///     count: u32,
/// }
///
/// struct Ring;
///
/// impl Builtin for Ring {
///     type Params = Wanted;
///     type Answer = String;
///
///     fn about(&self) -> About {
///         About::new("ring", "Ring the bell.")
///     }
///
///     async fn call(&self, wanted: Wanted, _call: Call) -> Result<String, Fault> {
///         Ok("ding ".repeat(wanted.count as usize))
///     }
/// }
/// ```
pub trait Builtin: Send + Sync + 'static {
    /// What it takes. Its fields are the arguments, their doc comments what a model reads about them.
    type Params: DeserializeOwned + JsonSchema + Send;
    /// What it returns.
    type Answer: Serialize + JsonSchema + Send;

    /// What it says of itself.
    fn about(&self) -> About;

    /// Makes a call. A future that is dropped is a call that is cancelled: what it has begun must end then.
    fn call(&self, params: Self::Params, call: Call) -> impl Future<Output = Result<Self::Answer, Fault>> + Send;
}

/// A call under way.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Result<Box<RawValue>, Fault>> + Send + 'a>>;

/// A built-in tool whatever its arguments are.
pub(super) trait AnyBuiltin: Send + Sync {
    fn function(&self) -> Function;
    fn run(self: Arc<Self>, arguments: Box<RawValue>, call: Call) -> Running<'static>;
}

impl<T: Builtin> AnyBuiltin for T {
    fn function(&self) -> Function {
        let About { name, description, declared } = self.about();
        let summary = description.split("\n\n").next().unwrap_or_default();
        let summary = summary.split_whitespace().collect::<Vec<_>>().join(" ");
        Function {
            name,
            summary: Some(summary),
            description: Some(description),
            input_schema: SchemaText::of(&input_schema::<T::Params>()),
            output_schema: output_schema::<T::Answer>().as_ref().map(SchemaText::of),
            is_async: true,
            line: 0,
            declared: Some(Box::new(declared)),
        }
    }

    fn run(self: Arc<Self>, arguments: Box<RawValue>, call: Call) -> Running<'static> {
        Box::pin(async move {
            let params = serde_json::from_str(arguments.get()).map_err(|error| {
                let name = self.about().name;
                Fault::new(Code::InvalidParams, format!("{name} was not called: {error}"))
            })?;
            let answer = self.call(params, call).await?;
            to_raw_value(&answer).map_err(|error| {
                Fault::new(Code::InvalidOutput, format!("the result cannot be written as JSON: {error}"))
            })
        })
    }
}

fn input_schema<T: JsonSchema>() -> Map<String, Value> {
    let mut schema = schema_of::<T>(SchemaSettings::draft2020_12());
    // An argument that nobody knows is a mistake worth telling.
    schema.entry("additionalProperties").or_insert(false.into());
    schema.entry("type").or_insert("object".into());
    schema.entry("properties").or_insert(json!({}));
    schema
}

/// As clients get results: an object as it is, anything else in one. Nothing where it may be anything.
fn output_schema<T: JsonSchema>() -> Option<Map<String, Value>> {
    let schema = schema_of::<T>(SchemaSettings::draft2020_12().for_serialize());
    if schema.get("type").is_some_and(|kind| kind == "object") {
        return Some(schema);
    }
    if schema.is_empty() {
        return None;
    }
    let wrapped = json!({"type": "object", "properties": {"result": schema}, "required": ["result"]});
    wrapped.as_object().cloned()
}

fn schema_of<T: JsonSchema>(settings: SchemaSettings) -> Map<String, Value> {
    // Models read a schema better that refers to nothing.
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    // Of a type that is not the tool's own, and for programmers.
    for key in ["$schema", "title", "description"] {
        schema.remove(key);
    }
    schema
}

/// Takes out what a model has no use for: widths of numbers, and that leaving out
/// means nothing.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            list_choices(map);
            let is_width = |format: &Value| {
                format.as_str().is_some_and(|word| word.starts_with("int") || word.starts_with("uint"))
            };
            if map.get("format").is_some_and(is_width)
                || map.get("format").is_some_and(|word| word == "double" || word == "float")
            {
                map.remove("format");
            }
            if map.get("default").is_some_and(Value::is_null) {
                map.remove("default");
            }
            map.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// Words to choose from, each with a text of its own, become a list of words with one text: whoever names what fits, offers it or
/// tells what came instead reads that from a list.
fn list_choices(schema: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = schema.get("oneOf") else { return };
    let (mut words, mut text) = (Vec::new(), Vec::new());
    text.extend(schema.get("description").and_then(Value::as_str).map(str::to_owned));
    for branch in branches {
        match (branch.get("const"), branch.get("enum")) {
            (Some(Value::String(word)), _) => {
                let about = branch.get("description").and_then(Value::as_str);
                text.extend(about.map(|about| format!("{word}: {about}")));
                words.push(Value::from(word.as_str()));
            }
            (_, Some(Value::Array(several))) => words.extend(several.iter().cloned()),
            _ => return,
        }
    }
    schema.remove("oneOf");
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), Value::Array(words));
    if !text.is_empty() {
        schema.insert("description".to_owned(), text.join(" ").into());
    }
}
