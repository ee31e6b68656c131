//! Tool folders read statically: which files hold tools, and what a client may know about them before anything runs.
//!
//! Nothing here imports or runs a tool's code. What cannot be known from the text is left open (`{}`), never guessed.

mod cache;
mod collisions;
mod executable;
mod imports;
mod python;
mod reader;
mod scan;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::config::declared_policy::Declared;
use crate::config::origin::{Origin, Setting};
use crate::config::tool::{Protocol, ToolLayer};
use crate::pep723::Metadata;

pub use cache::{Cache, Stamp, Unsaved};
pub use collisions::{resolve_collisions, resolve_overrides};
pub use executable::{Answer, is_executable_tool, may_not_be_executed, remarks};
pub use imports::{did_you_mean, is_behind_the_scenes, is_standard, neighbours_of};
pub use python::{
    Lines, Live, OpenNames, Side, SyntaxError, docstring_of, documented_arguments, enough_for, read_bytes,
    read_bytes_with, read_file, syntax_error, syntax_tree, unknown_to,
};
pub use reader::Asked;
pub use scan::{FolderProblem, Scan, scan, scan_all};

/// One Python tool file, as its text describes it.
#[derive(Debug, Clone)]
pub struct ToolFile {
    /// Where it lies, as the folder was named.
    pub path: PathBuf,
    /// The name its functions live under. When it cannot be a pack's name, the status says so.
    pub pack: String,
    /// Which interpreter and environment it gets.
    pub kind: Kind,
    /// Its header, when it has a valid one.
    pub header: Option<Metadata>,
    /// The summary of its module docstring.
    pub description: Option<String>,
    /// Its tools, in the order they stand in the file. Known as far as possible for a broken file too, so that a call
    /// of one of them can be answered with what is wrong.
    pub functions: Vec<Function>,
    /// Whether it can be called.
    pub status: Status,
    /// SHA-256 of its bytes; zeros when they could not be read.
    pub fingerprint: [u8; 32],
    /// What `check` has to say about it besides its status.
    pub warnings: Vec<Warning>,
    /// The modules it imports anywhere, dotted, sorted.
    pub imports: Vec<String>,
    /// The names in its hints that only a live type could tell about.
    pub open: OpenNames,
    /// The neighbouring files it imports, directly or through one another: for a reload they are part of it.
    pub helpers: Vec<PathBuf>,
    /// Its folder's place among the tools folders, from 1: what lies in a later one takes the place of its namesakes, and
    /// what lies in any that of built-in ones.
    pub rank: usize,
    /// The files whose place it takes.
    pub overrides: Vec<PathBuf>,
    /// What it asks for as a whole, where it has no header to say so in.
    pub declared: DeclaredSettings,
}

/// Which interpreter and environment a tool file gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// It has a header (or was meant to have one): an environment of its own.
    Python,
    /// It has none: the house interpreter, no dependencies.
    Internal,
    /// It is a program, asked with `--schema` and run once for each call.
    Executable,
    /// It is part of this program and runs inside it.
    Builtin,
}

/// Whether a tool file can be called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It can.
    Ready,
    /// It can, and nobody knows what it takes: it did not say, for this reason.
    SchemaUnknown {
        /// Why.
        reason: String,
    },
    /// It is an executable that has not been asked yet.
    Unasked,
    /// It is not there.
    Missing {
        /// What is missing and what to do.
        reason: String,
    },
    /// It cannot until somebody mends it.
    Broken {
        /// The line that is wrong, when it is one line.
        line: Option<usize>,
        /// What is wrong and what to do.
        reason: String,
    },
}

/// The rules that reading alone can find broken.
const RULES: [&str; 5] = ["exports", "metadata", "name", "no-tools", "star-args"];

/// Something worth a word that does not stop a file from working.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The 1-based line; 0 where it stands in none.
    pub line: usize,
    /// The rule of `check` that it breaks.
    pub rule: &'static str,
    /// What it is and what to do.
    pub text: String,
}

/// One tool: a public function of a tool file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// Its name within the pack.
    pub name: String,
    /// The first paragraph of its docstring, on one line.
    pub summary: Option<String>,
    /// Its docstring up to the arguments, for a model to read.
    pub description: Option<String>,
    /// What it takes: a JSON Schema (2020-12) object.
    pub input_schema: JsonSchema,
    /// What it returns, when that is certain: a JSON Schema of what clients get as structured content, which is the result
    /// when that is an object, and `{"result": …}` when it is not.
    pub output_schema: Option<JsonSchema>,
    /// Whether it is an `async def`.
    pub is_async: bool,
    /// The 1-based line of its `def`.
    pub line: usize,
    /// What it asks for, where there is no header to say so in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<Box<Declared>>,
}

