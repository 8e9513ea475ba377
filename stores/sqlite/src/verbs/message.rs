//! Sending: how messages and activities come into their queues, and what a fetch does with unreadable
//! messages.

pub(crate) mod life;

use rusqlite::params;
use steadfast_core::{Failure, WorkItem};
use steadfast_store::rules::{
    UnreadableText, check_message, is_start, needs_no_code, read_text, stored_tag, to_json,
};
use steadfast_store::{
    Envelope, MAX_UNREADABLE_ATTEMPTS, Message, NewWork, ProviderError, Started, UNREADABLE_RETRY,
};

use crate::link::db::{Db, sql, text_if_any, text_of, text_or_none, time};
use crate::link::error::{DbResult, Fault};
use crate::verbs::torn::Removal;
use crate::verbs::work::call::place_of;

/// One message that is not delivered.
pub(crate) const ONE_MESSAGE: Removal =
    Removal { remove: sql!("message/delete"), give_up: sql!("torn/message/instead/of_one") };

/// A message as it is stored.
pub(crate) struct MessageRow {
    pub(crate) seq: i64,
    pub(crate) item: String,
    pub(crate) attempts: u32,
    pub(crate) traceparent: Option<String>,
    pub(crate) starts: bool,
    /// The moment at which the message first became due.
    pub(crate) due: i64,
    /// The life of the parent that started the child, or that the child answers.
    pub(crate) life: Option<i64>,
    /// How an activity failed, as JSON.
    pub(crate) failure: Option<String>,
}

impl MessageRow {
    pub(crate) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get(0)?,
            item: text_of(row, 1)?,
            attempts: row.get(2)?,
            traceparent: text_or_none(row, 3)?,
            starts: row.get(4)?,
            due: row.get(5)?,
            life: row.get(6)?,
            failure: text_if_any(row, 7)?,
        })
    }

    /// Returns how an activity failed.
    pub(crate) fn failure(&self) -> Result<Option<Box<Failure>>, UnreadableText> {
        self.failure.as_deref().map(read_text).transpose()
    }

    /// Returns the content of the message, if what stands beside it can be read too.
    pub(crate) fn content(&self) -> Result<WorkItem, UnreadableText> {
        let item = read_text(&self.item)?;
        self.failure()?;
        Ok(item)
    }
}

/// A message to store, already written as JSON, so that the writer only stores it.
pub(crate) struct NewMessage {
    pub(crate) message: Message,
    pub(crate) text: String,
    pub(crate) delay: Option<std::time::Duration>,
}

impl NewMessage {
    pub(crate) fn new(operation: &'static str, envelope: Envelope) -> Result<Self, ProviderError> {
        let Envelope { message, delay } = envelope;
        check_message(operation, &message.item)?;
        let text = to_json(operation, &message.item)?;
        Ok(Self { message, text, delay })
    }

    /// Prepares several messages; one that cannot be sent refuses all.
    pub(crate) fn all(operation: &'static str, envelopes: Vec<Envelope>) -> Result<Vec<Self>, ProviderError> {
        envelopes.into_iter().map(|envelope| Self::new(operation, envelope)).collect()
    }
}

/// The texts of an activity to store, made by the caller, so that the writer only stores them.
pub(crate) struct WorkTexts {
    item: String,
    call: Option<String>,
}

impl WorkTexts {
    pub(crate) fn of(operation: &'static str, work: &NewWork) -> Result<Self, ProviderError> {
        let call = work.call.as_ref().map(|call| to_json(operation, call)).transpose()?;
        Ok(Self { item: to_json(operation, &work.item)?, call })
    }
}

