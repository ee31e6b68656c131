//! hostler as an MCP server sees it: four requests, each handed on to dispatch; and word of changed tools.

use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, RequestMetaObject, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscriptionFilter,
};
use rmcp::service::{Peer, RequestContext, RoleServer, SubscriptionContext};
use tokio::sync::watch;

use super::answer;
use super::changes::Changes;
use super::hearing::{AskedLevel, Hearing};
use super::llm::ClientLlm;
use super::outbox::Outbox;
use crate::call::{CallRequest, CallService, Llm};
use crate::outcome::Outcome;
use crate::pool::Listener;
use crate::registry::Catalogue;

pub(super) struct Face {
    dispatcher: Arc<CallService>,
    level: AskedLevel,
    outbox: Outbox,
    /// Has seen every change that the client's last list shows. Held only to look.
    listed: Mutex<watch::Receiver<u64>>,
    /// Whether the session is over.
    over: watch::Sender<bool>,
}

impl Face {
    pub fn new(dispatcher: Arc<CallService>, outbox: Outbox) -> Self {
        let listed = Mutex::new(dispatcher.registry.announcements());
        Self { dispatcher, outbox, level: AskedLevel::default(), listed, over: watch::Sender::new(false) }
    }

    /// Lets go of everybody who waits for changes.
    pub fn end(&self) {
        self.over.send_replace(true);
    }

    /// The changes of the list of tools since the client last saw it: what comes between its list and its wish to hear of
    /// changes is not lost.
    pub fn changes(&self) -> Changes {
        Changes::new(self.listed.lock().clone(), self.outbox.clone(), self.over.subscribe())
    }

    /// The tools there are.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.dispatcher.registry.catalogue()
    }

    /// Whether results are answered in envelopes.
    pub fn wears_envelope(&self) -> bool {
        self.dispatcher.config.layer.mcp.wears_envelope()
    }

    /// A call as dispatch wants it, and who hears of it.
    pub fn request(
        &self,
        tool: String,
        arguments: JsonObject,
        meta: &RequestMetaObject,
        peer: &Peer<RoleServer>,
    ) -> (CallRequest, Option<Arc<Hearing>>) {
        let level = meta.log_level().or_else(|| self.level.get());
        let mut request = CallRequest::new(tool, arguments);
        let hearing =
            Hearing::new(peer.clone(), meta.get_progress_token(), level, request.tool.clone(), self.outbox.clone());
        if let Some(hearing) = &hearing {
            request.listener = Arc::clone(hearing) as Arc<dyn Listener>;
        }
        let capabilities = meta.client_capabilities().or_else(|| Some(peer.peer_info()?.capabilities.clone()));
        let samples = capabilities.is_some_and(|capabilities| capabilities.sampling.is_some());
        request.llm = samples.then(|| Arc::new(ClientLlm(peer.clone())) as Arc<dyn Llm>);
        (request, hearing)
    }

    /// Makes the call; its outcome comes after everything that was heard of it.
    pub async fn call(&self, request: CallRequest, hearing: Option<Arc<Hearing>>) -> Outcome {
        let outcome = self.dispatcher.call(request).await;
        if let Some(hearing) = hearing {
            hearing.told().await;
        }
        Arc::unwrap_or_clone(outcome)
    }
}

/// Shared with the express lane, which makes most calls.
pub(super) struct Handler(pub Arc<Face>);

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().enable_logging().build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("hostler", env!("CARGO_PKG_VERSION"));
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.0.dispatcher.registry.refresh_if_changed();
        self.0.listed.lock().mark_unchanged();
        self.0.dispatcher.keep_ready();
        // The tools are put in when the answer is written. One page: many clients never ask for a second.
        Ok(ListToolsResult::with_all_items(Vec::new()))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = params.arguments.unwrap_or_default();
        let (request, hearing) = self.0.request(params.name.into_owned(), arguments, &context.meta, &context.peer);
        // Boxed, because rmcp moves the future of a request several times before it runs, and this is a large one.
        let work = Box::pin(self.0.call(request, hearing));
        tokio::select! {
            outcome = work => answer::result(outcome, self.0.wears_envelope()).map(CallToolResponse::from),
            // The call goes with its future. The client that cancelled reads no answer.
            () = context.ct.cancelled() => Err(ErrorData::internal_error("CANCELLED: the client withdrew the call", None)),
        }
    }

    /// What rmcp has no type for: methods nobody knows, and requests of known methods in a shape nobody knows.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let wanted = match request.method.as_str() {
            "tools/call" => "{\"name\": string, \"arguments\"?: object}",
            "tools/list" => "{\"cursor\"?: string}",
            "logging/setLevel" => "{\"level\": \"debug\", \"info\", \"warning\", \"error\" …}",
            _ => return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None)),
        };
        Err(ErrorData::invalid_params(format!("the params of {} must be {wanted}", request.method), None))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        // rmcp leaves of it what the capabilities name.
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.0.changes();
        loop {
            let next = tokio::select! {
                next = changes.next() => next,
                () = context.cancelled() => None,
            };
            if next.is_none() {
                return Ok(());
            }
            // A subscription to something else is one that hears nothing.
            let _ = context.sink().notify_tool_list_changed().await;
        }
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.level.set(request.level);
        Ok(())
    }
}
