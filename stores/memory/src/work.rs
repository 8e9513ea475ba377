//! Work: leasing activities to workers, and accepting their outcomes.

use std::time::Duration;

use steadfast_core::{SessionConcurrency, TagFilter};
use steadfast_store::rules::{UNKNOWN, check_completion, ended_work_lease, no_such_lease, withdrawn_work};
use steadfast_store::{
    Abandon, Attempt, ClaimedSession, EndedTry, LeaseToken, Outcome, ProviderError, WorkLease, WorkRequest,
};

use crate::message::after;
use crate::state::{Lock, State, Stored, WorkLock, WorkRow};

impl State {
    /// Leases the oldest activity that the request accepts (S13, S14, S18).
    pub(crate) fn fetch_work(
        &mut self,
        request: &WorkRequest,
        now: u64,
    ) -> Result<Option<WorkLease>, ProviderError> {
        if let Some(session) = &request.session {
            self.check_incarnation("fetch_work", &session.owner)?;
        }
        self.pass_over_unreadable_work(request, now);
        let oldest = self
            .work
            .iter()
            .find(|(place, row)| row.is_readable() && self.accepts(request, **place, row, now));
        let Some(place) = oldest.map(|(place, _)| *place) else { return Ok(None) };
        let key = self.work.get(&place).and_then(|row| row.session.clone());
        let claimed = match (key, &request.session) {
            (Some(key), Some(session)) => Some(self.claim(key, session, now)),
            _ => None,
        };
        Ok(self.lease_work(place, request, claimed, now))
    }

    /// Tells whether some caller could lease an activity.
    pub(crate) fn has_work(&self, now: u64) -> bool {
        self.work.values().any(|row| row.is_waiting(now))
    }