impl Db<'_> {
    /// Returns the key of an instance, and inserts a row for an instance that has none.
    pub(crate) fn key_of(&self, instance: &str) -> DbResult<i64> {
        if let Some(key) = self.maybe(sql!("instance/key"), [instance])? {
            return Ok(key);
        }
        self.run(sql!("instance/create"), [instance])?;
        Ok(self.last_insert())
    }

    pub(crate) fn send(&self, messages: &[NewMessage]) -> DbResult<()> {
        for new in messages {
            let visible_at = self.after(new.delay.unwrap_or_default());
            self.insert_message(&new.message, &new.text, visible_at)?;
        }
        Ok(())
    }

    pub(crate) fn start(&self, start: &NewMessage, also: &[NewMessage]) -> DbResult<Started> {
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

    /// Tells whether the instance exists: it has a row, any history, or a start that is not consumed yet
    /// (S17).
    pub(crate) fn exists(&self, key: i64) -> DbResult<bool> {
        Ok(self.number(sql!("instance/exists"), [key])? == 1 || self.is_asked_for(key)?)
    }

    /// Queues a message that carries no life.
    pub(crate) fn insert_message(&self, message: &Message, text: &str, due: i64) -> DbResult<()> {
        self.insert_message_of(message, text, due, None)
    }

    /// Queues a message that becomes visible at the moment at which it is due.
    pub(crate) fn insert_message_of(
        &self,
        message: &Message,
        text: &str,
        due: i64,
        life: Option<i64>,
    ) -> DbResult<()> {
        let key = self.key_of(message.item.instance())?;
        let ready = due <= self.now;
        let starts = is_start(&message.item);
        let failure = message.failure.as_ref().map(|failure| to_json("send", failure)).transpose()?;
        let ready_now = i64::from(ready);
        let columns = params![key, ready_now, due, starts, text, message.traceparent, life, failure];
        self.run(sql!("message/insert"), columns)?;
        let needs_no_code = needs_no_code(&message.item);
        if needs_no_code {
            self.run(sql!("route/turn/needs_no_code"), [self.last_insert()])?;
        }
        if ready {
            self.touch_turn(key, due)?;
            if needs_no_code {
                self.end_route(key)?;
            }
        } else {
            self.moments.borrow_mut().turn.add(due);
        }
        Ok(())
    }

    pub(crate) fn insert_work(&self, work: &NewWork, texts: &WorkTexts) -> DbResult<()> {
        let WorkItem::ActivityExecute { instance, execution_id, id, tag, .. } = &work.item else {
            return Err(Fault::invalid("enqueue_work", "only activities are work"));
        };
        let key = self.key_of(instance)?;
        let session = work.session_key().map(|session| self.session_number(&session)).transpose()?;
        let (place, stored) = place_of(session, stored_tag(tag.as_deref()), texts.call.is_some());
        let columns = params![
            key,
            time(*execution_id),
            time(*id),
            stored,
            place,
            self.now,
            texts.item,
            work.traceparent,
            texts.call
        ];
        self.run(sql!("work/insert"), columns)?;
        self.woken.borrow_mut().work.push((tag.clone(), session.is_some()));
        if let Some(session) = session {
            self.refresh_heads(session)?;
        }
        Ok(())
    }

    /// Returns the messages that can be read. The others are counted and delayed, and in the end set aside
    /// (S15).
    pub(crate) fn pass_over_unreadable_messages(
        &self,
        instance: &str,
        rows: Vec<MessageRow>,
    ) -> DbResult<Vec<(MessageRow, WorkItem)>> {
        let mut readable = Vec::with_capacity(rows.len());
        for row in rows {
            let read = match row.content() {
                Ok(item) => Ok(item),
                Err(error) => match self.restored_message(instance, &row)? {
                    Some(restored) => {
                        readable.push(restored);
                        continue;
                    }
                    None => Err(error),
                },
            };
            match read {
                Ok(item) => readable.push((row, item)),
                Err(error) if row.attempts + 1 < MAX_UNREADABLE_ATTEMPTS => {
                    tracing::debug!(
                        target: "steadfast::store",
                        instance,
                        %error,
                        "unreadable message passed over"
                    );
                    let until = self.after(UNREADABLE_RETRY);
                    self.run(sql!("message/delay_unreadable"), params![row.seq, until])?;
                    self.moments.borrow_mut().turn.add(until);
                }
                Err(error) => {
                    self.put_message_aside(instance, &row, &error)?;
                    self.remove_rows(&ONE_MESSAGE, [row.seq])?;
                }
            }
        }
        Ok(readable)
    }
}
