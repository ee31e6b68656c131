//! What a header says, once its TOML is parsed and its types are checked.

use std::cell::RefCell;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::HeaderError;
use super::requirement::{direct_reference, is_relative, problem_of_python, problem_of_requirement};
use crate::config::origin::Setting;
use crate::config::section::{self, Problem, Section, Source, is_header_key};
use crate::config::tool::ToolLayer;

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
}

impl Metadata {
    /// Reads the TOML text of a `script` block that begins on this line of the file. Several problems become one error: the
    /// first of them, with the others inside.
    pub fn from_toml(text: &str, first_line: usize, file: &Arc<PathBuf>) -> Result<Self, HeaderError> {
        let source = Source { file: Arc::clone(file), text: Arc::from(text), first_line, is_header: true };
        let table = section::parse(&source).map_err(|problem| one_error(vec![problem]))?;
        let problems = RefCell::default();
        let top = Section::new(&source, "", &table, &problems);
        let requires_python = read_requires_python(&top);
        let dependencies = read_dependencies(&top);
        let tools = top.section("tool");
        let has_tools = tools.is_some();
        let (pack, layer) = tools.as_ref().map(read_hostler).unwrap_or_default();
        top.finish(false);

        let problems = problems.into_inner();
        if !problems.is_empty() {
            return Err(one_error(problems));
        }
        let other_tools = if has_tools { other_tools(text) } else { toml::Table::new() };
        let relative_sources = dependencies.iter().any(|text| points_to_relative(text)) || uv_is_relative(&other_tools);
        let toml = text.to_owned();
        Ok(Self { toml, first_line, requires_python, dependencies, pack, layer, relative_sources, other_tools })
    }

    /// The line of the file on which a word first occurs in the header.
    pub fn line_of(&self, word: &str) -> Option<usize> {
        let place = self.toml.lines().position(|line| line.contains(word))?;
        Some(self.first_line + place)
    }

    /// How to declare this package: the line to write, for an error's advice.
    pub fn declaring(&self, package: &str) -> String {
        let list = DeTable::parse(&self.toml).ok().and_then(|table| Some(table.get_ref().get("dependencies")?.span()));
        list.map_or_else(
            || format!("write the line `# dependencies = [\"{package}\"]` after line {}", self.first_line - 1),
            |list| self.with_item(list, package),
        )
    }

    /// How to declare this secret.
    pub fn declaring_secret(&self, name: &str) -> String {
        let list = DeTable::parse(&self.toml).ok().and_then(|table| {
            let hostler = table.get_ref().get("tool")?.get_ref().get("hostler")?;
            Some(hostler.get_ref().get("secrets")?.span())
        });
        if let Some(list) = list {
            return self.with_item(list, name);
        }
        let head = self.toml.lines().position(|line| line.trim().starts_with("[tool.hostler]"));
        match head {
            Some(head) => format!("write the line `# secrets = [\"{name}\"]` after line {}", self.first_line + head),
            None => format!(
                "write the two lines `# [tool.hostler]` and `# secrets = [\"{name}\"]` before line {}",
                self.first_line + self.toml.lines().count()
            ),
        }
    }

    /// The line of a list with one more item.
    fn with_item(&self, span: Range<usize>, item: &str) -> String {
        let number = self.first_line + self.toml[..span.start].matches('\n').count();
        let list = &self.toml[span.clone()];
        if list.contains('\n') {
            return format!("write the line `#   \"{item}\",` after line {number}");
        }
        let items = list.get(1..list.len().saturating_sub(1)).unwrap_or_default().trim().trim_end_matches(',');
        let comma = if items.is_empty() { "" } else { ", " };
        let start = self.toml[..span.start].rfind('\n').map_or(0, |end| end + 1);
        let rest = self.toml[span.end..].lines().next().unwrap_or_default();
        let key = &self.toml[start..span.start];
        format!("write line {number} as `# {key}[{items}{comma}\"{item}\"]{rest}`")
    }
}

fn read_requires_python(top: &Section<'_>) -> Option<String> {
    let range = top.take::<String>("requires-python")?.value;
    if let (Some(fix), Some(value)) = (problem_of_python(&range), value_of(top, "requires-python")) {
        top.report_value("requires-python", value, format!("\"{range}\" is not a version specifier"), fix);
    }
    Some(range)
}

fn read_dependencies(top: &Section<'_>) -> Vec<String> {
    let list: Option<Setting<Vec<String>>> = top.take("dependencies");
    let items = value_of(top, "dependencies").and_then(|value| value.get_ref().as_array());
    for item in items.into_iter().flat_map(|items| items.iter()) {
        let Some(text) = item.get_ref().as_str() else { continue };
        if let Some(fix) = problem_of_requirement(text) {
            top.report_value("dependencies", item, format!("\"{text}\" is not a valid requirement"), fix);
        }
    }
    list.map(|list| list.value).unwrap_or_default()
}

fn read_hostler(tools: &Section<'_>) -> (Option<Setting<String>>, ToolLayer) {
    for (name, value) in tools.entries() {
        // Other tools own the rest of [tool]: only a misspelt table with a key of hostler's is an error.
        let is_near = name != "hostler" && strsim::damerau_levenshtein(&name.to_ascii_lowercase(), "hostler") <= 1;
        let table = value.get_ref().as_table().filter(|_| is_near);
        if table.is_some_and(|table| table.keys().any(|key| is_header_key(key.get_ref()))) {
            tools.report_value(name, value, "unknown tool".to_owned(), "did you mean [tool.hostler]?".to_owned());
        }
    }
    tools.report_misplaced();
    let Some(hostler) = tools.section("hostler") else { return Default::default() };
    let pack: Option<Setting<String>> = hostler.take("pack");
    if let (Some(pack), Some(value)) = (&pack, value_of(&hostler, "pack"))
        && !is_identifier(&pack.value)
    {
        let what = format!("\"{}\" is not a valid pack name", pack.value);
        let near = nearest_identifier(&pack.value);
        let fix = format!("use letters, digits and _, and no digit first: \"{near}\"");
        hostler.report_value("pack", value, what, fix);
    }
    let layer = ToolLayer::read_of_one(&hostler);
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

fn value_of<'a>(section: &Section<'a>, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
    section.entries().find_map(|(name, value)| (name == key).then_some(value))
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
