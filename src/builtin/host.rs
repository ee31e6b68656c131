//! hostler itself as tools: its catalogue, status, configuration, a refresh; and the client's language model.

use std::marker::PhantomData;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{About, Builtin, Builtins, Call, Unregistered};
use crate::config::declared_policy::Risk;
use crate::config::tool::Effects;
use crate::outcome::{Code, Fault};
use crate::protocol::HostMethod;

pub(super) fn add(tools: &mut Builtins) -> Result<(), Unregistered> {
    tools.register(Tools)?;
    tools.register(Request::<Nothing, Value>::new(HostMethod::Status, status))?;
    tools.register(Request::<Nothing, String>::new(HostMethod::Refresh, refresh))?;
    tools.register(Request::<Nothing, Value>::new(HostMethod::Config, config))?;
    tools.register(Request::<Question, String>::new(HostMethod::Llm, ask_llm))
}

/// No arguments.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

struct Tools;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Filter {
    /// Only tools whose name or description contains this text.
    #[serde(default)]
    text: Option<String>,
    /// Only tools of this category, such as `read_only` or `network`.
    #[serde(default)]
    category: Option<String>,
    /// Only tools with this tag.
    #[serde(default)]
    tag: Option<String>,
}

impl Builtin for Tools {
    type Params = Filter;
    type Answer = Vec<Value>;

    fn about(&self) -> About {
        About::new("hostler_tools", "List the available tools with their descriptions and arguments.")
            .reads("read_only", Risk::Low)
    }

    async fn call(&self, filter: Filter, call: Call) -> Result<Vec<Value>, Fault> {
        let Value::Array(mut tools) = call.ask(HostMethod::Tools, &Nothing {}).await? else { return Ok(Vec::new()) };
        if let Some(text) = filter.text.map(|text| text.to_lowercase()) {
            let has =
                |tool: &Value, key: &str| tool[key].as_str().is_some_and(|value| value.to_lowercase().contains(&text));
            tools.retain(|tool| has(tool, "name") || has(tool, "description"));
        }
        if let Some(category) = filter.category {
            tools.retain(|tool| tool["category"] == category);
        }
        if let Some(tag) = filter.tag {
            tools.retain(|tool| tool["tags"].as_array().is_some_and(|tags| tags.iter().any(|one| *one == tag)));
        }
        Ok(tools)
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Question {
    /// The prompt.
    #[schemars(length(min = 1))]
    prompt: String,
    /// The system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    system: Option<String>,
    /// The longest answer, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    max_tokens: Option<u32>,
}

/// A request to hostler as a tool.
struct Request<P, A> {
    about: fn() -> About,
    method: HostMethod,
    types: PhantomData<fn(P) -> A>,
}

impl<P, A> Request<P, A> {
    const fn new(method: HostMethod, about: fn() -> About) -> Self {
        Self { about, method, types: PhantomData }
    }
}

impl<P, A> Builtin for Request<P, A>
where
    P: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static,
    A: Serialize + DeserializeOwned + JsonSchema + Send + 'static,
{
    type Params = P;
    type Answer = A;

    fn about(&self) -> About {
        (self.about)()
    }

    async fn call(&self, params: P, call: Call) -> Result<A, Fault> {
        let answer = call.ask(self.method, &params).await?;
        serde_json::from_value(answer).map_err(|error| Fault::new(Code::SystemError, error.to_string()))
    }
}

fn status() -> About {
    About::new(
        "hostler_status",
        "Return the status of hostler: calls, workers, recent failures, executables still being asked.",
    )
    .reads("read_only", Risk::Low)
}

fn refresh() -> About {
    About::new(
        "hostler_refresh",
        "Rescan all tool folders and read every executable's metadata again.\n\nFile changes are noticed without it; this is for \
         other changes, such as a program that was missing something.",
    )
    .risk("read_only", Risk::Low)
    .effects(Effects::Idempotent)
    .timeout(Duration::from_mins(2))
}

fn config() -> About {
    About::new("hostler_config", "Return the effective configuration. Secrets appear by name only.")
        .reads("read_only", Risk::Low)
}

fn ask_llm() -> About {
    About::new("hostler_ask_llm", "Ask the client's language model, where the client offers it (MCP sampling).")
        .risk("network", Risk::Low)
}
