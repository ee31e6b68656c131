//! hostler itself as tools: what there is, how it stands, asked anew; and the client's language model.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{About, Builtin, Builtins, Call, Unregistered};
use crate::config::declared_policy::Risk;
use crate::config::tool::Effects;
use crate::outcome::Fault;
use crate::protocol::HostMethod;

pub(super) fn add(tools: &mut Builtins) -> Result<(), Unregistered> {
    tools.register(Tools)?;
    tools.register(Status)?;
    tools.register(Refresh)?;
    tools.register(Config)?;
    tools.register(AskLlm)
}

/// Arguments of a tool that takes none.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

struct Tools;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Filter {
    /// Only tools whose name or description holds this text.
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
        About::new("hostler_tools", "List the tools that can be called here, with what they do and take.")
            .risk("read_only", Risk::Low)
            .effects(Effects::Pure)
    }

    async fn call(&self, filter: Filter, call: Call) -> Result<Vec<Value>, Fault> {
        let Value::Array(mut tools) = call.ask(HostMethod::Tools, &Nothing {}).await? else { return Ok(Vec::new()) };
        if let Some(text) = filter.text.map(|text| text.to_lowercase()) {
            let says =
                |tool: &Value, key: &str| tool[key].as_str().is_some_and(|said| said.to_lowercase().contains(&text));
            tools.retain(|tool| says(tool, "name") || says(tool, "description"));
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

struct Status;

impl Builtin for Status {
    type Params = Nothing;
    type Answer = Value;

    fn about(&self) -> About {
        About::new(
            "hostler_status",
            "Say how hostler stands: calls, workers, what failed last, whether tools are still asked.",
        )
        .risk("read_only", Risk::Low)
        .effects(Effects::Pure)
    }

    async fn call(&self, nothing: Nothing, call: Call) -> Result<Value, Fault> {
        call.ask(HostMethod::Status, &nothing).await
    }
}

struct Refresh;

impl Builtin for Refresh {
    type Params = Nothing;
    type Answer = String;

    fn about(&self) -> About {
        About::new(
            "hostler_refresh",
            "Look at all tool folders again and ask every executable anew what it is.\n\nChanges are noticed without it; this is \
             for what cannot be seen, such as a program that needs something that has come.",
        )
        .risk("read_only", Risk::Low)
        .effects(Effects::Idempotent)
        .timeout(Duration::from_mins(2))
    }

    async fn call(&self, nothing: Nothing, call: Call) -> Result<String, Fault> {
        let told = call.ask(HostMethod::Refresh, &nothing).await?;
        Ok(told.as_str().unwrap_or_default().to_owned())
    }
}

struct Config;

impl Builtin for Config {
    type Params = Nothing;
    type Answer = Value;

    fn about(&self) -> About {
        About::new("hostler_config", "Say which configuration is in force. Secrets are told by their names only.")
            .risk("read_only", Risk::Low)
            .effects(Effects::Pure)
    }

    async fn call(&self, nothing: Nothing, call: Call) -> Result<Value, Fault> {
        call.ask(HostMethod::Config, &nothing).await
    }
}

struct AskLlm;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Question {
    /// What to ask.
    #[schemars(length(min = 1))]
    prompt: String,
    /// How the model is to behave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    system: Option<String>,
    /// The longest answer, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    max_tokens: Option<u32>,
}

impl Builtin for AskLlm {
    type Params = Question;
    type Answer = String;

    fn about(&self) -> About {
        About::new("hostler_ask_llm", "Ask the client's own language model, where the client lends it (MCP sampling).")
            .risk("network", Risk::Low)
    }

    async fn call(&self, question: Question, call: Call) -> Result<String, Fault> {
        let answer = call.ask(HostMethod::Llm, &question).await?;
        Ok(answer.as_str().unwrap_or_default().to_owned())
    }
}
