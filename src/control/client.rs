//! One client of the control face: what it may do, its session, and the way back to it.

use std::sync::Arc;

use jsonrpsee::Methods;
use jsonrpsee::core::RegisterMethodError;
use serde_json::value::RawValue;

use super::face::Control;
use super::methods::methods_of;
use super::questions::{Person, Questions};
use super::refusals::no_session;
use super::started::Started;
use super::table::{Answer, Scope};
use crate::call::{CallService, ClientFeatures, Session};
use crate::mcp::ClientInfo;
use crate::process::Outbox;
use crate::protocol::TraceContext;

/// The name of the command line, and of programs that do not say theirs, as a client.
pub(super) const NAME: &str = "hostler";

/// A client of the control face.
pub struct Client {
    control: Arc<Control>,
    /// In which it calls tools. A connection that only steers has none.
    session: Option<Session>,
    /// The way back to it; none where each request is sent for itself.
    back: Option<Back>,
    /// The calls that it comes back to.
    pub(super) started: Started,
    scope: Scope,
}

/// What carries notifications and questions to a client.
struct Back {
    outbox: Outbox,
    questions: Arc<Questions>,
}

/// A client that sends each request for itself.
pub struct Requests {
    client: Arc<Client>,
    methods: Methods,
}

impl Requests {
    /// One that may do this much.
    pub fn of(control: &Arc<Control>, session: Option<Session>, scope: Scope) -> Result<Self, RegisterMethodError> {
        let client = Client::new(control, session, None, scope);
        let methods = methods_of(&client)?;
        Ok(Self { client, methods })
    }

    #[cfg(feature = "grpc")]
    pub(super) fn client(&self) -> Arc<Client> {
        Arc::clone(&self.client)
    }

    /// Answers one frame; nothing if none of its messages wants an answer. Calls whose messages name no trace go on with that of
    /// the request that carried the frame.
    pub async fn answer(&self, frame: &[u8], trace: Option<TraceContext>) -> Option<String> {
        let mut methods = self.methods.clone();
        if let Some(trace) = trace {
            methods.extensions_mut().insert(trace);
        }
        match self.client.read_frame(frame) {
            Ok(frame) => frame?.answer(&methods).await.0,
            Err(refused) => Some(refused),
        }
    }
}

impl Client {
    /// A client that speaks in lines and may do everything.
    pub fn on_lines(control: &Arc<Control>, session: Option<Session>, outbox: Outbox) -> Arc<Self> {
        Self::with_scope(control, session, outbox, Scope::Operate)
    }

    /// A client that speaks in lines and may do this much.
    pub fn with_scope(control: &Arc<Control>, session: Option<Session>, outbox: Outbox, scope: Scope) -> Arc<Self> {
        let questions = Arc::new(Questions::to(outbox.clone()));
        Self::new(control, session, Some(Back { outbox, questions }), scope)
    }

    fn new(control: &Arc<Control>, session: Option<Session>, back: Option<Back>, scope: Scope) -> Arc<Self> {
        Arc::new(Self { control: Arc::clone(control), session, back, started: Started::default(), scope })
    }

    pub(super) fn control(&self) -> &Arc<Control> {
        &self.control
    }

    pub(super) fn scope(&self) -> Scope {
        self.scope
    }

    pub(super) fn outbox(&self) -> Option<&Outbox> {
        self.back.as_ref().map(|back| &back.outbox)
    }

    /// What its person is asked by, if there may be one.
    pub(super) fn questions(&self) -> Option<&Arc<Questions>> {
        self.back.as_ref().map(|back| &back.questions)
    }

    /// What calls may ask of it, if there is a person who answers.
    pub(super) fn person(&self, can_ask: bool) -> Answer<Option<Arc<dyn ClientFeatures>>> {
        let folder = self.session()?.service().config().directory.to_string_lossy().into_owned();
        let questions = self.questions().filter(|_| can_ask);
        Ok(questions.map(|questions| Arc::new(Person { questions: Arc::clone(questions), folder }) as _))
    }

    /// It has answered a question.
    pub(super) fn answered(&self, id: u64, result: Option<&RawValue>) {
        if let Some(questions) = self.questions() {
            questions.answered(id, result);
        }
    }

    /// Its session, which methods need that see tools.
    pub(super) fn session(&self) -> Answer<&Session> {
        self.session.as_ref().ok_or_else(no_session)
    }

    pub(super) fn service(&self) -> Answer<&Arc<CallService>> {
        Ok(self.session()?.service())
    }

    pub(super) fn own_session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// What it says of itself in reports.
    pub fn view(&self) -> impl Fn() -> Option<ClientInfo> + Send + use<> {
        let session = self.session.as_ref().map(|session| (Arc::downgrade(session.service()), session.id()));
        move || {
            let (service, id) = session.as_ref()?;
            let running = service.upgrade().map_or(0, |service| service.running_of(*id));
            Some(ClientInfo { client: Some(NAME.to_owned()), running })
        }
    }
}

/// The span in which a message asks for a call: the one that it names, otherwise that of the request that carried it.
pub(super) fn context(
    parent: Option<&str>,
    state: Option<&str>,
    of_request: Option<TraceContext>,
) -> Option<TraceContext> {
    parent.map_or(of_request, |parent| TraceContext::read(parent, state))
}
