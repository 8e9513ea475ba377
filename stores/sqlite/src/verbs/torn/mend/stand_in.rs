//! Rows that stand in the place of torn ones: they have what the indexes know, and what stands in front of
//! the text if that can be read. Each decides as the torn one did: which lease holds it, when it is due, in
//! which order and for whom.

use rusqlite::{Row, params};
use steadfast_core::{Event, EventKind};
use steadfast_store::ProviderErrorKind;
use steadfast_store::rules::stored_tag;

use super::view::{IndexedMessage, IndexedWork, Listed};
use crate::link::db::{Db, sql, text_of};
use crate::link::error::{DbResult, Fault, is_io, kind_of};
use crate::verbs::torn::source::TornSource;
use crate::verbs::worker::route::session_of;

/// The columns of a torn message that stand in front of its text.
pub(super) struct MessageFront {
    attempts: i64,
    pub(super) token: Option<String>,
}

/// The columns of a torn activity that stand in front of its text.
pub(super) struct WorkFront {
    attempts: i64,
    tag: String,
    unreadable: bool,
    epoch: Option<i64>,
    worker: Option<String>,
}

pub(super) struct MessageStandIn<'r> {
    pub(super) row: &'r IndexedMessage,
    pub(super) token: Option<String>,
    pub(super) front: Option<MessageFront>,
    pub(super) listed: Option<Listed>,
}

pub(super) struct WorkStandIn<'r> {
    pub(super) row: &'r IndexedWork,
    pub(super) front: Option<WorkFront>,
    pub(super) epoch: Option<i64>,
    /// The stored tag with which its history has scheduled it.
    pub(super) scheduled_tag: Option<String>,
    pub(super) listed: Option<Listed>,
}

impl MessageStandIn<'_> {
    pub(super) fn put(&self, db: &Db<'_>, source: &TornSource) -> DbResult<()> {
        let Self { row, token, front, listed } = self;
        let held_back = listed.and_then(|listed| listed.until).filter(|_| token.is_none());
        let visible_at = held_back.max(row.visible_at).unwrap_or(row.due);
        let state = if held_back.is_some() { 0 } else { row.state };
        let attempts = attempts_of(*listed, front.as_ref().map(|front| front.attempts), token.is_some());
        let columns = params![
            source.row,
            row.key,
            state,
            visible_at,
            attempts,
            token,
            row.starts,
            source.text(),
            row.due,
            row.needs_code
        ];
        db.run(sql!("torn/message/mend/put"), columns)?;
        db.touch_turn(row.key, row.due.min(db.now))
    }
}

impl WorkStandIn<'_> {
    pub(super) fn put(&self, db: &Db<'_>, source: &TornSource) -> DbResult<()> {
        let Self { row, front, epoch, scheduled_tag, listed } = self;
        let until = listed.and_then(|listed| listed.until);
        let is_leased = row.token.is_some();
        // The list holds a leased one back for as long as its lease was renewed.
        let locked_until = row.locked_until.max(until.filter(|_| is_leased));
        let held_back = until.filter(|_| !is_leased);
        let tag = row.tag.as_ref().or(front.as_ref().map(|front| &front.tag)).or(scheduled_tag.as_ref());
        let tag = tag.cloned().unwrap_or_default();
        let is_unreadable = held_back.is_some() || front.as_ref().is_some_and(|front| front.unreadable);
        let columns = params![
            source.row,
            row.key,
            row.execution,
            row.activity,
            if held_back.is_some() { 0 } else { row.state },
            tag,
            row.session,
            held_back.max(row.visible_at).unwrap_or(db.now),
            attempts_of(*listed, front.as_ref().map(|front| front.attempts), is_leased),
            row.token,
            locked_until,
            row.since.unwrap_or(db.now),
            is_unreadable,
            front.as_ref().and_then(|front| front.epoch).or(*epoch),
            front.as_ref().and_then(|front| front.worker.clone()),
            source.text(),
            row.route,
            row.is_refused
        ];
        db.run(sql!("torn/work/mend/put"), columns)?;
        db.work_is_ready(row.session, &tag)
    }
}

