//! Workers on their way in: when one starts, and the result of the start.

use super::sabotage::sabotaged;
use super::{Machine, Minimum, Phase, Step};
use crate::pool::event::{Decision, Effect, Moment, Verdict, WhyStart, WorkerId};
use crate::pool::worker_state::{State, WorkerState};

impl Machine {
    /// Starts workers for calls that wait too long, and to reach the minimum.
    pub(super) fn grow(&mut self, step: &mut Step<'_>) {
        if self.phase == Phase::Ending || !self.breaker.is_over(step.now) {
            return;
        }
        if self.waiting.is_empty() {
            return self.keep_minimum(step);
        }
        if !self.somebody_may_serve() {
            return self.start_first(step);
        }
        let waiting = self.waiting.len();
        while self.may_have_more(self.wants.run_permit)
            && self.breaker.may_add(step.now)
            && self.starting() < self.waiting_too_long(step.now)
        {
            // A recently used worker of another tool is not evicted for one more worker of a tool that has some.
            let needed = step.now.saturating_sub(self.rules.spare_after);
            let id = WorkerId(self.next_worker);
            if step.broker.take_spare_worker_permit(self.pool, id) {
                self.begin_start(step, id, None, WhyStart::Queue { waiting });
            } else if !step.broker.has_worker_idle_since(needed) || !self.start(step, WhyStart::Queue { waiting }) {
                return;
            }
        }
    }

    /// Starts the only worker, for the call at the head of the queue. If another worker must be evicted for it, the
    /// call takes its run permit first: otherwise pools without run permits would evict each other's workers endlessly.
    fn start_first(&mut self, step: &mut Step<'_>) {
        let Some(first) = self.waiting.front().map(|queued| queued.spec) else { return };
        if !self.may_start() {
            return;
        }
        let id = WorkerId(self.next_worker);
        if step.broker.take_spare_worker_permit(self.pool, id) {
            return self.begin_start(step, id, None, WhyStart::Call);
        }
        if first.nested && self.workers.is_empty() {
            step.broker.take_worker_permit_beyond(self.pool, id);
            return self.begin_start(step, id, None, WhyStart::Call);
        }
        self.has_spare_permit = self.has_spare_permit || !first.nested && step.broker.take_run_permit(self.pool);
        if self.has_spare_permit || first.nested {
            self.start(step, WhyStart::Call);
        } else {
            self.wants.run_permit = true;
        }
    }

    /// Whether more workers would help the queued calls: they do not lack run permits, and the limit allows more.
    fn may_have_more(&self, lacks_run_permit: bool) -> bool {
        let serving = self.workers.values().any(|worker| worker.state == State::Serving);
        let limit = self.rules.max_workers.max(1) + usize::from(sabotaged!(self, IgnoreCap));
        serving
            && !lacks_run_permit
            && self.may_start()
            && !self.breaker.on_trial(&self.rules)
            && self.counting() < limit
    }

    fn starting(&self) -> usize {
        self.workers.values().filter(|worker| worker.state == State::Starting && worker.succeeds.is_none()).count()
    }

    fn waiting_too_long(&self, now: Moment) -> usize {
        let grow_after = self.rules.grow_after;
        self.waiting.iter().filter(|queued| now.saturating_sub(queued.since) >= grow_after).count()
    }

    /// When another worker may be due, if that depends on time alone. Past times were handled in the last step.
    pub(super) fn grows_at(&self) -> Option<Moment> {
        if self.waits.worker_permit || sabotaged!(self, ForgetTimer) {
            return None;
        }
        let retry_at = self.breaker.retry_at();
        let at = if self.waiting.is_empty() {
            let lacks_minimum = self.lacks_minimum();
            // No event reports that a worker of another pool became idle.
            let look_again = self.last_step + self.rules.first_pause;
            lacks_minimum.then(|| retry_at.max(self.breaker.add_at()).max(look_again))
        } else if !self.somebody_may_serve() {
            Some(retry_at)
        } else if self.may_have_more(self.waits.run_permit) {
            let next = self.waiting.get(self.starting());
            next.map(|queued| (queued.since + self.rules.grow_after).max(retry_at).max(self.breaker.add_at()))
        } else {
            None
        };
        at.filter(|at| *at > self.last_step)
    }

