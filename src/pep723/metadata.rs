//! What a header says, once its TOML is parsed and its types are checked.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use toml::de::DeValue;

use super::HeaderError;
use super::requirement::{direct_reference, is_relative, problem_of_python, problem_of_requirement};
use crate::config::origin::{Diagnosis, Problem, Setting};
use crate::config::section::{Section, Source, is_header_key};
use crate::config::tool::ToolLayer;
use crate::config::value::FromToml;

/// The header of one tool file.
#[derive(Debug, Clone)]
pub struct Metadata {
    /// The TOML text of the block, without comment marks.
    pub toml: String,
    /// The 1-based line of the file on which that text begins.
    pub first_line: usize,
    /// The interpreters the file runs on (a PEP 440 version specifier).
    pub requires_python: Option<String>,
    /// The packages the file needs (PEP 508), in the order they are written.
    pub dependencies: Vec<String>,
    /// The pack that the header names.
    pub pack: Option<Setting<String>>,
    /// The settings in `[tool.hostler]`.
    pub layer: ToolLayer,
    /// Whether a dependency, source or index is a relative path, so that the environment depends on the file's place.
    pub relative_sources: bool,
    /// The tables of other tools, such as `[tool.uv]`.
    pub other_tools: toml::Table,
    /// Where the packages are declared, if not in the header.
    pub dependencies_from: Option<String>,
}

impl Metadata {
    /// Reads the TOML text of a `script` block that begins on this line of the file. Several problems become one error: the
    /// first of them, with the others inside.
    pub fn from_toml(text: &str, first_line: usize, file: &Arc<PathBuf>) -> Result<Self, HeaderError> {
        let source = Source { file: Arc::clone(file), text: Arc::from(text), first_line, is_header: true };
        let table = source.parse().map_err(|problem| one_error(vec![problem]))?;
        let problems = RefCell::default();
        let top = Section::top(vec![(&source, &table)], &problems);
        let requires_python = top.take_as("requires-python", version_range).map(|range| range.value);
        let dependencies = read_dependencies(&top);
        let (pack, layer) = read_hostler(&top.section("tool"));
        top.finish(false);

        let problems = problems.into_inner();
        if !problems.is_empty() {
            return Err(one_error(problems));
        }
        let other_tools = other_tools(text);
        let relative_sources = dependencies.iter().any(|text| points_to_relative(text)) || uv_is_relative(&other_tools);
        let toml = text.to_owned();
        Ok(Self {
            toml,
            first_line,
            requires_python,
            dependencies,
            pack,
            layer,
            relative_sources,
            other_tools,
            dependencies_from: None,
        })
    }

    /// The same with other packages, which are declared at this place. One that is no requirement is an error.
    pub fn with_dependencies(self, dependencies: &[String], from: String) -> Result<Self, Diagnosis> {
        for text in dependencies {
            if let Some(fix) = problem_of_requirement(text) {
                return Err(Diagnosis::new(format!("\"{text}\" is not a valid requirement ({from})"), &fix));
            }
        }
        let relative_sources =
            dependencies.iter().any(|text| points_to_relative(text)) || uv_is_relative(&self.other_tools);
        Ok(Self { dependencies: dependencies.to_vec(), dependencies_from: Some(from), relative_sources, ..self })
    }

    /// The same for other interpreters, which are declared at this place.
    pub fn with_python(self, range: &str, from: &str) -> Result<Self, Diagnosis> {
        match problem_of_python(range) {
            Some(fix) => Err(Diagnosis::new(format!("\"{range}\" is not a version specifier ({from})"), &fix)),
            None => Ok(Self { requires_python: Some(range.to_owned()), ..self }),
        }
    }

    /// The line of the file on which a word first occurs in the header.
    pub fn line_of(&self, word: &str) -> Option<usize> {
        let place = self.toml.lines().position(|line| line.contains(word))?;
        Some(self.first_line + place)
    }

    /// How to declare this package, for an error's advice.
    pub fn declaring(&self, package: &str) -> String {
        if let Some(from) = &self.dependencies_from {
            return format!("add \"{package}\" to `dependencies` ({from})");
        }
        match self.line_of_key("dependencies") {
            Some(line) => format!("add \"{package}\" to `dependencies` on line {line}"),
            None => format!("write the line `# dependencies = [\"{package}\"]` after line {}", self.first_line - 1),
        }
    }

    /// How to declare this secret.
    pub fn declaring_secret(&self, name: &str) -> String {
        let head = self.toml.lines().position(|line| line.trim().starts_with("[tool.hostler]"));
        match (self.line_of_key("secrets"), head) {
            (Some(line), _) => format!("add \"{name}\" to `secrets` on line {line}"),
            (None, Some(head)) => {
                format!("write the line `# secrets = [\"{name}\"]` after line {}", self.first_line + head)
            }
            (None, None) => format!(
                "write the two lines `# [tool.hostler]` and `# secrets = [\"{name}\"]` before line {}",
                self.first_line + self.toml.lines().count()
            ),
        }
    }

    /// The line of the file that begins with this key.
    fn line_of_key(&self, key: &str) -> Option<usize> {
        let is_it = |line: &str| line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim().starts_with('='));
        Some(self.first_line + self.toml.lines().position(is_it)?)
    }
}

