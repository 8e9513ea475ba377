//! Leases that ended without their holder: deliveries that the holder excuses afterwards (S5), and activities
//! that were withdrawn while they ran (S12).

use std::time::Duration;

use rusqlite::params;
use steadfast_store::{LeaseToken, Queue, WITHDRAWN_KNOWN_FOR};

use crate::link::db::{Db, sql};
use crate::link::error::{DbResult, Fault, is_torn};
use crate::verbs::turn::SWEEP;

/// How long after an expired lease, or the last look at it, the clean-up looks whether its rows are gone.
const LOOK_AGAIN: Duration = Duration::from_secs(10 * 60);

impl Db<'_> {
    /// Takes the delivery of an expired lease off the count, once for each lease. A lease that no sweep has
    /// met yet is expired too. Returns whether a delivery was taken off.
    pub(crate) fn excuse(&self, lease: &LeaseToken) -> DbResult<bool> {
        let excused = match lease {
            LeaseToken::Turn(token) => {
                self.sweep_turn_of(token)?;
                self.run(sql!("ended_lease/uncount_messages"), [token])
                    .map_err(|fault| self.torn_fault_of_expired(Queue::Orchestrator, token, fault))?
            }
            LeaseToken::Work(token) => {
                self.sweep_work_of(token)?;
                self.run(sql!("ended_lease/uncount_work"), [token])
                    .map_err(|fault| self.torn_fault_of_expired(Queue::Worker, token, fault))?
            }
        };
        if excused > 0 {
            self.run(sql!("ended_lease/forget"), [lease.as_str()])?;
        }
        Ok(excused > 0)
    }

    /// Returns the fault of a request that met a torn row among those that an expired lease held.
    fn torn_fault_of_expired(&self, queue: Queue, token: &str, fault: Fault) -> Fault {
        if !is_torn(&fault) {
            return fault;
        }
        match self.all(sql!("ended_lease/rows"), [token], |row| row.get::<_, i64>(0)) {
            Ok(rows) => self.torn_fault(queue, &rows, None, fault),
            Err(other) => other,
        }
    }

    /// Remembers the messages that an instance's lease held, before the lease ends by itself.
    pub(crate) fn remember_expired_turn(&self, key: i64) -> DbResult<()> {
        self.run(sql!("ended_lease/expired_turn"), params![key, self.after(LOOK_AGAIN)])?;
        Ok(())
    }

    /// Remembers the lease of an activity, before it ends by itself.
    pub(crate) fn remember_expired_work(&self, seq: i64) -> DbResult<()> {
        self.run(sql!("ended_lease/expired_work"), params![seq, self.after(LOOK_AGAIN)])?;
        Ok(())
    }

    /// Remembers that an activity is withdrawn, if it is leased: its holder is told at its next call. False
    /// if it is not leased, or cannot be read.
    pub(crate) fn remember_withdrawn(&self, seq: i64) -> DbResult<bool> {
        Ok(self.run(sql!("ended_lease/withdrawn"), params![seq, self.now, known_for()])? > 0)
    }

    /// Remembers that an activity is withdrawn that cannot be read, if an index tells that it is leased.
    pub(crate) fn remember_withdrawn_torn(&self, seq: i64) -> DbResult<()> {
        self.run(sql!("torn/work/withdrawn"), params![seq, self.now, known_for()])?;
        Ok(())
    }

    /// Remembers that the leased activities of a session are withdrawn.
    pub(crate) fn remember_withdrawn_of(&self, session: i64) -> DbResult<()> {
        let columns = params![session, self.now, known_for()];
        self.run(sql!("ended_lease/withdrawn_of_session"), columns)?;
        self.run(sql!("torn/work/withdrawn_of_session"), columns)?;
        Ok(())
    }

    /// Tells whether the activity of a lease was withdrawn while the lease lasted.
    pub(crate) fn is_withdrawn(&self, token: &str) -> DbResult<bool> {
        Ok(self.number(sql!("ended_lease/is_withdrawn"), [token])? == 1)
    }

    /// Removes what is remembered of leases whose rows are gone, in a bounded batch.
    pub(crate) fn forget_ended_leases(&self) -> DbResult<()> {
        let due = self.all(sql!("ended_lease/to_look_at"), params![self.now, SWEEP], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
        })?;
        for (token, row) in due {
            let queue = if token.starts_with("turn-") { Queue::Orchestrator } else { Queue::Worker };
            let dropped = self
                .run(sql!("ended_lease/drop_useless"), params![token, row])
                .map_err(|fault| self.torn_fault(queue, &[row], None, fault))?;
            if dropped == 0 {
                self.run(sql!("ended_lease/look_later"), params![token, row, self.after(LOOK_AGAIN)])?;
            }
        }
        Ok(())
    }
}

fn known_for() -> i64 {
    i64::try_from(WITHDRAWN_KNOWN_FOR.as_millis()).unwrap_or(i64::MAX)
}
