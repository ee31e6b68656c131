//! A built-in tool in a process of its own, which has walls as those of other tools: what that process is sent, and what it answers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Builtins, Call, web};
use crate::config::Environment;
use crate::config::builtin::{BuiltinSettings, GROUPS};
use crate::config::origin::Setting;
use crate::config::value::Word;
use crate::outcome::{Code, Fault};
use crate::pool::NoopListener;
use crate::process::{EnvFilter, UsageLimits};

/// A call, on the standard input of its process.
#[derive(Debug, Serialize, Deserialize)]
pub struct SentCall {
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Box<RawValue>,
    /// Its time limit.
    pub timeout: Duration,
    /// The most output that is kept of a program that it starts, in bytes.
    pub max_output: usize,
    /// The folders that it may reach.
    pub roots: Vec<PathBuf>,
    /// Private hosts and addresses that it may reach.
    pub private: Vec<String>,
    /// The provider of searches, by its word.
    pub provider: Option<String>,
    /// Its address.
    pub provider_url: Option<String>,
    /// The secrets that it needs, as far as they are set.
    pub secrets: BTreeMap<String, String>,
}

/// How it ended, on its standard output.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SentAnswer {
    /// With a result.
    Result(Box<RawValue>),
    /// Without one.
    Fault(Fault),
}

/// Whether a tool of hostler's own can run in another process. Those of `host` ask hostler itself, and `bash` is a process already.
pub fn runs_apart(name: &str) -> bool {
    let groups = GROUPS.iter().filter(|(group, _)| !["host", "shell"].contains(group));
    groups.flat_map(|(_, tools)| *tools).any(|tool| *tool == name)
}

/// The secrets that a call of a tool looks up.
pub fn secrets_of(name: &str, settings: &BuiltinSettings) -> Option<&'static str> {
    if name == "web_search" { web::search_key(settings) } else { None }
}

impl SentCall {
    /// Makes the call, in its own process.
    pub async fn answer(self, environment: Environment) -> SentAnswer {
        match self.run(environment).await {
            Ok(result) => SentAnswer::Result(result),
            Err(fault) => SentAnswer::Fault(fault),
        }
    }

    async fn run(self, environment: Environment) -> Result<Box<RawValue>, Fault> {
        let settings = BuiltinSettings {
            roots: Some(Setting::default_value(self.roots)),
            fetch_private: Some(Setting::default_value(self.private)),
            search: self.provider.and_then(|word| Word::of(&word)).map(Setting::default_value),
            search_url: self.provider_url.map(Setting::default_value),
            ..BuiltinSettings::default()
        };
        let proxy = environment.text("HTTPS_PROXY").map(str::to_owned);
        let tools = Builtins::within(&settings, proxy.as_deref());
        let secrets = self.secrets;
        let call = Call {
            id: String::new(),
            begun: Instant::now(),
            timeout: self.timeout,
            max_output: self.max_output,
            new_privileges: false,
            // It is within them.
            walls: None,
            launcher: None,
            limits: UsageLimits::default(),
            env_filter: EnvFilter::of(Arc::new(environment)),
            secrets: Arc::new(move |name| {
                let found = secrets.get(name).cloned();
                Box::pin(async move { Ok(found) })
            }),
            listener: Arc::new(NoopListener),
            host: None,
            arguments: self.arguments.clone(),
            trace: None,
            asks: None,
        };
        tools.call(&self.name, self.arguments, call).await
    }
}

/// The answer that a process wrote; `None` if it is none.
pub fn read_answer(written: &[u8]) -> Option<SentAnswer> {
    serde_json::from_slice(written).ok()
}

/// The call that a process was sent.
pub fn read_call(sent: &str) -> Result<SentCall, Fault> {
    serde_json::from_str(sent).map_err(|error| Fault::new(Code::SystemError, format!("it is not a call: {error}")))
}
