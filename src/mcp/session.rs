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

use super::call::{self, CallParams, CallReply, LastTerms, Terms};
use super::client::{McpClient, Requests};
use super::large::{self, Limit};
use super::lifecycle::{self, Era, Rules};
use super::message::{self, Incoming};
use super::notifier::Notifier;
use super::open_requests::{OpenRequests, Running};
use super::resources::Cacheable;
use super::result::{self, Form};
use super::rounds::{self, Rounds};
use super::stored::StoredResults;
use super::subscription::{self, Changes};
use super::tools;
use crate::call::{CallRequest, CallService, Caller, ClientFeatures, Session};
use crate::config::mcp::Envelope;
use crate::config::tool::LargeResult;
use crate::outcome::{Cancelled, Canceller, Outcome};
use crate::process::Outbox;

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
    /// Open subscriptions. Locked only briefly.
    listening: Mutex<JoinSet<()>>,
    /// Marks the changes that the client's last list contained. Locked only briefly.
    listed: Mutex<watch::Receiver<u64>>,
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

/// The reason for a refusal.
pub(super) type Refused = ErrorData;

impl McpSession {
    pub fn new(service: Arc<CallService>, outbox: Outbox) -> Arc<Self> {
        let announcements = service.registry.announcements();
        let results = StoredResults::new(&service.config.environment);
        let session = Session::open(service);
        let caller = Arc::new(Caller { session: session.id(), ..Caller::default() });
        Arc::new_cyclic(|own| Self {
            requests: Requests::new(outbox.clone()),
            rounds: Mutex::new(Rounds::new()),
            own: Weak::clone(own),
            outbox,
            state: Mutex::new(State { era: Era::Undecided, level: None, caller, last: LastTerms::default() }),
            running: Mutex::default(),
            listening: Mutex::default(),
            listed: Mutex::new(announcements),
            results,
            over: watch::Sender::new(false),
            session,
        })
    }

