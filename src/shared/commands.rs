//! Sessions of `hostler call` and `hostler list`: requests over the control socket instead of MCP.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::message::{
    self, CALL, CallParams, ELICIT, EVENT, Event, LIST, Line, ListParams, Question, Refusal, SCHEMA, SchemaParams,
};
use crate::call::{
    Answer, Asking, CallRequest, CallService, Caller, ClientError, ClientFeatures, Elicitation, Elicited, Root, Session,
};
use crate::mcp::ClientInfo;
use crate::outcome::{Cancelled, Canceller, Outcome};
use crate::pool::Listener;
use crate::process::{Outbox, Signals};
use crate::protocol::ProgressNote;

/// The name of the command line as a client.
const NAME: &str = "hostler";
/// The longest line of a command.
const LONGEST: u64 = 512 << 20;
/// Output that is not read in time beyond this many bytes is left out.
const MOST_UNREAD: usize = 32 << 20;
/// How long a call may take to end after its session shall.
const DRAIN: Duration = Duration::from_millis(500);
/// JSON-RPC's code for parameters that are not those of the method.
const INVALID_PARAMS: i32 = -32602;

/// The session of a command.
pub(super) struct CommandClient {
    session: Session,
    outbox: Outbox,
    questions: Arc<Questions>,
}

/// A request of the command.
struct Request {
    id: u64,
    method: String,
    params: Box<RawValue>,
}

impl CommandClient {
    pub fn new(service: Arc<CallService>, outbox: Outbox) -> Self {
        let questions = Arc::new(Questions { outbox: outbox.clone(), open: Mutex::default() });
        Self { questions, session: Session::open(service), outbox }
    }

    /// What it says of itself in reports.
    pub fn view(&self) -> impl Fn() -> ClientInfo + use<> {
        let (service, session) = (Arc::downgrade(self.session.service()), self.session.id());
        move || ClientInfo {
            client: Some(NAME.to_owned()),
            running: service.upgrade().map_or(0, |service| service.running_of(session)),
        }
    }

    /// Answers requests until the command is gone, or its session shall end.
    pub async fn serve(&self, lines: impl AsyncBufRead + Unpin, signals: Signals) {
        let (sender, mut requests) = mpsc::channel(8);
        let mut answer = Box::pin(async {
            while let Some(request) = requests.recv().await {
                let response = match self.answer(&request).await {
                    Ok(result) => message::response(request.id, Ok(&result)),
                    Err(refusal) => message::response(request.id, Err::<&(), _>(&refusal)),
                };
                self.outbox.send(&response);
            }
        });
        tokio::select! {
            _ = self.hear(lines, sender) => self.session.cancel_all(&Cancelled::by(Canceller::ClientGone)),
            () = &mut answer => {}
            _ = signals.first() => self.session.cancel_all(&Cancelled::by(Canceller::SessionEnd)),
        }
        let _ = timeout(DRAIN, async {
            self.session.idle().await;
            // What is recorded is sent next.
            tokio::select! {
                () = answer => {}
                () = tokio::task::yield_now() => {}
            }
        })
        .await;
        self.session.service().pools.end();
    }

    async fn hear(&self, lines: impl AsyncBufRead + Unpin, requests: mpsc::Sender<Request>) -> io::Result<()> {
        let mut lines = lines.take(LONGEST);
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            lines.set_limit(LONGEST);
            if lines.read_until(b'\n', &mut bytes).await? == 0 || bytes.last() != Some(&b'\n') {
                return Ok(());
            }
            let line: Line<'_> = serde_json::from_slice(&bytes)?;
            let Some(id) = line.id else { continue };
            match (line.method, line.params, line.result) {
                (Some(method), Some(params), _) => {
                    let request = Request { id, method, params: params.to_owned() };
                    if requests.send(request).await.is_err() {
                        return Ok(());
                    }
                }
                (_, _, Some(result)) => self.questions.answered(id, result),
                _ => {}
            }
        }
    }

    async fn answer(&self, request: &Request) -> Result<Box<RawValue>, Refusal> {
        let service = self.session.service();
        let registry = &service.registry;
        match request.method.as_str() {
            LIST => {
                let ListParams { filter } = read(&request.params)?;
                registry.asked().await;
                let folders: Vec<String> =
                    service.config().tools_there().map(|path| path.display().to_string()).collect();
                raw(&registry.catalogue().listing(&filter, &folders))
            }
            SCHEMA => {
                let SchemaParams { tool } = read(&request.params)?;
                self.known(&tool).await;
                let catalogue = registry.catalogue();
                raw(&catalogue.resolve(&tool).ok().map(|tool| tool.input_schema()))
            }
            CALL => {
                let params: CallParams = read(&request.params)?;
                self.known(&params.tool).await;
                raw(&*self.call(params).await)
            }
            _ => Err(Refusal { code: -32601, message: format!("there is no method `{}`", request.method) }),
        }
    }

    /// An executable is known once it was asked.
    async fn known(&self, tool: &str) {
        let registry = &self.session.service().registry;
        if registry.catalogue().resolve(tool).is_err() {
            registry.asked().await;
        }
    }

    async fn call(&self, params: CallParams) -> Arc<Outcome> {
        let person = Person {
            questions: Arc::clone(&self.questions),
            folder: self.session.service().config().directory.to_string_lossy().into_owned(),
        };
        let client = params.can_ask.then(|| Arc::new(person) as Arc<dyn ClientFeatures>);
        let listener = Arc::new(Relay { outbox: self.outbox.clone(), lost: AtomicUsize::new(0) });
        let caller = Arc::new(Caller { client: Some(NAME.to_owned()), ..Caller::default() });
        let heard = Arc::clone(&listener) as Arc<dyn Listener>;
        let request =
            CallRequest { caller, listener: heard, client, ..CallRequest::new(params.tool, params.arguments) };
        let outcome = self.session.call(request).await;
        listener.end();
        outcome
    }
}

