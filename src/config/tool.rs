//! Settings of a tool, as one layer sets them: its own declaration, its header, `[tool]`, `[tool.NAME]` or
//! `[tool."pack.function"]`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::declared_policy::DeclaredPolicy;
use super::icon::icon;
use super::launcher::Launcher;
use super::needs::Needs;
use super::origin::{Place, Setting};
use super::sandbox::SandboxLayer;
use super::section::Section;
use super::task::TaskMode;
use super::value::{
    ByteCount, IdleTimeout, Word, count, function_names, limit, memory, name_for_callers, option_word, secret_names,
};

/// The effect of repeating a call. It decides whether hostler may repeat one whose worker died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effects {
    /// It changes nothing.
    Pure,
    /// A second call changes nothing more.
    Idempotent,
    /// A second call may change something again.
    #[default]
    Once,
}

impl Word for Effects {
    const WORDS: &'static [(&'static str, Self)] =
        &[("pure", Self::Pure), ("idempotent", Self::Idempotent), ("once", Self::Once)];
}

/// What happens to a result that is too large for an MCP client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LargeResult {
    /// The call fails.
    #[default]
    Error,
    /// The client gets links, which it can read while its session lives.
    Link,
}

impl Word for LargeResult {
    const WORDS: &'static [(&'static str, Self)] = &[("error", Self::Error), ("link", Self::Link)];
}

/// Who shares a worker where one hostler serves several clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Share {
    /// All sessions that would start the same one.
    #[default]
    User,
    /// None: each session has its own.
    Session,
}

impl Word for Share {
    const WORDS: &'static [(&'static str, Self)] = &[("user", Self::User), ("session", Self::Session)];
}

/// How well a tool's calls are remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JournalLevel {
    /// Not at all.
    Off,
    /// Also if every process of hostler is killed.
    #[default]
    Kept,
    /// Also if the machine loses its power.
    Synced,
}

impl Word for JournalLevel {
    const WORDS: &'static [(&'static str, Self)] =
        &[("off", Self::Off), ("kept", Self::Kept), ("synced", Self::Synced)];
}

/// The working directory of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkingDirectory {
    /// That of the client's hostler: sessions of different folders have different workers.
    #[default]
    Session,
    /// The folder of its file.
    Tool,
}

impl Word for WorkingDirectory {
    const WORDS: &'static [(&'static str, Self)] = &[("session", Self::Session), ("tool", Self::Tool)];
}

/// The protocol of a worker that is not hostler's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// The worker protocol of `docs/protocol.md`.
    V1,
    /// A line in, a line out.
    Bare,
    /// No worker: an executable is started for each call, which is the default. It changes nothing for a Python file.
    Once,
}

impl Word for Protocol {
    const WORDS: &'static [(&'static str, Self)] = &[("v1", Self::V1), ("bare", Self::Bare), ("once", Self::Once)];
}

/// What an executable prints that is started for each call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputForm {
    /// One JSON value.
    #[default]
    Json,
    /// Text, which is the result as a string.
    Text,
}

impl Word for OutputForm {
    const WORDS: &'static [(&'static str, Self)] = &[("json", Self::Json), ("text", Self::Text)];
}

/// What a Python file serves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Serve {
    /// Its functions.
    #[default]
    Functions,
    /// Itself, as a program with a command line.
    Main,
}

impl Word for Serve {
    const WORDS: &'static [(&'static str, Self)] = &[("functions", Self::Functions), ("main", Self::Main)];
}

