//! The handle of a pool: it accepts calls and returns how they ended. A caller that stops waiting cancels its call.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::actor::{Actor, Message};
use super::broker_handle::BrokerHandle;
use super::event::{CallId, Event};
use super::job::{Job, SessionId, Settled};
use super::open_call;
use super::rules::Rules;
use super::status::PoolStatus;
use crate::outcome::{Cancelled, Fault, Metadata};
use crate::worker::Launcher;

/// A running pool.
#[derive(Debug)]
pub struct Pool {
    sender: mpsc::UnboundedSender<Message>,
    next_call: AtomicU64,
    /// It is closing or ending.
    closing: AtomicBool,
    /// Whether any of its workers has said hello.
    started: watch::Receiver<bool>,
}

impl Pool {
    /// Starts the actor of a tool file's pool. No worker starts before the first call.
    pub fn start(file: PathBuf, rules: &Rules, launcher: Arc<dyn Launcher>, shared: Arc<BrokerHandle>) -> Self {
        let (sender, inbox) = mpsc::unbounded_channel();
        let (has_started, started) = watch::channel(false);
        let actor = Actor::new(rules, file, launcher, shared, sender.clone(), has_started);
        tokio::spawn(actor.run(inbox));
        Self { sender, next_call: AtomicU64::new(1), closing: AtomicBool::new(false), started }
    }

    /// Runs a call. Its [`Cancellation`] or dropping the future cancels it.
    pub async fn call(&self, job: Job) -> Settled {
        let call = CallId(self.next_call.fetch_add(1, Ordering::Relaxed));
        let (tool, cancellation) = (job.tool.clone(), job.cancellation.clone());
        let (reply, mut answer) = oneshot::channel();
        let mut guard = CancelOnDrop { sender: &self.sender, call: Some(call) };
        let _ = self.sender.send(Message::Submit(call, Box::new(job), reply));
        let settled = tokio::select! {
            biased;
            settled = &mut answer => settled,
            _ = cancellation.cancelled() => {
                let _ = self.sender.send(Message::Cancel(call));
                answer.await
            }
        };
        guard.call = None;
        settled.unwrap_or_else(|_| {
            let fault =
                if self.closing.load(Ordering::Relaxed) { open_call::closed(&tool) } else { open_call::broken(&tool) };
            Settled { ended: Err(fault), metadata: Metadata::default() }
        })
    }

    /// No call of a session follows.
    pub fn session_ended(&self, session: SessionId) {
        let _ = self.sender.send(Message::SessionEnded(session));
    }

    /// Starts the minimum of workers.
    pub fn warm(&self) {
        let _ = self.sender.send(Message::Event(Event::Warm));
    }

    /// The pool's status; `None` when its actor is gone.
    pub async fn status(&self) -> Option<PoolStatus> {
        let (reply, answer) = oneshot::channel();
        self.sender.send(Message::Status(reply)).ok()?;
        answer.await.ok()
    }

    /// Accepts no more calls, finishes the accepted ones, then stops the workers.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        let _ = self.sender.send(Message::Close);
    }

    /// Answers every accepted call with `SHUTTING_DOWN` and kills the workers.
    pub fn end(&self) {
        self.closing.store(true, Ordering::Relaxed);
        let _ = self.sender.send(Message::End);
    }

    /// Whether it is closing or ending.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Whether any of its workers has said hello.
    pub fn has_started(&self) -> bool {
        *self.started.borrow()
    }

    /// Waits until a worker has said hello; false if the pool ends before that.
    pub async fn started(&self) -> bool {
        self.started.clone().wait_for(|has| *has).await.is_ok()
    }

    /// Whether a closed or ended pool has no worker left.
    pub fn is_empty(&self) -> bool {
        self.sender.is_closed()
    }

    /// Waits until a closed or ended pool is empty. Can be awaited repeatedly.
    pub async fn emptied(&self) {
        self.sender.closed().await;
    }
}

struct CancelOnDrop<'a> {
    sender: &'a mpsc::UnboundedSender<Message>,
    call: Option<CallId>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.call {
            let _ = self.sender.send(Message::Cancel(call));
        }
    }
}

/// Shared by those who may cancel a call and those who run it. The first reason counts.
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Arc<State>);

#[derive(Debug, Default)]
struct State {
    why: OnceLock<Cancelled>,
    notify: Notify,
}

impl Cancellation {
    /// Cancels the call; `false` if it was cancelled before.
    pub fn cancel(&self, why: Cancelled) -> bool {
        let is_first = self.0.why.set(why).is_ok();
        self.0.notify.notify_waiters();
        is_first
    }

    /// Why the call was cancelled, if it was.
    pub fn why(&self) -> Option<&Cancelled> {
        self.0.why.get()
    }

    /// Waits until the call is cancelled.
    pub async fn cancelled(&self) -> &Cancelled {
        loop {
            let notified = self.0.notify.notified();
            if let Some(why) = self.0.why.get() {
                return why;
            }
            notified.await;
        }
    }

    /// Runs `work` until the call is cancelled.
    pub async fn or<T>(&self, tool: &str, work: impl Future<Output = T>) -> Result<T, Fault> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            why = self.cancelled() => Err(why.fault(tool)),
        }
    }
}
