//! The built-in tools that are on: hostler's own by the configuration, and those an embedder brings.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::call::Call;
use super::tool::{AnyBuiltin, Builtin, Running};
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
            let function = tool.function();
            let place = format!("built-in:{}", function.name);
            ToolFile::built_in(Path::new(&place), function)
        };
        self.0.values().map(file).collect()
    }

    /// Makes a call of one of them.
    pub(crate) fn call(&self, name: &str, arguments: Box<RawValue>, call: Call) -> Running<'static> {
        if let Some(tool) = self.0.get(name) {
            return Arc::clone(tool).run(arguments, call);
        }
        let fault = Fault::new(Code::ToolNotFound, format!("there is no built-in tool {name}"));
        Box::pin(std::future::ready(Err(fault)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::builtin::{About, Call};
    use crate::config::ConfigOptions;
    use crate::config::builtin::GROUPS;

    fn config(text: &str) -> Config {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hostler.toml");
        std::fs::write(&file, text).unwrap();
        let wanted = ConfigOptions { config: Some(file), tools: vec!["/nowhere".into()], ..ConfigOptions::default() };
        Config::load(&wanted, Path::new("/")).unwrap()
    }

    #[test]
    fn what_can_be_switched_on_is_what_there_is() {
        let every = Builtins::every(&config(""));
        let named: BTreeSet<&str> = GROUPS.iter().flat_map(|(_, tools)| tools.iter().copied()).collect();
        assert_eq!(every.names().collect::<BTreeSet<_>>(), named);
    }

    #[test]
    fn none_is_on_unless_it_is_named() {
        let on = |text: &str| Builtins::of(&config(text)).names().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(on(""), Vec::<String>::new());
        assert_eq!(
            on("[builtin]\nenable = [\"web\", \"grep\"]\nroots = [\".\"]\n"),
            ["fetch_url", "grep", "web_search"]
        );
        let less = "[builtin]\nenable = [\"web\"]\ndisable = [\"fetch_url\"]\n";
        assert_eq!(on(less), ["web_search"]);
    }

    struct Ring(&'static str);

    impl Builtin for Ring {
        type Params = serde_json::Map<String, serde_json::Value>;
        type Answer = String;

        fn about(&self) -> About {
            About::new(self.0, "Ring.")
        }

        async fn call(&self, _: Self::Params, _: Call) -> Result<String, Fault> {
            Ok("ding".to_owned())
        }
    }

    #[test]
    fn a_name_is_given_once_and_must_be_one() {
        let mut tools = Builtins::default();
        assert_eq!(tools.register(Ring("ring")), Ok(()));
        assert_eq!(tools.register(Ring("ring")), Err(Unregistered::Taken("ring".to_owned())));
        assert_eq!(tools.register(Ring("a-b")), Err(Unregistered::NoName("a-b".to_owned())));
    }

    #[test]
    fn a_model_reads_what_each_takes_and_returns() {
        let told: Vec<_> = Builtins::every(&config(""))
            .files()
            .into_iter()
            .map(|file| {
                let function = &file.functions[0];
                let output = function.output_schema.as_ref().map(crate::discovery::JsonSchema::read);
                serde_json::json!({
                    "name": function.name, "description": function.description, "input": function.input_schema.read(),
                    "output": output, "declared": function.declared,
                })
            })
            .collect();
        insta::assert_snapshot!(serde_json::to_string_pretty(&told).unwrap());
    }
}
