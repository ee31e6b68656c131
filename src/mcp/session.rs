//! One client: its revision, log level, list cursor and running calls. Every line that it sends is processed here.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rmcp::ErrorData;
use rmcp::model::{
    ErrorCode, InitializeRequestParams, InitializeResult, LoggingLevel, RequestId, RequestMetaObject,
    SubscriptionFilter,
};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::call::{self, CallParams, CallReply, LastTerms, Shape, Terms};
use super::client::{McpClient, Requests};
use super::large::{self, TooLong};
use super::lifecycle::{self, Era, Rules};
use super::message::{self, Incoming};
use super::notifier::Notifier;
use super::offered::Offered;
use super::open_requests::{OpenRequests, Running};
use super::resources::ListParams;
use super::result::{self, Form};
use super::rounds::{self, Continuation, Rounds};
use super::stored::StoredResults;
use super::subscription::{self, Changes};
use super::tools::Listing;
use super::watched::Subscribed;
use super::{prompts, resources, tools};
use crate::call::{CallRequest, CallService, Caller, ClientFeatures, Session};
use crate::config::mcp::Envelope;
use crate::config::tool::LargeResult;
use crate::outcome::{Cancelled, Canceller, Outcome};
use crate::process::Outbox;
use crate::registry::{Catalogue, RoleKind};

/// A session, shared with its running calls.
pub(super) struct McpSession {
    session: Session,
    outbox: Outbox,
    /// Our requests to the client.
    requests: Requests,
    /// Calls that asked the client. Locked only briefly, and before `running`.
    rounds: Mutex<Rounds>,
    /// Itself, for the clients of its calls.
    own: Weak<Self>,
    /// Locked only briefly.
    state: Mutex<State>,
    /// Requests without an answer. Locked only briefly.
    running: Mutex<OpenRequests>,
    /// Open subscriptions, and answers that are being made. Locked only briefly.
    tasks: Mutex<JoinSet<()>>,
    /// Marks the changes that the client's last lists contained. Locked only briefly.
    listed: [Mutex<watch::Receiver<u64>>; 3],
    /// Resources that the client watches. Locked only briefly.
    subscribed: Mutex<Subscribed>,
    /// Offered files that the client was sent a list of. Locked only briefly.
    offered: Mutex<Offered>,
    /// Results that were too large for their answers.
    results: StoredResults,
    /// Whether the session is over.
    over: watch::Sender<bool>,
}

struct State {
    era: Era,
    level: Option<LoggingLevel>,
    /// The caller of requests that do not name another.
    caller: Arc<Caller>,
    last: LastTerms,
}

impl State {
    fn terms(&mut self, session: &Weak<McpSession>, meta: RequestMetaObject) -> Result<Terms, Refused> {
        if let Some(known) = self.last.known(&meta) {
            return Ok(known);
        }
        let rules = self.era.admit("tools/call", &meta)?;
        let caller = call::caller(&self.era, &self.caller, &meta);
        let client = self.era.abilities(&meta).map(|abilities| {
            let session = Weak::clone(session);
            Arc::new(McpClient { session, abilities, rules }) as Arc<dyn ClientFeatures>
        });
        let terms = Terms { rules, caller, client, level: meta.log_level().or(self.level) };
        self.last.remember(meta, terms.clone());
        Ok(terms)
    }
}

/// What is listed.
pub(super) const LISTS: [RoleKind; 3] = [RoleKind::Tool, RoleKind::Resource, RoleKind::Prompt];

/// The reason for a refusal.
pub(super) type Refused = ErrorData;

impl McpSession {
    pub fn new(service: Arc<CallService>, outbox: Outbox) -> Arc<Self> {
        let announcements = LISTS.map(|list| Mutex::new(service.registry.announcements(list)));
        let results = StoredResults::new(&service.config.environment);
        let session = Session::open(service);
        let caller = Arc::new(Caller { session: session.id(), ..Caller::default() });
        Arc::new_cyclic(|own| Self {
            requests: Requests::new(outbox.clone()),
            rounds: Mutex::new(Rounds::new()),
            own: Weak::clone(own),
            subscribed: Mutex::default(),
            offered: Mutex::default(),
            outbox,
            state: Mutex::new(State { era: Era::Undecided, level: None, caller, last: LastTerms::default() }),
            running: Mutex::default(),
            tasks: Mutex::default(),
            listed: announcements,
            results,
            over: watch::Sender::new(false),
            session,
        })
    }

    pub fn service(&self) -> &CallService {
        self.session.service()
    }

    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Our requests to the client.
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// The calls that asked the client.
    pub fn rounds(&self) -> &Mutex<Rounds> {
        &self.rounds
    }

    /// The resources that the client watches.
    pub fn subscribed(&self) -> &Mutex<Subscribed> {
        &self.subscribed
    }