    fn service(&self) -> &CallService {
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

    /// The requests without an answer.
    pub fn open_requests(&self) -> &Mutex<OpenRequests> {
        &self.running
    }

    /// The session's stored results.
    pub fn results(&self) -> &StoredResults {
        &self.results
    }

    /// Changes of the list of tools since the client's last list, so that a change between that list and a subscription is
    /// not lost.
    pub fn changes(&self) -> Changes {
        Changes::new(self.listed.lock().clone(), self.outbox.clone(), self.over.subscribe())
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
                return self.call(id, params);
            }
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
            ("tools/list", _) => self.list(id, rules),
            ("resources/read", _) => self.read_resource(id, rules, &read(method, params, line)?)?,
            ("resources/list", _) => {
                self.outbox.send(&message::result(id, Cacheable::new(rules, json!({"resources": []}))));
            }
            ("resources/templates/list", _) => {
                self.outbox.send(&message::result(id, Cacheable::new(rules, json!({"resourceTemplates": []}))));
            }
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
            subscription::tell_unasked(self.outbox.clone(), self.changes());
        }
        result
    }

    fn list(&self, id: &RequestId, rules: Rules) {
        self.service().registry.refresh_if_changed();
        self.listed.lock().mark_unchanged();
        self.service().keep_ready();
        let line = tools::line(id, &self.service().registry.catalogue(), rules, self.has_envelope());
        self.outbox.send(&line);
    }

    fn call(self: &Arc<Self>, id: &RequestId, params: CallParams) -> Result<(), Refused> {
        let CallParams { name, arguments, responses, state, meta } = params;
        let (key, progress) = (call::key(&meta), meta.get_progress_token());
        let Terms { rules, caller, client, level } = self.state.lock().terms(&self.own, meta)?;
        let responses = responses.filter(|_| rules == Rules::Modern);
        responses.as_ref().map_or(Ok(()), rounds::check)?;
        let number = self.running.lock().accept(id)?;
        let notifier = Notifier::new(self.outbox.clone(), progress, level, &name);
        let reply = CallReply { session: Arc::clone(self), id: id.clone(), number, rules, notifier };
        if let Some(state) = state.filter(|_| rules == Rules::Modern) {
            let prepared = self.service().prepared(&name, arguments.unwrap_or_default());
            let prepared = prepared.map_err(|fault| ErrorData::invalid_params(fault.message, None));
            let continued = prepared.and_then(|(tool, arguments)| {
                self.continue_call(&tool, &arguments, &state, responses.unwrap_or_default(), reply)
            });
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
            listener: Arc::new(reply),
            client,
            at_most: None,
            chain: Vec::new(),
            outer: None,
        };
        let handle = self.session.start(request);
        if let Some(given) = responses {
            self.rounds.lock().give(handle.id(), given);
        }
        self.running.lock().set(id, number, Running::Call(handle));
        Ok(())
    }

    /// Answers a call, unless the client cancelled it.
    pub fn answer(&self, id: &RequestId, number: u64, outcome: &Outcome, rules: Rules) {
        let (is_wanted, is_last) = {
            let mut running = self.running.lock();
            (running.remove(id, number), running.is_empty())
        };
        if !is_wanted {
            return;
        }
        let line = self.answer_line(id, outcome, rules);
        // While other calls run, answers are likely to be written together.
        if is_last { self.outbox.send_now(&line) } else { self.outbox.send(&line) }
    }

    fn answer_line(&self, id: &RequestId, outcome: &Outcome, rules: Rules) -> Vec<u8> {
        let tool = || self.service().registry.catalogue().resolve(&outcome.tool).ok().cloned();
        let is_promised = || tool().is_some_and(|tool| tool.advertised().is_some());
        let form = Form { rules, envelope: self.has_envelope(), is_promised: &is_promised };
        let line = result::line(id, outcome, &outcome.metadata, &form);
        let most = self.service().config.mcp.max_result.0;
        if line.len() <= most {
            return line;
        }
        let length = line.len();
        drop(line);
        let large = tool().map_or(LargeResult::Error, |tool| tool.entry.settings.large.value);
        large::line(id, outcome, &form, &Limit { most, large, results: &self.results }, length)
    }

    /// Whether a request has neither been answered nor cancelled.
    pub fn is_wanted(&self, id: &RequestId, number: u64) -> bool {
        self.running.lock().has(id, number)
    }

    fn subscribe(self: &Arc<Self>, id: &RequestId, requested: SubscriptionFilter) -> Result<(), Refused> {
        let number = self.running.lock().accept(id)?;
        let listen = subscription::listen(Arc::clone(self), id.clone(), requested);
        let listening = {
            let mut open = self.listening.lock();
            // Cancelled ones would stay in the set until the session ends.
            while open.try_join_next().is_some() {}
            open.spawn(listen)
        };
        self.running.lock().set(id, number, Running::Subscription(listening));
        Ok(())
    }

    fn notified(&self, method: &str, params: Option<&RawValue>) {
        if method != "notifications/cancelled" {
            return;
        }
        let Ok(Cancel { request_id, reason }) = message::params(params) else { return };
        match self.running.lock().cancel(&request_id) {
            Some(Running::Call(handle)) => handle.cancel(Cancelled { by: Canceller::Client, reason }),
            Some(Running::Subscription(listening)) => listening.abort(),
            Some(Running::Accepted) | None => {}
        }
    }

    /// What clients are told about this server.
    pub fn about(&self) -> InitializeResult {
        lifecycle::about(&self.service().config.mcp)
    }

    fn has_envelope(&self) -> bool {
        self.service().config.mcp.envelope == Envelope::ToolSuccess
    }

    /// Waits until no call of the session is running, ended subscriptions are answered and the client has read every answer.
    pub async fn drained(&self) {
        self.session.idle().await;
        let mut listening = std::mem::take(&mut *self.listening.lock());
        while listening.join_next().await.is_some() {}
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
            "tools/list" | "resources/list" | "resources/templates/list" => "{\"cursor\"?: string}",
            "resources/read" => "{\"uri\": string}",
            "logging/setLevel" => "{\"level\": \"debug\", \"info\", \"warning\", \"error\" …}",
            _ => return ErrorData::invalid_params(format!("the params of {method} do not fit: {error}"), None),
        };
        ErrorData::invalid_params(format!("the params of {method} must be {shape}"), None)
    })
}
