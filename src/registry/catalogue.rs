//! One snapshot of all tools: the tool files with their settings and their tools, by both names.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::compiled::{AsRead, Check, Compiled};
use super::file_entry::{FileEntry, name_functions};
use super::governed::Governed;
use super::last_good::StandIns;
use super::live::Stamps;
use super::lookup::NotFound;
use crate::config::builtin::ALIASES;
use crate::config::icon::resolved;
use crate::config::mode::{Mode, Modes};
use crate::config::origin::Setting;
use crate::config::tool::LargeResult;
use crate::config::{Config, FunctionSettings};
use crate::discovery::{
    FolderProblem, Function, JsonSchema, Kind, Presented, Role, Scan, SourceId, ToolFile, UriTemplate,
    resolve_collisions, resolve_overrides,
};

/// Completes the schemas of a version of a file with the description of live types. Returns the functions as they were read if the
/// description is an earlier run's.
pub(super) type CompleteSchemas<'a> = dyn Fn(&mut ToolFile, &[u8; 32]) -> Option<Vec<Function>> + 'a;

/// The role of a function that a call is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RoleKind {
    /// A tool.
    #[default]
    Tool,
    /// A resource.
    Resource,
    /// A prompt.
    Prompt,
}

impl RoleKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Tool, Self::Resource, Self::Prompt];
}

impl RoleKind {
    /// Its word in lists.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
        }
    }
}

/// One callable function.
#[derive(Debug)]
pub struct Tool {
    /// `pack.function`.
    pub name: String,
    /// `pack_function`: model providers accept no dot.
    pub mcp_name: String,
    /// The file it is in.
    pub entry: Arc<FileEntry>,
    /// Its settings.
    pub settings: FunctionSettings,
    place: usize,
    input: Compiled,
    output: Compiled,
    /// Its schemas as its file was read.
    as_read: OnceLock<Box<AsRead>>,
    template: OnceLock<Option<UriTemplate>>,
    governed: OnceLock<Option<Box<Governed>>>,
    /// How clients show it.
    pub icon: Option<Arc<str>>,
}

impl Tool {
    /// `pack.function` by the file's own names, which the operator does not change: the name of its table in the configuration.
    pub fn key(&self) -> String {
        format!("{}.{}", self.entry.file.pack, self.function().name)
    }

    /// The function, its schemas completed where types are known.
    pub fn function(&self) -> &Function {
        &self.entry.file.functions[self.place]
    }

    /// The file that defines it: its tool file, or a helper of that.
    pub fn defined_in(&self) -> &Path {
        self.function().defined_in.as_deref().unwrap_or(&self.entry.file.path)
    }

    /// The name of a prompt for clients.
    pub fn prompt_name(&self) -> &str {
        match &self.function().role {
            Role::Prompt(Presented { name: Some(name), .. }) => name,
            _ => &self.mcp_name,
        }
    }

    /// The address of a resource.
    pub fn uri(&self) -> Option<&str> {
        match &self.function().role {
            Role::Resource { uri, .. } => Some(uri),
            _ => None,
        }
    }

    /// The address of a resource, parsed once: every read looks at those of all resources.
    pub fn template(&self) -> Option<&UriTemplate> {
        self.template.get_or_init(|| UriTemplate::parse(self.uri()?).ok()).as_ref()
    }

    /// The rules for it; `None` if every call is allowed.
    pub fn governed(&self) -> Option<&Governed> {
        self.governed.get_or_init(|| Governed::of(self)).as_deref()
    }

    /// The role of the function.
    pub fn role_kind(&self) -> RoleKind {
        match self.function().role {
            Role::Tool => RoleKind::Tool,
            Role::Resource { .. } => RoleKind::Resource,
            Role::Prompt(_) => RoleKind::Prompt,
        }
    }

    /// The text for models.
    pub fn description(&self) -> Option<&str> {
        let function = self.function();
        function.description.as_deref().or(function.summary.as_deref())
    }

    /// The output schema for clients. Links to a large result cannot match one.
    pub fn advertised(&self) -> Option<&JsonSchema> {
        self.promised().filter(|_| self.entry.settings.large.value != LargeResult::Link)
    }

    /// The output schema of results: those that are not validated have none.
    pub fn promised(&self) -> Option<&JsonSchema> {
        self.promised_by(self.function())
    }