    /// What the client was sent of offered files.
    pub fn offered(&self) -> &Mutex<Offered> {
        &self.offered
    }

    /// The requests without an answer.
    pub fn open_requests(&self) -> &Mutex<OpenRequests> {
        &self.running
    }

    /// The session's stored results.
    pub fn results(&self) -> &StoredResults {
        &self.results
    }

    /// Changes of a list since the client's last list, so that a change between that list and a subscription is
    /// not lost.
    pub fn changes(&self, list: RoleKind) -> Changes {
        Changes::new(self.listed[list as usize].lock().clone(), self.outbox.clone(), self.over.subscribe())
    }

    /// The catalogue as the files are now, which a list of these shows to the client.
    pub fn catalogue_for(&self, list: RoleKind) -> Arc<Catalogue> {
        let service = self.service();
        service.registry.refresh_if_changed();
        self.listed[list as usize].lock().mark_unchanged();
        service.keep_ready();
        service.registry.catalogue()
    }

    /// Processes a line.
    pub fn take(self: &Arc<Self>, line: &[u8]) {
        match message::parse(line) {
            Incoming::Request { id, method, params } => {
                if let Err(error) = self.request(&id, &method, params, line) {
                    self.outbox.send(&message::error(&id, &error));
                }
            }
            Incoming::Notification { method, params } => self.notified(&method, params),
            Incoming::Response { id, answer } => self.requests.answered(&id, answer),
            Incoming::Unreadable(answer) => self.outbox.send(&answer),
            Incoming::Noise => tracing::debug!(bytes = line.len(), "a line that is not a message"),
        }
    }

