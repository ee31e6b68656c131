//! `resources/…`: what clients can read. Functions with the role, files that the operator offers, and stored results of the
//! session.

use std::collections::HashSet;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, ErrorCode, Icon, RequestId, RequestMetaObject, Resource, ResourceContents, ResourceTemplate,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::arguments::converted;
use super::blocks::contents as file_contents;
use super::call::{self, CallParams, Shape};
use super::files::{self, FileError};
use super::lifecycle::Rules;
use super::message;
use super::offered::digest;
use super::reading::when_read;
use super::result::{lacking, megabytes};
use super::rounds::Responses;
use super::session::McpSession;
use super::stored::Found;
use crate::discovery::{Match, Role};
use crate::outcome::{Code, Fault, File, Outcome};
use crate::registry::{RoleKind, Tool};

/// The parameters of `resources/read`.
#[derive(Deserialize)]
pub(super) struct ReadParams {
    uri: String,
    #[serde(rename = "inputResponses", default)]
    responses: Option<Responses>,
    #[serde(rename = "requestState", default)]
    state: Option<String>,
    #[serde(rename = "_meta", default, deserialize_with = "call::or_default")]
    meta: RequestMetaObject,
}

/// The parameters of a list.
#[derive(Deserialize)]
pub(super) struct ListParams {
    #[serde(default)]
    pub cursor: Option<String>,
}

/// How the answer to `resources/read` is made of a function's result.
pub(super) struct ResourceShape {
    uri: String,
    mime_type: Option<String>,
}

/// A result that a client may keep, for how long it says itself since 2026-07-28.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cacheable<T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_scope: Option<CacheScope>,
    #[serde(flatten)]
    content: T,
}

impl<T: Serialize> Cacheable<T> {
    pub fn new(rules: Rules, content: T) -> Self {
        let is_modern = rules == Rules::Modern;
        Self {
            result_type: is_modern.then_some("complete"),
            ttl_ms: is_modern.then_some(0),
            cache_scope: is_modern.then_some(CacheScope::Private),
            content,
        }
    }
}

/// A page of a list under its key. One page as long as it fits into a message: many clients never ask for a second.
pub(super) fn page(
    key: &str,
    items: &[impl Serialize],
    params: &ListParams,
    most: usize,
) -> Result<Map<String, Value>, ErrorData> {
    let start =
        match &params.cursor {
            None => 0,
            Some(cursor) => cursor.parse::<usize>().ok().filter(|start| *start <= items.len()).ok_or_else(|| {
                ErrorData::invalid_params("this cursor is not one of this list; begin without one", None)
            })?,
        };
    let (mut room, mut end) = (most - most / 8, start);
    let mut listed = Vec::new();
    for item in items.iter().skip(start) {
        let item = serde_json::to_value(item).unwrap_or_default();
        let length = item.to_string().len() + 1;
        if length > room && !listed.is_empty() {
            break;
        }
        room = room.saturating_sub(length);
        listed.push(item);
        end += 1;
    }
    let mut page = Map::new();
    page.insert(key.to_owned(), listed.into());
    page.extend((end < items.len()).then(|| ("nextCursor".to_owned(), end.to_string().into())));
    Ok(page)
}

/// The error for an address under which there is nothing: revisions disagree about its code.
pub(super) fn not_found(rules: Rules, uri: &str) -> ErrorData {
    let code = match rules {
        Rules::Legacy => ErrorCode::RESOURCE_NOT_FOUND,
        Rules::Modern => ErrorCode::INVALID_PARAMS,
    };
    let what = "there is no such resource; list them with resources/list and resources/templates/list";
    ErrorData::new(code, what, Some(json!({ "uri": uri })))
}

/// A fault of a function that answers no `tools/call`.
pub(super) fn failed(fault: &Fault, rules: Rules, uri: Option<&str>) -> ErrorData {
    if let Some(error) = lacking(fault, rules) {
        return error;
    }
    let code = match fault.code {
        Code::InvalidParams | Code::ToolNotFound => ErrorCode::INVALID_PARAMS,
        _ => ErrorCode::INTERNAL_ERROR,
    };
    let mut data = serde_json::to_value(fault).unwrap_or_default();
    if let (Some(uri), Some(data)) = (uri, data.as_object_mut()) {
        data.insert("uri".to_owned(), uri.into());
    }
    ErrorData::new(code, fault.message.clone(), Some(data))
}

