//! Finds and stacks configuration files: the project's over the user's over the defaults.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;

use super::audit::AuditSettings;
use super::automatic::Automatic;
use super::builtin::BuiltinSettings;
use super::control::ControlSettings;
use super::declared_policy::DeclaredPolicy;
use super::environment::Environment;
use super::journal::JournalSettings;
use super::kept_mode::KeptMode;
use super::mcp::Mcp;
use super::mode::{Mode, Modes};
use super::origin::{Origin, Problem, Setting};
use super::recorder::Recorder;
use super::sandbox::SandboxLayer;
use super::secrets::{SecretSource, read_secrets};
use super::section::{Section, Source};
use super::shared::Shared;
use super::tables::{Executables, Limits};
use super::telemetry::{Telemetry, log_format};
use super::tool::{ToolLayer, variables_of};
use super::{environment, folders, rules, value};
use crate::telemetry::LogFormat;

/// The file that is searched for in the working directory and the folders above it.
pub const FILE_NAME: &str = "hostler.toml";

/// The command line's options about configuration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConfigOptions {
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--tools`, which replaces every other folder.
    pub tools: Vec<PathBuf>,
    /// `--timeout`, for the calls of this run.
    pub timeout: Option<Duration>,
    /// The variables that hostler was started with.
    pub environment: Arc<Environment>,
}

/// The configuration in force.
#[derive(Debug, Clone)]
pub struct Config {
    /// The files it was read from, strongest first.
    pub files: Vec<PathBuf>,
    /// Where it is in force: relative paths begin here, and workers run here.
    pub directory: PathBuf,
    /// What it was searched by.
    options: ConfigOptions,
    /// The variables that hostler was started with.
    pub environment: Arc<Environment>,
    /// `--timeout`.
    pub call_timeout: Option<Setting<Duration>>,
    /// Folders of tools, weakest first.
    pub tools: Setting<Vec<PathBuf>>,
    /// The tools folders that are hostler's own, in which every program is a tool.
    pub own_tools: Vec<PathBuf>,
    /// The log level.
    pub log: Setting<String>,
    /// How log lines are written.
    pub log_format: LogFormat,
    /// The uv program, if set.
    pub uv: Option<Setting<PathBuf>>,
    /// The interpreter that environments are built on, if set.
    pub python: Option<Setting<String>>,
    /// The longest a build may take.
    pub build_timeout: Setting<Duration>,
    /// How long an unused environment is kept.
    pub keep: Setting<Duration>,
    /// Variables for uv while it builds.
    pub build_env: BTreeMap<String, Setting<String>>,
    /// The limits for all tools together.
    pub limits: Limits,
    /// How programs are asked for their schema.
    pub executables: Executables,
    /// How hostler presents itself to MCP clients.
    pub mcp: Mcp,
    /// Where the control face is served over HTTP.
    pub control: ControlSettings,
    /// Whether `serve` attaches to the person's shared hostler.
    pub shared: Shared,
    /// What is written down of decisions.
    pub audit: AuditSettings,
    /// What is kept of calls.
    pub journal: JournalSettings,
    /// Where the spans of calls go.
    pub telemetry: Telemetry,
    /// Which built-in tools are on.
    pub builtin: BuiltinSettings,
    /// The rules that `check` ignores.
    pub ignore: Option<Setting<Vec<String>>>,
    /// Where secrets are.
    pub secrets: BTreeMap<String, Setting<SecretSource>>,
    /// `[policy]`: the rules for every tool.
    pub policy: DeclaredPolicy,
    /// How long a person has to approve a call.
    pub approval_timeout: Setting<Duration>,
    /// The modes that there are.
    pub modes: Modes,
    /// The mode in force.
    pub mode: Setting<Mode>,
    /// When its files began to be read; `None` if there are none.
    began: Option<SystemTime>,
    /// When the mode changes by itself.
    pub automatic: Option<Setting<Automatic>>,
    /// The mode of the files, and the one that a person has set over it.
    pub kept_mode: Option<(Setting<Mode>, KeptMode)>,
    /// `[category.NAME]`: the rules for the tools of a category.
    pub categories: BTreeMap<String, Category>,
    /// `[sandbox]`: what every tool may reach, weakest first.
    pub sandbox: Vec<Setting<SandboxLayer>>,
    /// What files without a header need that import packages and have no table of their own: `dependencies` of `[tool]`.
    pub dependencies: Option<Setting<Vec<String>>>,
    /// `[tool]`: for every tool.
    pub every: ToolLayer,
    /// `[tool.NAME]`: for a pack.
    pub packs: BTreeMap<String, ToolLayer>,
    /// `[tool."pack.function"]`: for one function.
    pub functions: BTreeMap<String, ToolLayer>,
    /// What records a tool that runs without its sandbox.
    pub recorder: Option<Arc<Recorder>>,
}

/// What holds for the tools of a category.
#[derive(Debug, Clone)]
pub struct Category {
    /// The rules.
    pub policy: DeclaredPolicy,
    /// What they may reach, weakest first.
    pub sandbox: Vec<Setting<SandboxLayer>>,
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{path}: {error}; {fix}")]
    Unreadable {
        /// The file.
        path: String,
        /// The system's reason.
        error: std::io::Error,
        /// What to do.
        fix: &'static str,
    },
    /// The file has errors.
    #[error("{}", list(.0))]
    Problems(Vec<Problem>),
}

fn list(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl Config {
    /// Reads the configuration of a directory: the project's file over the user's, and the mode that a person has set over both.
    pub fn load(options: &ConfigOptions, directory: &Path) -> Result<Self, ConfigError> {
        let mut config = Self::of_files(options, directory)?;
        config.follow_person()?;
        Ok(config)
    }

    /// The same without the mode that a person has set.
    pub fn of_files(options: &ConfigOptions, directory: &Path) -> Result<Self, ConfigError> {
        let began = SystemTime::now();
        let user = environment::user_config(&options.environment);
        let mut files: Vec<PathBuf> = user.is_file().then_some(user).into_iter().collect();
        files.extend(project_file(options, directory));
        files.dedup();
        let sources = files.iter().map(|path| source(path)).collect::<Result<Vec<_>, _>>()?;
        let mut config = Self::read(&sources, options, directory).map_err(ConfigError::Problems)?;
        files.reverse();
        let secrets = config.secret_files();
        if let Some(offered) = &mut config.mcp.resources {
            offered.withheld = files.iter().cloned().chain(secrets).collect();
        }
        config.files = files;
        config.began = Some(began);
        Ok(config)
    }

    /// The project's file, whether it is there or not; `None` if there is none.
    pub fn project(&self) -> Option<PathBuf> {
        project_file(&self.options, &self.directory)
    }

    /// Whether none of its files has changed since it was read, for all that their times say.
    pub fn is_as_read(&self) -> bool {
        let is_known = |file: &PathBuf| self.files.contains(file);
        self.watched_files().iter().all(|file| match std::fs::metadata(file) {
            // The time of a change may be a clock tick behind.
            Ok(found) => self.began.zip(changed(&found)).is_some_and(|(began, changed)| changed < began),
            Err(_) => !is_known(file),
        })
    }

    /// Reads it again, as the files are now.
    pub fn load_again(&self) -> Result<Self, ConfigError> {
        Self::load(&self.options, &self.directory)
    }

    /// The files in which a change may make it another one, whether they exist or not.
    pub fn watched_files(&self) -> Vec<PathBuf> {
        let user = environment::user_config(&self.options.environment);
        let project = project_file(&self.options, &self.directory);
        let mut files = vec![user];
        match project {
            Some(named) if !named.ends_with(FILE_NAME) => files.push(named),
            project => files.extend(self.directory.ancestors().map(|folder| folder.join(FILE_NAME)).chain(project)),
        }
        files.extend(self.files.iter().cloned());
        files.push(self.own_mode_file());
        files.sort();
        files.dedup();
        files
    }

    /// Reads the person's own configuration alone.
    pub fn of_person(options: &ConfigOptions) -> Result<Self, ConfigError> {
        let user = environment::user_config(&options.environment);
        let sources: Vec<Source> = if user.is_file() { vec![source(&user)?] } else { Vec::new() };
        Self::read(&sources, options, Path::new("/")).map_err(ConfigError::Problems)
    }

    /// Reads it again, as the file is now.
    pub fn load_person_again(&self) -> Result<Self, ConfigError> {
        Self::of_person(&self.options)
    }

    /// Reads these files, weakest first, and reports every problem in them.
    pub(super) fn read(sources: &[Source], options: &ConfigOptions, directory: &Path) -> Result<Self, Vec<Problem>> {
        let parsed = sources.iter().map(|source| Ok((source, source.parse()?)));
        let parsed = parsed.collect::<Result<Vec<_>, _>>().map_err(|problem| vec![problem])?;
        let problems = RefCell::default();
        let tables = || parsed.iter().map(|(source, table)| (*source, table)).collect();
        // Rules in every table can name them. What is wrong with them is reported when their own table is read.
        let modes = Modes::read(&Section::top(tables(), &RefCell::default()).section("policy").section("modes"));
        let top = Section::top(tables(), &problems).naming(&modes);
        let config = Self::take(&top, options, directory);
        top.finish(false);
        let mut problems = problems.into_inner();
        // Which tools are on and which folders they use may be set in two files.
        if problems.is_empty() {
            problems.extend(config.builtin.problem());
        }
        problems.sort_by(|left, right| left.place.cmp(&right.place));
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    fn take(top: &Section<'_>, options: &ConfigOptions, directory: &Path) -> Self {
        let variables = &options.environment;
        let log = variables.text("HOSTLER_LOG").map(str::to_owned);
        let log = log.map(|value| Setting { value, origin: Origin::Environment("HOSTLER_LOG") });
        let log_of_file = top.take("log");
        let environment = top.section("environment");
        let check = top.section("check");
        let tool = top.section("tool");
        let (every, dependencies) = (ToolLayer::of_every(&tool), tool.take("dependencies"));
        let (mut packs, mut functions) = (BTreeMap::new(), BTreeMap::new());
        for (name, section) in tool.named_sections() {
            if name.contains('.') {
                functions.insert(name.to_owned(), ToolLayer::of_function(&section));
            } else {
                packs.insert(name.to_owned(), ToolLayer::of_pack(&section));
            }
            section.finish(false);
        }
        tool.finish(true);
        let (policy, audit) = (top.section("policy"), top.section("audit"));
        let config = Self {
            files: Vec::new(),
            directory: directory.to_owned(),
            options: options.clone(),
            environment: Arc::new((**variables).clone().within(directory)),
            call_timeout: options.timeout.map(|value| Setting { value, origin: Origin::Flag("--timeout") }),
            tools: folders::tools(top, options, directory),
            own_tools: folders::own(options, directory),
            log: log.or(log_of_file).unwrap_or(Setting::default_value("warn".to_owned())),
            log_format: log_format(top, variables),
            uv: environment.take("uv"),
            python: environment.take_as("python", value::python),
            build_timeout: environment
                .take_as("build_timeout", value::limit)
                .unwrap_or(Setting::default_value(Duration::from_mins(10))),
            keep: environment.take("keep").unwrap_or(Setting::default_value(Duration::from_hours(30 * 24))),
            build_env: variables_of(&environment.section("env")),
            limits: Limits::read(top.section("limits")),
            executables: Executables::read(top.section("executables")),
            mcp: Mcp::read(top.section("mcp"), variables),
            control: ControlSettings::read(top.section("control")),
            shared: Shared::read(top.section("shared")),
            audit: AuditSettings::read(&audit, &environment::user_config(variables)),
            journal: JournalSettings::read(top.section("journal")),
            telemetry: Telemetry::read(top.section("telemetry"), variables),
            builtin: BuiltinSettings::read(top.section("builtin"), variables),
            ignore: check.take("ignore"),
            secrets: read_secrets(&top.section("secrets"), variables),
            policy: DeclaredPolicy::rules(&policy),
            modes: Modes::read(&policy.section("modes")),
            mode: policy
                .take_as("mode", |value| policy.modes.mode(value))
                .unwrap_or(Setting::default_value(Mode::default())),
            automatic: policy.take_as("automatic", Automatic::read),
            approval_timeout: rules::to_approve(&policy),
            kept_mode: None,
            began: None,
            categories: categories(&top.section("category")),
            sandbox: top.take_each("sandbox", SandboxLayer::read),
            every,
            dependencies,
            packs,
            functions,
            recorder: None,
        };
        environment.finish(false);
        check.finish(false);
        policy.finish(false);
        audit.finish(false);
        config
    }

    /// What records the processes of a pack, if they run without their sandbox.
    pub fn recorder_of(&self, pack: &str) -> Option<&Arc<Recorder>> {
        self.recorder.as_ref().filter(|recorder| recorder.is_of(pack))
    }

    /// What it was searched by.
    pub fn options(&self) -> &ConfigOptions {
        &self.options
    }
}

/// The rules of each category.
fn categories(section: &Section<'_>) -> BTreeMap<String, Category> {
    let mut found = BTreeMap::new();
    for (name, section) in section.named_sections() {
        let sandbox = section.take_each("sandbox", SandboxLayer::read);
        found.insert(name.to_owned(), Category { policy: DeclaredPolicy::rules(&section), sandbox });
        section.finish(false);
    }
    found
}

/// How far the time of a change in a file may be behind.
const TICK: Duration = Duration::from_millis(50);

/// When a file was changed or put in its place, at the latest.
fn changed(found: &Metadata) -> Option<SystemTime> {
    let since = |whole: i64, parts: i64| {
        Duration::new(u64::try_from(whole).unwrap_or_default(), u32::try_from(parts).unwrap_or_default())
    };
    SystemTime::UNIX_EPOCH.checked_add(since(found.ctime(), found.ctime_nsec()).checked_add(TICK)?)
}

/// The file of a project: the one that is named, or the nearest.
pub fn project_file(options: &ConfigOptions, directory: &Path) -> Option<PathBuf> {
    let from_environment = || options.environment.path("HOSTLER_CONFIG");
    let nearest = || directory.ancestors().map(|folder| folder.join(FILE_NAME)).find(|path| path.is_file());
    let named = options.config.clone().or_else(from_environment).map(|path| directory.join(path));
    named.or_else(nearest)
}

/// Longer than any that a person writes.
const LONGEST: u64 = 4 << 20;

fn read_limited(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    // A pipe may never have a writer, and each of its bytes is read once: a later reading would find it empty.
    let file = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    let kind = file.metadata()?.file_type();
    // Reading a folder fails in the system's words.
    // `/dev/null` stands for an empty file.
    if !kind.is_file() && !kind.is_dir() && path != Path::new("/dev/null") {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a pipe or a device, not a file"));
    }
    file.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
        let what = format!("it is longer than {} MB", LONGEST >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
}

fn source(path: &Path) -> Result<Source, ConfigError> {
    let text = read_limited(path).map_err(|error| ConfigError::Unreadable {
        path: path.display().to_string(),
        error,
        fix: "name a readable file with --config or $HOSTLER_CONFIG, or remove both",
    })?;
    Ok(Source { file: Arc::new(path.to_owned()), text: text.into(), first_line: 1, is_header: false })
}