    fn request(
        self: &Arc<Self>,
        id: &RequestId,
        method: &str,
        params: Option<&RawValue>,
        line: &[u8],
    ) -> Result<(), Refused> {
        match method {
            "tools/call" => {
                let params = read(method, params, line)?;
                return self.call(id, params, Shape::Tool);
            }
            "resources/read" => return self.read_resource(id, read(method, params, line)?),
            "prompts/get" => return self.get_prompt(id, read(method, params, line)?),
            "initialize" if !is_modern(method, params, line)? => {
                let result = self.initialize(read(method, params, line)?);
                self.outbox.send(&message::result(id, result));
                return Ok(());
            }
            // Allowed before a session is open.
            "ping" if !matches!(self.state.lock().era, Era::Inline) => {
                self.outbox.send_now(&message::result(id, json!({})));
                return Ok(());
            }
            _ => {}
        }
        let Meta { meta } = read(method, params, line)?;
        let rules = self.state.lock().era.admit(method, &meta)?;
        match (method, rules) {
            ("server/discover", _) => self.outbox.send(&message::result(id, lifecycle::discover(self.about()))),
            ("tools/list", _) => self.list(id, rules, &read(method, params, line)?),
            ("resources/list", _) => self.list_resources(id, rules, read(method, params, line)?)?,
            ("resources/templates/list", _) => self.list_templates(id, rules, &read(method, params, line)?)?,
            ("prompts/list", _) => self.list_prompts(id, rules, &read(method, params, line)?)?,
            ("completion/complete", _) => self.complete(id, rules, &read(method, params, line)?)?,
            ("resources/subscribe", Rules::Legacy) => self.subscribe_to(id, read(method, params, line)?)?,
            ("resources/unsubscribe", Rules::Legacy) => self.unsubscribe_from(id, &read(method, params, line)?),
            ("logging/setLevel", Rules::Legacy) => {
                let Level { level } = read(method, params, line)?;
                let mut state = self.state.lock();
                (state.level, state.last) = (Some(level), LastTerms::default());
                drop(state);
                self.outbox.send(&message::result(id, json!({})));
            }
            ("subscriptions/listen", Rules::Modern) => {
                let Listen { notifications } = read(method, params, line)?;
                self.subscribe(id, notifications)?;
            }
            _ => return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method.to_owned(), None)),
        }
        Ok(())
    }

    fn initialize(&self, hello: InitializeRequestParams) -> InitializeResult {
        let mut state = self.state.lock();
        let is_first = matches!(state.era, Era::Undecided);
        let result = state.era.initialize(hello, self.about());
        let client = state.era.client_name(&RequestMetaObject::default());
        tracing::info!(session = self.session.id().0, client, revision = %result.protocol_version, "session opened");
        state.caller = Arc::new(Caller { session: self.session.id(), client, ..Caller::default() });
        state.last = LastTerms::default();
        drop(state);
        if is_first {
            for list in LISTS {
                subscription::tell_unasked(list, self.outbox.clone(), self.changes(list));
            }
        }
        result
    }

    fn list(&self, id: &RequestId, rules: Rules, params: &ListParams) {
        let most = self.service().config.mcp.max_result.0;
        let listing = Listing { rules, envelope: self.has_envelope(), cursor: params.cursor.as_deref(), most };
        self.outbox.send(&tools::line(id, &self.catalogue_for(RoleKind::Tool), &listing));
    }

    /// The rules for a request with this metadata.
    pub fn rules(&self, meta: &RequestMetaObject) -> Result<Rules, Refused> {
        self.state.lock().terms(&self.own, meta.clone()).map(|terms| terms.rules)
    }

    /// Starts a call, which is answered in this shape.
    pub fn call(self: &Arc<Self>, id: &RequestId, params: CallParams, shape: Shape) -> Result<(), Refused> {
        let CallParams { name, arguments, responses, state, meta } = params;
        let (key, progress) = (call::key(&meta), meta.get_progress_token());
        let Terms { rules, caller, client, level } = self.state.lock().terms(&self.own, meta)?;
        let responses = responses.filter(|_| rules == Rules::Modern);
        responses.as_ref().map_or(Ok(()), rounds::check)?;
        let number = self.running.lock().accept(id)?;
        let notifier = Notifier::new(self.outbox.clone(), progress, level, &name);
        let role = shape.role();
        let reply = CallReply { session: Arc::clone(self), id: id.clone(), number, rules, shape, notifier };
        if let Some(state) = state.filter(|_| rules == Rules::Modern) {
            let given = arguments.unwrap_or_default();
            let (tool, arguments) = match self.service().prepared(role, &name, given.clone()) {
                Ok((tool, arguments)) => (tool, serde_json::from_str(arguments.get()).unwrap_or_default()),
                Err(_) => (name, serde_json::Value::Object(given)),
            };
            let request = Continuation { tool, arguments };
            let continued = self.continue_call(&request, &state, responses.unwrap_or_default(), reply);
            return continued.inspect_err(|_| {
                self.running.lock().remove(id, number);
            });
        }
        // Every field is named: the defaults would allocate.
        let request = CallRequest {
            tool: name,
            arguments: arguments.unwrap_or_default(),
            timeout: None,
            caller,
            key,
            role,
            listener: Arc::new(reply),
            client,
            at_most: None,
            chain: Vec::new(),
            outer: None,
        };
        let handle = self.session.start(request);
        if rules == Rules::Modern {
            self.begun(&handle, responses);
        }
        self.running.lock().set(id, number, Running::Call(handle));
        Ok(())
    }

    /// Answers a call, unless the client cancelled it.
    pub fn answer(self: &Arc<Self>, id: &RequestId, number: u64, outcome: &Arc<Outcome>, rules: Rules, shape: &Shape) {
        let (is_wanted, is_last) = {
            let mut running = self.running.lock();
            (running.remove(id, number), running.is_empty())
        };
        if !is_wanted {
            return;
        }
        let most = self.service().config.mcp.max_result.0;
        let line = match shape {
            Shape::Tool => match self.answer_line((id, number), outcome, rules, most) {
                Some(line) => line,
                None => return,
            },
            Shape::Resource(shape) => resources::answer(id, outcome, rules, shape, most),
            Shape::Prompt { description } => prompts::answer(id, outcome, rules, description.as_deref(), most),
        };
        // While other calls run, answers are likely to be written together.
        if is_last { self.outbox.send_now(&line) } else { self.outbox.send(&line) }
    }

    /// The answer to `tools/call`; `None` if a thread makes and sends it, because much of it is stored.
    fn answer_line(
        self: &Arc<Self>,
        (id, number): (&RequestId, u64),
        outcome: &Arc<Outcome>,
        rules: Rules,
        most: usize,
    ) -> Option<Vec<u8>> {
        let tool = || self.service().registry.catalogue().resolve(&outcome.tool).ok().cloned();
        let is_promised = || tool().is_some_and(|tool| tool.advertised().is_some());
        let form = Form { rules, envelope: self.has_envelope(), is_promised: &is_promised };
        let large = || tool().map_or(LargeResult::Error, |tool| tool.entry.settings.large.value);
        let mut length = None;
        if !large::is_too_long(outcome, most) || large() == LargeResult::Error {
            let line = result::line(id, outcome, &outcome.metadata, &form);
            if line.len() <= most {
                return Some(line);
            }
            length = Some(line.len());
        }
        let too_long = TooLong { length, most, large: large() };
        if too_long.large == LargeResult::Link && outcome.ended.is_ok() {
            let answer = large::send_stored(Arc::clone(self), id.clone(), Arc::clone(outcome), &form, too_long);
            self.spawn(id, number, answer);
            return None;
        }
        Some(large::line(id, outcome, &form, &too_long, &self.results))
    }

    /// Whether a request has neither been answered nor cancelled.
    pub fn is_wanted(&self, id: &RequestId, number: u64) -> bool {
        self.running.lock().has(id, number)
    }

    fn subscribe(self: &Arc<Self>, id: &RequestId, requested: SubscriptionFilter) -> Result<(), Refused> {
        let number = self.running.lock().accept(id)?;
        let listen = subscription::listen(Arc::clone(self), id.clone(), requested);
        self.spawn(id, number, listen);
        Ok(())
    }

    /// Answers a request with a line that takes a while, unless the client cancels it.
    pub fn answer_later(
        self: &Arc<Self>,
        id: &RequestId,
        line: impl Future<Output = Result<Vec<u8>, Refused>> + Send + 'static,
    ) -> Result<(), Refused> {
        let number = self.running.lock().accept(id)?;
        let (session, own) = (Arc::clone(self), id.clone());
        let answer = async move {
            let line = line.await.unwrap_or_else(|error| message::error(&own, &error));
            if session.running.lock().remove(&own, number) {
                session.outbox.send(&line);
            }
        };
        self.spawn(id, number, answer);
        Ok(())
    }

    fn spawn(&self, id: &RequestId, number: u64, task: impl Future<Output = ()> + Send + 'static) {
        let running = {
            let mut open = self.tasks.lock();
            // Cancelled ones would stay in the set until the session ends.
            while open.try_join_next().is_some() {}
            open.spawn(task)
        };
        self.running.lock().set(id, number, Running::Task(running));
    }

    fn notified(&self, method: &str, params: Option<&RawValue>) {
        if method != "notifications/cancelled" {
            return;
        }
        let Ok(Cancel { request_id, reason }) = message::params(params) else { return };
        match self.running.lock().cancel(&request_id) {
            Some(Running::Call(handle)) => handle.cancel(Cancelled { by: Canceller::Client, reason }),
            Some(Running::Task(task)) => task.abort(),
            Some(Running::Accepted) | None => {}
        }
    }

    /// The description of this server for clients.
    pub fn about(&self) -> InitializeResult {
        lifecycle::about(&self.service().config.mcp)
    }

    fn has_envelope(&self) -> bool {
        self.service().config.mcp.envelope == Envelope::ToolSuccess
    }

    /// Waits until no call of the session is running, ended subscriptions are answered and the client has read every answer.
    pub async fn drained(&self) {
        self.session.idle().await;
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        while tasks.join_next().await.is_some() {}
        self.outbox.caught_up().await;
    }

    /// Ends and answers all subscriptions.
    pub fn end_subscriptions(&self) {
        self.over.send_replace(true);
    }

    /// Cancels every call of the session.
    pub fn cancel_all(&self, why: &Cancelled) {
        self.session.cancel_all(why);
    }
}

