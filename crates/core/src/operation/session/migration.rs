//! Migrations: the code waits until a session is attached to a worker anew.
//!
//! No event records the wait. A wait resolves with the newest attachment, if that is newer than the one that
//! the last wait for the same session id returned. A loop of waits may therefore skip an attachment that was
//! already replaced, and never misses the latest one. Two waits at the same time both resolve.

use std::collections::BTreeMap;
use std::task::Waker;

use crate::operation::{Operation, Site};
use crate::replay::admit::{Judgement, OTHER_EXECUTION};
use crate::replay::ledger::{Answer, Ledger, Place, Token};
use crate::replay::play::Next;
use crate::{Event, EventKind, SessionMigration, WorkItem};

pub(crate) struct MigrationRules;

impl Operation for MigrationRules {
    fn label(&self) -> &'static str {
        "SessionMigration"
    }

    fn admit(&self, message: WorkItem, site: &Site<'_>) -> Judgement {
        let WorkItem::SessionMigrated { execution_id, session_id, epoch, from, to, .. } = message else {
            return Judgement::misaddressed();
        };
        if execution_id == site.identity.execution_id {
            Judgement::record(EventKind::SessionMigrated { session_id, epoch, from, to })
        } else {
            Judgement::Ignore(OTHER_EXECUTION)
        }
    }

    fn settle(&self, event: Event, ledger: &mut Ledger) -> Next {
        let EventKind::SessionMigrated { session_id, epoch, from, to } = event.kind else { return Next::Go };
        let waits = ledger.migrations.settle(SessionMigration { id: session_id, epoch, from, to });
        Next::Poll(waits.into_iter().filter_map(|token| ledger.waker_of(token)).collect())
    }

    fn pull(&self, place: Place, ledger: &mut Ledger) -> Option<Answer> {
        ledger.migrations.read(place.token).map(Answer::Migration)
    }

    fn dropped(&self, place: Place, ledger: &mut Ledger) -> Option<Waker> {
        ledger.migrations.forget(place.token);
        None
    }
}

/// The newest attachments that messages have told of, and the code's open waits for newer ones.
#[derive(Debug, Default)]
pub(crate) struct Migrations {
    /// The newest attachment of each session id.
    latest: BTreeMap<String, SessionMigration>,
    /// The epoch that the last wait of each session id returned.
    returned: BTreeMap<String, u64>,
    /// The open waits, in the order of their calls.
    waits: BTreeMap<Token, MigrationWait>,
    /// The session ids for which this turn asks the store to send a message at every new attachment.
    watched: Vec<String>,
}

#[derive(Debug)]
struct MigrationWait {
    session_id: String,
    /// The epoch that the last wait for this session id had returned when this wait began; 0 without one.
    seen: u64,
}

impl Migrations {
    /// Registers a wait and returns the epoch that the last wait for the same session id returned, 0 without
    /// one. Unless the code is replaying, the store is asked for a message at every new attachment.
    pub(crate) fn wait(&mut self, id: &str, token: Token, is_replaying: bool) -> u64 {
        if !is_replaying && !self.watched.iter().any(|watched| watched == id) {
            self.watched.push(id.to_owned());
        }
        let seen = self.returned.get(id).copied().unwrap_or(0);
        self.waits.insert(token, MigrationWait { session_id: id.to_owned(), seen });
        seen
    }

    /// Keeps an attachment and returns the waits for its session. Messages may overtake each other: the
    /// newest attachment is the one with the highest epoch.
    fn settle(&mut self, migration: SessionMigration) -> Vec<Token> {
        let waits = self.waits.iter().filter(|(_, wait)| wait.session_id == migration.id);
        let tokens = waits.map(|(token, _)| *token).collect();
        if self.latest.get(&migration.id).is_none_or(|latest| latest.epoch < migration.epoch) {
            self.latest.insert(migration.id.clone(), migration);
        }
        tokens
    }

    fn read(&mut self, token: Token) -> Option<SessionMigration> {
        let wait = self.waits.get(&token)?;
        let latest = self.latest.get(&wait.session_id).filter(|latest| latest.epoch > wait.seen)?.clone();
        self.returned.insert(latest.id.clone(), latest.epoch);
        self.forget(token);
        Some(latest)
    }

    fn forget(&mut self, token: Token) {
        self.waits.remove(&token);
    }

    pub(crate) fn is_awaited(&self) -> bool {
        !self.waits.is_empty()
    }

    /// Takes out the session ids for which the store is to be asked for messages.
    pub(crate) fn take_watched(&mut self) -> Vec<String> {
        std::mem::take(&mut self.watched)
    }
}
