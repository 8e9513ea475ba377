//! Refusals: leased work whose handler the worker lacks is left to workers that have it (S21).

use rusqlite::params;
use steadfast_store::rules::{lists_activity, lists_orchestration, no_such_lease, tag_of};
use steadfast_store::{Abandon, Attempt, LeaseToken, Queue, Refusal, Refused, WorkerReport};

use super::Requirement;
use super::route::{RouteKind, routed_tag, session_of};
use crate::link::db::{Db, sql};
use crate::link::error::DbResult;
use crate::verbs::turn::SWEEP;

impl Db<'_> {
    pub(crate) fn refuse(&self, lease: &LeaseToken, refusal: &Refusal) -> DbResult<Refused> {
        match lease {
            LeaseToken::Turn(token) => self.refuse_turn(token, refusal),
            LeaseToken::Work(token) => self.refuse_work(token, refusal),
        }
    }

    fn refuse_turn(&self, token: &str, refusal: &Refusal) -> DbResult<Refused> {
        let held = self.turn_holder("refuse", token)?;
        let mut pin = self.plain_pin(held.pin)?;
        let required = Requirement::Turn { pinned: self.pinned_version(pin)? };
        let is_listed = self.is_listed(&refusal.handler, &required)?;
        let (refused, mut how) = outcome(is_listed, refusal);
        // A termination that arrived meanwhile needs no code: any worker may be given the instance, at once.
        if self.number(sql!("route/turn/is_terminated"), [held.key])? == 0 {
            pin = -self.route_number(RouteKind::Turn, &refusal.handler, pin, "")?;
        } else {
            how.retry_after = None;
        }
        if refused == Refused::Unlisted {
            self.run(sql!("route/turn/mark_messages"), params![held.key, token])
                .map_err(|fault| self.torn_fault_of_instance(held.key, fault))?;
        }
        self.run(sql!("route/turn/put"), params![held.key, pin, refused == Refused::Unlisted])?;
        self.undo_lease_of_turn(held.key, token, how)?;
        Ok(refused)
    }

    fn refuse_work(&self, token: &str, refusal: &Refusal) -> DbResult<Refused> {
        let seq = self.work_holder("refuse", token)?;
        let place = self.one(sql!("route/work/place"), [seq], |row| {
            Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, String>(1)?, row.get::<_, bool>(3)?))
        });
        let place = place.map_err(|fault| self.torn_fault(Queue::Worker, &[seq], None, fault))?;
        // An activity that is torn is held back anyway.
        let Some((session, stored, has_terms)) = place else {
            return Err(no_such_lease("refuse", token).into());
        };
        let tag = self.plain_tag(stored.clone())?;
        let session = session_of(session);
        let required = Requirement::Work { tag: tag_of(&tag), is_on_session: session.is_some() };
        let is_listed = self.is_listed(&refusal.handler, &required)?;
        let (refused, how) = outcome(is_listed, refusal);
        let on_session = i64::from(session.is_some());
        let kind = RouteKind::of_work(has_terms);
        let route = self.route_number(kind, &refusal.handler, on_session, &tag)?;
        let (session, routed) = match session {
            Some(session) => (session, routed_tag(route)),
            None => (-route, tag),
        };
        let is_refused = refused == Refused::Unlisted;
        self.run(sql!("route/work/put"), params![seq, session, routed, route, is_refused])
            .map_err(|fault| self.torn_fault(Queue::Worker, &[seq], None, fault))?;
        self.make_work_available(seq, how)?;
        self.refresh_head(session, &stored)?;
        Ok(refused)
    }

    /// Makes work runnable at once that was refused for a handler that a worker lists, in a bounded batch.
    /// Returns whether there may be more.
    pub(crate) fn end_refusals(&self, report: &WorkerReport) -> DbResult<bool> {
        let mut room = SWEEP;
        for route in self.routes_of_turns()? {
            let pinned = self.pinned_version(route.pin)?;
            if room > 0 && lists_orchestration(report, &route.needed, pinned.as_ref()) {
                room -= self.end_refusals_of_turns(-route.id, room)?;
            }
        }
        for route in self.routes_of_work()? {
            let (tag, is_on_session) = (tag_of(&route.tag), route.is_on_session());
            if room > 0 && lists_activity(report, &route.needed, tag, is_on_session) {
                room -= self.end_refusals_of_work(route.id, room)?;
            }
        }
        Ok(room == 0)
    }

    fn end_refusals_of_turns(&self, pin: i64, room: i64) -> DbResult<i64> {
        let found = self.all(sql!("route/turn/refused"), params![pin, room], |row| row.get::<_, i64>(0))?;
        for key in &found {
            self.clear_refusal(*key)?;
            let released = self
                .run(sql!("route/turn/release_messages"), params![key, self.now])
                .map_err(|fault| self.torn_fault_of_instance(*key, fault))?;
            if released > 0 {
                self.touch_turn(*key, self.now)?;
            }
        }
        Ok(found.len() as i64)
    }

    /// Clears the marks of a refusal, because the instance is leased again or can be.
    pub(crate) fn clear_refusal(&self, key: i64) -> DbResult<()> {
        self.run(sql!("route/turn/taken"), [key])?;
        self.run(sql!("route/turn/unmark_messages"), [key])
            .map_err(|fault| self.torn_fault_of_instance(key, fault))?;
        Ok(())
    }

    fn end_refusals_of_work(&self, route: i64, room: i64) -> DbResult<i64> {
        let found = self.all(sql!("route/work/refused"), params![route, room], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?, row.get::<_, String>(2)?))
        });
        let found = found.map_err(|fault| {
            self.torn_fault_of_work(sql!("torn/work/rows/refused"), params![route, room], fault)
        })?;
        for (seq, session, tag) in &found {
            let torn = |fault| self.torn_fault(Queue::Worker, &[*seq], None, fault);
            self.run(sql!("route/work/taken"), [seq]).map_err(torn)?;
            if self.run(sql!("route/work/release"), params![seq, self.now]).map_err(torn)? > 0 {
                self.work_is_ready(*session, tag)?;
            }
        }
        Ok(found.len() as i64)
    }
}

/// Returns what becomes of refused work, and how its lease is abandoned.
fn outcome(is_listed: bool, refusal: &Refusal) -> (Refused, Abandon) {
    if is_listed {
        (Refused::Routed, Abandon { retry_after: None, attempt: Attempt::Uncounted })
    } else {
        (Refused::Unlisted, refusal.if_unlisted)
    }
}