/// Returns how often a torn row was looked at in vain, or else how often it was delivered: once, if only its
/// lease is known.
fn attempts_of(listed: Option<Listed>, delivered: Option<i64>, is_leased: bool) -> i64 {
    listed.map(|listed| listed.attempts).or(delivered).unwrap_or(i64::from(is_leased))
}

impl Db<'_> {
    /// Reads what stands in front of the text of a torn message, beside the transaction. `None` if that
    /// cannot be read either, or is not what the indexes know.
    pub(super) fn front_of_message(&self, seq: i64, row: &IndexedMessage) -> DbResult<Option<MessageFront>> {
        let read = |found: &Row<'_>| {
            let is_same = (found.get::<_, i64>(0)?, found.get::<_, i64>(1)?) == (row.key, row.state);
            let front = MessageFront { attempts: found.get::<_, u32>(2)?.into(), token: found.get(3)? };
            Ok(is_same.then_some(front))
        };
        self.front(sql!("torn/message/mend/front"), seq, read)
    }

    /// Reads what stands in front of the text of a torn activity.
    pub(super) fn front_of_work(&self, seq: i64, row: &IndexedWork) -> DbResult<Option<WorkFront>> {
        let read = |found: &Row<'_>| {
            let identity = (found.get::<_, i64>(0)?, found.get::<_, i64>(1)?, found.get::<_, i64>(2)?);
            let is_same = identity == (row.key, row.execution, row.activity)
                && found.get::<_, Option<String>>(8)? == row.token;
            let front = WorkFront {
                attempts: found.get::<_, u32>(3)?.into(),
                tag: found.get(4)?,
                unreadable: found.get(5)?,
                epoch: found.get(6)?,
                worker: found.get(7)?,
            };
            Ok(is_same.then_some(front))
        };
        self.front(sql!("torn/work/mend/front"), seq, read)
    }

    /// Returns the stored tag with which the history of an instance has scheduled an activity, if no index
    /// has the tag and the event can be read.
    pub(super) fn scheduled_tag(&self, row: &IndexedWork) -> DbResult<Option<String>> {
        if row.tag.is_some() {
            return Ok(None);
        }
        let identity = params![row.key, row.execution, row.activity];
        let mut statement = self.beside()?.prepare_cached(sql!("torn/work/mend/event"))?;
        let text = statement.query_row(identity, |row| text_of(row, 0)).ok();
        let event = text.and_then(|text| serde_json::from_str::<Event>(&text).ok());
        Ok(event.and_then(|event| match event.kind {
            EventKind::ActivityScheduled { tag, .. } => Some(stored_tag(tag.as_deref())),
            _ => None,
        }))
    }

    fn front<T>(
        &self,
        statement: &str,
        seq: i64,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<Option<T>>,
    ) -> DbResult<Option<T>> {
        let mut statement = self.beside()?.prepare_cached(statement)?;
        match statement.query_row([seq], read) {
            Ok(front) => Ok(front),
            Err(rusqlite::Error::QueryReturnedNoRows) => Ok(None),
            Err(error) if is_io(&error) || kind_of(&error) == ProviderErrorKind::Corrupt => Ok(None),
            Err(error) => Err(Fault::from(error)),
        }
    }

    /// Returns the epoch under which an activity was leased: that of its session, unless the session was
    /// claimed anew since. Epochs and tokens have their numbers from one counter.
    pub(super) fn epoch_of_lease(&self, row: &IndexedWork) -> DbResult<Option<i64>> {
        let number = row.token.as_deref().and_then(|token| token.strip_prefix("work-")?.parse::<i64>().ok());
        let (Some(number), Some(session)) = (number, session_of(row.session)) else { return Ok(None) };
        Ok(self.maybe(sql!("torn/work/mend/epoch"), [session])?.filter(|epoch| *epoch < number))
    }
}
