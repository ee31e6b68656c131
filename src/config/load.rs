//! Finds and stacks configuration files: the project's over the user's over the defaults.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::environment::Environment;
use super::layer::FileLayer;
use super::origin::{Origin, Setting};
use super::paths;
use super::section::{Problem, Source};
use super::tables::Limits;

/// The file that is searched for in the working directory and the folders above it.
pub const FILE_NAME: &str = "hostler.toml";

/// The command line's options about configuration.
#[derive(Debug, Clone, Default)]
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
    /// Folders of tools, weakest first.
    pub tools: Setting<Vec<PathBuf>>,
    /// The log level.
    pub log: Setting<String>,
    /// The uv program, if set.
    pub uv: Option<Setting<PathBuf>>,
    /// The interpreter that environments are built on, if set.
    pub python: Option<Setting<String>>,
    /// The longest a build may take.
    pub build_timeout: Setting<Duration>,
    /// How long an unused environment is kept.
    pub keep: Setting<Duration>,
    /// The limits for all tools together.
    pub limits: Limits,
    /// The settings of single tools, as the files set them.
    pub layer: FileLayer,
    /// `--timeout`.
    pub call_timeout: Option<Setting<Duration>>,
    /// The variables that hostler was started with.
    pub environment: Arc<Environment>,
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
    /// Reads the configuration of a directory.
    pub fn load(options: &ConfigOptions, directory: &Path) -> Result<Self, ConfigError> {
        let project = project_file(options, directory);
        let mut files = Vec::new();
        let mut layer = FileLayer::default();
        let user = paths::user_config(&options.environment);
        if user.is_file() {
            layer = read(&user, &options.environment)?;
            files.push(user);
        }
        if let Some(path) = &project {
            layer = layer.under(read(path, &options.environment)?);
            files.insert(0, path.clone());
        }
        // Which tools are on and which folders they use may be set in two files.
        if let Some(problem) = layer.builtin.problem() {
            return Err(ConfigError::Problems(vec![problem]));
        }
        Ok(Self::stack(layer, files, project.as_deref(), options, directory))
    }

    /// The tools folders, without those default ones that do not exist.
    pub fn tools_there(&self) -> impl Iterator<Item = &PathBuf> {
        self.tools.value.iter().filter(|folder| self.tools.origin != Origin::Default || folder.is_dir())
    }

    fn stack(
        layer: FileLayer,
        files: Vec<PathBuf>,
        project: Option<&Path>,
        options: &ConfigOptions,
        directory: &Path,
    ) -> Self {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        let environment_log = options.environment.text("HOSTLER_LOG").map(str::to_owned);
        let log = environment_log.map(|value| Setting { value, origin: Origin::Environment("HOSTLER_LOG") });
        Self {
            directory: directory.to_owned(),
            tools: tool_folders(&layer, project, options, directory),
            log: log.or_else(|| layer.log.clone()).unwrap_or(Setting::default_value("warn".to_owned())),
            uv: layer.uv.clone(),
            python: layer.python.clone(),
            build_timeout: layer.build_timeout.clone().unwrap_or(Setting::default_value(minutes(10))),
            keep: layer.keep.clone().unwrap_or(Setting::default_value(minutes(30 * 24 * 60))),
            limits: Limits::of(&layer),
            call_timeout: options.timeout.map(|value| Setting { value, origin: Origin::Flag("--timeout") }),
            environment: Arc::clone(&options.environment),
            files,
            layer,
        }
    }
}

/// `--config`, `$HOSTLER_CONFIG`, the nearest `hostler.toml` upwards.
fn project_file(options: &ConfigOptions, directory: &Path) -> Option<PathBuf> {
    let from_environment = || options.environment.path("HOSTLER_CONFIG");
    let nearest = || directory.ancestors().map(|folder| folder.join(FILE_NAME)).find(|path| path.is_file());
    let named = options.config.clone().or_else(from_environment).map(|path| directory.join(path));
    named.or_else(nearest)
}

fn tool_folders(
    layer: &FileLayer,
    project: Option<&Path>,
    options: &ConfigOptions,
    directory: &Path,
) -> Setting<Vec<PathBuf>> {
    if !options.tools.is_empty() {
        let value = options.tools.iter().map(|path| directory.join(path)).collect();
        return Setting { value, origin: Origin::Flag("--tools") };
    }
    if let Some(tools) = &layer.tools {
        return tools.clone();
    }
    let beside_project = project.and_then(Path::parent).unwrap_or(directory).join("tools");
    let usual = paths::system_tools().into_iter().chain([paths::user_tools(&options.environment), beside_project]);
    // Whether they are there or not: one may come while hostler serves, with the first tool that somebody installs.
    Setting::default_value(usual.collect())
}

fn read(path: &Path, environment: &Environment) -> Result<FileLayer, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Unreadable {
        path: path.display().to_string(),
        error,
        fix: "name a readable file with --config or $HOSTLER_CONFIG, or remove both",
    })?;
    let source = Source { file: Arc::new(path.to_owned()), text: text.into(), first_line: 1, is_header: false };
    let mut layer = FileLayer::read(&source).map_err(ConfigError::Problems)?;
    layer.expand_home(environment);
    Ok(layer)
}