/// The settings of one layer. What is stored of it is what executables and built-in tools declare.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolLayer {
    /// The place of its table.
    #[serde(skip)]
    pub place: Option<Place>,
    /// How long one call may run.
    pub timeout: Option<Setting<Duration>>,
    /// The effect of repeating a call.
    pub effects: Option<Setting<Effects>>,
    /// The secrets this tool file may receive, by name.
    pub secrets: Option<Setting<Vec<String>>>,
    /// Whether its own secrets are removed from its results, too.
    pub redact_results: Option<Setting<bool>>,
    /// The protocol of its worker.
    pub protocol: Option<Setting<Protocol>>,
    /// What its program prints.
    pub output: Option<Setting<OutputForm>>,
    /// The option that gets its arguments as JSON, instead of its standard input.
    pub input_option: Option<Setting<String>>,
    /// What a Python file serves.
    #[serde(skip)]
    pub serve: Option<Setting<Serve>>,
    /// The name of the pack, or of the function, for callers.
    #[serde(skip)]
    pub served_as: Option<Setting<String>>,
    /// Whether it is run to ask for its schema.
    #[serde(skip)]
    pub ask: Option<Setting<bool>>,
    /// Its declared policy.
    #[serde(flatten)]
    pub policy: DeclaredPolicy,
    /// How clients show it: the address of an image, or a path from the file that sets it.
    pub icon: Option<Setting<String>>,
    /// How long a question to the client may stay open.
    #[serde(skip)]
    pub question_timeout: Option<Setting<Duration>>,
    /// How long a worker may take from its start to its first message.
    #[serde(skip)]
    pub startup_timeout: Option<Setting<Duration>>,
    /// When an idle worker ends.
    #[serde(skip)]
    pub idle_timeout: Option<Setting<IdleTimeout>>,
    /// How many calls may wait for this tool file.
    #[serde(skip)]
    pub max_queue: Option<Setting<usize>>,
    /// How many workers are kept running.
    #[serde(skip)]
    pub min_workers: Option<Setting<usize>>,
    /// How many workers may be alive for this tool file.
    #[serde(skip)]
    pub max_workers: Option<Setting<usize>>,
    /// How many calls a worker runs at once.
    #[serde(skip)]
    pub concurrency: Option<Setting<usize>>,
    /// After how many calls a worker is replaced.
    #[serde(skip)]
    pub max_calls: Option<Setting<usize>>,
    /// How long a worker runs until it is replaced.
    #[serde(skip)]
    pub max_lifetime: Option<Setting<Duration>>,
    /// The memory after a call from which on a worker is replaced.
    #[serde(skip)]
    pub max_rss: Option<Setting<ByteCount>>,
    /// The most processor time a call may use.
    #[serde(skip)]
    pub max_cpu: Option<Setting<Duration>>,
    /// The most memory a worker may use.
    #[serde(skip)]
    pub max_memory: Option<Setting<ByteCount>>,
    /// Who shares its workers.
    #[serde(skip)]
    pub share: Option<Setting<Share>>,
    /// What happens to results that are too large for an MCP client.
    #[serde(skip)]
    pub large: Option<Setting<LargeResult>>,
    /// How well its calls are remembered.
    #[serde(skip)]
    pub journal: Option<Setting<JournalLevel>>,
    /// Whether its calls become MCP tasks.
    #[serde(skip)]
    pub task: Option<Setting<TaskMode>>,
    /// How long a call takes until it becomes one.
    #[serde(skip)]
    pub task_after: Option<Setting<Duration>>,
    /// Its working directory.
    #[serde(skip)]
    pub cwd: Option<Setting<WorkingDirectory>>,
    /// What starts its processes.
    #[serde(skip)]
    pub launcher: Option<Setting<Launcher>>,
    /// Whether arguments are checked against the schema.
    #[serde(skip)]
    pub validate: Option<Setting<bool>>,
    /// Whether its functions may use hostler itself.
    #[serde(skip)]
    pub host_access: Option<Setting<bool>>,
    /// Whether its functions may ask the client's user and language model.
    #[serde(skip)]
    pub client_access: Option<Setting<bool>>,
    /// Variables passed on from hostler's own environment.
    #[serde(skip)]
    pub pass_env: Option<Setting<Vec<String>>>,
    /// Variables set.
    #[serde(skip)]
    pub env: BTreeMap<String, Setting<String>>,
    /// Whether it may gain privileges, and is not separated from other processes.
    #[serde(skip)]
    pub new_privileges: Option<Setting<bool>>,
    /// What its process may reach, weakest first.
    #[serde(skip)]
    pub sandbox: Vec<Setting<SandboxLayer>>,
    /// Passed to the tool as it is.
    #[serde(skip)]
    pub config: Option<Setting<toml::Table>>,
    /// What it needs, instead of what its header says.
    #[serde(skip)]
    pub needs: Needs,
    /// The functions that its worker serves.
    #[serde(skip)]
    pub functions: Option<Setting<Vec<String>>>,
}

impl ToolLayer {
    /// Reads what a header may set.
    pub fn of_header(section: &Section<'_>) -> Self {
        Self { protocol: section.take("protocol"), serve: section.take("serve"), ..Self::read(section) }
    }

    /// Reads `[tool]`.
    pub(super) fn of_every(section: &Section<'_>) -> Self {
        Self {
            min_workers: section.take("min_workers"),
            launcher: section.take("launcher"),
            validate: section.take("validate"),
            host_access: section.take("host_access"),
            client_access: section.take("client_access"),
            pass_env: section.take("pass_env"),
            ..Self::read(section)
        }
    }

    /// Reads `[tool.NAME]`.
    pub(super) fn of_pack(section: &Section<'_>) -> Self {
        Self {
            place: section.place(),
            protocol: section.take("protocol"),
            output: section.take("output"),
            input_option: section.take_as("input_option", option_word),
            ask: section.take("ask"),
            serve: section.take("serve"),
            served_as: section.take_as("as", name_for_callers),
            functions: section.take_as("functions", function_names),
            new_privileges: section.take("new_privileges"),
            env: variables_of(&section.section("env")),
            config: section.take("config"),
            needs: Needs::read(section),
            ..Self::of_every(section)
        }
    }

