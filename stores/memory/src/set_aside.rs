//! Rows that cannot be read: each fetch that meets one counts and delays it, and in the end it is set aside
//! (S15).

mod damage;

use steadfast_core::WorkItem;
use steadfast_store::rules::{no_such_row, read_text};
use steadfast_store::{
    MAX_UNREADABLE_ATTEMPTS, ProviderError, Queue, SetAside, TurnRequest, UNREADABLE_RETRY, WorkRequest,
};

use crate::message::after;
use crate::state::{MessageRow, State, Stored, WorkRow};
pub use damage::Damage;

/// A row that was set aside: the form that operators see, and the row itself, so that it can be put back.
#[derive(Debug)]
pub(crate) struct Aside {
    pub(crate) shown: SetAside,
    row: AsideRow,
}

#[derive(Debug)]
enum AsideRow {
    Message(Box<MessageRow>),
    Work(Box<WorkRow>),
}

impl State {
    /// Counts and delays the unreadable messages that this fetch would have leased, and sets aside those that
    /// fetches met too often.
    pub(crate) fn pass_over_unreadable_messages(&mut self, request: TurnRequest<'_>, now: u64) {
        let met = self.messages.iter().filter(|(_, row)| {
            matches!(row.item, Stored::Unreadable { .. })
                && row.visible_at_ms <= now
                && !self.is_leased(&row.instance, now)
                && self.is_compatible(&row.instance, request.filter)
                && self.may_take_turn(request.worker, &row.instance, now)
        });
        for place in met.map(|(place, _)| *place).collect::<Vec<_>>() {
            let Some(mut row) = self.messages.remove(&place) else { continue };
            row.attempts += 1;
            row.visible_at_ms = after(now, Some(UNREADABLE_RETRY));
            row.is_refused = false;
            if row.attempts < MAX_UNREADABLE_ATTEMPTS {
                self.messages.insert(place, row);
            } else {
                self.put_aside(AsideRow::Message(Box::new(row)), now);
            }
        }
    }

    /// Counts and delays the unreadable activities that this fetch could have leased, and sets aside those
    /// that fetches met too often.
    pub(crate) fn pass_over_unreadable_work(&mut self, request: &WorkRequest, now: u64) {
        let met = self
            .work
            .iter()
            .filter(|(place, row)| !row.is_readable() && self.accepts(request, **place, row, now));
        for place in met.map(|(place, _)| *place).collect::<Vec<_>>() {
            let Some(mut row) = self.work.remove(&place) else { continue };
            row.attempts += 1;
            row.visible_at_ms = after(now, Some(UNREADABLE_RETRY));
            row.is_refused = false;
            if row.attempts < MAX_UNREADABLE_ATTEMPTS {
                self.work.insert(place, row);
            } else {
                self.put_aside(AsideRow::Work(Box::new(row)), now);
            }
        }
    }

    fn put_aside(&mut self, row: AsideRow, now: u64) {
        let (queue, instance, item, attempts) = match &row {
            AsideRow::Message(row) => (Queue::Orchestrator, &row.instance, &row.item, row.attempts),
            AsideRow::Work(row) => (Queue::Worker, &row.identity.instance, &row.item, row.attempts),
        };
        let Stored::Unreadable { text, reason } = item else { return };
        let (payload, reason, instance) = (text.clone(), reason.clone(), instance.clone());
        let id = self.next();
        tracing::warn!(
            target: "steadfast::store",
            id, ?queue, instance, reason, attempts,
            "unreadable row set aside"
        );
        let shown = SetAside { id, queue, instance: Some(instance), payload, reason, attempts, at_ms: now };
        self.set_aside.insert(id, Aside { shown, row });
    }

    pub(crate) fn retry_set_aside(&mut self, id: u64, now: u64) -> Result<(), ProviderError> {
        let aside = self.set_aside.remove(&id).ok_or_else(|| no_such_row("retry_set_aside", id))?;
        let place = self.next();
        let item: Stored<WorkItem> = read(aside.shown.payload);
        match aside.row {
            AsideRow::Message(row) => {
                let row = MessageRow {
                    item,
                    visible_at_ms: now,
                    attempts: 0,
                    token: None,
                    expired: Vec::new(),
                    ..*row
                };
                self.messages.insert(place, row);
            }
            AsideRow::Work(row) => {
                let row = WorkRow {
                    item,
                    visible_at_ms: now,
                    attempts: 0,
                    lock: None,
                    expired: Vec::new(),
                    ..*row
                };
                self.work.insert(place, row);
            }
        }
        Ok(())
    }

    pub(crate) fn drop_set_aside(&mut self, id: u64) -> Result<(), ProviderError> {
        self.set_aside.remove(&id).map(drop).ok_or_else(|| no_such_row("drop_set_aside", id))
    }
}

/// Reads the text of a row, which may turn out unreadable.
pub(crate) fn read<T: serde::de::DeserializeOwned>(text: String) -> Stored<T> {
    match read_text(&text) {
        Ok(item) => Stored::Readable(item),
        Err(error) => Stored::Unreadable { text, reason: error.to_string() },
    }
}
