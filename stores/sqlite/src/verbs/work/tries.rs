//! Tries: the end of one, and what is stored of those that have ended (S22).

use rusqlite::{Row, params};
use steadfast_core::CallTerms;
use steadfast_store::rules::{UnreadableText, no_such_lease, read_text};
use steadfast_store::{EndedTry, LeaseToken, Queue, Tries};

use crate::link::db::{Db, sql, text_if_any, text_or_none, unsigned};
use crate::link::error::DbResult;

/// The columns of an activity that tell of its call.
pub(crate) struct StoredCall {
    /// The terms as JSON.
    pub(crate) terms: Option<String>,
    pub(crate) deliveries: u32,
    pub(crate) tries: u32,
    pub(crate) last_error: Option<String>,
    pub(crate) first_fetched: Option<i64>,
}

impl StoredCall {
    /// Reads the columns `call`, `deliveries`, `tries`, `last_error` and `first_fetched`, from one on.
    pub(crate) fn read(row: &Row<'_>, from: usize) -> rusqlite::Result<Self> {
        Ok(Self {
            terms: text_if_any(row, from)?,
            deliveries: row.get(from + 1)?,
            tries: row.get(from + 2)?,
            last_error: text_or_none(row, from + 3)?,
            first_fetched: row.get(from + 4)?,
        })
    }

    /// Returns the terms of the call.
    pub(crate) fn terms(&self) -> Result<Option<Box<CallTerms>>, UnreadableText> {
        self.terms.as_deref().map(read_text).transpose()
    }

    /// Returns the tries that have ended.
    pub(crate) fn tries(self) -> Tries {
        Tries {
            ended: self.tries,
            last_error: self.last_error,
            first_fetched_ms: self.first_fetched.map(unsigned),
        }
    }
}

impl Db<'_> {
    /// Ends a try: its activity can be fetched again after a delay, in its old place.
    pub(crate) fn end_try(&self, lease: &LeaseToken, ended: &EndedTry) -> DbResult<()> {
        let token = match lease {
            LeaseToken::Turn(token) => return Err(no_such_lease("end_try", token).into()),
            LeaseToken::Work(token) => token,
        };
        let seq = self.work_holder("end_try", token)?;
        self.touch_session(seq)?;
        let visible_at = self.after(ended.retry_after);
        self.run(sql!("work/lease/end_try"), params![seq, ended.error, visible_at, self.now])
            .map_err(|fault| self.torn_fault(Queue::Worker, &[seq], None, fault))?;
        self.run(sql!("ended_lease/forget_work"), [seq])?;
        self.moments.borrow_mut().work.add(visible_at);
        self.work_is_available(seq)
    }

    /// Takes the delivery of a fetch that was dropped off its activity.
    pub(super) fn undo_delivery(&self, seq: i64, is_first: bool) -> DbResult<()> {
        self.run(sql!("work/lease/undo"), params![seq, is_first])
            .map_err(|fault| self.torn_fault(Queue::Worker, &[seq], None, fault))?;
        Ok(())
    }
}
