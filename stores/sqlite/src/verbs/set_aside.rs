//! Rows that cannot be read: set aside with the reason, listed, retried, dropped (S15).

use rusqlite::params;
use steadfast_core::{SessionKey, WorkItem};
use steadfast_store::rules::{
    UnreadableText, is_start, needs_no_code, no_such_row, read_text, session_key, stored_tag,
};
use steadfast_store::{MAX_PAGE, NewWork, Queue, SetAside};

use crate::link::db::{Db, sql, text_if_any, time, unsigned};
use crate::link::error::DbResult;
use crate::verbs::message::{MessageRow, WorkTexts};
use crate::verbs::torn::source::TornSource;
use crate::verbs::work::call::{CALLED, place_of, uncalled_tag};
use crate::verbs::work::tries::StoredCall;

/// A row that was set aside, with all that it had. What an older build did not keep is `None`.
struct Aside {
    queue: Queue,
    instance: Option<String>,
    payload: String,
    traceparent: Option<String>,
    starts: Option<bool>,
    due: Option<i64>,
    life: Option<i64>,
    /// The execution and the activity.
    identity: Option<(i64, i64)>,
    tag: Option<String>,
    session: Option<SessionKey>,
    /// The row itself, if it could not be removed because it is torn.
    torn: Option<i64>,
    /// How an activity failed, as JSON.
    failure: Option<String>,
    call: StoredCall,
}

impl Db<'_> {
    pub(crate) fn put_message_aside(
        &self,
        instance: &str,
        row: &MessageRow,
        reason: &UnreadableText,
    ) -> DbResult<()> {
        let (id, attempts) = (self.next()?, row.attempts.saturating_add(1));
        let reason = reason_of(&row.item, reason);
        tell(id, Queue::Orchestrator, Some(instance), &reason, attempts);
        let columns = params![
            id,
            instance,
            row.item,
            reason,
            attempts,
            self.now,
            row.traceparent,
            row.starts,
            row.due,
            row.life,
            row.seq
        ];
        self.run(sql!("set_aside/message"), columns)?;
        Ok(())
    }

    pub(crate) fn put_work_aside(
        &self,
        seq: i64,
        instance: Option<&str>,
        (payload, traceparent): (&str, Option<&str>),
        reason: &UnreadableText,
        attempts: u32,
    ) -> DbResult<()> {
        let (id, reason) = (self.next()?, reason_of(payload, reason));
        tell(id, Queue::Worker, instance, &reason, attempts);
        let columns = params![id, instance, payload, reason, attempts, self.now, seq, traceparent];
        self.run(sql!("set_aside/work"), columns)?;
        Ok(())
    }

    pub(crate) fn set_aside(&self, after: Option<u64>) -> DbResult<Vec<SetAside>> {
        let page = i64::try_from(MAX_PAGE).unwrap_or(i64::MAX);
        self.all(sql!("set_aside/page"), params![after.map_or(-1, time), page], read)
    }

    /// Puts a row back into its queue as it was, with an attempt count of 0. If it still cannot be read, the
    /// next fetch meets it again.
    pub(crate) fn retry_set_aside(&self, id: u64) -> DbResult<()> {
        let row = self
            .one(sql!("set_aside/show"), [time(id)], Aside::read)?
            .ok_or_else(|| no_such_row("retry_set_aside", id))?;
        self.run(sql!("set_aside/delete"), [time(id)])?;
        if let Some(torn) = row.torn {
            return self.retry_torn_aside(row.queue, torn);
        }
        match row.queue {
            Queue::Orchestrator => self.return_message(&row),
            Queue::Worker => self.return_work(&row),
        }
    }

    fn return_message(&self, row: &Aside) -> DbResult<()> {
        let item = read_text::<WorkItem>(&row.payload).ok();
        let starts = row.starts.unwrap_or_else(|| item.as_ref().is_some_and(is_start));
        let key = self.key_of(instance_of(row, item.as_ref()))?;
        let (due, life, failure) = (row.due, row.life, &row.failure);
        let columns = params![key, self.now, starts, row.payload, row.traceparent, due, life, failure];
        self.run(sql!("set_aside/return_message"), columns)?;
        self.touch_turn(key, self.now)?;
        if item.as_ref().is_some_and(needs_no_code) {
            self.run(sql!("route/turn/needs_no_code"), [self.last_insert()])?;
            self.end_route(key)?;
        }
        Ok(())
    }

    fn return_work(&self, row: &Aside) -> DbResult<()> {
        let item = read_text::<WorkItem>(&row.payload).ok();
        if let (None, Some(item @ WorkItem::ActivityExecute { .. })) = (row.identity, &item) {
            let work = NewWork::from(item.clone());
            return self.insert_work(&work, &WorkTexts::of("retry_set_aside", &work)?);
        }
        let key = self.key_of(instance_of(row, item.as_ref()))?;
        let (execution, activity) = row.identity.unwrap_or((0, 0));
        let kept = row.tag.clone().unwrap_or_else(|| stored_tag(None));
        let session = row.session.as_ref().map(|session| self.session_number(session)).transpose()?;
        // The terms of a torn row are not known, and its tag tells that it had some.
        let has_terms = row.call.terms.is_some() || kept.starts_with(CALLED);
        let (place, tag) = place_of(session, uncalled_tag(&kept).to_owned(), has_terms);
        let columns = params![
            key,
            execution,
            activity,
            tag,
            place,
            self.now,
            row.payload,
            row.traceparent,
            row.call.terms,
            row.call.deliveries,
            row.call.tries,
            row.call.last_error,
            row.call.first_fetched
        ];
        self.run(sql!("set_aside/return_work"), columns)?;
        self.wake_work(place, &tag);
        session.map_or(Ok(()), |session| self.refresh_heads(session))
    }

    pub(crate) fn drop_set_aside(&self, id: u64) -> DbResult<()> {
        match self.run(sql!("set_aside/delete"), [time(id)])? {
            0 => Err(no_such_row("drop_set_aside", id).into()),
            _ => Ok(()),
        }
    }
}