fn read<T: DeserializeOwned>(params: &RawValue) -> Result<T, Refusal> {
    serde_json::from_str(params.get())
        .map_err(|error| Refusal { code: INVALID_PARAMS, message: format!("invalid parameters: {error}") })
}

fn raw(result: &impl serde::Serialize) -> Result<Box<RawValue>, Refusal> {
    serde_json::value::to_raw_value(result).map_err(|error| Refusal { code: -32603, message: error.to_string() })
}

/// Passes on what happens during a call.
struct Relay {
    outbox: Outbox,
    /// Texts that were not sent because earlier ones are unread.
    lost: AtomicUsize,
}

impl Relay {
    /// Says what was left out at last.
    fn end(&self) {
        if let Some(text) = self.gap() {
            self.send(Event::Output { stream: "stderr".to_owned(), text });
        }
    }

    fn gap(&self) -> Option<String> {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        (lost > 0).then(|| format!("[{lost} pieces of output were not read in time]\n"))
    }

    fn send(&self, event: Event) {
        self.outbox.send(&message::notification(EVENT, event));
    }
}

impl Listener for Relay {
    fn note(&self, text: &str) {
        self.send(Event::Note { text: text.to_owned() });
    }

    fn goes_on(&self) {
        self.send(Event::GoesOn);
    }

    fn progress(&self, note: &ProgressNote) {
        if self.outbox.waiting() < MOST_UNREAD {
            self.send(Event::Progress(note.clone()));
        }
    }

    fn output(&self, stream: &str, text: &str) {
        if self.outbox.waiting() + text.len() > MOST_UNREAD {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let text = self.gap().unwrap_or_default() + text;
        self.send(Event::Output { stream: stream.to_owned(), text });
    }
}

/// Questions to the person that have no answer yet.
struct Questions {
    outbox: Outbox,
    /// Locked only to add or to remove one.
    open: Mutex<(u64, HashMap<u64, oneshot::Sender<Elicited>>)>,
}

impl Questions {
    fn ask(&self, question: &Question) -> oneshot::Receiver<Elicited> {
        let (sender, answer) = oneshot::channel();
        let mut open = self.open.lock();
        open.0 += 1;
        let id = open.0;
        open.1.insert(id, sender);
        self.outbox.send(&message::request(id, ELICIT, question));
        answer
    }

    fn answered(&self, id: u64, result: &RawValue) {
        let Some(sender) = self.open.lock().1.remove(&id) else { return };
        // An answer that cannot be read is none.
        let _ = sender.send(serde_json::from_str(result.get()).unwrap_or(Elicited::Cancel));
    }
}

/// The person at the command's terminal.
struct Person {
    questions: Arc<Questions>,
    folder: String,
}

impl ClientFeatures for Person {
    fn elicit(&self, asking: Asking, question: Elicitation) -> Answer<'_, Elicited, ClientError> {
        let Elicitation { message, schema } = question;
        let answer = self.questions.ask(&Question { tool: asking.tool, message, schema });
        Box::pin(async move { Ok(answer.await.unwrap_or(Elicited::Cancel)) })
    }

    fn roots(&self, _: Asking) -> Answer<'_, Vec<Root>, ClientError> {
        Box::pin(std::future::ready(Ok(vec![Root::of_folder(&self.folder)])))
    }
}
