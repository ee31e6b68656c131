//! The tries of a call: a fault that may not come again is worth another one, as often as the call allows.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use humantime::format_duration;
use serde_json::value::RawValue;

use super::handle::RunningCall;
use super::request::CallRequest;
use super::retries::{may_help, pause, usual_retries};
use super::service::CallService;
use crate::outcome::{Attempt, Code, Fault};
use crate::pool::{Listener, Settled};
use crate::registry::Tool;

/// Until when a client waits for a call; `None` if none does.
pub(super) fn until(request: &CallRequest, tool: &Tool, began: Instant) -> Option<Instant> {
    let limit = request.timeout.unwrap_or(tool.settings.timeout.value);
    let limit = request.at_most.map_or(limit, |most| limit.min(most));
    (!request.background).then(|| began + limit)
}

/// A call that is being tried.
pub(super) struct Tries<'a> {
    service: &'a Arc<CallService>,
    running: &'a Arc<RunningCall>,
    request: &'a Arc<CallRequest>,
    tool: Arc<Tool>,
    /// How often it may be tried again, and was.
    most: u32,
    retry: u32,
    /// How often there was no room for it.
    full: u32,
    /// A client waits no longer than for one try.
    until: Option<Instant>,
    faults: Vec<Attempt>,
}

impl<'a> Tries<'a> {
    /// None yet.
    pub fn of(
        service: &'a Arc<CallService>,
        running: &'a Arc<RunningCall>,
        request: &'a Arc<CallRequest>,
        tool: Arc<Tool>,
        began: Instant,
    ) -> Self {
        Self {
            service,
            running,
            request,
            most: request.max_retries.unwrap_or_else(|| usual_retries(tool.settings.effects.value)),
            retry: request.resumed.as_ref().map_or(0, |resumed| u32::try_from(resumed.retries).unwrap_or(u32::MAX)),
            until: until(request, &tool, began),
            full: 0,
            faults: request.resumed.as_ref().map(|resumed| resumed.tries.clone()).unwrap_or_default(),
            tool,
        }
    }

    /// Tries it until it has a result, or another try would not help.
    pub async fn run(mut self, mut arguments: Box<RawValue>) -> Settled {
        loop {
            let spare = (self.retry < self.most || self.request.background).then(|| arguments.clone());
            let request = self.within_the_limit();
            let mut settled = self.service.attempts(Arc::clone(&self.tool), arguments, self.running, &request).await;
            let Err(fault) = &mut settled.ended else { return settled };
            let pause = match self.waits_for_room(fault) {
                Some(pause) => Some(pause),
                None => self.pause(fault).inspect(|pause| self.note(fault, *pause)),
            };
            let (Some(again), Some(pause)) = (spare, pause) else {
                self.exceeded(fault);
                return settled;
            };
            let waited = self.running.cancellation.or(&self.tool.name, tokio::time::sleep(pause)).await;
            if let Err(fault) = waited {
                settled.ended = Err(fault);
                return settled;
            }
            arguments = again;
            self.running.is_again.store(true, Ordering::Relaxed);
        }
    }

    /// The request, which may take what is left of the call's time.
    fn within_the_limit(&self) -> Arc<CallRequest> {
        match self.until.filter(|_| self.retry > 0) {
            None => Arc::clone(self.request),
            Some(until) => {
                let at_most = Some(until.saturating_duration_since(Instant::now()));
                Arc::new(CallRequest { at_most, ..(**self.request).clone() })
            }
        }
    }

    /// The pause of a call that goes on without its client, and for which there is no room: it was accepted, so it waits as long as
    /// that lasts. That is no retry, since its tool did not have it.
    fn waits_for_room(&mut self, fault: &Fault) -> Option<Duration> {
        let waits = self.request.background && fault.code == Code::Busy && self.running.cancellation.why().is_none();
        waits.then(|| {
            self.full = self.full.saturating_add(1);
            pause(self.full - 1, self.running.seed())
        })
    }

    /// The pause before the next try, if there is one.
    fn pause(&self, fault: &Fault) -> Option<Duration> {
        let pause = pause(self.retry, self.running.seed());
        let is_late = self.until.is_some_and(|until| Instant::now() + pause >= until);
        let is_wanted = self.running.cancellation.why().is_none() && !self.running.was_refused();
        (self.retry < self.most && may_help(fault) && is_wanted && !is_late).then_some(pause)
    }

    fn note(&mut self, fault: &Fault, pause: Duration) {
        self.retry += 1;
        self.running.retries.store(self.retry, Ordering::Relaxed);
        let failed = Attempt { code: fault.code, message: fault.message.clone() };
        self.running.journal_retry(self.retry, pause, &failed);
        let when = format_duration(Duration::from_millis(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)));
        self.running.note(&format!("{} failed ({}); it is tried again in {when}", self.tool.name, fault.code));
        self.faults.push(failed);
    }

    /// The fault of the last try, with those before it.
    fn exceeded(&mut self, fault: &mut Fault) {
        if self.faults.is_empty() || !may_help(fault) {
            return;
        }
        fault.message = format!("Max retries exceeded ({} tries): {}", self.faults.len() + 1, fault.message);
        fault.details.attempts = std::mem::take(&mut self.faults);
    }
}
