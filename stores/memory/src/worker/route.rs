//! Routes: work that a worker refused because it lacks the handler goes to workers that have it (S21).

use steadfast_store::rules::{lists_activity, lists_orchestration, needs_no_code};
use steadfast_store::{
    Abandon, Attempt, LeaseToken, NeededHandler, ProviderError, Refusal, Refused, WORKER_LIVE_FOR, WorkerId,
    WorkerReport,
};

use crate::state::{MessageRow, State, Stored, WorkRow};

/// How a lease is abandoned that a live worker can do better with.
const ROUTED: Abandon = Abandon { retry_after: None, attempt: Attempt::Uncounted };

impl State {
    pub(crate) fn refuse(
        &mut self,
        lease: &LeaseToken,
        refusal: Refusal,
        now: u64,
    ) -> Result<Refused, ProviderError> {
        match lease {
            LeaseToken::Turn(token) => self.refuse_turn(token, refusal, now),
            LeaseToken::Work(token) => self.refuse_work(token, refusal, now),
        }
    }

    fn refuse_turn(&mut self, token: &str, refusal: Refusal, now: u64) -> Result<Refused, ProviderError> {
        let instance = self.leased_instance("refuse", token, now)?;
        let is_listed = self.is_listed(now, |worker| lists_orchestration(worker, &refusal.handler));
        let leased = self.messages.values_mut().filter(|message| message.token.as_deref() == Some(token));
        leased.for_each(|message| message.is_refused = !is_listed);
        let mut how = if is_listed { ROUTED } else { refusal.if_unlisted };
        if self.has_termination(&instance) {
            // It may need the start.
            how.retry_after = None;
        }
        self.abandon_turn(token, how, now)?;
        if !self.has_termination(&instance) {
            self.routes.insert(instance, refusal.handler);
        }
        Ok(if is_listed { Refused::Routed } else { Refused::Unlisted })
    }

    fn refuse_work(&mut self, token: &str, refusal: Refusal, now: u64) -> Result<Refused, ProviderError> {
        let place = self.leased_work("refuse", token, now)?;
        let tag = self.work.get(&place).and_then(|row| row.tag.clone());
        let is_listed =
            self.is_listed(now, |worker| lists_activity(worker, &refusal.handler, tag.as_deref()));
        self.abandon_work(token, if is_listed { ROUTED } else { refusal.if_unlisted }, now)?;
        if let Some(row) = self.work.get_mut(&place) {
            row.is_refused = !is_listed;
            row.route = Some(refusal.handler);
        }
        Ok(if is_listed { Refused::Routed } else { Refused::Unlisted })
    }

    /// Tells whether a termination waits for the instance: any worker can take that turn.
    fn has_termination(&self, instance: &str) -> bool {
        self.messages.values().any(|message| {
            message.instance == instance
                && matches!(&message.item, Stored::Readable(item) if needs_no_code(item))
        })
    }

    /// Makes the messages of an instance visible that a refusal delays, because a termination needs the start
    /// and no code.
    pub(crate) fn end_delays_of_refusals(&mut self, instance: &str, at: u64) {
        let refused = |message: &&mut MessageRow| message.is_refused && message.instance == instance;
        for message in self.messages.values_mut().filter(refused) {
            message.is_refused = false;
            message.visible_at_ms = message.visible_at_ms.min(at);
        }
    }

    /// Makes refused messages and activities visible whose handler the worker lists.
    pub(super) fn free_refused(&mut self, worker: &WorkerReport, now: u64) {
        for message in self.messages.values_mut().filter(|message| message.is_refused) {
            let needed = self.routes.get(&message.instance);
            if needed.is_some_and(|needed| lists_orchestration(worker, needed)) {
                message.is_refused = false;
                message.visible_at_ms = message.visible_at_ms.min(now);
            }
        }
        for row in self.work.values_mut().filter(|row| row.is_refused) {
            let needed = row.route.as_ref();
            if needed.is_some_and(|needed| lists_activity(worker, needed, row.tag.as_deref())) {
                row.is_refused = false;
                row.visible_at_ms = row.visible_at_ms.min(now);
            }
        }
    }

    /// Tells whether a worker may be given the turns of an instance. The messages to an instance that does
    /// not exist need no handler (S17).
    pub(crate) fn may_take_turn(&self, worker: Option<&WorkerId>, instance: &str, now: u64) -> bool {
        let needed = self.routes.get(instance).filter(|_| self.exists(instance));
        needed.is_none_or(|needed| self.may_take(worker, now, |report| lists_orchestration(report, needed)))
    }

    /// Tells whether a worker may be given an activity.
    pub(crate) fn may_take_work(&self, worker: Option<&WorkerId>, row: &WorkRow, now: u64) -> bool {
        let lists = |report: &WorkerReport, needed: &NeededHandler| {
            lists_activity(report, needed, row.tag.as_deref())
        };
        row.route.as_ref().is_none_or(|needed| self.may_take(worker, now, |report| lists(report, needed)))
    }

    /// Tells whether a worker may be given routed work. A caller without a row accepts all.
    fn may_take(&self, worker: Option<&WorkerId>, now: u64, lists: impl Fn(&WorkerReport) -> bool) -> bool {
        let Some(row) = worker.and_then(|id| self.workers.get(id)) else { return true };
        lists(&row.report) || (row.report.takes_unlisted && !self.is_listed(now, lists))
    }

    fn is_listed(&self, now: u64, lists: impl Fn(&WorkerReport) -> bool) -> bool {
        self.workers.values().any(|row| row.is_live(now) && lists(&row.report))
    }

    /// Returns the times at which workers cease to be live, if work is routed to some: other workers may then
    /// be given that work.
    pub(crate) fn ends_of_workers(&self) -> impl Iterator<Item = u64> {
        let is_routed = !self.routes.is_empty() || self.work.values().any(|row| row.route.is_some());
        self.workers.values().filter(move |_| is_routed).map(|row| row.seen_and(WORKER_LIVE_FOR))
    }
}