fn version_range(value: &DeValue<'_>) -> Result<String, Diagnosis> {
    let range = String::from_toml(value)?;
    match problem_of_python(&range) {
        Some(fix) => Err(Diagnosis { what: format!("\"{range}\" is not a version specifier"), fix }),
        None => Ok(range),
    }
}

fn read_dependencies(top: &Section<'_>) -> Vec<String> {
    let list: Option<Setting<Vec<String>>> = top.take("dependencies");
    for entry in top.entries().filter(|entry| entry.key == "dependencies") {
        for item in entry.value.as_array().into_iter().flat_map(|items| items.iter()) {
            let Some(text) = item.get_ref().as_str() else { continue };
            if let Some(fix) = problem_of_requirement(text) {
                top.report(&entry.item(item), format!("\"{text}\" is not a valid requirement"), fix);
            }
        }
    }
    list.map(|list| list.value).unwrap_or_default()
}

fn read_hostler(tools: &Section<'_>) -> (Option<Setting<String>>, ToolLayer) {
    for entry in tools.entries() {
        // Other tools own the rest of [tool]: a setting outside a table, or a misspelt table with one, is an error.
        let is_near = entry.key != "hostler" && strsim::damerau_levenshtein(&entry.key.to_lowercase(), "hostler") <= 1;
        match entry.value.as_table() {
            None if is_header_key(entry.key) => {
                tools.report(&entry, "this key is not valid here", "move it to [tool.hostler]");
            }
            Some(table) if is_near && table.keys().any(|key| is_header_key(key.get_ref())) => {
                tools.report(&entry, "unknown tool", "did you mean [tool.hostler]?");
            }
            _ => {}
        }
    }
    let uv = tools.section("uv");
    for entry in uv.entries().filter(|entry| entry.key == "cache-dir") {
        let fix = "remove it; the operator sets UV_CACHE_DIR under [environment.env] in hostler.toml";
        uv.report(&entry, "a tool file cannot choose uv's cache, which all tools share", fix);
    }
    let hostler = tools.section("hostler");
    let pack = hostler.take_as("pack", |value| {
        let name = String::from_toml(value)?;
        if is_identifier(&name) {
            return Ok(name);
        }
        let fix = format!("use letters, digits and _, and no digit first: \"{}\"", nearest_identifier(&name));
        Err(Diagnosis { what: format!("\"{name}\" is not a valid pack name"), fix })
    });
    let layer = ToolLayer::of_header(&hostler);
    hostler.finish(false);
    (pack, layer)
}

/// Whether a text is `[A-Za-z_][A-Za-z0-9_]*`, the form of pack and function names.
pub fn is_identifier(text: &str) -> bool {
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins_well && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The identifier nearest to a text, for a message.
pub fn nearest_identifier(text: &str) -> String {
    let mut name: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    // A file whose name begins with an underscore is never served.
    if let Some(at) = name.find(|c: char| c != '_') {
        name.drain(..at);
    }
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert_str(0, "tool_");
    }
    name
}

fn one_error(mut problems: Vec<Problem>) -> HeaderError {
    problems.sort_by_key(|problem| problem.place.line);
    let mut errors = problems.into_iter().map(|problem| {
        let Problem { place, key, what, fix } = problem;
        let reason = if key.is_empty() { what } else { format!("`{key}`: {what}") };
        HeaderError::new(place.line, reason, fix)
    });
    match errors.next() {
        Some(first) => HeaderError { others: errors.collect(), ..first },
        None => HeaderError::new(1, "the header cannot be read", "compare it with PEP 723"),
    }
}

/// The rest of `[tool]`. The text has been parsed before, so this cannot fail in a way that needs a message.
fn other_tools(text: &str) -> toml::Table {
    let mut whole: toml::Table = text.parse().unwrap_or_default();
    let Some(toml::Value::Table(mut tools)) = whole.remove("tool") else { return toml::Table::new() };
    tools.remove("hostler");
    tools
}

fn points_to_relative(dependency: &str) -> bool {
    direct_reference(dependency).is_some_and(is_relative)
}

/// Whether `[tool.uv]` names a place relative to the file.
fn uv_is_relative(tools: &toml::Table) -> bool {
    let Some(uv) = tools.get("uv") else { return false };
    let texts = |key: &str| strings(uv.get(key));
    let places = ["find-links", "index-url", "extra-index-url"].into_iter().flat_map(texts);
    let constraints = ["constraint-dependencies", "override-dependencies"].into_iter().flat_map(texts);
    let sources = uv.get("sources").and_then(toml::Value::as_table);
    let tables = sources.into_iter().flat_map(toml::Table::values).chain(uv.get("index")).flat_map(tables);
    let of_tables =
        tables.flat_map(|table| ["path", "url", "git"].into_iter().filter_map(|key| table.get(key)?.as_str()));
    places.chain(of_tables).any(is_relative) || constraints.into_iter().any(points_to_relative)
}

/// A string, or a list of them.
fn strings(value: Option<&toml::Value>) -> Vec<&str> {
    match value {
        Some(toml::Value::String(text)) => vec![text],
        Some(toml::Value::Array(items)) => items.iter().filter_map(toml::Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// A table, or a list of them.
fn tables(value: &toml::Value) -> Vec<&toml::Table> {
    match value {
        toml::Value::Table(table) => vec![table],
        toml::Value::Array(items) => items.iter().filter_map(toml::Value::as_table).collect(),
        _ => Vec::new(),
    }
}
