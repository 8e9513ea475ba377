//! Messages and activities: how they come into their queues, and what is done with those that cannot be read.

use rusqlite::params;
use serde::Serialize;
use steadfast_core::{WorkItem, kind_of};
use steadfast_store::{
    MAX_UNREADABLE_ATTEMPTS, Message, NewWork, ProviderError, ProviderErrorKind, Queue, Started,
    UNREADABLE_RETRY,
};

use crate::db::{Db, sql, text_of};
use crate::error::{Done, Fault};

/// A message as it is stored.
pub(crate) struct Row {
    pub(crate) seq: i64,
    pub(crate) item: String,
    pub(crate) attempts: u32,
    pub(crate) traceparent: Option<String>,
    pub(crate) starts: bool,
}

impl Row {
    pub(crate) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get(0)?,
            item: text_of(row, 1)?,
            attempts: row.get(2)?,
            traceparent: row.get(3)?,
            starts: row.get(4)?,
        })
    }
}

/// A message that is ready to be stored.
pub(crate) struct Letter {
    pub(crate) message: Message,
    pub(crate) text: String,
    pub(crate) delay: Option<std::time::Duration>,
}

impl Db<'_> {
    /// The key of an instance; one that nothing referred to gets a row.
    pub(crate) fn key_of(&self, instance: &str) -> Done<i64> {
        if let Some(key) = self.maybe(sql!("instance/key"), [instance])? {
            return Ok(key);
        }
        self.run(sql!("instance/create"), [instance])?;
        Ok(self.last_insert())
    }

    pub(crate) fn send(&self, letters: &[Letter]) -> Done<()> {
        for letter in letters {
            let visible_at = self.after(letter.delay.unwrap_or_default());
            self.insert_message(&letter.message, &letter.text, visible_at)?;
        }
        Ok(())
    }

    pub(crate) fn start(&self, start: &Letter, also: &[Letter]) -> Done<Started> {
        let known = match self.maybe(sql!("instance/key"), [start.message.item.instance()])? {
            Some(key) => self.exists(key)?,
            None => false,
        };
        if !known {
            self.send(std::slice::from_ref(start))?;
        }
        self.send(also)?;
        Ok(if known { Started::Existing } else { Started::New })
    }

    /// Does the instance exist: has it a row, any history, or a start that is still to come (S17)?
    pub(crate) fn exists(&self, key: i64) -> Done<bool> {
        Ok(self.number(sql!("instance/exists"), [key])? == 1)
    }

    pub(crate) fn insert_message(&self, message: &Message, text: &str, visible_at: i64) -> Done<()> {
        let key = self.key_of(message.item.instance())?;
        let ready = visible_at <= self.now;
        let starts = is_start(&message.item);
        let columns = params![key, i64::from(ready), visible_at, starts, text, message.traceparent];
        self.run(sql!("message/insert"), columns)?;
        if ready {
            self.touch_turn(key, visible_at)?;
        } else {
            // A parked fetch must learn of the new moment at which it has something to do.
            self.woken.borrow_mut().turns += 1;
        }
        Ok(())
    }

    pub(crate) fn insert_work(&self, work: &NewWork, text: &str) -> Done<()> {
        let WorkItem::ActivityExecute { instance, execution_id, id, tag, .. } = &work.item else {
            return Err(Fault::invalid("enqueue_work", "only activities are work"));
        };
        let key = self.key_of(instance)?;
        let session = work.session_key().map(|session| self.session_number(&session)).transpose()?;
        let (execution, activity) = (crate::db::time(*execution_id), crate::db::time(*id));
        let columns = params![
            key,
            execution,
            activity,
            stored_tag(tag.as_deref()),
            session,
            self.now,
            text,
            work.traceparent
        ];
        self.run(sql!("work/insert"), columns)?;
        self.woken.borrow_mut().work.push((tag.clone(), session.is_some()));
        if let Some(session) = session {
            self.refresh_heads(session)?;
        }
        Ok(())
    }

    /// Separates what can be read; the rest is counted, delayed, and in the end set aside (S15).
    pub(crate) fn pass_over_unreadable_messages(
        &self,
        instance: &str,
        rows: Vec<Row>,
    ) -> Done<Vec<(Row, WorkItem)>> {
        let mut readable = Vec::with_capacity(rows.len());
        for row in rows {
            match serde_json::from_str::<WorkItem>(&row.item) {
                Ok(item) => readable.push((row, item)),
                Err(error) if row.attempts + 1 < MAX_UNREADABLE_ATTEMPTS => {
                    tracing::debug!(target: "steadfast::store", instance, %error, "unreadable message passed over");
                    self.run(
                        sql!("message/delay_unreadable"),
                        params![row.seq, self.after(UNREADABLE_RETRY)],
                    )?;
                }
                Err(error) => {
                    self.put_aside(Queue::Orchestrator, Some(instance), &row.item, &error, row.attempts + 1)?;
                    self.run(sql!("message/delete"), [row.seq])?;
                }
            }
        }
        Ok(readable)
    }
}

pub(crate) fn is_start(item: &WorkItem) -> bool {
    matches!(
        item,
        WorkItem::StartOrchestration { .. }
            | WorkItem::ContinueAsNew { .. }
            | WorkItem::ContinueAsNewWithSessions { .. }
    )
}

/// Tags as they are stored: no tag is none of the tags that anybody can give.
pub(crate) fn stored_tag(tag: Option<&str>) -> String {
    tag.map_or_else(String::new, |tag| format!(":{tag}"))
}

/// Refuses what is no activity.
pub(crate) fn check_work(operation: &str, item: &WorkItem) -> Result<(), ProviderError> {
    match item {
        WorkItem::ActivityExecute { .. } => Ok(()),
        other => Err(ProviderError::new(
            ProviderErrorKind::Invalid,
            operation,
            format!("{} is a message to an instance, not work for a worker", kind_of(other)),
        )),
    }
}

pub(crate) fn text(operation: &str, item: &impl Serialize) -> Result<String, ProviderError> {
    serde_json::to_string(item).map_err(|error| {
        ProviderError::new(
            ProviderErrorKind::Invalid,
            operation,
            format!("it cannot be written as JSON: {error}"),
        )
    })
}
