//! One client: its revision, log level, list cursor and running calls. Every line that it sends is processed here.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rmcp::ErrorData;
use rmcp::model::{ErrorCode, InitializeRequestParams, InitializeResult, LoggingLevel, RequestId, RequestMetaObject};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::call::{self, LastTerms, Shape, Terms};
use super::client::{McpClient, Requests};
use super::lifecycle::{self, Era, Rules};
use super::message::{self, Incoming};
use super::offered::Offered;
use super::open_requests::{OpenRequests, Running};
use super::params::{Cancel, Level, Listen, Meta, is_modern, read};
use super::recorder::Recorder;
use super::resources::ListParams;
use super::round_trips::RoundTrips;
use super::serve::ClientInfo;
use super::stored::StoredResults;
use super::subscription::{self, Changes};
use super::tasks::{self, listens_to_tasks, needs_tasks};
use super::tools;
use super::tools::Listing;
use super::watched::Subscribed;
use crate::call::{CallService, Caller, ClientFeatures, Session};
use crate::config::mcp::Envelope;
use crate::outcome::{Cancelled, Canceller};
use crate::process::Outbox;
use crate::registry::{Catalogue, RoleKind};

/// A session, shared with its running calls.
pub(super) struct McpSession {
    session: Session,
    outbox: Outbox,
    /// Our requests to the client.
    requests: Requests,
    /// Calls that asked the client. Locked only briefly, and before `running`.
    round_trips: Mutex<RoundTrips>,
    /// Itself, for the clients of its calls.
    own: Weak<Self>,
    /// Locked only briefly.
    state: Mutex<State>,
    /// Requests without an answer. Locked only briefly.
    running: Arc<Mutex<OpenRequests>>,
    /// Open subscriptions, and answers that are being made. Locked only briefly.
    tasks: Mutex<JoinSet<()>>,
    /// The revisions of the client's last lists.
    listed: [AtomicU64; 3],
    /// Resources that the client watches. Locked only briefly.
    subscribed: Mutex<Subscribed>,
    /// Offered files that the client was sent a list of. Locked only briefly.
    offered: Mutex<Offered>,
    /// Results that were too large for their answers.
    results: StoredResults,
    /// Records the session, if another process may continue it.
    recorder: Option<Recorder>,
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
        let abilities = self.era.abilities(&meta);
        let client = abilities.map(|abilities| {
            let session = Weak::clone(session);
            Arc::new(McpClient { session, abilities, rules, task: None }) as Arc<dyn ClientFeatures>
        });
        let knows_tasks = tasks::knows_tasks(&meta);
        let terms = Terms { rules, caller, client, level: meta.log_level().or(self.level), knows_tasks, abilities };
        self.last.remember(meta, terms.clone());
        Ok(terms)
    }
}

/// Where the ids of our requests begin in a session that another process may have served: a late answer to one of its questions
/// must not be taken for the answer to ours.
fn first_id() -> u64 {
    let mut bytes = [0; 4];
    let _ = getrandom::fill(&mut bytes);
    u64::from(u32::from_le_bytes(bytes)) << 16
}

/// The reason for a refusal.
pub(super) type Refused = ErrorData;