/// Returns why a text cannot be read. One that stands in the place of a torn row says so itself.
fn reason_of(text: &str, reason: &UnreadableText) -> String {
    if TornSource::of(text).is_some() { text.to_owned() } else { reason.to_string() }
}

pub(crate) fn tell(
    id: i64,
    queue: Queue,
    instance: Option<&str>,
    reason: &dyn std::fmt::Display,
    attempts: u32,
) {
    tracing::warn!(
        target: "steadfast::store",
        id, ?queue, instance, %reason, attempts,
        "unreadable row set aside"
    );
}

/// Returns the instance of a row; the row of an older build may know it from its text only.
fn instance_of<'a>(row: &'a Aside, item: Option<&'a WorkItem>) -> &'a str {
    row.instance.as_deref().or_else(|| item.map(WorkItem::instance)).unwrap_or_default()
}

impl Aside {
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let execution: Option<i64> = row.get(7)?;
        let session: Option<String> = row.get(10)?;
        Ok(Self {
            queue: queue_of(row.get(0)?),
            instance: row.get(1)?,
            payload: row.get(2)?,
            traceparent: row.get(3)?,
            starts: row.get(4)?,
            due: row.get(5)?,
            life: row.get(6)?,
            identity: execution.zip(row.get(8)?),
            tag: row.get(9)?,
            session: session.zip(row.get(11)?).map(|(scope, id)| session_key(scope, id)),
            torn: row.get(12)?,
            failure: text_if_any(row, 13)?,
            call: StoredCall::read(row, 14)?,
        })
    }
}

/// Returns the stored number of a queue.
pub(crate) fn number_of(queue: Queue) -> i64 {
    match queue {
        Queue::Orchestrator => 0,
        Queue::Worker => 1,
    }
}

fn queue_of(number: i64) -> Queue {
    if number == 0 { Queue::Orchestrator } else { Queue::Worker }
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<SetAside> {
    let payload: String = row.get(3)?;
    Ok(SetAside {
        id: unsigned(row.get(0)?),
        queue: queue_of(row.get(1)?),
        instance: row.get(2)?,
        // The text of a torn row is not known.
        payload: if TornSource::of(&payload).is_some() { String::new() } else { payload },
        reason: row.get(4)?,
        attempts: row.get(5)?,
        at_ms: unsigned(row.get(6)?),
    })
}
