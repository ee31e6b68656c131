//! Tools that run inside this program: hostler's own, each off until the configuration enables it, and those of an embedder, who
//! implements [`Builtin`] and passes it to [`Builtins::register`].

mod files;
mod host;
mod roots;
mod search;
mod shell;
mod system;
#[cfg(test)]
mod testing;
mod tool;
pub(crate) mod walled;
mod web;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::config::Config;
use crate::config::builtin::BuiltinSettings;
use crate::discovery::ToolFile;
use crate::outcome::{Code, Fault};
use crate::pep723::is_identifier;
pub(crate) use roots::BY_OWNER;
use roots::here;
pub use roots::{Located, Roots};
pub(crate) use tool::Asks;
pub use tool::{About, Builtin, Call, LookUp, Stop};
use tool::{AnyBuiltin, Running};

/// Adds all of hostler's own tools. Those of the web use this proxy, if there is one.
fn own(settings: &BuiltinSettings, proxy: Option<&str>, tools: &mut Builtins) {
    let folders = settings.roots.as_ref().map(|roots| roots.value.clone()).unwrap_or_default();
    let roots = Roots::new(folders);
    let added = files::add(tools, &roots)
        .and_then(|()| search::add(tools, &roots))
        .and_then(|()| shell::add(tools, &roots))
        .and_then(|()| system::add(tools))
        .and_then(|()| web::add(tools, settings, proxy))
        .and_then(|()| host::add(tools));
    // A test checks that no name is used twice.
    debug_assert!(added.is_ok(), "{added:?}");
}

/// Built-in tools by name.
#[derive(Clone, Default)]
pub struct Builtins(BTreeMap<String, Arc<dyn AnyBuiltin>>);

/// A tool that cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unregistered {
    /// The name is taken.
    #[error("a tool named `{0}` is registered already; use another name")]
    Taken(String),
    /// The name is invalid.
    #[error("`{0}` is not a valid tool name: use letters, digits and `_`, no digit first, at most 64 characters")]
    NoName(String),
}

impl Builtins {
    /// Those that a configuration enables.
    pub fn of(config: &Config) -> Self {
        let on = config.builtin.enabled();
        let mut tools = Self::every(config);
        tools.0.retain(|name, _| on.contains(name.as_str()));
        tools
    }

    /// All of hostler's own, enabled or not.
    pub fn every(config: &Config) -> Self {
        Self::within(&config.builtin, None)
    }

    /// The same with these settings, where the network is reached through this proxy, if there is one.
    pub(crate) fn within(settings: &BuiltinSettings, proxy: Option<&str>) -> Self {
        let mut tools = Self::default();
        own(settings, proxy, &mut tools);
        tools
    }

    /// Those of them that are not among these.
    pub(crate) fn without(&self, others: &Self) -> Self {
        let own = self.0.iter().filter(|(name, _)| !others.0.contains_key(*name));
        Self(own.map(|(name, tool)| (name.clone(), Arc::clone(tool))).collect())
    }

    /// These and those; of two with one name, the one among those.
    pub(crate) fn and(mut self, those: &Self) -> Self {
        self.0.extend(those.0.iter().map(|(name, tool)| (name.clone(), Arc::clone(tool))));
        self
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

    /// Their entries for a catalogue.
    pub fn files(&self) -> Vec<ToolFile> {
        let file = |tool: &Arc<dyn AnyBuiltin>| {
            let function = tool.function();
            let place = format!("built-in:{}", function.name);
            ToolFile::built_in(Path::new(&place), function)
        };
        self.0.values().map(file).collect()
    }

    /// Calls one of them.
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
    fn every_tool_can_be_enabled() {
        let every = Builtins::every(&config(""));
        let named: BTreeSet<&str> = GROUPS.iter().flat_map(|(_, tools)| tools.iter().copied()).collect();
        assert_eq!(every.names().collect::<BTreeSet<_>>(), named);
    }

    #[test]
    fn no_tool_is_enabled_unless_it_is_named() {
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
    fn a_name_must_be_valid_and_unique() {
        let mut tools = Builtins::default();
        assert_eq!(tools.register(Ring("ring")), Ok(()));
        assert_eq!(tools.register(Ring("ring")), Err(Unregistered::Taken("ring".to_owned())));
        assert_eq!(tools.register(Ring("a-b")), Err(Unregistered::NoName("a-b".to_owned())));
    }

    #[test]
    fn descriptions_and_schemas_read_as_in_the_gallery() {
        let tools: Vec<_> = Builtins::every(&config(""))
            .files()
            .into_iter()
            .map(|file| {
                let function = &file.functions[0];
                let output = function.output_schema.as_ref().map(crate::discovery::JsonSchema::read);
                serde_json::json!({
                    "name": function.name, "description": function.description, "input": function.input_schema.read(),
                    "output": output, "declared": function.declared.as_ref().map(|declared| declared.policy.as_json()),
                })
            })
            .collect();
        insta::assert_snapshot!(serde_json::to_string_pretty(&tools).unwrap());
    }
}
