//! The way into a pool: calls go in, their ends come out; a caller that goes away takes its call with it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::actor::{Actor, Message};
use super::event::{CallId, Event};
use super::job::{Job, Settled};
use super::open_call;
use super::rules::Rules;
use super::shared::Shared;
use super::status::PoolStatus;
use crate::outcome::{Cancelled, Fault, Metadata};
use crate::worker::Launcher;

/// A running pool.
#[derive(Debug)]
pub struct Pool {
    sender: mpsc::UnboundedSender<Message>,
    next_call: AtomicU64,
    /// It was told to close or to end.
    told: AtomicBool,
    /// Whether a worker of it ever said hello.
    started: watch::Receiver<bool>,
}

impl Pool {
    /// Starts the pool of a tool file. No worker is started before the first call.
    pub fn start(file: PathBuf, rules: &Rules, launcher: Arc<dyn Launcher>, shared: Arc<Shared>) -> Self {
        let (sender, inbox) = mpsc::unbounded_channel();
        let (has_started, started) = watch::channel(false);
        let actor = Actor::new(rules, file, launcher, shared, sender.clone(), has_started);
        tokio::spawn(actor.run(inbox));
        Self { sender, next_call: AtomicU64::new(1), told: AtomicBool::new(false), started }
    }

    /// Makes a call. It is cancelled by its [`Cancellation`], or by dropping the future.
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
                if self.told.load(Ordering::Relaxed) { open_call::closed(&tool) } else { open_call::broken(&tool) };
            Settled { ended: Err(fault), metadata: Metadata::default() }
        })
    }

    /// Has as many workers started as there should always be.
    pub fn warm(&self) {
        let _ = self.sender.send(Message::Heard(Event::Warm));
    }

    /// How it stands; `None` when it is gone.
    pub async fn status(&self) -> Option<PoolStatus> {
        let (reply, answer) = oneshot::channel();
        self.sender.send(Message::Status(reply)).ok()?;
        answer.await.ok()
    }

    /// Takes no more calls; those inside are finished, then the workers leave.
    pub fn close(&self) {
        self.told.store(true, Ordering::Relaxed);
        let _ = self.sender.send(Message::Close);
    }

    /// Answers every call inside with `SHUTTING_DOWN` and kills the workers.
    pub fn end(&self) {
        self.told.store(true, Ordering::Relaxed);
        let _ = self.sender.send(Message::End);
    }

    /// Whether it was told to close or to end.
    pub fn is_told(&self) -> bool {
        self.told.load(Ordering::Relaxed)
    }

    /// Whether a worker of it ever said hello.
    pub fn has_started(&self) -> bool {
        *self.started.borrow()
    }

    /// Waits until one has; false for a pool that is gone before.
    pub async fn started(&self) -> bool {
        self.started.clone().wait_for(|has| *has).await.is_ok()
    }

    /// Whether a closed or ended pool has let its last worker go.
    pub fn is_empty(&self) -> bool {
        self.sender.is_closed()
    }

    /// Waits until a closed or ended pool is empty. May be given up and taken up again.
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

/// Shared between who may cancel a call and what runs it. The first reason counts.
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Arc<State>);

#[derive(Debug, Default)]
struct State {
    why: OnceLock<Cancelled>,
    notify: Notify,
}

impl Cancellation {
    /// Cancels the call; `false` when it was cancelled before.
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

    /// Gives up waiting for `work` when the call is cancelled.
    pub async fn or<T>(&self, tool: &str, work: impl Future<Output = T>) -> Result<T, Fault> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            why = self.cancelled() => Err(why.fault(tool)),
        }
    }
}
