//! The trait of a built-in tool, and its calls: who listens, what a call may ask of hostler, how it learns that it was cancelled.
//! The schemas are derived from the argument and result types.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::config::declared_policy::Risk;
use crate::config::origin::Setting;
use crate::config::tool::{Effects, ToolLayer};
use crate::discovery::{Function, JsonSchema as SchemaText, Role};
use crate::outcome::{Code, Details, Fault, wrapped_schema};
use crate::pool::Listener;
use crate::process::{
    CommandLauncher, End, EnvFilter, Exit, Grace, Launch, Once, USUAL_TAIL, UsageLimits, Walls, once, without_thread,
};
use crate::protocol::{HostMethod, TraceContext};
use crate::threads::blocking;
use crate::words::first_paragraph;
use crate::worker::{Ask, HostAccess, Waits};

/// A tool's description of itself.
#[derive(Debug, Clone)]
pub struct About {
    /// Its name for clients: letters, digits and `_`.
    pub name: String,
    /// What it does, for models. Lists show the first paragraph.
    pub description: String,
    /// What it declares, which the configuration can override.
    pub declared: ToolLayer,
}

impl About {
    /// A tool whose calls are not safe to repeat, unless `effects` says otherwise.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self { name: name.into(), description: description.into(), declared: ToolLayer::default() }
    }

    /// Declares the effect of repeating a call.
    #[must_use]
    pub fn effects(mut self, effects: Effects) -> Self {
        self.declared.effects = Some(Setting::declared(effects));
        self
    }

    /// Declares that its calls change nothing, with its category and how much harm it can do.
    #[must_use]
    pub(super) fn reads(self, category: &str, risk: Risk) -> Self {
        self.effects(Effects::Pure).risk(category, risk)
    }

    /// Declares its category, and how much harm it can do.
    #[must_use]
    pub fn risk(mut self, category: impl Into<String>, risk: Risk) -> Self {
        self.declared.policy.category = Some(Setting::declared(category.into()));
        self.declared.policy.risk_level = Some(Setting::declared(risk));
        self
    }

    /// Declares the argument that is a path: rules about paths are about it.
    #[must_use]
    pub fn path_argument(mut self, name: &str) -> Self {
        self.declared.policy.path_arguments = vec![Setting::declared(vec![name.to_owned()])];
        self
    }

    /// Declares the argument that is a shell command.
    #[must_use]
    pub fn command_argument(mut self, name: &str) -> Self {
        self.declared.policy.command_arguments = vec![Setting::declared(vec![name.to_owned()])];
        self
    }

    /// Declares the argument that is an address.
    #[must_use]
    pub fn host_argument(mut self, name: &str) -> Self {
        self.declared.policy.host_arguments = vec![Setting::declared(vec![name.to_owned()])];
        self
    }

    /// Declares tags.
    #[must_use]
    pub fn tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
        self.declared.policy.tags = Some(Setting::declared(tags.into_iter().map(Into::into).collect()));
        self
    }

    /// Declares the default time limit of a call.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.declared.timeout = Some(Setting::declared(limit));
        self
    }
}

/// A tool that runs inside this program.
///
/// ```
/// use hostler::builtin::{About, Builtin, Call};
/// use hostler::Fault;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct RingParams {
///     /// How many times.
///     count: u32,
/// }
///
/// struct Ring;
///
/// impl Builtin for Ring {
///     type Params = RingParams;
///     type Answer = String;
///
///     fn about(&self) -> About {
///         About::new("ring", "Ring the bell.")
///     }
///
///     async fn call(&self, params: RingParams, _call: Call) -> Result<String, Fault> {
///         Ok("ding ".repeat(params.count as usize))
///     }
/// }
/// ```
pub trait Builtin: Send + Sync + 'static {
    /// Its arguments: one per field, described by the field's doc comment.
    type Params: DeserializeOwned + JsonSchema + Send;
    /// Its result.
    type Answer: Serialize + JsonSchema + Send;

    /// Its description of itself.
    fn about(&self) -> About;

    /// Runs a call. A dropped future is a cancelled call: everything it started must end then.
    fn call(&self, params: Self::Params, call: Call) -> impl Future<Output = Result<Self::Answer, Fault>> + Send;
}

/// A running call.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Result<Box<RawValue>, Fault>> + Send + 'a>>;

/// A built-in tool of any types.
pub(super) trait AnyBuiltin: Send + Sync {
    fn function(&self) -> Function;
    fn run(self: Arc<Self>, arguments: Box<RawValue>, call: Call) -> Running<'static>;
}

