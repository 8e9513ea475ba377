//! Sending: how messages and activities come into their queues.

pub(crate) mod life;

use std::time::Duration;

use steadfast_core::{ScheduledActivityIdentifier, WorkItem};
use steadfast_store::rules::{check_message, check_start, is_start};
use steadfast_store::{Envelope, Message, NewWork, ProviderError, Started, Tries};

use crate::millis;
use crate::state::{MessageRow, State, Stored, WorkRow};

impl State {
    pub(crate) fn send(&mut self, messages: Vec<Envelope>, now: u64) -> Result<(), ProviderError> {
        for envelope in &messages {
            check_message("send", &envelope.message.item)?;
        }
        for Envelope { message, delay } in messages {
            self.push_message(message, after(now, delay));
        }
        self.open_terminated(now);
        Ok(())
    }

    pub(crate) fn start(
        &mut self,
        start: Envelope,
        also: Vec<Envelope>,
        now: u64,
    ) -> Result<Started, ProviderError> {
        check_start(&start.message.item)?;
        let known = self.exists(start.message.item.instance());
        let messages = if known { also } else { std::iter::once(start).chain(also).collect() };
        self.send(messages, now)?;
        Ok(if known { Started::Existing } else { Started::New })
    }

    /// Queues a message that carries no life.
    pub(crate) fn push_message(&mut self, message: Message, due_ms: u64) {
        self.push_message_of(message, due_ms, None);
    }

    /// Queues a message that becomes visible at the moment at which it is due.
    pub(crate) fn push_message_of(&mut self, message: Message, due_ms: u64, life: Option<u64>) {
        let row = MessageRow {
            instance: message.item.instance().to_owned(),
            starts: is_start(&message.item),
            item: Stored::Readable(message.item),
            traceparent: message.traceparent,
            failure: message.failure,
            life,
            due_ms,
            visible_at_ms: due_ms,
            attempts: 0,
            token: None,
            expired: Vec::new(),
            is_refused: false,
            is_dropped: false,
        };
        let place = self.next();
        self.messages.insert(place, row);
    }

    pub(crate) fn push_work(&mut self, work: NewWork, now: u64) {
        // The callers have checked that it is an activity.
        let WorkItem::ActivityExecute { instance, execution_id, id, tag, .. } = &work.item else { return };
        let identity = ScheduledActivityIdentifier {
            instance: instance.clone(),
            execution_id: *execution_id,
            activity_id: *id,
        };
        let (session, tag) = (work.session_key(), tag.clone());
        let row = WorkRow {
            identity,
            item: Stored::Readable(work.item),
            session,
            tag,
            traceparent: work.traceparent,
            call: work.call,
            visible_at_ms: now,
            attempts: 0,
            deliveries: 0,
            tries: Tries::default(),
            lock: None,
            expired: Vec::new(),
            route: None,
            is_refused: false,
        };
        let place = self.next();
        self.work.insert(place, row);
    }
}

/// Returns the time after a delay, at most `u64::MAX`.
pub(crate) fn after(now: u64, delay: Option<Duration>) -> u64 {
    now.saturating_add(delay.map_or(0, millis))
}