/// The error for an answer that exceeds the limit for a line.
pub(super) fn too_long(what: &str, length: usize, most: usize) -> ErrorData {
    let message = format!(
        "the result of {what} takes {} as a message, the limit is {}; return less, or raise `max_result` under [mcp] if the client \
         reads longer lines",
        megabytes(length),
        megabytes(most)
    );
    ErrorData::internal_error(message, Some(json!({"code": Code::InvalidOutput})))
}

impl McpSession {
    /// Answers `resources/list`.
    pub(super) fn list_resources(
        self: &Arc<Self>,
        id: &RequestId,
        rules: Rules,
        params: ListParams,
    ) -> Result<(), ErrorData> {
        let config = self.service().config();
        let catalogue = self.catalogue_for(RoleKind::Resource);
        let functions = catalogue.ready_resources().filter_map(|resource| described(resource, false));
        let mut resources: Vec<Resource> = functions.map(|(uri, about)| resource(uri, about)).collect();
        let most = config.mcp.max_result.0;
        let line = move |id: &RequestId, mut resources: Vec<Resource>, params: &ListParams| {
            // Of two with one address, the first is read.
            let mut seen = HashSet::new();
            resources.retain(|resource| seen.insert(resource.uri.clone()));
            let listed = page("resources", &resources, params, most)?;
            Ok(message::result(id, Cacheable::new(rules, listed)))
        };
        let Some(offered) = config.mcp.resources.clone() else {
            self.reply(id, &line(id, resources, &params)?);
            return Ok(());
        };
        let (session, own) = (Arc::clone(self), id.clone());
        let listed = when_read(self.outbox().clone(), move || {
            let files = files::list(&offered);
            let listed = digest(&files);
            resources.extend(files);
            line(&own, resources, &params).map(|line| (line, listed))
        });
        let listed = async move {
            let (line, listed) = listed.await?;
            session.note_listed(listed, rules == Rules::Legacy);
            Ok(line)
        };
        self.answer_later(id, listed)
    }

    /// Answers `resources/templates/list`.
    pub(super) fn list_templates(&self, id: &RequestId, rules: Rules, params: &ListParams) -> Result<(), ErrorData> {
        let catalogue = self.catalogue_for(RoleKind::Resource);
        let templates = catalogue.ready_resources().filter_map(|resource| described(resource, true));
        let templates: Vec<ResourceTemplate> = templates.map(|(uri, about)| template(uri, about)).collect();
        let listed = page("resourceTemplates", &templates, params, self.service().config().mcp.max_result.0)?;
        self.reply(id, &message::result(id, Cacheable::new(rules, listed)));
        Ok(())
    }

    /// Answers `resources/read`. A function is called; everything else is answered at once.
    pub(super) fn read_resource(self: &Arc<Self>, id: &RequestId, params: ReadParams) -> Result<(), ErrorData> {
        let rules = self.rules(&params.meta)?;
        let most = self.service().config().mcp.max_result.0;
        let uri = params.uri.clone();
        let contents = match self.results().read(&uri) {
            Some(Found::Contents(contents)) => contents,
            Some(Found::Failed(error)) => {
                let what = format!("the stored result cannot be read: {error}; call the tool again");
                return Err(ErrorData::internal_error(what, Some(json!({ "uri": uri }))));
            }
            None if files::is_one(&uri) => return self.read_file(id, rules, uri, most),
            None => return self.call_resource(id, rules, params),
        };
        self.reply(id, &line(id, rules, &[contents], &uri, most));
        Ok(())
    }

