//! The settings in force for one tool. Default, header, `[tool]`, `[tool.NAME]`, `[tool."pack.function"]`, flag: the last wins.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::declared_policy::DeclaredPolicy;
use super::environment::Environment;
use super::launcher::Launcher;
use super::load::Config;
use super::needs::{Needs, PYTHON_PATH};
use super::origin::{Origin, Setting};
use super::sandbox::Sandbox;
use super::task::TaskMode;
use super::tool::{
    Effects, JournalLevel, LargeResult, OutputForm, Protocol, Serve, Share, ToolLayer, WorkingDirectory,
};
use super::value::{ByteCount, IdleTimeout, Word};

/// Settings of a tool file.
#[derive(Debug, Clone)]
pub struct EffectiveTool {
    /// How long one call may run.
    pub timeout: Setting<Duration>,
    /// How long a worker may take from its start to its first message.
    pub startup_timeout: Setting<Duration>,
    /// How long a question to the client may stay open.
    pub question_timeout: Setting<Duration>,
    /// When an idle worker ends.
    pub idle_timeout: Setting<IdleTimeout>,
    /// How many calls may wait.
    pub max_queue: Setting<usize>,
    /// How many workers are kept running.
    pub min_workers: Setting<usize>,
    /// How many may be alive.
    pub max_workers: Setting<usize>,
    /// How many calls a worker runs at once.
    pub concurrency: Setting<usize>,
    /// After how many calls a worker is replaced; `None` for never, as in the two below.
    pub max_calls: Option<Setting<usize>>,
    /// After how long a worker is replaced.
    pub max_lifetime: Option<Setting<Duration>>,
    /// The memory after a call from which on a worker is replaced.
    pub max_rss: Option<Setting<ByteCount>>,
    /// The most memory a worker may use; `None` for no limit.
    pub max_memory: Option<Setting<ByteCount>>,
    /// The most processor time a call may use.
    pub max_cpu: Option<Setting<Duration>>,
    /// The effect of repeating a call.
    pub effects: Setting<Effects>,
    /// The secrets it may receive.
    pub secrets: Setting<Vec<String>>,
    /// Whether its own secrets are removed from its results, too.
    pub redact_results: Setting<bool>,
    /// Who shares its workers where one hostler serves several clients.
    pub share: Setting<Share>,
    /// What happens to results that are too large for an MCP client.
    pub large: Setting<LargeResult>,
    /// How well its calls are remembered.
    pub journal: Setting<JournalLevel>,
    /// Whether its calls become MCP tasks.
    pub task: Setting<TaskMode>,
    /// How long a call takes until it becomes one; `None` for never.
    pub task_after: Option<Setting<Duration>>,
    /// Its working directory.
    pub cwd: Setting<WorkingDirectory>,
    /// How the interpreter is started.
    pub launcher: Setting<Launcher>,
    /// Whether arguments are checked.
    pub validate: Setting<bool>,
    /// Whether it may use hostler itself.
    pub host_access: Setting<bool>,
    /// Whether it may ask the client's user and language model.
    pub client_access: Setting<bool>,
    /// Variables passed on.
    pub pass_env: Setting<Vec<String>>,
    /// Variables set.
    pub env: BTreeMap<String, Setting<String>>,
    /// Whether it may gain privileges, as by `sudo`; then it can read other processes of this user.
    pub new_privileges: Setting<bool>,
    /// What its processes may reach: each of these has to allow it.
    pub sandbox: Vec<Sandbox>,
    /// Passed to the tool as it is.
    pub config: Setting<toml::Table>,
    /// The protocol of its worker, if it is one by itself.
    pub protocol: Option<Setting<Protocol>>,
    /// What its program prints, if it is not JSON.
    pub output: Option<Setting<OutputForm>>,
    /// The option that gets its arguments, if it is not its standard input.
    pub input_option: Option<Setting<String>>,
    /// What a Python file serves, if it is not its functions.
    pub serve: Option<Setting<Serve>>,
    /// What the operator says that it needs.
    pub needs: Needs,
    /// The functions that its worker serves, if set.
    pub functions: Option<Setting<Vec<String>>>,
    /// The policy that its file declares.
    pub policy: DeclaredPolicy,
    /// How clients show its functions.
    pub icon: Option<Setting<String>>,
}

/// Settings of one function. What is not set for it is its file's.
#[derive(Debug, Clone)]
pub struct FunctionSettings {
    /// How long one call may run.
    pub timeout: Setting<Duration>,
    /// The effect of repeating a call.
    pub effects: Setting<Effects>,
    /// Whether arguments are checked.
    pub validate: Setting<bool>,
    /// The rules for it. Many functions share one.
    pub policy: Arc<DeclaredPolicy>,
    /// How clients show it.
    pub icon: Option<Setting<String>>,
}