/// Whether the metadata of a request names a revision without a handshake.
fn is_modern(method: &str, params: Option<&RawValue>, line: &[u8]) -> Result<bool, Refused> {
    let Meta { meta } = read(method, params, line)?;
    Ok(meta.protocol_version().is_some_and(|version| !version.has_initialize()))
}

#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "_meta", default, deserialize_with = "call::or_default")]
    meta: RequestMetaObject,
}

#[derive(Deserialize)]
struct Level {
    level: LoggingLevel,
}

#[derive(Deserialize)]
struct Listen {
    notifications: SubscriptionFilter,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cancel {
    request_id: RequestId,
    #[serde(default)]
    reason: Option<String>,
}

/// The parameters of a request, or an error: invalid JSON, or the wrong shape.
fn read<'a, T: Deserialize<'a>>(method: &str, params: Option<&'a RawValue>, line: &[u8]) -> Result<T, Refused> {
    message::params(params).map_err(|error| {
        if crate::call::is_too_deep(&error) {
            return ErrorData::parse_error(message::too_deep(line), None);
        }
        if error.is_syntax() || error.is_eof() {
            let text =
                format!("this message is not valid JSON: {error}; use whole characters and numbers that fit a double");
            return ErrorData::parse_error(text, None);
        }
        let shape = match method {
            "tools/call" => "{\"name\": string, \"arguments\"?: object, \"_meta\"?: object}",
            "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => "{\"cursor\"?: string}",
            "resources/read" => "{\"uri\": string}",
            "prompts/get" => "{\"name\": string, \"arguments\"?: {name: string}}",
            "completion/complete" => "{\"ref\": {\"type\": \"ref/prompt\", \"name\"} or {\"type\": \"ref/resource\", \"uri\"}, \"argument\": {\"name\", \"value\"}}",
            "logging/setLevel" => "{\"level\": \"debug\", \"info\", \"warning\", \"error\" …}",
            _ => return ErrorData::invalid_params(format!("the params of {method} do not fit: {error}"), None),
        };
        ErrorData::invalid_params(format!("the params of {method} must be {shape}"), None)
    })
}