    fn read_file(self: &Arc<Self>, id: &RequestId, rules: Rules, uri: String, most: usize) -> Result<(), ErrorData> {
        let Some(offered) = self.service().config().mcp.resources.clone() else { return Err(not_found(rules, &uri)) };
        let own = id.clone();
        let read = when_read(self.outbox().clone(), move || match files::read(&offered, &uri, most) {
            Ok(contents) => Ok(line(&own, rules, &[contents], &uri, most)),
            Err(FileError::NotFound) => Err(not_found(rules, &uri)),
            Err(error) => Err(ErrorData::internal_error(error.to_string(), Some(json!({ "uri": uri })))),
        });
        self.answer_later(id, read)
    }

    fn call_resource(self: &Arc<Self>, id: &RequestId, rules: Rules, params: ReadParams) -> Result<(), ErrorData> {
        let ReadParams { uri, responses, state, meta } = params;
        let found = self.service().registry.pick(|catalogue| matching(catalogue.ready_resources(), &uri));
        let (resource, values) = match found {
            None => return Err(not_found(rules, &uri)),
            Some((_, Match::Refused(name, wrong))) => {
                let what = format!("`{name}` in this address is refused: {wrong}");
                return Err(ErrorData::invalid_params(what, Some(json!({ "uri": uri }))));
            }
            Some((resource, Match::Values(values))) => (resource, values),
        };
        let given = values.iter().map(|(name, value)| (name.as_str(), value.clone()));
        let arguments = Some(converted(resource.input_schema(), given));
        let mime_type = match &resource.function().role {
            Role::Resource { mime_type, .. } => mime_type.clone(),
            _ => None,
        };
        let params = CallParams { name: resource.name.clone(), arguments, responses, state, meta };
        self.call(id, params, Shape::Resource(ResourceShape { uri, mime_type }))
    }
}

impl McpSession {
    /// The function of an address.
    pub(super) fn resource_of(&self, uri: &str) -> Option<Arc<Tool>> {
        let found = matching(self.service().registry.catalogue().ready_resources(), uri)?;
        matches!(found.1, Match::Values(_)).then_some(found.0)
    }
}

/// The resource of an address: one with exactly this address, else the first whose template matches.
fn matching<'t>(resources: impl Iterator<Item = &'t Arc<Tool>>, uri: &str) -> Option<(Arc<Tool>, Match)> {
    let mut first = None;
    for resource in resources {
        let Some(found) = resource.template().and_then(|template| template.matches(uri)) else { continue };
        if resource.uri() == Some(uri) {
            return Some((Arc::clone(resource), found));
        }
        first.get_or_insert_with(|| (Arc::clone(resource), found));
    }
    first
}

/// The description of a resource for clients.
struct About {
    name: String,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
    icons: Option<Vec<Icon>>,
}

/// An icon for clients.
pub(super) fn icons(tool: &Tool) -> Option<Vec<Icon>> {
    tool.icon.as_deref().map(|address| vec![Icon::new(address)])
}

/// The address of a resource or of a template, and what is known about it.
fn described(tool: &Tool, templates: bool) -> Option<(String, About)> {
    let Role::Resource { uri, mime_type, presented } = &tool.function().role else { return None };
    let is_template = tool.template()?.names().next().is_some();
    let about = || About {
        name: presented.name.clone().unwrap_or_else(|| tool.function().name.clone()),
        title: presented.title.clone(),
        description: tool.description().map(str::to_owned),
        mime_type: mime_type.clone(),
        icons: icons(tool),
    };
    (is_template == templates).then(|| (uri.clone(), about()))
}

fn resource(uri: String, about: About) -> Resource {
    let mut resource = Resource::new(uri, about.name);
    (resource.title, resource.description, resource.mime_type) = (about.title, about.description, about.mime_type);
    resource.icons = about.icons;
    resource
}

fn template(uri: String, about: About) -> ResourceTemplate {
    let mut template = ResourceTemplate::new(uri, about.name);
    (template.title, template.description, template.mime_type) = (about.title, about.description, about.mime_type);
    template.icons = about.icons;
    template
}

/// The line that answers the read of a function.
pub(super) fn answer(id: &RequestId, outcome: &Outcome, rules: Rules, shape: &ResourceShape, most: usize) -> Vec<u8> {
    match &outcome.ended {
        Ok(raw) => line(id, rules, &contents(raw.get(), shape), &shape.uri, most),
        Err(fault) => message::error(id, &failed(fault, rules, Some(&shape.uri))),
    }
}