impl EffectiveTool {
    /// Whether a Python file is served as one program.
    pub fn serves_program(&self) -> bool {
        self.serve.as_ref().is_some_and(|serve| serve.value == Serve::Main)
    }

    /// Whether the result of a program is the text that it prints.
    pub fn prints_text(&self) -> bool {
        self.output.as_ref().is_some_and(|output| output.value == OutputForm::Text)
    }

    /// The folders that its Python modules are also looked for in.
    pub fn import_folders(&self, environment: &Environment) -> Vec<PathBuf> {
        let is_passed = self.pass_env.value.iter().any(|name| name == PYTHON_PATH);
        let passed = is_passed.then(|| environment.raw(PYTHON_PATH)).flatten();
        let set = self.env.get(PYTHON_PATH).map(|path| OsStr::new(&path.value));
        let mut folders = self.needs.folders(environment);
        folders.extend(set.or(passed).into_iter().flat_map(std::env::split_paths));
        folders
    }

    /// The settings that decide what its calls can reach, as one text: an approval is bound to it.
    pub fn reach(&self) -> String {
        let env: Vec<(&String, &String)> = self.env.iter().map(|(name, value)| (name, &value.value)).collect();
        let may = (self.host_access.value, self.client_access.value, self.new_privileges.value);
        let protocol = self.protocol.as_ref().map(|protocol| protocol.value);
        let gets = (&self.secrets.value, &self.pass_env.value, env, &self.config.value);
        let reaches: Vec<String> = self.sandbox.iter().map(Sandbox::shown).collect();
        let launcher = self.launcher.value.command().map(|_| self.launcher.value.shown());
        let needs = self.needs.reach();
        let serve = self.serve.as_ref().map(|serve| serve.value);
        let runs = (protocol, serve, self.input_option.as_ref().map(|option| &option.value));
        format!("{may:?} {gets:?} {:?} {runs:?} {reaches:?} {launcher:?}{needs}", self.cwd.value)
    }
}

impl Config {
    /// The settings of a pack. `header` is what its file sets; `internal` files have access to hostler.
    pub fn tool(&self, pack: &str, header: Option<&ToolLayer>, internal: bool) -> EffectiveTool {
        fn or<T>(setting: Option<Setting<T>>, default: T) -> Setting<T> {
            setting.unwrap_or(Setting::default_value(default))
        }
        let own = self.packs.get(pack).cloned().unwrap_or_default();
        let layer = header.cloned().unwrap_or_default().under(self.every.clone()).under(own);
        let sandbox = self.sandboxes(pack, header);
        // `uv run` needs a cache that it may write, and from which other tools start.
        let walled = sandbox.iter().find(|sandbox| sandbox.limits_access());
        let walled = walled.filter(|_| layer.launcher.as_ref().is_none_or(|set| set.value.command().is_none()));
        let direct = walled.map(|sandbox| Setting { value: Launcher::Direct, origin: sandbox.origin.clone() });
        EffectiveTool {
            timeout: or(self.call_timeout.clone().or(layer.timeout), Duration::from_mins(5)),
            question_timeout: or(layer.question_timeout, Duration::from_mins(5)),
            startup_timeout: or(layer.startup_timeout, Duration::from_mins(1)),
            idle_timeout: or(layer.idle_timeout, IdleTimeout::After(Duration::from_mins(10))),
            max_queue: or(layer.max_queue, 256),
            min_workers: or(layer.min_workers, 0),
            max_workers: or(layer.max_workers, 1),
            concurrency: or(layer.concurrency, 1),
            max_calls: layer.max_calls,
            max_lifetime: layer.max_lifetime,
            max_rss: layer.max_rss,
            max_memory: layer.max_memory,
            max_cpu: layer.max_cpu,
            effects: or(layer.effects, Effects::Once),
            secrets: or(layer.secrets, Vec::new()),
            redact_results: or(layer.redact_results, false),
            large: or(layer.large, LargeResult::Error),
            share: or(layer.share, Share::User),
            journal: or(layer.journal, JournalLevel::Kept),
            task: or(layer.task, TaskMode::No),
            task_after: layer.task_after,
            cwd: or(layer.cwd, WorkingDirectory::Session),
            launcher: or(direct.or(layer.launcher), Launcher::Uv),
            validate: or(layer.validate, true),
            host_access: or(layer.host_access, internal),
            client_access: or(layer.client_access, true),
            pass_env: or(layer.pass_env, Vec::new()),
            env: layer.env,
            new_privileges: or(layer.new_privileges, false),
            sandbox,
            config: or(layer.config, toml::Table::new()),
            protocol: layer.protocol,
            output: layer.output,
            input_option: layer.input_option,
            serve: layer.serve,
            needs: layer.needs,
            functions: layer.functions,
            policy: header.map(|header| header.policy.clone()).unwrap_or_default(),
            icon: layer.icon,
        }
    }

