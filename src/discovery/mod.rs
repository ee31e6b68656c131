//! Static reading of tools folders: which files hold tools, and their schemas before anything runs.
//!
//! Nothing here imports or runs a tool's code. A type that cannot be determined from the text admits anything (`{}`).

mod below;
mod beside;
mod cache;
mod collisions;
mod executable;
mod exported;
mod function;
mod given;
mod helpers;
mod hints;
mod imports;
mod json_schema;
mod linked;
mod modules;
mod mounted;
mod needs;
mod own_names;
mod packages;
mod programs;
mod provided;
mod python;
mod reached;
mod reader;
mod scan;
mod serve;
mod several;
mod standard;
mod uri_template;

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::config::origin::Diagnosis;
use crate::config::tool::ToolLayer;
use crate::pep723::Metadata;

pub use below::server_below;
pub use beside::Beside;
pub use cache::{Cache, PendingWrite, Stamp};
pub use collisions::{resolve_collisions, resolve_overrides};
pub use executable::{Answer, is_executable_tool, may_not_be_executed, remarks};
pub use exported::Exported;
pub use function::{Function, Presented, Role};
pub use given::Given;
pub use helpers::look_beside;
pub use hints::ToolHints;
pub use imports::neighbours_of;
pub use json_schema::JsonSchema;
pub use packages::{above_own_package, is_neighbour, own_package};
pub use programs::{Attached, Group, Program};
pub use provided::{Provided, cannot_start, declared, import_from_above, nothing_provides, top};
#[cfg(any(test, feature = "bench"))]
pub use python::read_bytes;
#[cfg(test)]
pub use python::read_bytes_with;
pub use python::{Lines, OpenNames, SyntaxError, enough_for, read_file, syntax_error, syntax_tree, unknown_to};
pub use reader::Answers;
#[cfg(test)]
pub use scan::scan;
pub use scan::{FolderProblem, Scan, scan_all};
pub use several::Servers;
pub use standard::{did_you_mean, is_behind_the_scenes, is_standard};
pub use uri_template::{Match, UriTemplate};

/// What identifies the content of a tool file of this kind: for its path, its text.
pub fn fingerprint_of(kind: Kind) -> fn(&Path, &[u8]) -> [u8; 32] {
    match kind {
        Kind::Executable => |path, _| executable::fingerprint(path),
        Kind::Python | Kind::Internal | Kind::Builtin => |_, text| Sha256::digest(text).into(),
    }
}

/// One tool file. What depends on its place or on other files is not stored in the cache.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFile {
    /// Its path, below the tools folder as it is configured.
    #[serde(skip)]
    pub path: PathBuf,
    /// The name of its pack. An invalid one makes the file broken.
    pub pack: String,
    /// Which interpreter and environment it gets.
    pub kind: Kind,
    /// Its header, when it has a valid one.
    #[serde(skip)]
    pub header: Option<Metadata>,
    /// The summary of its module docstring.
    pub description: Option<String>,
    /// Its tools, in the order of their lines. A broken file has them as far as possible too, so that a call of one can be
    /// answered with what is wrong.
    pub functions: Vec<Function>,
    /// The tool that it is when it is run as a program, where it does something then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Box<Function>>,
    /// Functions that are not tools because of their names.
    #[serde(skip)]
    pub left_out: Vec<LeftOut>,
    /// Whether it can be called.
    pub status: Status,
    /// SHA-256 of its bytes; zeros when they could not be read.
    pub fingerprint: [u8; 32],
    /// Warnings for `check`.
    pub warnings: Vec<Warning>,
    /// What it says about the servers of frameworks.
    #[serde(default)]
    pub servers: Servers,
    /// The modules it imports, dotted and sorted.
    pub imports: Vec<String>,
    /// Those that it must be able to import to be loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imports_at_start: Vec<String>,
    /// Whether it may add folders or modules to those that it can import. Once its helpers are known, also whether one of these does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adds_modules: bool,
    /// The names in its hints that only live types can resolve.
    pub open: OpenNames,
    /// The names in its hints and defaults that it imports, dotted. A neighbour may define them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub borrowed: Vec<String>,
    /// The neighbouring files it imports, directly or through one another. A change of one is a change of this file.
    #[serde(skip)]
    pub helpers: Vec<PathBuf>,
    /// What its folder says that it needs, where it has no header and imports packages, itself or by a neighbour.
    #[serde(skip)]
    pub beside: Option<Arc<Beside>>,
    /// Whether it or a helper is written for the first version of the MCP SDK, and not for the second one.
    #[serde(skip)]
    pub is_for_first_sdk: bool,
    /// The place of its folder among the tools folders, from 1; 0 for built-in tools. A file overrides those of the same name
    /// and lower rank.
    #[serde(skip)]
    pub rank: usize,
    /// The files that it overrides.
    #[serde(skip)]
    pub overrides: Vec<PathBuf>,
    /// The pack in the names of its tools, where the operator sets another.
    #[serde(skip)]
    pub served_as: Option<String>,
    /// The settings that it declares for all of its tools, if it is an executable.
    pub declared: ToolLayer,
}

/// A function that cannot be a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The name of its table in the configuration.
    pub key: String,
    /// The full name that it would have.
    pub name: String,
    /// The name for MCP clients that it would have.
    pub mcp_name: String,
    /// The 1-based line of its `def`; 0 without one.
    pub line: usize,
    /// Why, and what to do.
    pub reason: Diagnosis,
}

