//! Sessions: claims, renewals and releases (S13). A session has an owner exactly while its lease lasts.

mod closed;
mod trail;

use rusqlite::params;
use steadfast_core::{SessionConcurrency, SessionKey, WorkItem};
use steadfast_store::rules::{
    NewestStart, SessionEffect, answer_to_start, is_same_owner, lost_claims, session_key, started_at_ms,
    stored_scope, superseded, tag_of, to_json,
};
use steadfast_store::{
    Appetite, Claim, ClaimedSession, MAX_PAGE, NodeRegistration, NodeStart, Owner, ProviderError,
    ReleaseReason, RenewSessions, SessionChange, SessionInfo, SessionRef, SessionRequest, SessionsRenewed,
    TurnCommit,
};

use crate::link::db::{Db, sql, text_of, time, unsigned};
use crate::link::error::DbResult;
use crate::verbs::torn::Removal;
use crate::verbs::turn::SWEEP;
use crate::verbs::work::call::{CALLED, CALLED_HEADS};
use crate::verbs::worker::route::{ROUTED, is_routed_tag};

/// The work of a session that is closed (S13).
const OF_CLOSED: Removal =
    Removal { remove: sql!("session/drop_work"), give_up: sql!("torn/work/instead/of_session") };

/// A session as it is stored.
struct SessionRow {
    id: i64,
    key: SessionKey,
    held: bool,
    owner: Option<Owner>,
    locked_until: i64,
    last_activity: i64,
    epoch: i64,
    idle_timeout: Option<i64>,
    serial: bool,
    /// The epoch of the claim that was closed, if its lease stays in this row: no process has claimed the
    /// session since (G41).
    closed_epoch: Option<i64>,
    /// Whether the last claim was released: its lease did not expire, whatever its trail still tells.
    is_released: bool,
}

impl SessionRow {
    fn is_live(&self, now: i64) -> bool {
        self.held && self.locked_until > now
    }

    /// Tells whether this process owns the session now: it claimed it last, and the lease has not ended.
    fn is_held_by(&self, owner: &Owner, now: i64) -> bool {
        self.closed_epoch.is_none() && self.is_leased_to(owner, now)
    }

    fn is_leased_to(&self, owner: &Owner, now: i64) -> bool {
        self.is_live(now) && self.owner.as_ref().is_some_and(|holder| is_same_owner(holder, owner))
    }

    /// Tells whether a process has claimed the session since it was opened.
    fn is_claimed(&self) -> bool {
        self.epoch > 0 && self.closed_epoch.is_none()
    }

    fn claim(&self) -> SessionRef {
        SessionRef { key: self.key.clone(), epoch: unsigned(self.epoch) }
    }
}

