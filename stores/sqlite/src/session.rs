//! Sessions: claims, renewals, releases (S13). A session is owned while its lease lasts; nothing else decides.

use rusqlite::params;
use steadfast_core::{EventKind, SessionConcurrency, SessionKey, WorkItem};
use steadfast_store::{
    Appetite, Claim, ClaimedSession, MAX_PAGE, Owner, ProviderError, ProviderErrorKind, RenewSessions,
    SessionInfo, SessionRef, SessionRequest, SessionsRenewed, TurnCommit,
};

use crate::db::{Db, sql, time, unsigned};
use crate::error::Done;
use crate::turn::SWEEP;

/// A session as it is stored.
struct Row {
    id: i64,
    key: SessionKey,
    held: bool,
    owner: Option<Owner>,
    locked_until: i64,
    last_activity: i64,
    epoch: i64,
    idle_timeout: Option<i64>,
    serial: bool,
}

impl Row {
    fn is_live(&self, now: i64) -> bool {
        self.held && self.locked_until > now
    }

    /// Does this process hold the session? A caller that does not know its incarnation is judged by id alone.
    fn is_held_by(&self, owner: &Owner, now: i64) -> bool {
        self.is_live(now)
            && self.owner.as_ref().is_some_and(|holder| {
                holder.id == owner.id
                    && (owner.incarnation.is_none() || holder.incarnation == owner.incarnation)
            })
    }

    fn attachment(&self) -> SessionRef {
        SessionRef { key: self.key.clone(), epoch: unsigned(self.epoch) }
    }
}