    /// The settings of one function of a pack. `declared` is what it declares itself, which every other layer overrides.
    pub fn function(
        &self,
        pack: &str,
        function: &str,
        tool: &EffectiveTool,
        declared: Option<&ToolLayer>,
    ) -> FunctionSettings {
        // Borrowed: a layer is large, and catalogues have thousands of functions.
        let own = self.functions.get(&format!("{pack}.{function}"));
        let policy = |layer: Option<&ToolLayer>| layer.map(|layer| layer.policy.clone()).unwrap_or_default();
        let timeout = |layer: Option<&ToolLayer>| layer.and_then(|layer| layer.timeout.clone());
        let effects = |layer: Option<&ToolLayer>| layer.and_then(|layer| layer.effects.clone());
        FunctionSettings {
            timeout: strongest(self.call_timeout.clone().or(timeout(own)), &tool.timeout, timeout(declared)),
            effects: strongest(effects(own), &tool.effects, effects(declared)),
            validate: strongest(own.and_then(|own| own.validate.clone()), &tool.validate, None),
            policy: Arc::new(self.policy_of(policy(declared).under(tool.policy.clone()), self.packs.get(pack), own)),
            icon: own.and_then(|own| own.icon.clone()).or_else(|| icon_of(tool, declared)),
        }
    }
}

impl Config {
    /// The policy of a function: what it declares, under `[policy]`, `[tool]`, its category's table, its pack's and its own. The rates of
    /// `[policy]` and of categories are not among it: they count the calls of all their tools together.
    pub(super) fn policy_of(
        &self,
        declared: DeclaredPolicy,
        pack: Option<&ToolLayer>,
        own: Option<&ToolLayer>,
    ) -> DeclaredPolicy {
        let set = |layer: Option<&ToolLayer>| layer.map(|layer| layer.policy.clone()).unwrap_or_default();
        let general = declared.under(self.policy.clone().without_rates()).under(self.every.policy.clone());
        let specific = set(pack).under(set(own));
        let category = specific.category.as_ref().or(general.category.as_ref());
        let category =
            category.and_then(|category| self.categories.get(&category.value)).map(|category| category.policy.clone());
        general.under(category.unwrap_or_default().without_rates()).under(specific)
    }
}

/// What the operator sets for the file, else what the function declares, else what its file does.
fn icon_of(tool: &EffectiveTool, declared: Option<&ToolLayer>) -> Option<Setting<String>> {
    let file = tool.icon.as_ref();
    let operators = file.filter(|icon| matches!(icon.origin, Origin::File(_)));
    operators.or(declared.and_then(|layer| layer.icon.as_ref())).or(file).cloned()
}

/// What is set for a function, else for its file, else what it declares.
fn strongest<T: Clone>(own: Option<Setting<T>>, file: &Setting<T>, asked: Option<Setting<T>>) -> Setting<T> {
    let asked = asked.filter(|_| file.origin == Origin::Default);
    own.or(asked).unwrap_or_else(|| file.clone())
}

/// A setting as `show` prints it.
#[derive(Debug, Clone)]
pub struct ShownSetting {
    /// The key.
    pub key: &'static str,
    /// The value.
    pub value: String,
    /// What set it.
    pub origin: Origin,
}

fn names(list: &[String]) -> String {
    if list.is_empty() { "none".to_owned() } else { list.join(", ") }
}

fn row<T>(key: &'static str, setting: &Setting<T>, value: String) -> ShownSetting {
    ShownSetting { key, value, origin: setting.origin.clone() }
}