    /// Reads `[tool."pack.function"]`.
    pub(super) fn of_function(section: &Section<'_>) -> Self {
        Self {
            place: section.place(),
            timeout: section.take_as("timeout", limit),
            effects: section.take("effects"),
            validate: section.take("validate"),
            served_as: section.take_as("as", name_for_callers),
            policy: DeclaredPolicy::read(section),
            icon: section.take_as("icon", icon),
            ..Self::default()
        }
    }

    fn read(section: &Section<'_>) -> Self {
        Self {
            timeout: section.take_as("timeout", limit),
            question_timeout: section.take_as("question_timeout", limit),
            startup_timeout: section.take_as("startup_timeout", limit),
            idle_timeout: section.take("idle_timeout"),
            max_queue: section.take("max_queue"),
            max_workers: section.take_as("max_workers", count),
            concurrency: section.take_as("concurrency", count),
            max_calls: section.take_as("max_calls", count),
            max_lifetime: section.take_as("max_lifetime", limit),
            max_rss: section.take_as("max_rss", memory),
            max_cpu: section.take_as("max_cpu", limit),
            max_memory: section.take_as("max_memory", memory),
            large: section.take("large"),
            share: section.take("share"),
            journal: section.take("journal"),
            task: section.take("task"),
            task_after: section.take_as("task_after", limit),
            cwd: section.take("cwd"),
            effects: section.take("effects"),
            secrets: section.take_as("secrets", secret_names),
            redact_results: section.take("redact_results"),
            sandbox: section.take_each("sandbox", SandboxLayer::read),
            policy: DeclaredPolicy::read(section),
            icon: section.take_as("icon", icon),
            ..Self::default()
        }
    }

    /// This layer with a stronger one over it. Tables are the stronger one's.
    #[must_use]
    pub fn under(self, over: Self) -> Self {
        // Every field is named: one that is forgotten here would lose its weaker value.
        Self {
            place: over.place,
            timeout: over.timeout.or(self.timeout),
            question_timeout: over.question_timeout.or(self.question_timeout),
            startup_timeout: over.startup_timeout.or(self.startup_timeout),
            idle_timeout: over.idle_timeout.or(self.idle_timeout),
            max_queue: over.max_queue.or(self.max_queue),
            min_workers: over.min_workers.or(self.min_workers),
            max_workers: over.max_workers.or(self.max_workers),
            concurrency: over.concurrency.or(self.concurrency),
            max_calls: over.max_calls.or(self.max_calls),
            max_lifetime: over.max_lifetime.or(self.max_lifetime),
            max_rss: over.max_rss.or(self.max_rss),
            max_cpu: over.max_cpu.or(self.max_cpu),
            max_memory: over.max_memory.or(self.max_memory),
            effects: over.effects.or(self.effects),
            secrets: over.secrets.or(self.secrets),
            redact_results: over.redact_results.or(self.redact_results),
            protocol: over.protocol.or(self.protocol),
            output: over.output.or(self.output),
            input_option: over.input_option.or(self.input_option),
            ask: over.ask.or(self.ask),
            serve: over.serve.or(self.serve),
            served_as: over.served_as.or(self.served_as),
            large: over.large.or(self.large),
            share: over.share.or(self.share),
            journal: over.journal.or(self.journal),
            task: over.task.or(self.task),
            task_after: over.task_after.or(self.task_after),
            cwd: over.cwd.or(self.cwd),
            launcher: over.launcher.or(self.launcher),
            validate: over.validate.or(self.validate),
            host_access: over.host_access.or(self.host_access),
            client_access: over.client_access.or(self.client_access),
            pass_env: over.pass_env.or(self.pass_env),
            needs: self.needs.under(over.needs),
            policy: self.policy.under(over.policy),
            sandbox: self.sandbox.into_iter().chain(over.sandbox).collect(),
            icon: over.icon.or(self.icon),
            env: over.env,
            new_privileges: over.new_privileges,
            config: over.config,
            functions: over.functions,
        }
    }
}

/// A table of environment variables.
pub(super) fn variables_of(section: &Section<'_>) -> BTreeMap<String, Setting<String>> {
    let mut found = BTreeMap::new();
    for entry in section.entries() {
        match entry.value.as_str() {
            _ if entry.key.is_empty() || entry.key.contains(['=', '\0']) => {
                section.report(
                    &entry,
                    "not a name of a variable",
                    "use a name without `=` and NUL, like `NAME = \"value\"`",
                );
            }
            Some(text) if text.contains('\0') => {
                section.report(&entry, "a variable cannot contain NUL", "remove the NUL character");
            }
            Some(text) => {
                let setting = Setting { value: text.to_owned(), origin: entry.origin() };
                found.insert(entry.key.to_owned(), setting);
            }
            None => section.report(&entry, "expected a string", "write it in quotes"),
        }
    }
    found
}
