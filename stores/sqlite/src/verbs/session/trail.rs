//! The trails of sessions: which process owned a session, from when to when, and why that changed. They are
//! written in the transactions that change the owner; a fetch or a renewal by the owner does not touch them.

use std::time::Duration;

use rusqlite::{Params, params};
use steadfast_core::SessionKey;
use steadfast_store::rules::stored_scope;
use steadfast_store::{MAX_PAGE, MAX_SESSION_TRAIL, MAX_TRAIL, Owner, SessionChange, SessionTrailEntry};

use super::SessionRow;
use crate::link::db::{Db, sql, time, unsigned};
use crate::link::error::{DbResult, Fault, is_torn};

impl Db<'_> {
    /// Writes the claim that a session has into its trail, and removes the oldest claims beyond the bound.
    pub(super) fn note_claim(&self, id: i64, key: &SessionKey) -> DbResult<()> {
        let columns = params![id, self.now, SessionChange::Claimed.as_str()];
        self.write_trail(sql!("session/trail/claimed"), columns)?;
        let columns = params![stored_scope(key), key.session_id, number(MAX_SESSION_TRAIL)];
        self.write_trail(sql!("session/trail/trim"), columns)
    }

    /// Writes into trails, unless a page of them is torn: sessions go on without their trails.
    fn write_trail(&self, statement: &str, params: impl Params) -> DbResult<()> {
        if self.leaves_out_trails() {
            return Ok(());
        }
        let written = self.run(statement, params);
        written.map(drop).map_err(|fault| if is_torn(&fault) { Fault::TornTrail } else { fault })
    }

    /// Removes the trails of the sessions that a deleted instance owned.
    pub(crate) fn forget_trails_of(&self, instance: &str) -> DbResult<()> {
        self.write_trail(sql!("session/trail/forget_instance"), [instance])
    }

    /// Writes the end of the last claim of a session into its trail: the given change if the lease lasts,
    /// else that it expired. It comes before the change of the row.
    pub(super) fn note_end(&self, id: i64, change: SessionChange) -> DbResult<()> {
        let expired = SessionChange::Expired.as_str();
        self.write_trail(sql!("session/trail/ended"), params![id, self.now, change.as_str(), expired])
    }

    /// Writes into the trail of a session whose row was removed that its last claim expired, if it did.
    pub(super) fn note_expiry(&self, session: &SessionRow) -> DbResult<()> {
        let is_expired = session.is_claimed() && !session.is_released;
        let Some(owner) = session.owner.as_ref().filter(|_| is_expired) else { return Ok(()) };
        let columns = params![
            stored_scope(&session.key),
            session.key.session_id,
            session.epoch,
            owner.id,
            owner.incarnation.map(time),
            session.locked_until.min(self.now),
            SessionChange::Expired.as_str(),
        ];
        self.write_trail(sql!("session/trail/expired"), columns)
    }

    pub(crate) fn session_trail(&self, key: &SessionKey) -> DbResult<Vec<SessionTrailEntry>> {
        let expired = SessionChange::Expired.as_str();
        let columns = params![stored_scope(key), key.session_id, self.now, expired];
        let mut trail = self.all(sql!("session/trail/show"), columns, read)?;
        let excess = trail.len().saturating_sub(MAX_SESSION_TRAIL);
        Ok(trail.split_off(excess))
    }

    pub(crate) fn cleanup_session_trails(&self, retention: Duration) -> DbResult<usize> {
        let retention = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
        let before = self.now.saturating_sub(retention);
        let impossible = self.now.saturating_add(retention);
        let columns = params![number(MAX_PAGE), before, time(MAX_TRAIL), impossible];
        self.run(sql!("session/trail/cleanup"), columns)
    }
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<SessionTrailEntry> {
    let incarnation: Option<i64> = row.get(3)?;
    Ok(SessionTrailEntry {
        epoch: unsigned(row.get(0)?),
        owner: Owner { id: row.get(2)?, incarnation: incarnation.map(unsigned) },
        at_ms: unsigned(row.get(4)?),
        change: SessionChange::from_stored(&row.get::<_, String>(5)?),
    })
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