impl Db<'_> {
    pub(crate) fn register_node(&self, start: &NodeStart) -> DbResult<NodeRegistration> {
        let newest = self.one(sql!("session/lease/newest_start"), [&start.node_id], |row| {
            Ok((row.get::<_, i64>(0)?, text_of(row, 1)?, row.get::<_, i64>(2)?))
        })?;
        let newest = newest.as_ref().map(|(incarnation, start_id, started_at)| NewestStart {
            incarnation: unsigned(*incarnation),
            start_id,
            started_at_ms: unsigned(*started_at),
        });
        let now = unsigned(self.now);
        if let Some(answer) = answer_to_start(start, newest, now) {
            return Ok(answer);
        }
        let incarnation = self.next()?;
        let columns = params![start.node_id, incarnation, start.start_id, time(started_at_ms(start, now))];
        self.run(sql!("session/lease/register_node"), columns)?;
        Ok(NodeRegistration::Registered(unsigned(incarnation)))
    }

    /// Refuses a call by a process whose node has started again since (S13).
    pub(crate) fn check_incarnation(&self, operation: &'static str, owner: &Owner) -> DbResult<()> {
        let Some(given) = owner.incarnation else { return Ok(()) };
        match self.maybe(sql!("session/lease/newest_incarnation"), [&owner.id])? {
            Some(newest) if given < unsigned(newest) => {
                Err(superseded(operation, &owner.id, given, unsigned(newest)).into())
            }
            _ => Ok(()),
        }
    }

    /// Releases the sessions whose lease has ended.
    pub(crate) fn sweep_sessions(&self) -> DbResult<()> {
        for id in
            self.all(sql!("session/lease/ended"), params![self.now, SWEEP], |row| row.get::<_, i64>(0))?
        {
            self.release(id)?;
        }
        Ok(())
    }

    /// Releases the sessions whose lease ends later than any lease can that was granted up to now: the wall
    /// clock was set back since (S16). True if there was one.
    pub(crate) fn end_impossible_sessions(&self) -> DbResult<bool> {
        let found =
            self.all(sql!("session/lease/impossible"), params![self.latest_grant(), SWEEP], |row| {
                row.get::<_, i64>(0)
            })?;
        for id in &found {
            self.release(*id)?;
        }
        Ok(!found.is_empty())
    }

    /// Ends the claim of a session before its lease expires.
    fn end_claim(&self, id: i64, reason: ReleaseReason) -> DbResult<()> {
        self.note_end(id, SessionChange::Released(reason))?;
        self.run(sql!("session/trail/released"), [id])?;
        self.release(id)
    }

    /// Ends the lease of a session: any process may claim it.
    fn release(&self, id: i64) -> DbResult<()> {
        self.run(sql!("session/lease/release"), params![id, self.now])?;
        if self.run(sql!("session/head/own"), params![id, ""])? > 0 {
            self.woken.borrow_mut().any_work = true;
        }
        Ok(())
    }

    /// Returns the number of a session, and inserts a row for a session that has none.
    pub(crate) fn session_number(&self, key: &SessionKey) -> DbResult<i64> {
        if let Some(id) = self.known_session(key)? {
            return Ok(id);
        }
        self.run(sql!("session/create"), params![stored_scope(key), key.session_id])?;
        Ok(self.last_insert())
    }

    pub(crate) fn known_session(&self, key: &SessionKey) -> DbResult<Option<i64>> {
        self.maybe(sql!("session/number"), params![stored_scope(key), key.session_id])
    }

    fn session_row(&self, id: i64) -> DbResult<Option<SessionRow>> {
        self.one(sql!("session/show"), [id], read)
    }

    pub(crate) fn is_held_by(&self, id: i64, owner: &Owner) -> DbResult<bool> {
        Ok(self.session_row(id)?.is_some_and(|session| session.is_held_by(owner, self.now)))
    }

    /// Claims the session for the process that serves it now, or extends the lease of its live claim.
    pub(crate) fn claim(&self, id: i64, request: &SessionRequest) -> DbResult<ClaimedSession> {
        let until = self.lease_until(request.lock_timeout)?;
        self.moments.borrow_mut().work.add(until);
        let Some(session) = self.session_row(id)? else {
            let text = format!("session {id} vanished inside a transaction");
            return Err(ProviderError::retryable("fetch_work", text).into());
        };
        if session.is_held_by(&request.owner, self.now) {
            self.run(sql!("session/lease/extend"), params![id, session.locked_until.max(until), self.now])?;
            return Ok(ClaimedSession {
                key: session.key,
                epoch: unsigned(session.epoch),
                claim: Claim::Held,
            });
        }
        let epoch = self.next()?;
        let owner = &request.owner;
        let incarnation = owner.incarnation.map(time);
        if session.is_claimed() {
            self.note_end(id, SessionChange::Lost)?;
        }
        self.run(sql!("session/lease/claim"), params![id, owner.id, incarnation, until, self.now, epoch])?;
        self.note_claim(id, &session.key)?;
        self.run(sql!("session/head/own"), params![id, format!(":{}", owner.id)])?;
        let from = session.owner.filter(|_| session.closed_epoch.is_none()).map(|owner| owner.id);
        self.tell_watchers(&session.key, epoch, from.as_deref(), &owner.id)?;
        let claim = from.map_or(Claim::New, |from| Claim::Taken { from });
        Ok(ClaimedSession { key: session.key, epoch: unsigned(epoch), claim })
    }

    /// Takes back that a dropped fetch used a session. A claim that no other fetch has used is released; a
    /// closed claim that it replaced keeps other processes out again while its lease lasts (G41).
    pub(crate) fn undo_use(&self, key: &SessionKey, epoch: u64) -> DbResult<()> {
        let Some(id) = self.known_session(key)? else { return Ok(()) };
        match self.maybe(sql!("session/lease/unuse"), params![id, time(epoch)])? {
            Some(0) => {
                self.end_claim(id, ReleaseReason::Unused)?;
                self.restore_closed(id)
            }
            _ => Ok(()),
        }
    }

    /// Sends a message about a new claim to the executions that watch the session. The first claim that an
    /// execution watches is not told: only later ones are moves.
    fn tell_watchers(&self, key: &SessionKey, epoch: i64, from: Option<&str>, to: &str) -> DbResult<()> {
        let watched = params![stored_scope(key), key.session_id];
        let mut watchers = self.all(sql!("session/watch/watchers"), watched, |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, bool>(2)?))
        })?;
        if watchers.is_empty() {
            return Ok(());
        }
        // In the order of instance ids, as in every store.
        watchers.sort_unstable();
        for (instance, execution, has_seen) in watchers {
            if has_seen {
                let message = WorkItem::SessionMigrated {
                    instance,
                    execution_id: unsigned(execution),
                    session_id: key.session_id.clone(),
                    epoch: unsigned(epoch),
                    from: from.map(str::to_owned),
                    to: to.to_owned(),
                };
                let text = to_json("fetch_work", &message)?;
                self.insert_message(&message.into(), &text, self.now)?;
            }
        }
        self.run(sql!("session/watch/have_seen"), params![stored_scope(key), key.session_id])?;
        Ok(())
    }

    /// Updates the head of a session for a tag: the row in `heads` by which fetches find the oldest ready
    /// activity of that session and tag.
    pub(crate) fn refresh_head(&self, session: i64, tag: &str) -> DbResult<()> {
        let Some(row) = self.session_row(session)? else { return Ok(()) };
        if row.serial {
            return self.refresh_heads(session);
        }
        let head = self.maybe(sql!("session/head/first_of_tag"), params![session, tag])?;
        self.put_head(&row, tag, head)
    }

    /// Updates the heads of a session for all tags. A serial session has at most one head.
    pub(crate) fn refresh_heads(&self, session: i64) -> DbResult<()> {
        let Some(row) = self.session_row(session)? else { return Ok(()) };
        self.run(sql!("session/head/drop_all"), [session])?;
        if row.serial {
            // The first activity in line, if it is ready: behind it no other may be leased.
            let first = self.one(sql!("session/head/first_in_line"), [session], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?))
            })?;
            return match first {
                Some((seq, 1, tag)) => {
                    self.wake_work(Some(session), &tag);
                    self.put_head(&row, &tag, Some(seq))
                }
                _ => Ok(()),
            };
        }
        let mut from = String::new();
        while let Some(Some(tag)) =
            self.one(sql!("session/head/next_tag"), params![session, from], |row| {
                row.get::<_, Option<String>>(0)
            })?
        {
            let head = self.maybe(sql!("session/head/first_of_tag"), params![session, tag])?;
            self.put_head(&row, &tag, head)?;
            from = format!("{tag}\0");
        }
        Ok(())
    }

    fn put_head(&self, session: &SessionRow, tag: &str, head: Option<i64>) -> DbResult<()> {
        let mark = match tag {
            _ if is_routed_tag(tag) => ROUTED,
            _ if tag.starts_with(CALLED) => CALLED_HEADS,
            _ => "",
        };
        let owner = match &session.owner {
            Some(owner) if session.held => format!("{mark}:{}", owner.id),
            _ => mark.to_owned(),
        };
        match head {
            Some(head) => {
                self.run(sql!("session/head/put"), params![session.id, tag, head, owner, session.serial])?
            }
            None => self.run(sql!("session/head/drop"), params![session.id, tag])?,
        };
        Ok(())
    }

    /// Sets the time of the last work on the session of an activity, which keeps the session from being idle.
    /// Does nothing if the session was claimed anew since the activity was leased.
    pub(crate) fn touch_session(&self, seq: i64) -> DbResult<()> {
        self.run(sql!("session/lease/touch"), params![seq, self.now])?;
        Ok(())
    }

    pub(crate) fn renew_sessions(&self, request: &RenewSessions) -> DbResult<SessionsRenewed> {
        self.check_incarnation("renew_sessions", &request.owner)?;
        self.sweep_work()?;
        let mut outcome = SessionsRenewed::default();
        for session in self.all(sql!("session/of_owner"), [&request.owner.id], read)? {
            if !session.is_held_by(&request.owner, self.now) {
                continue;
            }
            let claim = session.claim();
            if self.is_untaken(&session, request)? {
                self.end_claim(session.id, ReleaseReason::Untaken)?;
                outcome.untaken.push(claim);
            } else if self.is_idle(&session, request)? {
                outcome.idle.push(claim);
            } else {
                self.run(
                    sql!("session/lease/renew"),
                    params![session.id, self.lease_until(request.extend_for)?],
                )?;
                outcome.renewed.push(claim);
            }
        }
        outcome.lost = lost_claims(request, &outcome);
        Ok(outcome)
    }

    /// Tells whether a session is idle: it has no leased activity, and its last work is older than the
    /// time-out.
    fn is_idle(&self, session: &SessionRow, request: &RenewSessions) -> DbResult<bool> {
        let timeout = match session.key.instance {
            Some(_) => session.idle_timeout,
            None => Some(i64::try_from(request.idle_timeout.as_millis()).unwrap_or(i64::MAX)),
        };
        let idle = timeout.is_some_and(|timeout| session.last_activity.saturating_add(timeout) <= self.now);
        Ok(idle && !self.is_running(session.id)?)
    }

    /// Tells whether a session has no leased activity, and has had ready work for longer than `untaken_after`
    /// that its owner will not take: the owner takes no session work now, or does not serve the tag.
    fn is_untaken(&self, session: &SessionRow, request: &RenewSessions) -> DbResult<bool> {
        let patience = i64::try_from(request.untaken_after.as_millis()).unwrap_or(i64::MAX);
        let before = self.now.saturating_sub(patience);
        for (tag, head) in self.all(sql!("work/ready/heads_of_session"), [session.id], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
        })? {
            let refused = request.appetite == Appetite::Full || !self.owner_takes(&tag, request)?;
            let only = session.serial.then_some(head);
            let waits = params![session.id, tag, before, only];
            if refused && self.number(sql!("session/lease/waits_since"), waits)? == 1 {
                return Ok(!self.is_running(session.id)?);
            }
        }
        Ok(false)
    }

    /// Tells whether the owner of sessions takes work of a stored tag: it serves the tag, and is given the
    /// work if it is routed.
    fn owner_takes(&self, stored: &str, request: &RenewSessions) -> DbResult<bool> {
        let tag = self.plain_tag(stored.to_owned())?;
        let is_served = request.tags.matches(tag_of(&tag));
        Ok(is_served && self.takes_routed_tag(stored, request.worker.as_ref())?)
    }

    fn is_running(&self, session: i64) -> DbResult<bool> {
        Ok(self.number(sql!("session/lease/is_running"), params![session, self.now])? == 1)
    }

    pub(crate) fn release_sessions(
        &self,
        owner: &Owner,
        sessions: &[SessionRef],
        reason: ReleaseReason,
    ) -> DbResult<Vec<SessionRef>> {
        self.check_incarnation("release_sessions", owner)?;
        let mut released = Vec::new();
        for claim in sessions {
            let Some(id) = self.known_session(&claim.key)? else { continue };
            self.end_replaced(id, owner, claim)?;
            let Some(session) = self.session_row(id)? else { continue };
            if !session.is_leased_to(owner, self.now) {
                continue;
            }
            match session.closed_epoch {
                None if unsigned(session.epoch) == claim.epoch => {
                    self.end_claim(id, reason)?;
                    released.push(claim.clone());
                }
                // The owner of a closed session has detached it.
                Some(closed) if unsigned(closed) == claim.epoch => self.release(id)?,
                None | Some(_) => {}
            }
        }
        Ok(released)
    }

    /// Removes sessions without a live lease and without work, if they are shared or their instance does not
    /// exist. A removed session that is claimed again still gets a higher epoch, because all epochs come from
    /// one counter.
    pub(crate) fn cleanup_sessions(&self) -> DbResult<usize> {
        let removed = self.all(sql!("session/cleanup"), [self.now], read)?;
        for session in &removed {
            self.note_expiry(session)?;
        }
        self.run(sql!("session/cleanup_names"), [self.now])?;
        self.forget_ended_leases()?;
        Ok(removed.len())
    }

    /// Applies the session changes in the events of a commit, and the watches that the commit adds or ends.
    pub(crate) fn record_sessions(&self, key: i64, instance: &str, commit: &TurnCommit) -> DbResult<()> {
        for effect in SessionEffect::of(&commit.events) {
            match effect {
                SessionEffect::Open { session_id, idle_timeout_ms, concurrency } => {
                    let id = self.session_number(&SessionKey::owned(instance, session_id))?;
                    let serial = concurrency.map(|concurrency| concurrency == SessionConcurrency::Serial);
                    let is_kept = self.session_row(id)?.is_some_and(|row| row.closed_epoch.is_some());
                    let epoch = if is_kept { self.next()? } else { 0 };
                    let columns = params![id, self.now, idle_timeout_ms.map(time), serial, epoch];
                    self.run(sql!("session/open"), columns)?;
                    self.refresh_heads(id)?;
                }
                SessionEffect::Close { session_id } => {
                    self.close_session(&SessionKey::owned(instance, session_id))?;
                }
                SessionEffect::CloseAll => self.close_sessions_of(instance)?,
            }
        }
        for watched in &commit.watched {
            let columns = params![stored_scope(watched), watched.session_id, key, time(commit.execution_id)];
            self.run(sql!("session/watch/begin"), columns)?;
        }
        if commit.ends_execution() {
            self.run(sql!("session/watch/end"), params![key, time(commit.execution_id)])?;
        }
        Ok(())
    }

    pub(crate) fn close_sessions_of(&self, instance: &str) -> DbResult<()> {
        for id in self.all(sql!("session/of_instance"), [instance], |row| row.get::<_, String>(0))? {
            self.close_session(&SessionKey::owned(instance, id))?;
        }
        Ok(())
    }

    /// Closes a session of an instance and removes its activities, queued and running. The worker that runs
    /// one learns of it at its next call.
    fn close_session(&self, key: &SessionKey) -> DbResult<()> {
        if let Some(id) = self.known_session(key)? {
            self.check_work_of_session(id)?;
            self.remember_withdrawn_of(id)?;
            self.give_up_torn_work_of(id)?;
            self.remove_rows(&OF_CLOSED, [id])?;
            self.run(sql!("session/head/drop_all"), [id])?;
            self.note_end(id, SessionChange::Closed)?;
            self.run(sql!("session/close"), params![id, self.now])?;
        }
        Ok(())
    }

    pub(crate) fn sessions(&self, after: Option<&SessionKey>) -> DbResult<Vec<SessionInfo>> {
        let page = i64::try_from(MAX_PAGE).unwrap_or(i64::MAX);
        let (scope, id) = after.map_or((None, ""), |key| (Some(stored_scope(key)), key.session_id.as_str()));
        let rows = self.all(sql!("session/page"), params![scope, id, page], read)?;
        rows.into_iter().map(|row| self.info(row)).collect()
    }

    pub(crate) fn session(&self, key: &SessionKey) -> DbResult<Option<SessionInfo>> {
        let columns = params![stored_scope(key), key.session_id];
        let row = self.one(sql!("session/row"), columns, read)?;
        row.map(|row| self.info(row)).transpose()
    }

    fn info(&self, row: SessionRow) -> DbResult<SessionInfo> {
        // A session whose last claim was closed has no owner, although the lease of that claim may last.
        let is_claimed = row.closed_epoch.is_none();
        Ok(SessionInfo {
            queued: unsigned(self.number(sql!("session/queued"), [row.id])?),
            key: row.key,
            owner: row.owner.filter(|_| is_claimed),
            epoch: if is_claimed { unsigned(row.epoch) } else { 0 },
            locked_until_ms: if is_claimed { unsigned(row.locked_until) } else { 0 },
            last_activity_at_ms: unsigned(row.last_activity),
            idle_timeout_ms: row.idle_timeout.map(unsigned),
            concurrency: if row.serial { SessionConcurrency::Serial } else { SessionConcurrency::Unbounded },
        })
    }
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<SessionRow> {
    let owner: Option<String> = row.get(4)?;
    let incarnation: Option<i64> = row.get(5)?;
    Ok(SessionRow {
        id: row.get(0)?,
        key: session_key(row.get(1)?, row.get(2)?),
        held: row.get(3)?,
        owner: owner.map(|id| Owner { id, incarnation: incarnation.map(unsigned) }),
        locked_until: row.get(6)?,
        last_activity: row.get(7)?,
        epoch: row.get(8)?,
        idle_timeout: row.get(9)?,
        serial: row.get(10)?,
        closed_epoch: row.get(11)?,
        is_released: row.get(12)?,
    })
}