impl<T: Builtin> AnyBuiltin for T {
    fn function(&self) -> Function {
        let About { name, description, declared } = self.about();
        Function {
            name,
            symbol: None,
            served_as: None,
            wanted: None,
            summary: Some(first_paragraph(&description)),
            description: Some(description),
            input_schema: SchemaText::of(&input_schema::<T::Params>()),
            output_schema: output_schema::<T::Answer>().as_ref().map(SchemaText::of),
            role: Role::Tool,
            is_async: true,
            line: 0,
            declared: Some(Box::new(declared)),
            hints: None,
            defined_in: None,
            server: None,
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
                Fault::new(Code::InvalidOutput, format!("the result cannot be serialized as JSON: {error}"))
            })
        })
    }
}

/// Looks up a secret where the configuration says, or in hostler's environment; `None` when it is not set.
pub type LookUp =
    Arc<dyn Fn(&str) -> Pin<Box<dyn Future<Output = Result<Option<String>, Fault>> + Send>> + Send + Sync>;

/// A call under way.
pub struct Call {
    /// Its id.
    pub id: String,
    /// When it started.
    pub begun: Instant,
    /// Its time limit.
    pub timeout: Duration,
    /// The most output that is kept of a program it starts, in bytes.
    pub max_output: usize,
    /// Whether programs it starts may gain privileges.
    pub new_privileges: bool,
    /// What commands that it runs may reach, if that is limited.
    pub walls: Option<Arc<Walls>>,
    /// How much each command that it runs may use.
    pub limits: UsageLimits,
    /// The command that starts commands that it runs, if the operator has one.
    pub launcher: Option<Arc<CommandLauncher>>,
    /// The variables of hostler's environment that programs it starts do not get.
    pub env_filter: EnvFilter,
    /// Where secrets come from.
    pub secrets: LookUp,
    /// Receives its progress and output.
    pub listener: Arc<dyn Listener>,
    /// Access to hostler: other tools, the catalogue, the client's model.
    pub host: Option<Arc<dyn HostAccess>>,
    /// Its arguments.
    pub(crate) arguments: Box<RawValue>,
    /// Its own span, if it belongs to a trace.
    pub(crate) trace: Option<Arc<TraceContext>>,
    /// What stands still while it asks its client.
    pub(crate) asks: Option<Arc<dyn Asks>>,
}

/// The permit and the clock of a call that may ask its client.
pub(crate) trait Asks: Send + Sync {
    /// It asks. False if too many calls ask already.
    fn asks(&self) -> bool;
    /// It has its answer.
    fn answered(&self);
    /// Waits until it may go on, if it has stood still.
    fn goes_on(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
    /// It as a call that waits for others.
    fn waits(self: Arc<Self>) -> Arc<dyn Waits>;
    /// How many calls may ask at once.
    fn most(&self) -> usize;
    /// How long it has run.
    fn run_time(&self) -> Duration;
}

/// Tells work on another thread that its call was cancelled. Every loop must check it.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Whether the call was cancelled.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Cancels the work.
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Cancels the work when the call's future is dropped.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

impl Call {
    /// The environment of programs that it starts: hostler's, without what may be secret.
    pub fn env(&self) -> BTreeMap<OsString, OsString> {
        let mut env = self.env_filter.for_programs();
        let trace = self.trace.as_deref().into_iter().flat_map(TraceContext::variables);
        env.extend(trace.map(|(name, value)| (name.into(), value.into())));
        env
    }

    /// A program on hostler's `PATH`.
    pub fn find_program(&self, name: &str) -> Option<PathBuf> {
        self.env_filter.environment().find_program(name)
    }

    /// A secret's current value; `None` when it is not set.
    pub async fn secret(&self, name: &str) -> Result<Option<String>, Fault> {
        (self.secrets)(name).await
    }

    /// Calls another tool by either of its names. The code of its fault is in the fault's message.
    pub async fn tool(&self, name: &str, arguments: Value) -> Result<Value, Fault> {
        self.ask(HostMethod::Call, &json!({"tool": name, "arguments": arguments})).await
    }

