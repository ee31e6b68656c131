//! A call that was accepted: who listens to it, how it is cancelled, and its outcome, which is recorded once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use super::request::{CallRequest, Caller};
use crate::outcome::{Cancelled, Canceller, Outcome};
use crate::pool::{Cancellation, Listener};
use crate::protocol::ProgressNote;
use crate::worker::LogLine;

/// Events that a slow reader may leave unread before further ones are dropped.
const MAX_UNREAD_EVENTS: usize = 1024;

/// An accepted call. Dropping the handle detaches from the call, which goes on; [`CallHandle::cancel`] ends it.
#[derive(Debug)]
pub struct CallHandle {
    call: Arc<RunningCall>,
    /// Whether this handle gave up its interest in the call.
    has_cancelled: AtomicBool,
}

/// Something that happened during a call.
#[derive(Debug, Clone)]
pub enum CallEvent {
    /// Something happens before the tool runs: an environment is built, a worker starts.
    Note(String),
    /// The tool reports its progress.
    Progress(ProgressNote),
    /// The tool printed something on `stdout` or `stderr`.
    Output {
        /// Which of the two.
        stream: String,
        /// The text, without the tool's secrets.
        text: String,
    },
    /// The tool logged something.
    Log(LogLine),
    /// The call has ended; nothing follows.
    Ended(Arc<Outcome>),
}

impl CallHandle {
    /// The call's id: random, not guessable, unique across runs.
    pub fn id(&self) -> &str {
        &self.call.id
    }

    /// Who asked for it first.
    pub fn caller(&self) -> &Caller {
        &self.call.caller
    }

    /// Waits for the end of the call. Can be asked again at any time.
    pub async fn outcome(&self) -> Arc<Outcome> {
        self.call.outcome().await
    }

    /// Ends the call, unless another handle to the same call still wants its outcome.
    pub fn cancel(&self, why: Cancelled) {
        if !self.has_cancelled.swap(true, Ordering::Relaxed) && self.call.interest.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.call.cancel(why);
        }
    }

    /// Everything that happens from now on, the outcome last. A reader that falls more than 1,024 events behind misses
    /// some of them.
    pub fn events(&self) -> mpsc::Receiver<CallEvent> {
        let (sender, events) = mpsc::channel(MAX_UNREAD_EVENTS);
        let sender: Arc<dyn Listener> = Arc::new(EventSender(sender));
        self.call.listen(&sender);
        events
    }
}

/// A call from its acceptance to the end of its listeners.
pub(super) struct RunningCall {
    pub id: String,
    pub caller: Arc<Caller>,
    /// Tool and arguments, for a call that others may join.
    pub joinable: Option<(String, serde_json::Value)>,
    pub cancellation: Cancellation,
    /// Held only to add or to copy.
    listeners: Mutex<Vec<Arc<dyn Listener>>>,
    /// Handles that have not cancelled.
    interest: AtomicUsize,
    outcome: OnceLock<Arc<Outcome>>,
    ended: Notify,
}

impl RunningCall {
    pub fn new(id: String, request: &CallRequest) -> Arc<Self> {
        let arguments = || serde_json::Value::Object(request.arguments.clone());
        Arc::new(Self {
            id,
            caller: Arc::clone(&request.caller),
            joinable: request.key.is_some().then(|| (request.tool.clone(), arguments())),
            cancellation: Cancellation::default(),
            listeners: Mutex::new(vec![Arc::clone(&request.listener)]),
            interest: AtomicUsize::new(0),
            outcome: OnceLock::new(),
            ended: Notify::new(),
        })
    }

    /// Another handle, which counts as a listener of its own.
    pub fn handle(self: &Arc<Self>) -> CallHandle {
        self.interest.fetch_add(1, Ordering::AcqRel);
        CallHandle { call: Arc::clone(self), has_cancelled: AtomicBool::new(false) }
    }

    /// Ends the call, whoever else listens.
    pub fn cancel(&self, why: Cancelled) {
        self.cancellation.cancel(why);
    }

    pub fn listen(&self, listener: &Arc<dyn Listener>) {
        let outcome = {
            let mut listeners = self.listeners.lock();
            listeners.push(Arc::clone(listener));
            self.outcome.get().cloned()
        };
        if let Some(outcome) = outcome {
            listener.ended(&outcome);
        }
    }

    /// Keeps the outcome and passes it to everybody who waits. Later ones are ignored: a call ends once.
    pub fn end(&self, outcome: Outcome) {
        let outcome = Arc::new(outcome);
        let listeners = {
            // Whoever listens from now on finds the outcome.
            let mut listeners = self.listeners.lock();
            if self.outcome.set(Arc::clone(&outcome)).is_err() {
                return;
            }
            std::mem::take(&mut *listeners)
        };
        for listener in listeners {
            listener.ended(&outcome);
        }
        self.ended.notify_waiters();
    }

    pub fn has_ended(&self) -> bool {
        self.outcome.get().is_some()
    }

    async fn outcome(&self) -> Arc<Outcome> {
        loop {
            let ended = self.ended.notified();
            if let Some(outcome) = self.outcome.get() {
                return Arc::clone(outcome);
            }
            ended.await;
        }
    }

    fn each(&self, tell: impl Fn(&dyn Listener)) {
        let listeners = self.listeners.lock().clone();
        for listener in listeners {
            tell(&*listener);
        }
    }
}

impl std::fmt::Debug for RunningCall {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RunningCall")
            .field("id", &self.id)
            .field("caller", &self.caller)
            .finish_non_exhaustive()
    }
}

/// What happens in the worker reaches everybody who listens.
impl Listener for RunningCall {
    fn note(&self, text: &str) {
        self.each(|listener| listener.note(text));
    }

    fn progress(&self, note: &ProgressNote) {
        self.each(|listener| listener.progress(note));
    }

    fn output(&self, stream: &str, text: &str) {
        self.each(|listener| listener.output(stream, text));
    }

    fn log(&self, line: &LogLine) {
        self.each(|listener| listener.log(line));
    }
}

/// A listener that is a channel.
struct EventSender(mpsc::Sender<CallEvent>);

impl Listener for EventSender {
    fn note(&self, text: &str) {
        let _ = self.0.try_send(CallEvent::Note(text.to_owned()));
    }

    fn progress(&self, note: &ProgressNote) {
        let _ = self.0.try_send(CallEvent::Progress(note.clone()));
    }

    fn output(&self, stream: &str, text: &str) {
        let _ = self.0.try_send(CallEvent::Output { stream: stream.to_owned(), text: text.to_owned() });
    }

    fn log(&self, line: &LogLine) {
        let _ = self.0.try_send(CallEvent::Log(line.clone()));
    }

    fn ended(&self, outcome: &Arc<Outcome>) {
        let (sender, outcome) = (self.0.clone(), Arc::clone(outcome));
        if let Err(mpsc::error::TrySendError::Full(last)) = sender.try_send(CallEvent::Ended(outcome)) {
            // The outcome is never dropped, however far behind the reader is.
            tokio::spawn(async move { sender.send(last).await });
        }
    }
}

/// Cancels a call whose caller stops waiting for it.
pub(super) struct CancelOnDrop(pub CallHandle);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if !self.0.call.has_ended() {
            self.0.cancel(Cancelled::by(Canceller::Caller));
        }
    }
}