impl Db<'_> {
    pub(crate) fn register_node(&self, node_id: &str) -> Done<u64> {
        let incarnation = self.next()?;
        self.run(sql!("session/register_node"), params![node_id, incarnation])?;
        Ok(unsigned(incarnation))
    }

    /// Refuses a call by an earlier start of a node that has started again since.
    pub(crate) fn check_incarnation(&self, operation: &'static str, owner: &Owner) -> Done<()> {
        let Some(given) = owner.incarnation else { return Ok(()) };
        match self.maybe(sql!("session/newest_incarnation"), [&owner.id])? {
            Some(newest) if given < unsigned(newest) => Err(ProviderError::new(
                ProviderErrorKind::LeaseLost,
                operation,
                format!(
                    "incarnation {given} of node '{}' was replaced by incarnation {newest}: another process has \
                     started with the same worker_node_id",
                    owner.id
                ),
            )
            .into()),
            _ => Ok(()),
        }
    }

    /// Moves sessions whose lease has ended to those that nobody holds.
    pub(crate) fn sweep_sessions(&self) -> Done<()> {
        for id in
            self.all(sql!("session/ended_leases"), params![self.now, SWEEP], |row| row.get::<_, i64>(0))?
        {
            self.let_go(id)?;
        }
        Ok(())
    }

    /// Ends leases that no clock of now can have granted.
    pub(crate) fn end_impossible_sessions(&self) -> Done<bool> {
        let found =
            self.all(sql!("session/impossible_leases"), params![self.latest_grant(), SWEEP], |row| {
                row.get::<_, i64>(0)
            })?;
        for id in &found {
            self.let_go(*id)?;
        }
        Ok(!found.is_empty())
    }

    /// Nobody holds the session any more; its work is anybody's.
    fn let_go(&self, id: i64) -> Done<()> {
        self.run(sql!("session/let_go"), params![id, self.now])?;
        if self.run(sql!("session/own_heads"), params![id, ""])? > 0 {
            self.woken.borrow_mut().any_work = true;
        }
        Ok(())
    }

    /// The number of a session; one that nothing referred to gets a row.
    pub(crate) fn session_number(&self, key: &SessionKey) -> Done<i64> {
        if let Some(id) = self.known_session(key)? {
            return Ok(id);
        }
        self.run(sql!("session/create"), params![scope_of(key), key.session_id])?;
        Ok(self.last_insert())
    }

    pub(crate) fn known_session(&self, key: &SessionKey) -> Done<Option<i64>> {
        self.maybe(sql!("session/number"), params![scope_of(key), key.session_id])
    }

    fn session_row(&self, id: i64) -> Done<Option<Row>> {
        self.one(sql!("session/show"), [id], read)
    }

    pub(crate) fn is_held_by(&self, id: i64, owner: &Owner) -> Done<bool> {
        Ok(self.session_row(id)?.is_some_and(|session| session.is_held_by(owner, self.now)))
    }

    /// Attaches the session to the process that serves it now, or extends the attachment that it has.
    pub(crate) fn attach(&self, id: i64, request: &SessionRequest) -> Done<ClaimedSession> {
        let until = self.lease_until(request.lock_timeout)?;
        let Some(session) = self.session_row(id)? else {
            let text = format!("session {id} vanished inside a transaction");
            return Err(ProviderError::permanent("fetch_work", text).into());
        };
        if session.is_held_by(&request.owner, self.now) {
            self.run(sql!("session/extend"), params![id, session.locked_until.max(until), self.now])?;
            return Ok(ClaimedSession {
                key: session.key,
                epoch: unsigned(session.epoch),
                claim: Claim::Held,
            });
        }
        let epoch = self.next()?;
        let owner = &request.owner;
        let incarnation = owner.incarnation.map(time);
        self.run(sql!("session/claim"), params![id, owner.id, incarnation, until, self.now, epoch])?;
        self.run(sql!("session/own_heads"), params![id, format!(":{}", owner.id)])?;
        let from = session.owner.map(|owner| owner.id);
        self.tell_watchers(&session.key, epoch, from.as_deref(), &owner.id)?;
        let claim = from.map_or(Claim::New, |from| Claim::Taken { from });
        Ok(ClaimedSession { key: session.key, epoch: unsigned(epoch), claim })
    }

    /// Takes a claim back that nobody came to use.
    pub(crate) fn unclaim(&self, key: &SessionKey, epoch: u64) -> Done<()> {
        let Some(id) = self.known_session(key)? else { return Ok(()) };
        match self.session_row(id)? {
            Some(session) if unsigned(session.epoch) == epoch => self.let_go(id),
            _ => Ok(()),
        }
    }

    /// Tells the executions that asked of a new attachment, each from the second one it sees.
    fn tell_watchers(&self, key: &SessionKey, epoch: i64, from: Option<&str>, to: &str) -> Done<()> {
        let watched = params![scope_of(key), key.session_id];
        let mut watchers = self.all(sql!("session/watchers"), watched, |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, bool>(2)?))
        })?;
        if watchers.is_empty() {
            return Ok(());
        }
        // In the order of their names, so that all stores tell them in the same order.
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
                let text = crate::message::text("fetch_work", &message)?;
                self.insert_message(&message.into(), &text, self.now)?;
            }
        }
        self.run(sql!("session/watchers_have_seen"), params![scope_of(key), key.session_id])?;
        Ok(())
    }

    /// Finds the oldest ready activity of a session and tag anew.
    pub(crate) fn refresh_head(&self, session: i64, tag: &str) -> Done<()> {
        let Some(row) = self.session_row(session)? else { return Ok(()) };
        if row.serial {
            return self.refresh_heads(session);
        }
        let head = self.maybe(sql!("session/first_of_tag"), params![session, tag])?;
        self.put_head(&row, tag, head)
    }

    /// Finds all heads of a session anew.
    pub(crate) fn refresh_heads(&self, session: i64) -> Done<()> {
        let Some(row) = self.session_row(session)? else { return Ok(()) };
        self.run(sql!("session/drop_heads"), [session])?;
        if row.serial {
            // The first in line, if it is ready and none runs: then it is also the only one that may be taken.
            let first = self.one(sql!("session/first_in_line"), [session], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?))
            })?;
            return match first {
                Some((seq, 1, tag)) => {
                    self.woken.borrow_mut().work.push((tag.strip_prefix(':').map(str::to_owned), true));
                    self.put_head(&row, &tag, Some(seq))
                }
                _ => Ok(()),
            };
        }
        let mut from = String::new();
        while let Some(Some(tag)) =
            self.one(sql!("session/next_tag"), params![session, from], |row| row.get::<_, Option<String>>(0))?
        {
            let head = self.maybe(sql!("session/first_of_tag"), params![session, tag])?;
            self.put_head(&row, &tag, head)?;
            from = format!("{tag}\0");
        }
        Ok(())
    }

    fn put_head(&self, session: &Row, tag: &str, head: Option<i64>) -> Done<()> {
        let owner = match &session.owner {
            Some(owner) if session.held => format!(":{}", owner.id),
            _ => String::new(),
        };
        match head {
            Some(head) => {
                self.run(sql!("session/put_head"), params![session.id, tag, head, owner, session.serial])?
            }
            None => self.run(sql!("session/drop_head"), params![session.id, tag])?,
        };
        Ok(())
    }

    /// Work on a session keeps it from going idle, if its holder still has the attachment it had.
    pub(crate) fn touch_session(&self, seq: i64) -> Done<()> {
        self.run(sql!("session/touch"), params![seq, self.now])?;
        Ok(())
    }

    pub(crate) fn renew_sessions(&self, request: &RenewSessions) -> Done<SessionsRenewed> {
        self.check_incarnation("renew_sessions", &request.owner)?;
        self.sweep_work()?;
        let mut outcome = SessionsRenewed::default();
        for session in self.all(sql!("session/of_owner"), [&request.owner.id], read)? {
            if !session.is_held_by(&request.owner, self.now) {
                continue;
            }
            let attachment = session.attachment();
            if self.is_untaken(&session, request)? {
                self.let_go(session.id)?;
                outcome.untaken.push(attachment);
            } else if self.is_idle(&session, request)? {
                outcome.idle.push(attachment);
            } else {
                self.run(sql!("session/renew"), params![session.id, self.lease_until(request.extend_for)?])?;
                outcome.renewed.push(attachment);
            }
        }
        let known = |held: &&SessionRef| {
            ![&outcome.renewed, &outcome.idle, &outcome.untaken].iter().any(|list| list.contains(held))
        };
        let mut lost: Vec<SessionRef> = request.held.iter().filter(known).cloned().collect();
        lost.sort();
        outcome.lost = lost;
        Ok(outcome)
    }

    /// No activity of it runs, and it has had no work for longer than it may.
    fn is_idle(&self, session: &Row, request: &RenewSessions) -> Done<bool> {
        let timeout = match session.key.instance {
            Some(_) => session.idle_timeout,
            None => Some(i64::try_from(request.idle_timeout.as_millis()).unwrap_or(i64::MAX)),
        };
        let idle = timeout.is_some_and(|timeout| session.last_activity.saturating_add(timeout) <= self.now);
        Ok(idle && !self.is_running(session.id)?)
    }

    /// It has had work to take for longer than it may, and its owner will not take it soon.
    fn is_untaken(&self, session: &Row, request: &RenewSessions) -> Done<bool> {
        let patience = i64::try_from(request.untaken_after.as_millis()).unwrap_or(i64::MAX);
        let before = self.now.saturating_sub(patience);
        for (tag, _) in self.all(sql!("work/heads_of_session"), [session.id], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
        })? {
            let refused = request.appetite == Appetite::Full || !request.tags.matches(tag.strip_prefix(':'));
            if refused && self.number(sql!("session/waits_since"), params![session.id, tag, before])? == 1 {
                return Ok(!self.is_running(session.id)?);
            }
        }
        Ok(false)
    }

    fn is_running(&self, session: i64) -> Done<bool> {
        Ok(self.number(sql!("session/is_running"), params![session, self.now])? == 1)
    }

    pub(crate) fn release_sessions(&self, owner: &Owner, sessions: &[SessionRef]) -> Done<Vec<SessionRef>> {
        self.check_incarnation("release_sessions", owner)?;
        let mut released = Vec::new();
        for attachment in sessions {
            let Some(id) = self.known_session(&attachment.key)? else { continue };
            if let Some(session) = self.session_row(id)?
                && unsigned(session.epoch) == attachment.epoch
                && session.is_held_by(owner, self.now)
            {
                self.let_go(id)?;
                released.push(attachment.clone());
            }
        }
        Ok(released)
    }

    /// Removes shared sessions that have ended and have no work, and owned ones whose instance is gone. What is
    /// removed changes nothing for anybody: epochs come from one counter.
    pub(crate) fn cleanup_sessions(&self) -> Done<usize> {
        let removed = self.run(sql!("session/cleanup"), [self.now])?;
        self.run(sql!("session/cleanup_names"), [])?;
        Ok(removed)
    }

    /// Applies what the events of a turn say about the sessions of its instance.
    pub(crate) fn apply_sessions(&self, key: i64, instance: &str, commit: &TurnCommit) -> Done<()> {
        for event in &commit.events {
            match &event.kind {
                EventKind::SessionOpened { session_id, idle_timeout_ms, concurrency } => {
                    let id = self.session_number(&SessionKey::owned(instance, session_id))?;
                    let serial = concurrency.map(|concurrency| concurrency == SessionConcurrency::Serial);
                    self.run(sql!("session/open"), params![id, self.now, idle_timeout_ms.map(time), serial])?;
                    self.refresh_heads(id)?;
                }
                EventKind::SessionClosed { session_id } => {
                    self.close_session(&SessionKey::owned(instance, session_id))?;
                }
                EventKind::OrchestrationCompleted { .. } | EventKind::OrchestrationFailed { .. } => {
                    self.close_sessions_of(instance)?;
                }
                _ => {}
            }
        }
        for watched in &commit.watched {
            let columns = params![scope_of(watched), watched.session_id, key, time(commit.execution_id)];
            self.run(sql!("session/watch"), columns)?;
        }
        if commit.metadata.status.as_deref().is_some_and(|status| status != "Running") {
            self.run(sql!("session/unwatch"), params![key, time(commit.execution_id)])?;
        }
        Ok(())
    }

    pub(crate) fn close_sessions_of(&self, instance: &str) -> Done<()> {
        for id in self.all(sql!("session/of_instance"), [instance], |row| row.get::<_, String>(0))? {
            self.close_session(&SessionKey::owned(instance, id))?;
        }
        Ok(())
    }

    /// Forgets the session and withdraws its work.
    fn close_session(&self, key: &SessionKey) -> Done<()> {
        if let Some(id) = self.known_session(key)? {
            self.run(sql!("session/drop_work"), [id])?;
            self.run(sql!("session/drop_heads"), [id])?;
            self.run(sql!("session/close"), [id])?;
        }
        Ok(())
    }

    pub(crate) fn sessions(&self, after: Option<&SessionKey>) -> Done<Vec<SessionInfo>> {
        let page = i64::try_from(MAX_PAGE).unwrap_or(i64::MAX);
        let (scope, id) = after.map_or((None, ""), |key| (Some(scope_of(key)), key.session_id.as_str()));
        let rows = self.all(sql!("session/page"), params![scope, id, page], read)?;
        rows.into_iter().map(|row| self.info(row)).collect()
    }

    pub(crate) fn session(&self, key: &SessionKey) -> Done<Option<SessionInfo>> {
        let columns = params![scope_of(key), key.session_id];
        let row = self.one(sql!("session/row"), columns, read)?;
        row.map(|row| self.info(row)).transpose()
    }

    fn info(&self, row: Row) -> Done<SessionInfo> {
        Ok(SessionInfo {
            queued: unsigned(self.number(sql!("session/queued"), [row.id])?),
            key: row.key,
            owner: row.owner,
            epoch: unsigned(row.epoch),
            locked_until_ms: unsigned(row.locked_until),
            last_activity_at_ms: unsigned(row.last_activity),
            idle_timeout_ms: row.idle_timeout.map(unsigned),
            concurrency: if row.serial { SessionConcurrency::Serial } else { SessionConcurrency::Unbounded },
        })
    }
}

/// The scope of a session as it is stored: '' for a shared one.
fn scope_of(key: &SessionKey) -> &str {
    key.instance.as_deref().unwrap_or_default()
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    let scope: String = row.get(1)?;
    let owner: Option<String> = row.get(4)?;
    let incarnation: Option<i64> = row.get(5)?;
    Ok(Row {
        id: row.get(0)?,
        key: SessionKey { instance: (!scope.is_empty()).then_some(scope), session_id: row.get(2)? },
        held: row.get(3)?,
        owner: owner.map(|id| Owner { id, incarnation: incarnation.map(unsigned) }),
        locked_until: row.get(6)?,
        last_activity: row.get(7)?,
        epoch: row.get(8)?,
        idle_timeout: row.get(9)?,
        serial: row.get(10)?,
    })
}