    /// A request to hostler, as Python tools make them.
    pub async fn ask(&self, method: HostMethod, params: &impl Serialize) -> Result<Value, Fault> {
        let wrong = |error: serde_json::Error| Fault::new(Code::SystemError, error.to_string());
        let host = self.host.as_ref().ok_or_else(|| {
            let message =
                "this tool may not use hostler; allow it with `host_access = true` under [tool.NAME] in hostler.toml";
            Fault::new(Code::PermissionDenied, message)
        })?;
        let params = to_raw_value(params).map_err(wrong)?;
        let run_time = self.asks.as_ref().map_or_else(|| self.begun.elapsed(), |asks| asks.run_time());
        let left = self.timeout.saturating_sub(run_time);
        let waits = self.asks.clone().map(Asks::waits);
        let ask = Ask { method, params, left, arguments: Some(Arc::from(self.arguments.clone())), waits };
        let answer = self.standing_still(method, host.answer(ask)).await?;
        let answer = answer.map_err(|error| {
            let capability = error.detail("capability").map(str::to_owned);
            // The faults of other tools are not this one's.
            let code = error.detail("code").filter(|_| method.asks_client()).and_then(Code::of_word);
            let code = code.unwrap_or(Code::ToolError);
            Fault::new(code, error.message).with(Details { capability, ..Details::default() })
        })?;
        serde_json::from_str(answer.get()).map_err(wrong)
    }

    /// Waits for an answer; without a run permit and with its clock stopped where the client gives it.
    async fn standing_still<T>(&self, method: HostMethod, answer: impl Future<Output = T>) -> Result<T, Fault> {
        let Some(asks) = &self.asks else { return Ok(answer.await) };
        let waits_for_client = self.host.as_ref().is_some_and(|host| host.waits_for_client(method));
        if waits_for_client && !asks.asks() {
            let most = asks.most();
            let message = format!("{most} calls already wait for their users, which is the limit; try again later");
            return Err(Fault::new(Code::Busy, message));
        }
        let answer = answer.await;
        if waits_for_client {
            asks.answered();
        }
        asks.goes_on().await;
        Ok(answer)
    }

    /// The output of a program on hostler's `PATH`; `None` if it is not found, fails or prints nothing.
    pub(super) async fn output_of(&self, name: &str, words: &[&str], limit: Duration, most: usize) -> Option<String> {
        let launch = Launch::new(self.find_program(name)?).args(words).envs(self.env());
        let launch = launch.within_that_of(self.env_filter.environment());
        let program = Once {
            launch,
            input: Vec::new(),
            limit,
            most,
            tail: USUAL_TAIL,
            grace: Grace::NONE,
            limits: UsageLimits::default(),
        };
        let done = once(program, |_, _| {}).await.ok()?;
        let is_whole = done.end == End::Exit(Exit::Code(0)) && !done.stdout.is_empty();
        is_whole.then(|| String::from_utf8_lossy(&done.stdout).into_owned())
    }

    /// Runs blocking work, such as reading files, on a thread of its own. The work's [`Stop`] is set when the call is cancelled
    /// or out of time.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Stop) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let stop = Stop::default();
        let _guard = StopOnDrop(stop.clone());
        blocking(move || work(&stop)).map_err(|error| without_thread(&error))?.await
    }
}

fn input_schema<T: JsonSchema>() -> Map<String, Value> {
    let mut schema = schema_of::<T>(SchemaSettings::draft2020_12());
    // An unknown argument is reported.
    schema.entry("additionalProperties").or_insert(false.into());
    schema.entry("type").or_insert("object".into());
    schema.entry("properties").or_insert(json!({}));
    schema
}

/// The schema of results as clients get them: an object as it is, anything else wrapped in one. None where anything is allowed.
fn output_schema<T: JsonSchema>() -> Option<Map<String, Value>> {
    let schema = schema_of::<T>(SchemaSettings::draft2020_12().for_serialize());
    if schema.get("type").is_some_and(|kind| kind == "object") {
        return Some(schema);
    }
    if schema.is_empty() {
        return None;
    }
    Some(wrapped_schema(&Value::Object(schema)))
}

fn schema_of<T: JsonSchema>(settings: SchemaSettings) -> Map<String, Value> {
    // Models read schemas better without references.
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    // These describe the Rust type.
    for key in ["$schema", "title", "description"] {
        schema.remove(key);
    }
    schema
}

/// Removes what a model does not need: widths of numbers, and null defaults.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            list_choices(map);
            let format = map.get("format").and_then(Value::as_str).unwrap_or_default();
            if ["int", "uint", "double", "float"].iter().any(|width| format.starts_with(width)) {
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

/// Replaces described choices (`oneOf`) by an `enum` with one description, which completion and messages are built from.
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