    fn promised_by<'t>(&self, function: &'t Function) -> Option<&'t JsonSchema> {
        let is_checked = self.settings.validate.value && !self.entry.settings.prints_text();
        function.output_schema.as_ref().filter(|_| is_checked)
    }

    /// The schema of its arguments.
    pub fn input_schema(&self) -> &Map<String, Value> {
        self.input.schema(&self.function().input_schema)
    }

    /// The schema of its results.
    pub fn promised_schema(&self) -> Option<&Map<String, Value>> {
        self.promised().map(|text| self.output.schema(text))
    }

    /// What its arguments have to match one of. Types may have changed since an earlier run described them, so where the schema is
    /// completed by one, arguments may also match it as the file was read.
    pub fn input_checks(&self) -> impl Iterator<Item = Check<'_>> {
        let known = self.input.check(&self.function().input_schema, &self.name);
        let as_read = std::iter::once_with(|| {
            let (function, compiled) = self.as_read()?;
            compiled.input.check(&function.input_schema, &self.name)
        });
        known.into_iter().chain(as_read.flatten())
    }

    /// The same for its results; none if anything does.
    pub fn output_checks(&self) -> impl Iterator<Item = Check<'_>> {
        let as_read = self.as_read().map(|(function, compiled)| Some((self.promised_by(function)?, &compiled.output)));
        let known = self.promised().filter(|_| !matches!(as_read, Some(None)));
        let known = known.and_then(|text| self.output.check(text, &self.name));
        let as_read = as_read.flatten();
        let as_read =
            std::iter::once_with(move || as_read.and_then(|(text, compiled)| compiled.check(text, &self.name)));
        known.into_iter().chain(as_read.flatten())
    }

    /// The function as its file was read, where only an earlier run completed it.
    fn as_read(&self) -> Option<(&Function, &AsRead)> {
        Some((self.entry.as_read()?.get(self.place)?, self.as_read.get_or_init(Box::default)))
    }
}

/// Every tool at one moment.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// The files, in path order, broken ones too.
    pub files: Vec<Arc<FileEntry>>,
    /// The tools, sorted by name, those of broken files too.
    pub tools: Vec<Arc<Tool>>,
    /// The functions that are resources, sorted by name.
    pub resources: Vec<Arc<Tool>>,
    /// The functions that are prompts, sorted by name.
    pub prompts: Vec<Arc<Tool>>,
    /// Folders that could not be read.
    pub problems: Vec<FolderProblem>,
    /// Where nothing is served: files below the tools folders that make a server.
    pub below: Vec<PathBuf>,
    /// The mode in force.
    pub mode: Mode,
    /// The modes that there are.
    pub modes: Modes,
    by_name: HashMap<String, usize>,
}

impl Catalogue {
    /// The declared secrets, each with the packs that declare it.
    pub fn declared_secrets(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut declared: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for entry in &self.files {
            for name in &entry.settings.secrets.value {
                declared.entry(name.clone()).or_default().insert(entry.file.pack.clone());
            }
        }
        declared
    }

    /// Makes a snapshot from a scan. `looked` holds the stamps of the files from before they were read.
    pub(super) fn build(
        mut scan: Scan,
        looked: &Stamps,
        mut stand_ins: StandIns,
        config: &Arc<Config>,
        complete: &CompleteSchemas<'_>,
    ) -> Self {
        resolve_overrides(&mut scan.files);
        for file in &mut scan.files {
            file.configure(config);
            name_functions(file, config);
            file.rename(config);
        }
        resolve_collisions(&mut scan.files);
        scan.problems.retain(|problem| problem.matters(&config.tools.origin));
        let mut catalogue = Self {
            problems: scan.problems,
            below: scan.below,
            mode: config.mode.value,
            modes: config.modes.clone(),
            ..Self::default()
        };
        for file in scan.files {
            catalogue.add(Arc::new(FileEntry::new(file, config, looked, &mut stand_ins, complete)), config);
        }
        for list in [&mut catalogue.tools, &mut catalogue.resources, &mut catalogue.prompts] {
            list.sort_by(|left, right| left.name.cmp(&right.name));
        }
        for (place, tool) in catalogue.tools.iter().enumerate() {
            // A ready file wins over a broken one of the same name.
            for name in [&tool.name, &tool.mcp_name] {
                let taken = catalogue.by_name.get(name);
                if taken.is_none_or(|other| catalogue.tools[*other].entry.broken().is_some()) {
                    catalogue.by_name.insert(name.clone(), place);
                }
            }
        }
        catalogue.enter_aliases();
        catalogue
    }

