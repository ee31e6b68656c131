//! What a header says, once its TOML is read and its types are checked.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeFloat, DeInteger, DeValue};

use super::HeaderError;
use super::requirement::{direct_reference, is_relative, package_of};
use super::slip;
use crate::config::homes::is_ours;
use crate::config::origin::Setting;
use crate::config::section::{self, Problem, Section, Source};
use crate::config::tool::ToolLayer;
use crate::config::value::FromToml;

/// The header of one tool file.
#[derive(Debug, Clone)]
pub struct Metadata {
    /// The TOML text of the block, its comment marks stripped.
    pub toml: String,
    /// The 1-based line of the file on which that text begins.
    pub first_line: usize,
    /// Which interpreters the file runs on (a PEP 440 version specifier).
    pub requires_python: Option<String>,
    /// What the file needs installed (PEP 508), in the order it is written.
    pub dependencies: Vec<String>,
    /// The pack the header asks for.
    pub pack: Option<Setting<String>>,
    /// What `[tool.hostler]` asks for.
    pub layer: ToolLayer,
    /// Whether the environment depends on where the file lies: a dependency, source or index is a relative path.
    pub relative_sources: bool,
    /// The tables of other tools (`[tool.uv]`), as they are.
    pub other_tools: toml::Table,
}

impl Metadata {
    /// The line of the file on which a word first stands in the header.
    pub fn line_of(&self, word: &str) -> Option<usize> {
        let place = self.toml.lines().position(|line| line.contains(word))?;
        Some(self.first_line + place)
    }

    /// A table that may have been meant for hostler and that another tool may own as well: `[tool.hostlr]` without a key of
    /// hostler's, `[tool.holster]` with one.
    pub fn doubt(&self) -> Option<HeaderError> {
        let is_doubtful = |(name, table): &(&String, &toml::Value)| {
            let holds_ours = table.as_table().is_some_and(|table| table.keys().any(|key| is_ours(key)));
            slips_from_ours(name).is_some_and(|slips| holds_ours == (slips == Slips::Two))
        };
        let (name, _) = self.other_tools.iter().find(is_doubtful)?;
        let line = self.line_of(&format!("[tool.{name}")).unwrap_or(self.first_line);
        let reason = format!("[tool.{name}] belongs to another tool, so hostler does not read it");
        Some(HeaderError::new(line, reason, "if it was meant for hostler, write [tool.hostler]"))
    }

    /// Reads the TOML text of a `script` block that begins on this line of the file; several problems become one error that
    /// begins with the first of them.
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
}

/// A `requires-python`. A number in its place lacks quotes and a comparison.
struct Versions(String);

impl FromToml for Versions {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        let number = value.as_float().map(DeFloat::as_str);
        let number = number.or_else(|| value.as_integer().map(DeInteger::as_str));
        value.as_str().map(|text| Self(text.to_owned())).ok_or_else(|| {
            format!("write it in quotes and with a comparison: requires-python = \">={}\"", number.unwrap_or("3.11"))
        })
    }
}

fn read_requires_python(top: &Section<'_>) -> Option<String> {
    let wish = top.take::<Versions>("requires-python")?.value.0;
    if let (Some(slip), Some(value)) = (slip::in_python(&wish), value_of(top, "requires-python")) {
        let fix = match slip.instead {
            Some(right) => format!("write exactly `{}`", top.line_with(value, &right)),
            None => "write it like requires-python = \">=3.11,<4\"".to_owned(),
        };
        let what = format!("\"{wish}\" is not a version specifier: {}", slip.what);
        top.report_value("requires-python", value, what, fix);
    }
    Some(wish)
}