impl EffectiveTool {
    /// Every setting, for people. Values of `config` and `env` may be private: only their keys are shown.
    pub fn shown(&self, function: &FunctionSettings) -> Vec<ShownSetting> {
        fn limit<T: Clone>(key: &'static str, setting: Option<&Setting<T>>, say: impl Fn(T) -> String) -> ShownSetting {
            let value = setting.map_or("no limit".to_owned(), |limit| say(limit.value.clone()));
            let origin = setting.map_or_else(|| Setting::default_value(()).origin, |limit| limit.origin.clone());
            ShownSetting { key, value, origin }
        }
        let time = |value: Duration| humantime::format_duration(value).to_string();
        let idle = match self.idle_timeout.value {
            IdleTimeout::After(value) => time(value),
            IdleTimeout::Never => "never".to_owned(),
        };
        let keys: Vec<String> = self.config.value.keys().cloned().collect();
        let variables: Vec<String> = self.env.keys().cloned().collect();
        let size = |limit: ByteCount| format!("{} MB", limit.0 / 1_000_000);
        let number = |limit: usize| limit.to_string();
        let mut rows = vec![
            row("timeout", &function.timeout, time(function.timeout.value)),
            row("question_timeout", &self.question_timeout, time(self.question_timeout.value)),
            row("startup_timeout", &self.startup_timeout, time(self.startup_timeout.value)),
            row("idle_timeout", &self.idle_timeout, idle),
            row("max_queue", &self.max_queue, self.max_queue.value.to_string()),
            row("min_workers", &self.min_workers, self.min_workers.value.to_string()),
            row("max_workers", &self.max_workers, self.max_workers.value.to_string()),
            row("concurrency", &self.concurrency, self.concurrency.value.to_string()),
            limit("max_calls", self.max_calls.as_ref(), number),
            limit("max_lifetime", self.max_lifetime.as_ref(), time),
            limit("max_rss", self.max_rss.as_ref(), size),
            limit("max_memory", self.max_memory.as_ref(), size),
            limit("max_cpu", self.max_cpu.as_ref(), time),
            row("effects", &function.effects, function.effects.value.word().to_owned()),
            row("validate", &function.validate, function.validate.value.to_string()),
            row("journal", &self.journal, self.journal.value.word().to_owned()),
            row("large", &self.large, self.large.value.word().to_owned()),
            row("cwd", &self.cwd, self.cwd.value.word().to_owned()),
            row("launcher", &self.launcher, self.launcher.value.shown()),
            row("secrets", &self.secrets, names(&self.secrets.value)),
            row("host_access", &self.host_access, self.host_access.value.to_string()),
            row("client_access", &self.client_access, self.client_access.value.to_string()),
            row("pass_env", &self.pass_env, names(&self.pass_env.value)),
            row("config", &self.config, names(&keys)),
        ];
        if self.share.origin != Origin::Default {
            rows.push(row("share", &self.share, self.share.value.word().to_owned()));
        }
        if self.new_privileges.origin != Origin::Default {
            rows.push(row("new_privileges", &self.new_privileges, self.new_privileges.value.to_string()));
        }
        rows.extend(self.sandbox.iter().map(|one| ShownSetting {
            key: "sandbox",
            value: one.shown(),
            origin: one.origin.clone(),
        }));
        if self.task.origin != Origin::Default {
            rows.push(row("task", &self.task, self.task.value.word().to_owned()));
        }
        if let Some(after) = &self.task_after {
            rows.push(row("task_after", after, time(after.value)));
        }
        rows.extend(self.shown_of_pack());
        if let Some(icon) = &function.icon {
            rows.push(row("icon", icon, icon.value.chars().take(80).collect()));
        }
        rows.extend(function.policy.declared().map(|(key, value, origin)| {
            let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let value = match &value {
                Value::Array(words) => words.iter().map(word).collect::<Vec<_>>().join(", "),
                single => word(single),
            };
            ShownSetting { key, value, origin: origin.clone() }
        }));
        if self.redact_results.origin != Origin::Default {
            rows.push(row("redact_results", &self.redact_results, self.redact_results.value.to_string()));
        }
        if let Some(first) = self.env.values().next() {
            rows.push(row("env", first, names(&variables)));
        }
        rows
    }
}

impl EffectiveTool {
    /// The settings that only one pack has, as far as they are set.
    fn shown_of_pack(&self) -> Vec<ShownSetting> {
        let needs = &self.needs;
        let folders = |list: &[PathBuf]| list.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
        let rows = [
            self.protocol.as_ref().map(|set| row("protocol", set, set.value.word().to_owned())),
            self.output.as_ref().map(|set| row("output", set, set.value.word().to_owned())),
            self.input_option.as_ref().map(|set| row("input_option", set, set.value.clone())),
            self.serve.as_ref().map(|set| row("serve", set, set.value.word().to_owned())),
            self.functions.as_ref().map(|set| row("functions", set, names(&set.value))),
            needs.dependencies.as_ref().map(|set| row("dependencies", set, names(&set.value))),
            needs.requires_python.as_ref().map(|set| row("requires-python", set, set.value.clone())),
            needs.python_path.as_ref().map(|set| row("python_path", set, names(&folders(&set.value)))),
            needs.args.as_ref().map(|set| row("args", set, format!("{} given", set.value.len()))),
        ];
        rows.into_iter().flatten().collect()
    }
}