    /// Adds the other names of built-in tools, where they are free.
    fn enter_aliases(&mut self) {
        for (alias, name) in ALIASES {
            let built_in = |place: &&usize| self.tools[**place].entry.file.kind == Kind::Builtin;
            if let Some(place) = self.by_name.get(name).filter(built_in).copied() {
                self.by_name.entry(alias.to_owned()).or_insert(place);
            }
        }
    }

    fn add(&mut self, entry: Arc<FileEntry>, config: &Config) {
        let pack = &entry.file.pack;
        let mut icons = Icons::default();
        for (place, function) in entry.file.functions.iter().enumerate() {
            let (name, mcp_name) = entry.file.names_of(function);
            let list = match function.role {
                Role::Tool => &mut self.tools,
                Role::Resource { .. } => &mut self.resources,
                Role::Prompt(_) => &mut self.prompts,
            };
            let mut settings = config.function(pack, &function.name, &entry.settings, function.declared.as_deref());
            // A thousand functions without rules of their own have one set of them.
            if let Some(last) = list.last().filter(|last| last.settings.policy == settings.policy) {
                settings.policy = Arc::clone(&last.settings.policy);
            }
            list.push(Arc::new(Tool {
                name,
                mcp_name,
                icon: settings.icon.as_ref().and_then(|icon| icons.of(icon, &entry.file.path)),
                settings,
                entry: Arc::clone(&entry),
                place,
                input: Compiled::default(),
                output: Compiled::default(),
                as_read: OnceLock::new(),
                template: OnceLock::new(),
                governed: OnceLock::new(),
            }));
        }
        self.files.push(entry);
    }

    /// The file, program or built-in tool of this identity.
    pub fn entry_of(&self, source: &SourceId) -> Option<&Arc<FileEntry>> {
        self.files.iter().find(|entry| entry.file.source() == *source)
    }

    /// Tools that can be called.
    pub fn ready(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.tools.iter().filter(|tool| tool.entry.file.is_ready())
    }

    /// Tools that can be called and are allowed in the mode: what clients see.
    pub fn offered(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.ready().filter(|tool| tool.settings.policy.allows(self.mode))
    }

    /// Resources that can be read.
    pub fn ready_resources(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.resources.iter().filter(|resource| resource.entry.file.is_ready())
    }

    /// Prompts that can be asked for. Of those with one name, the first by their full names is served.
    pub fn ready_prompts(&self) -> impl Iterator<Item = &Arc<Tool>> {
        let mut seen = HashSet::new();
        let ready = self.prompts.iter().filter(|prompt| prompt.entry.file.is_ready());
        ready.filter(move |prompt| seen.insert(prompt.prompt_name()))
    }

    /// Finds a function with a role by its full name, and a tool by either of its names.
    pub fn resolve_as(&self, role: RoleKind, name: &str) -> Result<&Arc<Tool>, NotFound> {
        let list = match role {
            RoleKind::Tool => return self.resolve(name),
            RoleKind::Resource => &self.resources,
            RoleKind::Prompt => &self.prompts,
        };
        let place = list.binary_search_by(|function| function.name.as_str().cmp(name));
        place.map(|place| &list[place]).map_err(|_| self.not_found(name))
    }

    /// Finds a tool by either of its names.
    pub fn resolve(&self, name: &str) -> Result<&Arc<Tool>, NotFound> {
        if let Some(place) = self.by_name.get(name) {
            return Ok(&self.tools[*place]);
        }
        Err(self.not_found(name))
    }
}

/// The icons of one file's functions, each read once. `check` says what is wrong with one.
#[derive(Default)]
struct Icons(Vec<(Setting<String>, Option<Arc<str>>)>);

impl Icons {
    fn of(&mut self, icon: &Setting<String>, tool: &Path) -> Option<Arc<str>> {
        if let Some((_, known)) = self.0.iter().find(|(known, _)| known == icon) {
            return known.clone();
        }
        let read = resolved(icon, tool).map(Arc::from);
        let read = read.inspect_err(|reason| tracing::debug!(tool = %tool.display(), %reason, "no icon")).ok();
        self.0.push((icon.clone(), read.clone()));
        read
    }
}