fn read_dependencies(top: &Section<'_>) -> Vec<String> {
    if let Some((value, packages)) =
        value_of(top, "dependencies").and_then(|value| Some((value, value.get_ref().as_table()?)))
    {
        top.ask("dependencies");
        let items: Vec<String> =
            packages.iter().map(|(name, version)| slip::of_table(name.get_ref(), version.get_ref().as_str())).collect();
        let fix =
            format!("in place of the table, write above the first [table] `# dependencies = [{}]`", items.join(", "));
        top.report_value("dependencies", value, "a table does not fit here".to_owned(), fix);
        return Vec::new();
    }
    let list: Option<Setting<Vec<String>>> = top.take("dependencies");
    let items = value_of(top, "dependencies").and_then(|value| value.get_ref().as_array());
    let texts =
        items.into_iter().flat_map(|items| items.iter()).filter_map(|item| Some((item, item.get_ref().as_str()?)));
    let slips: Vec<_> = texts.filter_map(|(item, text)| Some((item, text, slip::in_dependency(text)?))).collect();
    let is_only = slips.len() == 1;
    for (item, text, slip) in slips {
        let fix = match slip.instead {
            Some(right) if is_only => format!("write exactly `{}`", top.line_with(item, &right)),
            // The line is not right before all are.
            Some(right) => format!("write {right}"),
            None => right_form(text),
        };
        top.report_value("dependencies", item, format!("\"{text}\" is not a requirement: {}", slip.what), fix);
    }
    list.map(|list| list.value).unwrap_or_default()
}

/// How a requirement looks, by the example of what was written.
fn right_form(text: &str) -> String {
    let name = package_of(text);
    let compares = text[name.len()..].trim_start().starts_with(['<', '>', '=', '!', '~']);
    if text.contains("://") {
        format!("write the package's name before its address: \"NAME @ {text}\"")
    } else if compares && !name.is_empty() {
        format!("write it like \"{name}>=1.2\", or \"{name}\" for any version")
    } else {
        "write it like \"httpx>=0.27\" or \"name @ https://…\"".to_owned()
    }
}

fn read_hostler(tools: &Section<'_>) -> (Option<Setting<String>>, ToolLayer) {
    for (name, value) in tools.entries() {
        // Other tools own the rest of [tool]; only what was meant for hostler and would be lost is an error.
        let holds_ours = value.get_ref().as_table().is_some_and(|table| table.keys().any(|key| is_ours(key.get_ref())));
        if slips_from_ours(name) == Some(Slips::One) && holds_ours {
            tools.report_value(name, value, "unknown tool".to_owned(), "did you mean [tool.hostler]?".to_owned());
        }
    }
    tools.report_misplaced();
    let Some(wishes) = tools.section("hostler") else { return Default::default() };
    let pack: Option<Setting<String>> = wishes.take("pack");
    if let (Some(pack), Some(value)) = (&pack, value_of(&wishes, "pack"))
        && !is_identifier(&pack.value)
    {
        let fix =
            format!("use letters, digits and _ only, and no digit first: \"{}\"", nearest_identifier(&pack.value));
        wishes.report_value("pack", value, format!("\"{}\" cannot be a pack's name", pack.value), fix);
    }
    let layer = ToolLayer::read_of_one(&wishes);
    wishes.finish(false);
    (pack, layer)
}

/// How far the name of another tool's table is from hostler's.
#[derive(Debug, PartialEq, Eq)]
enum Slips {
    One,
    Two,
}

fn slips_from_ours(name: &str) -> Option<Slips> {
    match strsim::damerau_levenshtein(&name.to_ascii_lowercase(), "hostler") {
        _ if name == "hostler" => None,
        0 | 1 => Some(Slips::One),
        2 => Some(Slips::Two),
        _ => None,
    }
}

/// Whether a text is `[A-Za-z_][A-Za-z0-9_]*`, the form of pack and function names.
pub fn is_identifier(text: &str) -> bool {
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins_well && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The identifier nearest to a text, to suggest in a message.
pub fn nearest_identifier(text: &str) -> String {
    let mut name: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    // A file whose name begins with an underscore is a helper, and never served.
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
    let say = |problem: &Problem| {
        if problem.key.is_empty() { problem.what.clone() } else { format!("`{}`: {}", problem.key, problem.what) }
    };
    let one = |problem: &Problem| HeaderError::new(problem.place.line, say(problem), problem.fix.clone());
    let mut errors = problems.iter().map(one);
    match errors.next() {
        Some(first) => HeaderError { others: errors.collect(), ..first },
        None => HeaderError::new(1, "the header cannot be read", "compare it with PEP 723"),
    }
}

/// The rest of `[tool]`. The text has been parsed once, so a second parse cannot fail in a way a person would need to hear.
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
