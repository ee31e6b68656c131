//! A function of a tool file, as it is served.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{JsonSchema, ToolHints};
use crate::config::tool::ToolLayer;

/// Begins what the worker knows a function by that an agent of agno is given.
pub(super) const BY_AGNO: &str = "agno:";

/// One tool: a public function of a tool file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// Its name within the pack.
    pub name: String,
    /// What the worker knows it by, where that is not its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Its name for callers, where the operator sets another.
    #[serde(skip)]
    pub served_as: Option<String>,
    /// The name that its file gives it, where another tool of the file has that one. `name` is then for the configuration only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
    /// The first paragraph of its docstring, on one line.
    pub summary: Option<String>,
    /// Its docstring up to the arguments, for a model to read.
    pub description: Option<String>,
    /// The schema of its arguments: a JSON Schema (2020-12) of an object.
    pub input_schema: JsonSchema,
    /// The schema of its structured content, where it is certain: of the result when that is an object, of
    /// `{"result": …}` when it is not.
    pub output_schema: Option<JsonSchema>,
    /// Whether it is an `async def`.
    pub is_async: bool,
    /// The 1-based line of its `def`.
    pub line: usize,
    /// What it is served as.
    #[serde(default, skip_serializing_if = "Role::is_tool")]
    pub role: Role,
    /// What it declares itself, beside what its file does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<Box<ToolLayer>>,
    /// The helper that defines it, where its own file does not.
    #[serde(skip)]
    pub defined_in: Option<Arc<Path>>,
    /// The name of the server in its file whose decorator makes it a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// What its author says of it to people and clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Box<ToolHints>>,
}

/// What a function is served as.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// A tool, which models call.
    #[default]
    Tool,
    /// A resource or a template of resources, which applications read.
    Resource {
        /// The URI or its template. It was parsed before.
        uri: String,
        /// The MIME type of its contents, if declared.
        mime_type: Option<String>,
        /// How clients show it.
        presented: Presented,
    },
    /// A prompt, which people choose.
    Prompt(Presented),
}

/// How clients show a resource or a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presented {
    /// Its name, instead of the function's.
    pub name: Option<String>,
    /// Its name for people.
    pub title: Option<String>,
}

impl Role {
    /// Whether it is a tool.
    pub fn is_tool(&self) -> bool {
        *self == Self::Tool
    }
}

impl Function {
    /// What its worker knows it by.
    pub fn symbol(&self) -> &str {
        self.symbol.as_ref().unwrap_or(&self.name)
    }

    /// Whether it is the function of this name in its file.
    pub(super) fn is_called(&self, name: &str) -> bool {
        let symbol = self.symbol();
        symbol.strip_prefix(BY_AGNO).unwrap_or(symbol) == name
    }

    /// A tool with unknown arguments.
    pub fn unknown(name: &str) -> Self {
        let open = serde_json::Map::from_iter([("type".to_owned(), "object".into())]);
        Self {
            name: name.to_owned(),
            symbol: None,
            served_as: None,
            wanted: None,
            summary: None,
            description: None,
            input_schema: JsonSchema::of(&open),
            output_schema: None,
            is_async: false,
            line: 0,
            role: Role::Tool,
            declared: None,
            defined_in: None,
            server: None,
            hints: None,
        }
    }
}
