//! One `hostler.toml` as it is written, without defaults.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::builtin::BuiltinLayer;
use super::declared_policy::DeclaredPolicy;
use super::environment::Environment;
use super::origin::{Place, Setting};
use super::paths::beside;
use super::secrets::SecretSource;
use super::section::{Problem, Section, Source, parse};
use super::tables::{ExecutablesLayer, McpLayer};
use super::tool::{Effects, Launcher, ToolLayer, count, limit};
use super::value::{ByteCount, FunctionNames, MemoryLimit, PythonRequest};

/// The settings of one file.
#[derive(Debug, Clone, Default)]
pub struct FileLayer {
    /// Folders of tools.
    pub tools: Option<Setting<Vec<PathBuf>>>,
    /// The log level.
    pub log: Option<Setting<String>>,
    /// The uv program.
    pub uv: Option<Setting<PathBuf>>,
    /// The interpreter that environments are built on.
    pub python: Option<Setting<String>>,
    /// The longest a build may take.
    pub build_timeout: Option<Setting<Duration>>,
    /// How long an unused environment is kept.
    pub keep: Option<Setting<Duration>>,
    /// Variables for uv while it builds.
    pub build_env: BTreeMap<String, Setting<String>>,
    /// The most output that is kept of one call.
    pub max_output: Option<Setting<ByteCount>>,
    /// How programs are asked for their schema.
    pub executables: ExecutablesLayer,
    /// How MCP clients are answered.
    pub mcp: McpLayer,
    /// Which built-in tools are on.
    pub builtin: BuiltinLayer,
    /// How many calls may run at once.
    pub max_concurrent_calls: Option<Setting<usize>>,
    /// How many calls may wait, of all tools together.
    pub max_queue: Option<Setting<usize>>,
    /// How many workers may be alive.
    pub max_workers: Option<Setting<usize>>,
    /// The most memory that all workers may use together.
    pub max_memory: Option<Setting<ByteCount>>,
    /// `[tool]`: for every tool.
    pub every: PackLayer,
    /// `[tool.NAME]`: for a pack.
    pub packs: BTreeMap<String, PackLayer>,
    /// `[tool."pack.function"]`: for one function.
    pub functions: BTreeMap<String, FunctionLayer>,
    /// The rules that `check` ignores.
    pub ignore: Option<Setting<Vec<String>>>,
    /// Where secrets are.
    pub secrets: BTreeMap<String, Setting<SecretSource>>,
}

/// The settings of a pack, or of all packs.
#[derive(Debug, Clone, Default)]
pub struct PackLayer {
    /// The place of the table.
    pub place: Option<Place>,
    /// The settings that a header may set too.
    pub tool: ToolLayer,
    /// How many workers are kept running.
    pub min_workers: Option<Setting<usize>>,
    /// How the interpreter is started.
    pub launcher: Option<Setting<Launcher>>,
    /// Whether arguments are checked against the schema.
    pub validate: Option<Setting<bool>>,
    /// Whether its functions may use hostler itself.
    pub host_access: Option<Setting<bool>>,
    /// Variables passed on from hostler's own environment.
    pub pass_env: Option<Setting<Vec<String>>>,
    /// Variables set.
    pub env: BTreeMap<String, Setting<String>>,
    /// Passed to the tool as it is.
    pub config: Option<Setting<toml::Table>>,
    /// The functions that its worker serves.
    pub functions: Option<Setting<Vec<String>>>,
}

/// The settings of one function.
#[derive(Debug, Clone, Default)]
pub struct FunctionLayer {
    /// The place of the table.
    pub place: Option<Place>,
    /// How long one call may run.
    pub timeout: Option<Setting<Duration>>,
    /// The effect of repeating a call.
    pub effects: Option<Setting<Effects>>,
    /// Whether arguments are checked against the schema.
    pub validate: Option<Setting<bool>>,
    /// Its declared policy.
    pub policy: DeclaredPolicy,
}

impl FileLayer {
    /// Puts the home folder in the place of `~`.
    pub(super) fn expand_home(&mut self, environment: &Environment) {
        let expand = |path: &mut PathBuf| *path = environment.expand_home(path);
        self.tools.iter_mut().flat_map(|tools| &mut tools.value).for_each(expand);
        self.builtin.roots.iter_mut().flat_map(|roots| &mut roots.value).for_each(expand);
        for setting in self.secrets.values_mut() {
            if let SecretSource::File(path) = &mut setting.value {
                expand(path);
            }
        }
    }

    /// Reads a whole file, and reports every problem in it.
    pub fn read(source: &Source) -> Result<Self, Vec<Problem>> {
        let table = parse(source).map_err(|problem| vec![problem])?;
        let problems = RefCell::default();
        let top = Section::new(source, "", &table, &problems);
        let layer = Self::take(&top, source);
        top.finish(false);
        let problems = problems.into_inner();
        if problems.is_empty() { Ok(layer) } else { Err(problems) }
    }

