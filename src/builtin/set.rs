//! The built-in tools that are on: hostler's own by the configuration, and those an embedder brings.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::call::Call;
use super::tool::{AnyBuiltin, Builtin};
use crate::config::Config;
use crate::discovery::ToolFile;
use crate::outcome::{Code, Fault};
use crate::pep723::is_identifier;

/// Built-in tools by name.
#[derive(Clone, Default)]
pub struct Builtins(BTreeMap<String, Arc<dyn AnyBuiltin>>);

/// A tool that cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unregistered {
    /// There is one of that name.
    #[error("a tool called `{0}` is registered already; give this one another name")]
    Taken(String),
    /// No tool can have that name.
    #[error("`{0}` cannot be a tool's name: letters, digits and `_` can, no digit first, 64 at most")]
    NoName(String),
}

impl Builtins {
    /// Those that a configuration switches on.
    pub fn of(config: &Config) -> Self {
        let on = config.layer.builtin.enabled();
        let mut tools = Self::every(config);
        tools.0.retain(|name, _| on.contains(name.as_str()));
        tools
    }

    /// All that hostler brings, on or off.
    pub fn every(config: &Config) -> Self {
        let mut tools = Self::default();
        super::own(config, &mut tools);
        tools
    }

    /// Adds a tool.
    pub fn register(&mut self, tool: impl Builtin) -> Result<(), Unregistered> {
        let name = tool.about().name;
        if !is_identifier(&name) || name.len() > 64 {
            return Err(Unregistered::NoName(name));
        }
        if self.0.contains_key(&name) {
            return Err(Unregistered::Taken(name));
        }
        self.0.insert(name, Arc::new(tool));
        Ok(())
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// What a catalogue lists of them.
    pub fn files(&self) -> Vec<ToolFile> {
        let file = |tool: &Arc<dyn AnyBuiltin>| {
            let (function, declared) = tool.function();
            let place = format!("built-in:{}", function.name);
            ToolFile::built_in(Path::new(&place), function, declared)
        };
        self.0.values().map(file).collect()
    }

    /// Makes a call of one of them.
    pub(crate) async fn call(&self, name: &str, arguments: Box<RawValue>, call: Call) -> Result<Box<RawValue>, Fault> {
        match self.0.get(name) {
            Some(tool) => Arc::clone(tool).run(arguments, call).await,
            None => Err(Fault::new(Code::ToolNotFound, format!("there is no built-in tool {name}"))),
        }
    }
}