fn line(id: &RequestId, rules: Rules, contents: &[ResourceContents], uri: &str, most: usize) -> Vec<u8> {
    let line = message::result(id, Cacheable::new(rules, json!({ "contents": contents })));
    if line.len() <= most { line } else { message::error(id, &too_long(uri, line.len(), most)) }
}

/// A result as contents: text and files are what they are, a list of them is several contents, and everything else is JSON.
fn contents(json: &str, shape: &ResourceShape) -> Vec<ResourceContents> {
    let whole = |mime_type: &str| {
        let kind = shape.mime_type.as_deref().unwrap_or(mime_type);
        ResourceContents::text(json, &shape.uri).with_mime_type(kind)
    };
    let value: Value = serde_json::from_str(json).unwrap_or_default();
    let items = match &value {
        Value::Array(items) if !items.is_empty() => items.iter().collect(),
        one => vec![one],
    };
    let contents = items.into_iter().map(|item| match item {
        Value::String(text) => {
            let kind = shape.mime_type.as_deref().unwrap_or("text/plain");
            Some(ResourceContents::text(text, &shape.uri).with_mime_type(kind))
        }
        Value::Object(object) => {
            let file = File::of(object)?;
            Some(file_contents(file.base64, file.mime_type, file.uri.unwrap_or(&shape.uri).to_owned()))
        }
        _ => None,
    });
    // A list of strings alone is data.
    let is_data = matches!(&value, Value::Array(items) if items.iter().all(Value::is_string));
    let contents: Option<Vec<_>> = contents.collect();
    contents.filter(|_| !is_data).unwrap_or_else(|| vec![whole("application/json")])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_becomes_contents() {
        let sent = |json: &str, mime_type: Option<&str>| {
            let shape = ResourceShape { uri: "a://b".to_owned(), mime_type: mime_type.map(str::to_owned) };
            json!(contents(json, &shape))
        };
        let text = |kind: &str, text: &str| json!({"uri": "a://b", "mimeType": kind, "text": text});
        let blob = json!({"uri": "a://b", "mimeType": "image/png", "blob": "iVBO"});
        let image = r#"{"mime_type":"image/png","base64":"iVBO"}"#;
        assert_eq!(sent("\"x\"", None), json!([text("text/plain", "x")]));
        assert_eq!(sent("\"x\"", Some("text/markdown")), json!([text("text/markdown", "x")]));
        assert_eq!(sent(image, None), json!([blob]));
        assert_eq!(sent(&format!("[\"x\",{image}]"), None), json!([text("text/plain", "x"), blob]));
        for data in ["{\"a\":36893488147419103233}", "[\"x\",\"y\"]", "[1]", "[]", "null", "7"] {
            assert_eq!(sent(data, None), json!([text("application/json", data)]), "exactly as it was");
        }
        let own = r#"{"mime_type":"text/csv","base64":"YSxi","uri":"a://c"}"#;
        assert_eq!(sent(own, None), json!([{"uri": "a://c", "mimeType": "text/csv", "text": "a,b"}]));
    }

    #[test]
    fn a_list_is_one_page_while_it_fits() {
        let items: Vec<String> = (0..100).map(|number| format!("{number:010}")).collect();
        let get =
            |cursor: Option<&str>, most| page("all", &items, &ListParams { cursor: cursor.map(str::to_owned) }, most);
        assert_eq!(get(None, 10_000).unwrap(), *json!({"all": items}).as_object().unwrap());
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let page = get(cursor.as_deref(), 300).unwrap();
            assert!(json!(page).to_string().len() < 350);
            seen.extend(page["all"].as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()));
            match page.get("nextCursor") {
                Some(next) => cursor = next.as_str().map(str::to_owned),
                None => break,
            }
        }
        assert_eq!(seen, items);
        for cursor in ["x", "-1", "101"] {
            assert_eq!(get(Some(cursor), 300).unwrap_err().code, ErrorCode::INVALID_PARAMS);
        }
    }
}
