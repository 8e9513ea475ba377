//! Closed claims that their owner has replaced: it claimed the session after that was opened again. If the
//! fetch that did it is dropped, other processes go on waiting for the closed claim (S13, G41).

use rusqlite::params;
use steadfast_store::{Owner, SessionRef};

use crate::link::db::{Db, sql, time};
use crate::link::error::DbResult;

impl Db<'_> {
    /// Gives a session whose claim was released, because no fetch has used it, the closed claim back that it
    /// had replaced. Does nothing if there is none, its owner has detached it, or its lease has ended.
    pub(super) fn restore_closed(&self, id: i64) -> DbResult<()> {
        let restored = self.one(sql!("session/lease/restore_closed"), params![id, self.now], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
        })?;
        let Some((owner, until)) = restored else { return Ok(()) };
        self.moments.borrow_mut().work.add(until);
        self.run(sql!("session/head/own"), params![id, format!(":{owner}")])?;
        Ok(())
    }

    /// Forgets a closed claim that its owner has replaced, because the owner has detached it.
    pub(super) fn end_replaced(&self, id: i64, owner: &Owner, claim: &SessionRef) -> DbResult<()> {
        let columns = params![id, time(claim.epoch), owner.id, owner.incarnation.map(time)];
        self.run(sql!("session/lease/end_replaced"), columns)?;
        Ok(())
    }
}
