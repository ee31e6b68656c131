//! Functions of other files that a server is given: `mcp.tool(description="…")(search)`, `mcp.add_tool(notes.search)`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::modules::Modules;
use super::{Function, ToolFile, ToolHints};
use crate::config::tool::ToolLayer;

/// A function of another module that is made a tool here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Given {
    /// What it is, dotted: `tools.notes.search`; `=search` for one of the same file.
    pub target: String,
    /// What the file calls the tool that it makes of it: `Search = Tool.from_function(search)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<String>,
    /// The name that it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The summary and the description that it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<(Option<String>, Option<String>)>,
    /// What its author says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Box<ToolHints>>,
    /// What is declared of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<Box<ToolLayer>>,
}

/// Begins the name of a function of the same file.
pub(super) const OWN: &str = "=";

/// Tools made of tools more often than this are not followed.
const DEEPEST: usize = 4;

impl ToolFile {
    /// The functions of these files that this one makes tools, and the files that define them.
    /// `root` is the tool file whose helpers they are.
    pub(super) fn given<'h>(&self, root: &Path, files: &[&'h ToolFile]) -> Vec<(&'h ToolFile, Function)> {
        let given: Vec<&Given> = self.servers.given.iter().filter(|given| given.bound.is_none()).collect();
        if given.is_empty() {
            return Vec::new();
        }
        // The first is the tool file itself.
        let own = std::iter::once((root, &[][..]));
        let modules = Modules::of(own.chain(files.iter().map(|file| (&*file.path, file.imports.as_slice()))));
        given.into_iter().filter_map(|given| given.of(&self.path, files, &modules, DEEPEST)).collect()
    }
}

impl Given {
    fn of<'h>(
        &self,
        from: &Path,
        files: &[&'h ToolFile],
        modules: &Modules<'_>,
        depth: usize,
    ) -> Option<(&'h ToolFile, Function)> {
        // `SearchTool.fn` is the function of a tool.
        let target = self.target.strip_suffix(".fn").unwrap_or(&self.target);
        let made =
            |file: &'h ToolFile, name: &str| file.servers.given.iter().find(|it| it.bound.as_deref() == Some(name));
        let function_of = |file: &'h ToolFile, name: &str| {
            file.functions.iter().find(|function| function.is_called(name) && function.role.is_tool())
        };
        let has = |file: usize, name: &str| {
            let file = file.checked_sub(1).map(|file| files[file]);
            file.is_some_and(|file| made(file, name).is_some() || function_of(file, name).is_some())
        };
        let (file, name) = modules.find(from, target, &has)?;
        let file = files[file - 1];
        let (file, function) = match made(file, &name) {
            Some(further) if further.target.starts_with(OWN) => {
                (file, function_of(file, further.target.trim_start_matches(OWN))?.clone())
            }
            Some(further) if depth > 0 => further.of(&file.path, files, modules, depth - 1)?,
            Some(_) => return None,
            None => (file, function_of(file, &name)?.clone()),
        };
        Some((file, self.said_of(function)))
    }

    fn said_of(&self, function: Function) -> Function {
        let (summary, description) =
            self.description.clone().unwrap_or_else(|| (function.summary.clone(), function.description.clone()));
        let symbol = Some(function.symbol().to_owned());
        Function {
            symbol,
            name: self.name.clone().unwrap_or_else(|| function.own_name().to_owned()),
            wanted: None,
            summary,
            description,
            hints: self.hints.clone().or(function.hints),
            declared: self.declared.clone().or(function.declared),
            ..function
        }
    }
}