    /// A worker for the minimum takes a free worker permit; no other worker is evicted for it.
    fn keep_minimum(&mut self, step: &mut Step<'_>) {
        while self.lacks_minimum() {
            let id = WorkerId(self.next_worker);
            if self.breaker.failing(step.now).is_some()
                || !self.breaker.may_add(step.now)
                || !step.broker.take_spare_worker_permit(self.pool, id)
            {
                return;
            }
            self.begin_start(step, id, None, WhyStart::Minimum);
        }
    }

    fn lacks_minimum(&self) -> bool {
        let is_wanted = self.minimum == Minimum::Wanted && self.phase == Phase::Open;
        is_wanted && self.counting() < self.rules.min_workers && self.may_start()
    }

    fn start(&mut self, step: &mut Step<'_>, why: WhyStart) -> bool {
        let id = WorkerId(self.next_worker);
        if !step.broker.take_worker_permit(self.pool, id) {
            if !self.waits.worker_permit {
                step.tell(Decision::NoWorkerPermit);
            }
            self.wants.worker_permit = true;
            return false;
        }
        self.begin_start(step, id, None, why);
        true
    }

    /// Starts a worker whose permit is taken.
    pub(super) fn begin_start(&mut self, step: &mut Step<'_>, id: WorkerId, succeeds: Option<WorkerId>, why: WhyStart) {
        self.next_worker += 1;
        let mut worker = WorkerState::starting(step.now, succeeds);
        worker.is_asked_for = why == WhyStart::Call;
        self.workers.insert(id, worker);
        if why == WhyStart::Call && self.breaker.on_trial(&self.rules) {
            step.tell(Decision::Try);
        }
        step.tell(Decision::Start(id, why));
        step.effects.push(Effect::Start(id));
    }

    pub(super) fn ready(&mut self, step: &mut Step<'_>, id: WorkerId) {
        let kept = self.counting() <= self.rules.min_workers;
        let Some(worker) = self.workers.get_mut(&id) else { return };
        if worker.state != State::Starting {
            return;
        }
        worker.state = State::Serving;
        worker.ready_at = step.now;
        worker.idle_since = step.now;
        let succeeds = worker.succeeds.take();
        self.breaker.started();
        let idle_since = succeeds.and_then(|old| self.make_way(old)).unwrap_or(step.now);
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.idle_since = idle_since;
        }
        step.broker.idle(self.pool, id, idle_since, kept);
    }

    /// The successor is ready: its predecessor takes no more calls and stops with its last one. Returns since when the
    /// predecessor has been idle, if it is; the successor inherits that.
    fn make_way(&mut self, old: WorkerId) -> Option<Moment> {
        let old = self.workers.get_mut(&old).filter(|old| old.state == State::Serving)?;
        old.state = State::Draining;
        old.line.is_empty().then_some(old.idle_since)
    }

    pub(super) fn start_failed(&mut self, step: &mut Step<'_>, id: WorkerId, by_itself: bool) {
        let Some(worker) = self.workers.remove(&id) else { return };
        step.broker.return_worker_permit(self.pool, id);
        if by_itself && worker.state != State::Leaving {
            self.breaker.start_failed(step.now, &self.rules);
        }
        if !worker.is_asked_for && worker.state != State::Leaving {
            self.breaker.addition_failed(step.now, &self.rules);
        }
        // The predecessor stays for now.
        if let Some(old) = worker.succeeds.and_then(|old| self.workers.get_mut(&old)) {
            old.outgoing = None;
            old.recycle_after = step.now + self.rules.longest_pause;
        }
        // A queued call can use any worker and fails only when none is left. A worker that was stopped while starting
        // failed for that reason, which says nothing about the next start.
        if worker.state == State::Leaving || self.somebody_may_serve() {
            return;
        }
        for queued in self.waiting.drain(..) {
            step.finish(queued.call(), Verdict::StartFailed(id));
        }
    }

    /// Whether one more worker may start: each worker within the limit may have a draining predecessor.
    pub(super) fn may_start(&self) -> bool {
        let alive =
            self.workers.values().filter(|worker| worker.state != State::Leaving && !worker.is_asking(&self.rules));
        let alive = alive.count();
        alive < 2 * self.rules.max_workers.max(1)
    }

    /// Workers that count towards the pool's limit.
    pub(super) fn counting(&self) -> usize {
        self.workers.values().filter(|worker| worker.counts() && !worker.is_asking(&self.rules)).count()
    }

    /// Whether a worker may leave when it is idle.
    pub(super) fn may_leave_idle(&self) -> bool {
        self.phase != Phase::Open || self.minimum == Minimum::Unwanted || self.counting() > self.rules.min_workers
    }
}
