//! Opening and closing sessions, and waiting until one is attached anew.

use std::panic::Location;
use std::time::Duration;

use super::{OrchestrationContext, result};
use crate::context::future::DurableFuture;
use crate::context::misuse::Misuse;
use crate::operation::Kind;
use crate::operation::session::check_id;
use crate::replay::ledger::Answer;
use crate::{Action, SessionConcurrency, SessionMigration, SessionOptions};

impl OrchestrationContext {
    /// Opens a session of this instance with an id that the engine makes, and returns the id.
    #[track_caller]
    pub fn open_session(&self) -> DurableFuture<Result<String, String>> {
        self.ask_open(SessionOptions::default(), Location::caller())
    }

    /// Opens a session of this instance with an id of your own. Opening an open id changes nothing; a closed
    /// id is opened again.
    #[track_caller]
    pub fn open_session_with_id(&self, id: impl Into<String>) -> DurableFuture<Result<String, String>> {
        self.ask_open(SessionOptions::default().with_id(id), Location::caller())
    }

    /// Opens a session of this instance as `options` describe it, and returns its id.
    #[track_caller]
    pub fn open_session_with(&self, options: SessionOptions) -> DurableFuture<Result<String, String>> {
        self.ask_open(options, Location::caller())
    }

    /// Closes a session: its open activities are cancelled, and its worker drops the in-memory state. Closing
    /// an id that is not open changes nothing.
    #[track_caller]
    pub fn close_session(&self, id: &str) -> DurableFuture<Result<(), String>> {
        let session_id = id.to_owned();
        let action = |_: &_| Action::CloseSession { scheduling_event_id: 0, session_id };
        let done = |answer| result(answer).map(drop);
        self.ask("close_session", Location::caller(), action, done)
    }

    /// Waits until a session is attached to a worker anew, without its former in-memory state.
    #[track_caller]
    pub fn wait_for_session_migration(&self, id: &str) -> DurableFuture<SessionMigration> {
        let at = Location::caller();
        let Some(mut ledger) = self.scope.enter("wait_for_session_migration", at) else {
            return DurableFuture::never();
        };
        let replaying = ledger.replaying;
        if let (false, Err(details)) = (replaying, check_id(id)) {
            ledger.report(Misuse::SessionId { details });
            return DurableFuture::never();
        }
        let token = ledger.take_token();
        let epoch = ledger.migrations.wait(id, token, replaying);
        ledger.watch(token, Kind::Migration);
        drop(ledger);
        let fallback = SessionMigration { id: id.to_owned(), epoch, from: None, to: String::new() };
        DurableFuture::waiting(&self.scope, token, Kind::Migration, move |answer| match answer {
            Answer::Migration(migration) => migration,
            Answer::Result(_) | Answer::Failed(_) | Answer::Data(_) | Answer::Fired | Answer::Closed(_) => {
                fallback
            }
        })
    }

    fn ask_open(
        &self,
        options: SessionOptions,
        at: &'static Location<'static>,
    ) -> DurableFuture<Result<String, String>> {
        let SessionOptions { id, idle_timeout, concurrency } = options;
        let action = |_: &_| Action::OpenSession {
            scheduling_event_id: 0,
            session_id: id,
            idle_timeout_ms: idle_timeout.map(whole_millis),
            concurrency: (concurrency != SessionConcurrency::default()).then_some(concurrency),
        };
        self.ask("open_session", at, action, result)
    }
}

/// Rounds up, so that a timeout that is not zero does not become zero.
fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
