//! Routes: work that a worker refused because it lacks the handler goes to workers that have it (S21).

use std::collections::BTreeSet;

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
        let pinned = self.pinned(&instance);
        let is_listed = self.is_listed(now, |worker| lists_orchestration(worker, &refusal.handler, pinned));
        let leased = self.messages.values_mut().filter(|message| message.token.as_deref() == Some(token));
        leased.for_each(|message| message.is_refused = !is_listed);
        self.abandon_turn(token, if is_listed { ROUTED } else { refusal.if_unlisted }, now)?;
        self.routes.insert(instance, refusal.handler);
        self.open_terminated(now);
        Ok(if is_listed { Refused::Routed } else { Refused::Unlisted })
    }

    fn refuse_work(&mut self, token: &str, refusal: Refusal, now: u64) -> Result<Refused, ProviderError> {
        let place = self.leased_work("refuse", token, now)?;
        let is_listed = self
            .work
            .get(&place)
            .is_some_and(|row| self.is_listed(now, |worker| row.is_listed_by(worker, &refusal.handler)));
        self.abandon_work(token, if is_listed { ROUTED } else { refusal.if_unlisted }, now)?;
        if let Some(row) = self.work.get_mut(&place) {
            row.is_refused = !is_listed;
            row.route = Some(refusal.handler);
        }
        Ok(if is_listed { Refused::Routed } else { Refused::Unlisted })
    }

    /// Ends the routes of instances whose termination is visible.
    pub(crate) fn open_terminated(&mut self, now: u64) {
        let terminated: BTreeSet<String> = self
            .messages
            .values()
            .filter(|message| message.terminates(now) && self.routes.contains_key(&message.instance))
            .map(|message| message.instance.clone())
            .collect();
        for instance in &terminated {
            self.end_route(instance, now);
        }
    }

    /// Ends the route of an instance. Messages that a refusal delays become visible: one of them may be the
    /// start that a termination waits for.
    pub(crate) fn end_route(&mut self, instance: &str, now: u64) {
        self.routes.remove(instance);
        for message in self.messages.values_mut() {
            if message.instance == instance && message.is_refused {
                message.is_refused = false;
                message.visible_at_ms = message.visible_at_ms.min(now);
            }
        }
    }

    /// Makes refused messages and activities visible whose handler the worker lists.
    pub(super) fn free_refused(&mut self, worker: &WorkerReport, now: u64) {
        let routes = self.routes.iter();
        let listed: BTreeSet<String> = routes
            .filter(|(instance, needed)| lists_orchestration(worker, needed, self.pinned(instance)))
            .map(|(instance, _)| instance.clone())
            .collect();
        for message in self.messages.values_mut().filter(|message| message.is_refused) {
            if listed.contains(&message.instance) {
                message.is_refused = false;
                message.visible_at_ms = message.visible_at_ms.min(now);
            }
        }
        for row in self.work.values_mut().filter(|row| row.is_refused) {
            if row.route.as_ref().is_some_and(|needed| row.is_listed_by(worker, needed)) {
                row.is_refused = false;
                row.visible_at_ms = row.visible_at_ms.min(now);
            }
        }
    }

    /// Tells whether a worker may be given the turns of an instance. The messages to an instance that does
    /// not exist need no handler (S17).
    pub(crate) fn may_take_turn(&self, worker: Option<&WorkerId>, instance: &str, now: u64) -> bool {
        let needed = self.routes.get(instance).filter(|_| self.exists(instance));
        let pinned = self.pinned(instance);
        needed.is_none_or(|needed| {
            self.may_take(worker, now, |report| lists_orchestration(report, needed, pinned))
        })
    }

    /// Tells whether a worker may be given an activity.
    pub(crate) fn may_take_work(&self, worker: Option<&WorkerId>, row: &WorkRow, now: u64) -> bool {
        row.route
            .as_ref()
            .is_none_or(|needed| self.may_take(worker, now, |report| row.is_listed_by(report, needed)))
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

impl MessageRow {
    /// Tells whether it is a visible message that any worker can act on, whatever handlers it has.
    fn terminates(&self, now: u64) -> bool {
        self.visible_at_ms <= now && matches!(&self.item, Stored::Readable(item) if needs_no_code(item))
    }
}

impl WorkRow {
    fn is_listed_by(&self, worker: &WorkerReport, needed: &NeededHandler) -> bool {
        lists_activity(worker, needed, self.tag.as_deref(), self.session.is_some())
    }
}