impl McpSession {
    pub fn new(session: Session, outbox: Outbox, recorder: Option<Recorder>) -> Arc<Self> {
        let service = Arc::clone(session.service());
        let listed = RoleKind::ALL.map(|list| AtomicU64::new(*service.registry.announcements(list).borrow()));
        let results = StoredResults::new(&service.config().environment);
        if let Some(journal) = &service.journal {
            outbox.follow(Arc::clone(journal) as _);
        }
        let caller = Arc::new(session.caller());
        Arc::new_cyclic(|own| Self {
            requests: Requests::new(outbox.clone(), recorder.as_ref().map_or(0, |_| first_id())),
            round_trips: Mutex::new(RoundTrips::new()),
            own: Weak::clone(own),
            subscribed: Mutex::default(),
            offered: Mutex::default(),
            outbox,
            state: Mutex::new(State { era: Era::Undecided, level: None, caller, last: LastTerms::default() }),
            running: Arc::default(),
            tasks: Mutex::default(),
            listed,
            results,
            recorder,
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
    pub fn round_trips(&self) -> &Mutex<RoundTrips> {
        &self.round_trips
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
    pub fn open_requests(&self) -> &Arc<Mutex<OpenRequests>> {
        &self.running
    }

    /// What applies to a call with this metadata.
    pub fn terms(&self, meta: RequestMetaObject) -> Result<Terms, Refused> {
        self.state.lock().terms(&self.own, meta)
    }

    /// The session as calls know it.
    pub fn call_session(&self) -> &Session {
        &self.session
    }

    /// Open subscriptions, and answers that are being made.
    pub fn tasks(&self) -> &Mutex<JoinSet<()>> {
        &self.tasks
    }

    /// The session's stored results.
    pub fn results(&self) -> &StoredResults {
        &self.results
    }

    /// Changes of a list since the client's last list, so that a change between that list and a subscription is
    /// not lost.
    pub fn changes(&self, list: RoleKind) -> Changes {
        let known = self.listed[list as usize].load(Ordering::Relaxed);
        let announced = self.service().registry.announcements(list);
        Changes::new(announced, known, self.outbox.clone(), self.over.subscribe())
    }

    /// The catalogue as the files are now, which a list of these shows to the client.
    pub fn catalogue_for(&self, list: RoleKind) -> Arc<Catalogue> {
        let service = self.service();
        let (catalogue, revision) = service.registry.listed(list);
        self.listed[list as usize].fetch_max(revision, Ordering::Relaxed);
        service.keep_ready();
        catalogue
    }

    /// Answers a request.
    pub fn reply(&self, id: &RequestId, line: &[u8]) {
        self.reply_by(id, line, Outbox::send);
    }

    /// Answers a request at once: probably nothing else follows.
    pub fn reply_now(&self, id: &RequestId, line: &[u8]) {
        self.reply_by(id, line, Outbox::send_now);
    }

    fn reply_by(&self, id: &RequestId, line: &[u8], send: impl Fn(&Outbox, &[u8])) {
        match &self.recorder {
            None => send(&self.outbox, line),
            Some(recorder) if recorder.is_awaited(id) => {
                send(&self.outbox, line);
                recorder.answered(id, &self.outbox);
            }
            Some(_) => {}
        }
    }

    /// Records the session, if another process may continue it.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_ref()
    }

    /// How the session began.
    pub fn era(&self) -> Era {
        self.state.lock().era.clone()
    }

    /// The session's number.
    pub fn id(&self) -> u64 {
        self.session.id().0
    }

    /// Processes a line.
    pub fn take(self: &Arc<Self>, line: &[u8]) {
        match message::parse(line) {
            Incoming::Request { id, method, params } => {
                if self.recorder.as_ref().is_some_and(|recorder| !recorder.begin(&id, &method, line)) {
                    self.reply(&id, &message::unrecorded(&id));
                    return;
                }
                if let Err(error) = self.request(&id, &method, params, line) {
                    self.reply(&id, &message::error(&id, &error));
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
                self.reply(id, &message::result(id, result));
                return Ok(());
            }
            // Allowed before a session is open.
            "ping" if !matches!(self.state.lock().era, Era::Inline) => {
                self.reply_now(id, &message::result(id, json!({})));
                return Ok(());
            }
            _ => {}
        }
        let Meta { meta } = read(method, params, line)?;
        let rules = self.state.lock().era.admit(method, &meta)?;
        match (method, rules) {
            ("server/discover", _) => {
                self.reply(id, &message::result(id, lifecycle::discover(self.about(), self.offers_tasks())));
            }
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
                self.reply(id, &message::result(id, json!({})));
            }
            ("subscriptions/listen", Rules::Modern) => {
                let Listen { notifications } = read(method, params, line)?;
                if listens_to_tasks(params) && !tasks::knows_tasks(&meta) {
                    return Err(needs_tasks("a subscription to tasks"));
                }
                self.subscribe(id, notifications)?;
            }
            ("tasks/get" | "tasks/update" | "tasks/cancel", Rules::Modern) if self.offers_tasks() => {
                self.on_task(id, method, &meta, read(method, params, line)?)?;
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
        state.caller = Arc::new(Caller { client, ..self.session.caller() });
        state.last = LastTerms::default();
        drop(state);
        if is_first {
            for list in RoleKind::ALL {
                subscription::tell_unasked(list, self.outbox.clone(), self.changes(list));
            }
        }
        result
    }

    fn list(&self, id: &RequestId, rules: Rules, params: &ListParams) {
        let most = self.service().config().mcp.max_result.0;
        let listing = Listing { rules, envelope: self.has_envelope(), cursor: params.cursor.as_deref(), most };
        self.reply(id, &tools::line(id, &self.catalogue_for(RoleKind::Tool), &listing));
    }

    /// The rules for a request with this metadata.
    pub fn rules(&self, meta: &RequestMetaObject) -> Result<Rules, Refused> {
        self.state.lock().terms(&self.own, meta.clone()).map(|terms| terms.rules)
    }

    fn notified(&self, method: &str, params: Option<&RawValue>) {
        if method != "notifications/cancelled" {
            return;
        }
        let Ok(Cancel { request_id, reason }) = message::params(params) else { return };
        let cancelled = self.running.lock().cancel(&request_id);
        if let (Some(recorder), Some(_)) = (&self.recorder, &cancelled) {
            recorder.answered(&request_id, &self.outbox);
        }
        match cancelled {
            Some(Running::Call(handle)) => handle.cancel(Cancelled { by: Canceller::Client, reason }),
            Some(Running::Task(task)) => task.abort(),
            Some(Running::Accepted) | None => {}
        }
    }

    /// The description of this server for clients.
    pub fn about(&self) -> InitializeResult {
        lifecycle::about(&self.service().config().mcp)
    }

    /// What is known of the client.
    pub fn info(&self) -> ClientInfo {
        ClientInfo { client: self.state.lock().caller.client.clone(), running: self.session.running() }
    }

    pub fn has_envelope(&self) -> bool {
        self.service().config().mcp.envelope == Envelope::ToolSuccess
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
