//! The methods as a document in OpenRPC, made from the table.

use std::sync::Arc;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::client::Client;
use super::methods;
use super::table::{Answer, Entry, Names, Nothing, Notifies, Scope, Table};
use super::text::Json;
use crate::protocol::TraceContext;

/// The version of OpenRPC.
const OPENRPC: &str = "1.3.2";
/// Where it holds the schemas that others refer to.
const DEFINITIONS: &str = "/components/schemas";

pub(super) fn enter(table: &mut impl Table) {
    let about = "This document: every method with its parameters and its result.";
    table.enter(Entry { name: "rpc.discover", scope: Scope::Observe, session: false, about }, discover);
}

async fn discover(_: Arc<Client>, _: Nothing) -> Answer<Json> {
    Json::of(&document())
}

/// The document.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = DEFINITIONS.into());
    let mut described = Described { generator: settings.into_generator(), methods: Vec::new() };
    methods::enter(&mut described);
    let Described { mut generator, mut methods } = described;
    methods.sort_by(|left, right| left["name"].as_str().cmp(&right["name"].as_str()));
    let schemas = Value::Object(generator.take_definitions(true));
    json!({
        "openrpc": OPENRPC,
        "info": {"title": "hostler", "version": env!("CARGO_PKG_VERSION")},
        "methods": methods,
        "components": {"schemas": schemas},
    })
}

struct Described {
    generator: SchemaGenerator,
    methods: Vec<Value>,
}

impl Table for Described {
    fn enter_traced<P, R, F, Fut>(&mut self, entry: Entry, _: F)
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize + Clone + JsonSchema + 'static,
        F: Fn(Arc<Client>, Option<TraceContext>, P) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Answer<R>> + Send + 'static,
    {
        let result = self.generator.subschema_for::<R>();
        self.add::<P>(entry, &result);
    }

    fn subscription<P, S>(&mut self, entry: Entry, names: Names, _: fn(&Client, P) -> S)
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        S: Notifies,
    {
        let result = self.generator.subschema_for::<u64>();
        self.add::<P>(entry, &result);
        let about = format!("Ends a subscription of `{}`.", entry.name);
        self.methods.push(json!({
            "name": names.end,
            "description": about,
            "paramStructure": "by-position",
            "params": [{"name": "subscription", "required": true, "schema": {"type": "integer"}}],
            "result": {"name": "result", "schema": {"type": "boolean"}},
            "x-scope": entry.scope,
            "x-session": entry.session,
        }));
    }
}

impl Described {
    fn add<P: JsonSchema>(&mut self, entry: Entry, result: &Schema) {
        let params = P::json_schema(&mut self.generator).to_value();
        let required = |name: &str| params["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
        let properties = params["properties"].as_object().into_iter().flatten();
        let params: Vec<Value> = properties
            .map(|(name, schema)| json!({"name": name, "required": required(name), "schema": schema}))
            .collect();
        self.methods.push(json!({
            "name": entry.name,
            "description": entry.about,
            "paramStructure": "either",
            "params": params,
            "result": {"name": "result", "schema": result},
            "x-scope": entry.scope,
            "x-session": entry.session,
        }));
    }
}

/// Whether a method needs a session; `None` if there is no such method.
pub fn needs_session(method: &str) -> Option<bool> {
    let document = document();
    let methods = document["methods"].as_array()?;
    methods.iter().find(|one| one["name"] == method)?["x-session"].as_bool()
}

/// The names of all methods.
pub fn names() -> Vec<String> {
    let document = document();
    let methods = document["methods"].as_array().into_iter().flatten();
    methods.filter_map(|one| Some(one["name"].as_str()?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/control.md");
    const MARK: &str = "<!-- methods: written by `scripts/gallery` -->\n";

    fn table() -> String {
        let document = document();
        let row = |method: &Value| {
            let params = method["params"].as_array().into_iter().flatten();
            let params: Vec<String> = params
                .map(|param| {
                    let name = param["name"].as_str().unwrap();
                    if param["required"] == true { format!("`{name}`") } else { format!("[`{name}`]") }
                })
                .collect();
            let (name, scope) = (method["name"].as_str().unwrap(), method["x-scope"].as_str().unwrap());
            let about = method["description"].as_str().unwrap();
            format!("| `{name}` | {scope} | {} | {about} |\n", params.join(", "))
        };
        let rows = document["methods"].as_array().unwrap().iter().map(row);
        std::iter::once("\n| method | scope | parameters | |\n|---|---|---|---|\n".to_owned()).chain(rows).collect()
    }

    #[test]
    fn the_page_has_every_method_as_in_a_gallery() {
        let page = std::fs::read_to_string(PAGE).unwrap();
        let (before, after) = page.split_once(MARK).unwrap();
        let fresh = format!("{before}{MARK}{}", table());
        if std::env::var_os("INSTA_UPDATE").is_some_and(|value| value == "always") {
            std::fs::write(PAGE, fresh).unwrap();
        } else {
            assert_eq!(after, table(), "`scripts/gallery` writes it");
        }
    }

    #[test]
    fn methods_say_whether_they_need_a_session() {
        assert_eq!(needs_session("tools.list"), Some(true));
        assert_eq!(needs_session("status"), Some(false));
        assert_eq!(needs_session("nothing"), None);
    }
}