    /// Tells whether the request may lease the activity. It does not matter here whether the row can be read.
    pub(crate) fn accepts(&self, request: &WorkRequest, place: u64, row: &WorkRow, now: u64) -> bool {
        row.is_waiting(now)
            && request.tags != TagFilter::None
            && request.tags.matches(row.tag.as_deref())
            && self.may_take_work(request.worker.as_ref(), row, now)
            && match (&row.session, &request.session) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(key), Some(session)) => {
                    self.may_serve(key, session, now) && self.is_its_turn(place, row, now)
                }
            }
    }

    /// Tells whether the session of an activity lets it run now: a serial session runs one activity at a
    /// time, in the order in which they were scheduled.
    pub(crate) fn is_its_turn(&self, place: u64, row: &WorkRow, now: u64) -> bool {
        let Some(session) = row.session.as_ref().and_then(|key| self.sessions.get(key)) else { return true };
        if session.concurrency != SessionConcurrency::Serial {
            return true;
        }
        let mut ahead =
            self.work.range(..place).filter(|(_, other)| other.session == row.session && other.is_readable());
        let running = self.work.values().any(|other| other.session == row.session && other.is_leased(now));
        ahead.next().is_none() && !running
    }

    fn lease_work(
        &mut self,
        place: u64,
        request: &WorkRequest,
        session: Option<ClaimedSession>,
        now: u64,
    ) -> Option<WorkLease> {
        let token = self.next_token("work");
        let row = self.work.get_mut(&place)?;
        row.note_expired();
        let Stored::Readable(item) = &row.item else { return None };
        let waiting_since = row.waiting_since();
        let lock = Lock { token: token.clone(), until_ms: after(now, Some(request.lock_timeout)) };
        let (worker, epoch) = (request.worker_id.clone(), session.as_ref().map(|session| session.epoch));
        row.lock = Some(WorkLock { lock, worker, epoch, is_settled: false });
        row.attempts += 1;
        row.deliveries = row.deliveries.saturating_add(1);
        row.tries.first_fetched_ms.get_or_insert(now);
        row.is_refused = false;
        let (item, attempt, traceparent) = (item.clone(), row.attempts, row.traceparent.clone());
        let (delivery, call, tries) = (row.deliveries, row.call.clone(), row.tries.clone());
        let scheduler = self.instances.get(item.instance());
        let unknown = || UNKNOWN.to_owned();
        Some(WorkLease {
            token: LeaseToken::Work(token),
            orchestration: scheduler.map_or_else(unknown, |row| row.name.clone()),
            orchestration_version: scheduler.map_or_else(unknown, |row| row.version.clone()),
            item,
            attempt,
            delivery,
            call,
            tries,
            traceparent,
            session,
            waiting_since_ms: Some(waiting_since),
            now_ms: now,
        })
    }

    /// Removes an activity and sends its completion (S11).
    pub(crate) fn finish_work(
        &mut self,
        token: &str,
        outcome: Outcome,
        now: u64,
    ) -> Result<(), ProviderError> {
        let place = self.leased_work("finish_work", token, now)?;
        check_completion(&outcome)?;
        self.touch_session(place, now);
        self.work.remove(&place);
        if let Some(completion) = outcome.completion {
            self.push_message(completion, now);
        }
        Ok(())
    }

    pub(crate) fn renew_work(
        &mut self,
        token: &str,
        extend_for: Duration,
        now: u64,
    ) -> Result<(), ProviderError> {
        let place = self.leased_work("renew", token, now)?;
        if let Some(held) = self.work.get_mut(&place).and_then(|row| row.lock.as_mut()) {
            held.lock.until_ms = after(now, Some(extend_for));
        }
        self.touch_session(place, now);
        Ok(())
    }

    pub(crate) fn abandon_work(&mut self, token: &str, how: Abandon, now: u64) -> Result<(), ProviderError> {
        let place = self.leased_work("abandon", token, now)?;
        if let Some(row) = self.work.get_mut(&place) {
            row.end_lease(now);
            if how.attempt == Attempt::Uncounted {
                row.attempts = row.attempts.saturating_sub(1);
            }
            if let Some(delay) = how.retry_after {
                row.visible_at_ms = after(now, Some(delay));
            }
        }
        Ok(())
    }

    /// Ends a try that failed: its activity is tried again after a delay (S22).
    pub(crate) fn end_try(&mut self, token: &str, ended: EndedTry, now: u64) -> Result<(), ProviderError> {
        let place = self.leased_work("end_try", token, now)?;
        self.touch_session(place, now);
        if let Some(row) = self.work.get_mut(&place) {
            row.end_lease(now);
            row.tries.ended = row.tries.ended.saturating_add(1);
            row.tries.last_error = Some(ended.error);
            row.attempts = 0;
            row.expired.clear();
            row.visible_at_ms = after(now, Some(ended.retry_after));
        }
        Ok(())
    }

    /// Returns the activity that the token holds, if its lease has not ended (S4).
    pub(crate) fn leased_work(&self, operation: &str, token: &str, now: u64) -> Result<u64, ProviderError> {
        let holds = |row: &WorkRow| row.lock.as_ref().is_some_and(|held| held.lock.token == token);
        match self.work.iter().find(|(_, row)| holds(row)) {
            Some((place, row)) if row.is_leased(now) => Ok(*place),
            Some(_) => Err(ended_work_lease(operation)),
            None if self.withdrawn.contains_key(token) => Err(withdrawn_work(operation)),
            None => Err(no_such_lease(operation, token)),
        }
    }

    /// Sets the time of the last work on the session of an activity, which keeps the session from being idle.
    /// Does nothing if the session was claimed anew since the activity was leased (S13).
    fn touch_session(&mut self, place: u64, now: u64) {
        let Some(row) = self.work.get(&place) else { return };
        let (Some(key), Some(held)) = (&row.session, &row.lock) else { return };
        if let Some(session) = self.sessions.get_mut(key)
            && session.is_live(now)
            && held.epoch == Some(session.epoch)
        {
            session.last_activity_at_ms = now;
        }
    }
}

impl WorkRow {
    /// Ends the lease by a call of its holder.
    fn end_lease(&mut self, now: u64) {
        if let Some(held) = &mut self.lock {
            // The row keeps the ended lease: the activity can be leased since the end of it.
            held.lock.until_ms = now;
            held.is_settled = true;
        }
    }
}