    fn take(top: &Section<'_>, source: &Source) -> Self {
        let folder = source.file.parent().unwrap_or(Path::new("")).to_owned();
        let mut layer = Self {
            tools: top.take::<Vec<PathBuf>>("tools").map(|tools| absolute(tools, &folder)),
            log: top.take("log"),
            ..Self::default()
        };
        if let Some(section) = top.section("environment") {
            layer.uv = section.take("uv");
            layer.python = section.take::<PythonRequest>("python").map(|python| python.map(|python| python.0));
            layer.build_timeout = limit(&section, "build_timeout");
            layer.keep = section.take("keep");
            layer.build_env = section.section("env").map(|env| strings(&env)).unwrap_or_default();
            section.finish(false);
        }
        if let Some(section) = top.section("limits") {
            layer.max_output = section.take("max_output");
            layer.max_concurrent_calls = count(&section, "max_concurrent_calls");
            layer.max_queue = count(&section, "max_queue");
            layer.max_workers = count(&section, "max_workers");
            layer.max_memory = section.take::<MemoryLimit>("max_memory").map(|limit| limit.map(|limit| limit.0));
            section.finish(false);
        }
        if let Some(section) = top.section("executables") {
            layer.executables = ExecutablesLayer::read(section);
        }
        if let Some(section) = top.section("mcp") {
            layer.mcp = McpLayer::read(section);
        }
        if let Some(section) = top.section("builtin") {
            layer.builtin = BuiltinLayer::read(section, &folder);
        }
        if let Some(section) = top.section("check") {
            layer.ignore = section.take("ignore");
            section.finish(false);
        }
        if let Some(section) = top.section("secrets") {
            layer.secrets = super::secrets::read(&section, &folder);
        }
        if let Some(section) = top.section("tool") {
            layer.take_tools(section);
        }
        layer
    }

    fn take_tools(&mut self, section: Section<'_>) {
        self.every.take_common(&section, ToolLayer::read);
        for (name, table) in section.named_sections() {
            if name.contains('.') {
                let function = FunctionLayer {
                    place: Some(table.place()),
                    timeout: limit(&table, "timeout"),
                    effects: table.take("effects"),
                    validate: table.take("validate"),
                    policy: DeclaredPolicy::read(&table),
                };
                table.finish(false);
                self.functions.insert(name, function);
            } else {
                let mut pack = PackLayer { place: Some(table.place()), ..PackLayer::default() };
                pack.take_common(&table, ToolLayer::read_of_one);
                pack.functions = table.take::<FunctionNames>("functions").map(|names| names.map(|names| names.0));
                pack.env = table.section("env").map(|env| strings(&env)).unwrap_or_default();
                pack.config = table.take("config");
                table.finish(false);
                self.packs.insert(name, pack);
            }
        }
        section.finish(true);
    }

    /// This layer with a stronger one over it.
    #[must_use]
    pub fn under(mut self, over: Self) -> Self {
        self.every = self.every.under(over.every);
        for (name, pack) in over.packs {
            let weaker = self.packs.remove(&name).unwrap_or_default();
            self.packs.insert(name, weaker.under(pack));
        }
        for (name, function) in over.functions {
            let weaker = self.functions.remove(&name).unwrap_or_default();
            self.functions.insert(name, weaker.under(function));
        }
        self.build_env.extend(over.build_env);
        self.secrets.extend(over.secrets);
        Self {
            tools: over.tools.or(self.tools),
            log: over.log.or(self.log),
            uv: over.uv.or(self.uv),
            python: over.python.or(self.python),
            build_timeout: over.build_timeout.or(self.build_timeout),
            keep: over.keep.or(self.keep),
            max_output: over.max_output.or(self.max_output),
            max_concurrent_calls: over.max_concurrent_calls.or(self.max_concurrent_calls),
            max_queue: over.max_queue.or(self.max_queue),
            max_workers: over.max_workers.or(self.max_workers),
            max_memory: over.max_memory.or(self.max_memory),
            ignore: over.ignore.or(self.ignore),
            executables: self.executables.under(over.executables),
            builtin: self.builtin.under(over.builtin),
            mcp: self.mcp.under(over.mcp),
            ..self
        }
    }
}

impl PackLayer {
    fn take_common(&mut self, section: &Section<'_>, read: impl Fn(&Section<'_>) -> ToolLayer) {
        self.tool = read(section);
        self.min_workers = section.take("min_workers");
        self.launcher = section.take("launcher");
        self.validate = section.take("validate");
        self.host_access = section.take("host_access");
        self.pass_env = section.take("pass_env");
    }

    fn under(mut self, over: Self) -> Self {
        self.env.extend(over.env);
        Self {
            place: over.place.or(self.place),
            tool: self.tool.under(over.tool),
            min_workers: over.min_workers.or(self.min_workers),
            launcher: over.launcher.or(self.launcher),
            validate: over.validate.or(self.validate),
            host_access: over.host_access.or(self.host_access),
            pass_env: over.pass_env.or(self.pass_env),
            env: self.env,
            config: over.config.or(self.config),
            functions: over.functions.or(self.functions),
        }
    }
}

impl FunctionLayer {
    fn under(self, over: Self) -> Self {
        Self {
            place: over.place.or(self.place),
            timeout: over.timeout.or(self.timeout),
            effects: over.effects.or(self.effects),
            validate: over.validate.or(self.validate),
            policy: self.policy.under(over.policy),
        }
    }
}

/// A table of names and strings.
fn strings(section: &Section<'_>) -> BTreeMap<String, Setting<String>> {
    let mut found = BTreeMap::new();
    for (name, value) in section.entries() {
        match value.get_ref().as_str() {
            Some(text) => {
                let origin = section.origin_of(value);
                found.insert(name.to_owned(), Setting { value: text.to_owned(), origin });
            }
            None => {
                section.report_value(name, value, "expected a string".to_owned(), "write it in quotes".to_owned());
            }
        }
    }
    found
}

fn absolute(found: Setting<Vec<PathBuf>>, folder: &Path) -> Setting<Vec<PathBuf>> {
    let value = found.value.into_iter().map(|path| beside(folder, path)).collect();
    Setting { value, origin: found.origin }
}