/// Reads one file as it would be listed: an executable without asking it anything.
pub fn read_tool(path: &Path) -> ToolFile {
    let is_python = path.extension().is_some_and(|end| end == "py");
    if !is_python && is_executable_tool(path) { executable::unasked(path) } else { read_file(path) }
}

impl Function {
    /// A tool of which nobody knows what it takes.
    pub fn unknown(name: &str) -> Self {
        let open = serde_json::Map::from_iter([("type".to_owned(), "object".into())]);
        Self {
            name: name.to_owned(),
            summary: None,
            description: None,
            input_schema: JsonSchema::of(&open),
            output_schema: None,
            is_async: false,
            line: 0,
            declared: None,
        }
    }
}

impl ToolFile {
    /// Has exactly these tools: those that are known as they are, the others as tools of which nobody knows what they take.
    pub fn serve_only(&mut self, names: &[String]) {
        let known = std::mem::take(&mut self.functions);
        let function = |name: &String| {
            known.iter().find(|function| function.name == *name).cloned().unwrap_or_else(|| Function::unknown(name))
        };
        self.functions = names.iter().map(function).collect();
    }

    /// A tool that is part of this program, and lies in no folder.
    pub fn built_in(path: &Path, function: Function) -> Self {
        Self {
            pack: function.name.clone(),
            description: function.summary.clone(),
            functions: vec![function],
            ..python::blank(path, Kind::Builtin)
        }
    }

    /// A tool of it by its full name, and as MCP clients know it, which accept no dot. Only Python files are packs.
    pub fn names_of(&self, function: &str) -> (String, String) {
        match self.kind {
            Kind::Executable | Kind::Builtin => (function.to_owned(), function.to_owned()),
            Kind::Python | Kind::Internal => (format!("{}.{function}", self.pack), format!("{}_{function}", self.pack)),
        }
    }

    /// An executable as it would be listed if it did not say what it is.
    pub fn as_one_tool(&self) -> Function {
        Function::unknown(&self.pack)
    }

    /// Whether it can be called. One that is asked again can, when that is done; meanwhile its tools stay listed.
    pub fn is_ready(&self) -> bool {
        match self.status {
            Status::Ready | Status::SchemaUnknown { .. } => true,
            Status::Unasked => !self.functions.is_empty(),
            Status::Broken { .. } | Status::Missing { .. } => false,
        }
    }

    /// Why it cannot be called, if it cannot.
    pub fn broken(&self) -> Option<String> {
        match &self.status {
            Status::Ready | Status::SchemaUnknown { .. } | Status::Unasked => None,
            Status::Broken { line: Some(line), reason } => Some(format!("line {line}: {reason}")),
            Status::Broken { line: None, reason } | Status::Missing { reason } => Some(reason.clone()),
        }
    }

    /// Marks the file broken, unless it already is: the first reason is the one to mend first.
    fn break_with(&mut self, line: Option<usize>, reason: String) {
        if self.is_ready() {
            self.status = Status::Broken { line, reason };
        }
    }
}

/// What it asks for. Whoever operates hostler has the last word.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeclaredSettings {
    /// That it be kept as a worker, and how it is spoken to.
    pub protocol: Option<Protocol>,
    /// The secrets it wants, by name.
    pub secrets: Option<Vec<String>>,
}

impl DeclaredSettings {
    /// The same as a layer of declared.
    pub fn layer(&self) -> ToolLayer {
        ToolLayer { protocol: said(self.protocol), secrets: said(self.secrets.clone()), ..ToolLayer::default() }
    }
}

fn said<T>(value: Option<T>) -> Option<Setting<T>> {
    value.map(|value| Setting { value, origin: Origin::Tool })
}

/// A JSON Schema that is an object, as JSON text.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonSchema(Box<RawValue>);

impl JsonSchema {
    /// A schema as text. Every map has one; were there none, what admits everything would be right.
    pub fn of(schema: &Map<String, Value>) -> Self {
        Self(to_raw_value(schema).unwrap_or_else(|_| RawValue::TRUE.to_owned()))
    }

    /// The text.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// The text, as JSON.
    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    /// The schema as values. Empty, which admits everything, should it nest too deeply to be read.
    pub fn read(&self) -> Map<String, Value> {
        serde_json::from_str(self.text()).unwrap_or_default()
    }
}

impl PartialEq for JsonSchema {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

#[cfg(test)]
mod tests;
