//! Calls that ask their client. Such a call is parked: it holds no run permit, its clock stands still, and its worker does
//! not count towards `max_workers`.

use super::sabotage::sabotaged;
use super::{Machine, Phase, Step};
use crate::pool::broker::PoolId;
use crate::pool::event::{CallId, Effect, WhyStop, WorkerId};
use crate::pool::worker_state::{Escalation, Parked, QueuedCall, State, WorkerState};

impl Machine {
    /// Parks a begun call, unless it is being interrupted or too many calls are parked. Calls that wait behind it in its
    /// worker are recalled.
    pub(super) fn park(&mut self, step: &mut Step<'_>, call: CallId, is_outer: bool) {
        let rules = self.rules;
        let holds = |worker: &WorkerState| worker.line.iter().any(|queued| queued.call() == call);
        let Some((id, worker)) = self.workers.iter_mut().find(|(_, worker)| holds(worker)) else { return };
        let id = *id;
        let mut begun = worker.line.iter_mut().take(rules.concurrency);
        let Some(queued) = begun.find(|queued| queued.call() == call) else { return };
        // Its answer came, it has no run permit yet, and it asks again: it stays parked.
        if let Parked::Resuming { since, is_outer } = queued.parked {
            queued.parked = Parked::Asking { since, is_outer };
            return;
        }
        let may_park = queued.may_ask() && !queued.parked.is_now();
        if !may_park || !(step.broker.park(self.pool, is_outer) || sabotaged!(self, IgnoreCap)) {
            return;
        }
        queued.parked = Parked::Asking { since: step.now, is_outer };
        let had_run_permit = !sabotaged!(self, ParkWithPermit) && std::mem::take(&mut queued.has_run_permit);
        // A worker that runs several calls goes on with the others.
        if rules.concurrency == 1 {
            for behind in worker.line.iter_mut().skip(1).filter(|behind| !behind.settled && !behind.is_recalled) {
                behind.is_recalled = true;
                step.effects.push(Effect::Recall { worker: id, call: behind.call() });
            }
        }
        self.pass_on_run_permit(step, id, had_run_permit);
    }

    /// The client has answered: the call goes on once it has a run permit.
    pub(super) fn unpark(&mut self, call: CallId) {
        let mut held = self.workers.values_mut().flat_map(|worker| &mut worker.line);
        if let Some(queued) = held.find(|queued| queued.call() == call)
            && let Parked::Asking { since, is_outer } = queued.parked
        {
            queued.parked = Parked::Resuming { since, is_outer };
        }
    }

    /// Continues calls whose client has answered, oldest first, as far as run permits reach.
    pub(super) fn resume(&mut self, step: &mut Step<'_>) {
        if !step.broker.has_parked(self.pool) {
            return;
        }
        while let Some((id, call, nested)) = self.next_to_resume() {
            let has_permit = nested
                || std::mem::take(&mut self.has_spare_permit)
                || step.broker.take_run_permit(self.pool)
                || sabotaged!(self, IgnoreCap);
            if !has_permit {
                self.wants.run_permit = true;
                return;
            }
            let line = self.workers.get_mut(&id).map(|worker| &mut worker.line);
            let Some(queued) = line.and_then(|line| line.iter_mut().find(|queued| queued.call() == call)) else {
                return;
            };
            if let Parked::Resuming { since, .. } = queued.parked {
                queued.since += step.now.saturating_sub(since);
            }
            queued.has_run_permit = !nested;
            step.leaves_park(self.pool, queued);
            step.effects.push(Effect::Resume(call));
        }
    }

    fn next_to_resume(&self) -> Option<(WorkerId, CallId, bool)> {
        let held = self.workers.iter().flat_map(|(id, worker)| worker.line.iter().map(|queued| (*id, queued)));
        let resuming = held.filter(|(_, queued)| matches!(queued.parked, Parked::Resuming { .. }));
        let next = resuming.min_by_key(|(_, queued)| (!queued.spec.nested, queued.call()));
        next.map(|(id, queued)| (id, queued.call(), queued.spec.nested))
    }

    /// A worker returns a recalled call that it has not begun.
    pub(super) fn returned(&mut self, step: &mut Step<'_>, id: WorkerId, call: CallId) {
        let rules = self.rules;
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let Some(place) = worker.line.iter().position(|queued| queued.call() == call && queued.is_recalled) else {
            return;
        };
        let seemed_begun = place < worker.begun(&rules);
        let Some(mut queued) = worker.line.remove(place) else { return };
        let had_run_permit = std::mem::take(&mut queued.has_run_permit);
        self.pass_on_run_permit(step, id, had_run_permit);
        if !queued.settled && !sabotaged!(self, DropReturned) {
            self.put_back(step, QueuedCall { escalation: Escalation::None, is_recalled: false, ..queued });
        }
        if seemed_begun {
            self.next_begins(step, id);
        }
        self.rest_or_leave(step, id);
    }

    /// Puts one call back into the queue, where its age belongs.
    fn put_back(&mut self, step: &mut Step<'_>, queued: QueuedCall) {
        if self.phase == Phase::Ending {
            return self.requeue(step, vec![queued]);
        }
        let order = |queued: &QueuedCall| (!queued.spec.nested, queued.call());
        let place = self.waiting.iter().position(|other| order(other) > order(&queued)).unwrap_or(self.waiting.len());
        self.waiting.insert(place, queued);
    }

    /// Workers that were started while calls were parked may be too many now: the newest leave, idle ones first.
    pub(super) fn shed(&mut self, step: &mut Step<'_>) {
        while step.has_unparked && self.counting() > self.rules.max_workers.max(1) {
            let counts = |worker: &WorkerState| worker.counts() && !worker.is_asking(&self.rules);
            let may_leave = |worker: &WorkerState| counts(worker) && worker.succeeds.is_none();
            let asked = |worker: &WorkerState| worker.line.iter().any(|queued| queued.parked == Parked::Past);
            let others = self.workers.iter().filter(|(_, worker)| may_leave(worker));
            let leaving = others.max_by_key(|(id, worker)| (!asked(worker), worker.line.is_empty(), **id));
            let Some((id, state)) = leaving.map(|(id, worker)| (*id, worker.state)) else { return };
            if state == State::Starting {
                self.retire(step, id, WhyStop::Surplus);
            } else if let Some(worker) = self.workers.get_mut(&id) {
                (worker.state, worker.outgoing) = (State::Draining, Some(WhyStop::Surplus));
            }
        }
    }
}

impl Step<'_> {
    /// Records that a call is not parked any more, if it was.
    pub(super) fn leaves_park(&mut self, pool: PoolId, queued: &mut QueuedCall) {
        if let Parked::Asking { is_outer, .. } | Parked::Resuming { is_outer, .. } = queued.parked {
            queued.parked = Parked::Past;
            self.has_unparked = true;
            self.broker.unpark(pool, is_outer);
        }
    }
}