/// Which interpreter and environment a tool file gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A Python file with a header, or a broken one: it has an environment of its own.
    Python,
    /// A Python file without a header: it has no dependencies.
    Internal,
    /// A program that prints its schema with `--schema`.
    Executable,
    /// A part of hostler.
    Builtin,
}

/// Whether a tool file can be called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It can.
    Ready,
    /// It can, but its arguments are unknown.
    SchemaUnknown {
        /// Why.
        reason: Diagnosis,
    },
    /// An executable that has not been asked yet.
    Unasked,
    /// An executable that is not asked, and therefore cannot be called.
    NotAsked {
        /// Why, and how to have it asked.
        reason: Diagnosis,
    },
    /// It does not exist.
    Missing {
        /// What is missing and what to do.
        reason: Diagnosis,
    },
    /// It cannot until it is repaired.
    Broken {
        /// The line that is wrong, if it is one line.
        line: Option<usize>,
        /// What is wrong and what to do.
        reason: Diagnosis,
    },
}

/// Something that is wrong but does not keep a file from working.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The 1-based line; 0 without one.
    pub line: usize,
    /// The rule of `check`.
    pub rule: Cow<'static, str>,
    /// What is wrong and what to do.
    pub reason: Diagnosis,
}

/// Reads one file as it would be listed, without asking an executable.
pub fn read_tool(path: &Path) -> ToolFile {
    let is_python = path.extension().is_some_and(|end| end == "py");
    if !is_python && is_executable_tool(path) { executable::unasked(path) } else { read_file(path) }
}

impl ToolFile {
    /// Keeps these tools only, and adds unknown ones with unknown arguments.
    pub fn serve_only(&mut self, names: &[String]) {
        let known = std::mem::take(&mut self.functions);
        let function = |name: &String| {
            known.iter().find(|function| function.name == *name).cloned().unwrap_or_else(|| Function::unknown(name))
        };
        self.functions = names.iter().map(function).collect();
    }

    /// A built-in tool.
    pub fn built_in(path: &Path, function: Function) -> Self {
        Self {
            pack: function.name.clone(),
            description: function.summary.clone(),
            functions: vec![function],
            ..python::blank(path, Kind::Builtin)
        }
    }

    /// The full name of one of its tools, and the name for MCP clients, which accept no dot. Only Python files are packs.
    pub fn names_of(&self, function: &Function) -> (String, String) {
        let name = function.served_as.as_deref().unwrap_or(function.own_name());
        match self.kind {
            Kind::Executable | Kind::Builtin => (name.to_owned(), name.to_owned()),
            Kind::Python | Kind::Internal => {
                let pack = self.served_pack();
                (format!("{pack}.{name}"), format!("{pack}_{name}"))
            }
        }
    }

    /// The pack in the names of its tools, which the operator may change.
    pub fn served_pack(&self) -> &str {
        self.served_as.as_deref().unwrap_or(&self.pack)
    }

    /// An executable whose schema is unknown.
    pub fn as_one_tool(&self) -> Function {
        Function::unknown(&self.pack)
    }

    /// Whether it can be called. An executable that is asked again keeps its tools meanwhile.
    pub fn is_ready(&self) -> bool {
        match self.status {
            Status::Ready | Status::SchemaUnknown { .. } => true,
            Status::Unasked => !self.functions.is_empty(),
            Status::NotAsked { .. } | Status::Broken { .. } | Status::Missing { .. } => false,
        }
    }

    /// Why it cannot be called, if it cannot.
    pub fn broken(&self) -> Option<String> {
        match &self.status {
            Status::Ready | Status::SchemaUnknown { .. } | Status::Unasked | Status::NotAsked { .. } => None,
            Status::Broken { line: Some(line), reason } => Some(format!("line {line}: {reason}")),
            Status::Broken { line: None, reason } | Status::Missing { reason } => Some(reason.to_string()),
        }
    }

    /// Why it is not asked for its schema, and not served.
    pub fn not_asked(&self) -> Option<&Diagnosis> {
        if let Status::NotAsked { reason } = &self.status { Some(reason) } else { None }
    }

    /// Marks the file broken. A file keeps its first reason.
    fn break_with(&mut self, line: Option<usize>, reason: Diagnosis) {
        if self.is_ready() {
            self.status = Status::Broken { line, reason };
        }
    }
}

/// What offers tools. Pools, queues and caches are kept by it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SourceId {
    /// A Python file.
    Python(PathBuf),
    /// A program that answers `--schema`.
    Executable(PathBuf),
    /// A tool inside hostler, by its pack.
    Builtin(String),
}

impl SourceId {
    /// The file, for sources that are one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Python(path) | Self::Executable(path) => Some(path),
            Self::Builtin(_) => None,
        }
    }
}

impl ToolFile {
    /// Its identity: the same for every version of it.
    pub fn source(&self) -> SourceId {
        match self.kind {
            Kind::Python | Kind::Internal => SourceId::Python(self.path.clone()),
            Kind::Executable => SourceId::Executable(self.path.clone()),
            Kind::Builtin => SourceId::Builtin(self.pack.clone()),
        }
    }
}

impl fmt::Display for SourceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Python(path) | Self::Executable(path) => path.display().fmt(formatter),
            Self::Builtin(pack) => formatter.write_str(pack),
        }
    }
}

#[cfg(test)]
mod tests;
