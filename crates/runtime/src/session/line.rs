//! The line of a session's activities in this process: those of a serial session run one at a time (D29).
//!
//! The store hands out the next activity of a serial session when the one before it has ended or was
//! withdrawn. An activity that was withdrawn may still run: its process learns of it at the next renewal, and
//! its code takes its time to stop. So the next activity waits here until that code has ended.

use std::sync::Arc;

use steadfast_core::SessionConcurrency;
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::Session;
use super::rises::{Rises, SeenRises};
use crate::dispatch::backoff::Backoff;
use crate::dispatch::in_time;
use crate::runtime::RuntimeShared;

/// The activities of one session that run in this process, of whichever attachment.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Held by the activity whose turn it is.
    turn: Arc<Mutex<()>>,
    /// Rises when an activity waits for the one before it.
    waits: Rises,
}

/// The place of an activity at the head of its line. The next one may begin when this is dropped.
pub(crate) struct HeadOfLine {
    _turn: Option<OwnedMutexGuard<()>>,
}

/// Waits until the activities of the session that came before have ended, if the session is serial.
pub(crate) async fn stand_in_line(shared: &RuntimeShared, session: &Session) -> HeadOfLine {
    // A shared session is never serial.
    if session.key().instance.is_none() {
        return HeadOfLine { _turn: None };
    }
    let line = session.line();
    if let Ok(turn) = Arc::clone(&line.turn).try_lock_owned() {
        return HeadOfLine { _turn: Some(turn) };
    }
    let turn = Arc::clone(&line.turn).lock_owned();
    tokio::pin!(turn);
    tokio::select! {
        biased;
        turn = &mut turn => return HeadOfLine { _turn: Some(turn) },
        is_serial = is_serial(shared, session) => if !is_serial {
            return HeadOfLine { _turn: None };
        },
    }
    line.waits.rise();
    HeadOfLine { _turn: Some(turn.await) }
}

/// Returns what rises when another activity waits for those of the session that run here: then the lease of
/// each is renewed at once, and one that was withdrawn is told so.
pub(crate) fn successors(session: &Session) -> SeenRises {
    session.line().waits.look()
}

/// Tells whether a session is serial. The store is asked once for each attachment, when a second activity
/// comes while one runs, and again if it does not answer. A session that is gone is taken for serial: its
/// activities wait for each other.
async fn is_serial(shared: &RuntimeShared, session: &Session) -> bool {
    let mut backoff = Backoff::new(shared.seed);
    loop {
        if let Some(known) = session.concurrency().get() {
            return *known == SessionConcurrency::Serial;
        }
        match in_time(shared, "session", shared.store.session(session.key())).await {
            Ok(Some(row)) => {
                session.concurrency().get_or_init(|| row.concurrency);
            }
            Ok(None) => return true,
            Err(_) => shared.plan.clock.sleep(backoff.next()).await,
        }
    }
}
