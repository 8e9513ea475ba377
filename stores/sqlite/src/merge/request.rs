//! Requests to the writing thread: a function in a transaction, its answer, and how its effect is undone.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rusqlite::Connection;
use steadfast_store::{ProviderError, ProviderErrorKind};
use tokio::sync::oneshot;

use crate::link::db::Db;
use crate::link::error::DbResult;

/// A request to the writing thread: it runs in a transaction and is answered after the commit.
pub(super) trait Request: Send {
    /// Runs a request that cannot be part of a transaction, and returns true. Does nothing and returns false
    /// for every other request.
    fn run_outside(&mut self, _connection: &Connection) -> bool {
        false
    }

    /// Tells whether the request cannot be part of a transaction, and so runs between two of them.
    fn is_outside(&self) -> bool {
        false
    }

    /// Tells whether the request must still run: false if its caller was dropped and the effect would be
    /// undone.
    fn is_wanted(&self) -> bool;

    /// Runs the request. False after an error: its savepoint is rolled back.
    fn run(&mut self, db: &Db<'_>) -> bool;

    /// Sends the caller the result, or the error of the commit. Returns a request to run next: one that
    /// undoes the lease of a caller that was dropped, or this one again if it is such an undo and was not
    /// committed.
    fn answer(self: Box<Self>, committed: &Result<(), ProviderError>) -> Option<Box<dyn Request>>;
}

/// A request that runs a function in a transaction.
pub(super) struct Call<R, F> {
    pub(super) operation: &'static str,
    pub(super) work: Option<F>,
    pub(super) result: Option<Result<R, ProviderError>>,
    pub(super) reply: oneshot::Sender<Result<R, ProviderError>>,
    /// Makes the request that undoes the lease in a result which its caller does not get.
    pub(super) undo: Option<MakeUndo<R>>,
}

/// Makes the request that undoes the lease in the result of an operation.
pub(super) type MakeUndo<R> = fn(&'static str, R) -> Box<dyn Request>;

impl<R, F> Request for Call<R, F>
where
    R: Send + 'static,
    F: FnOnce(&Db<'_>) -> DbResult<R> + Send + 'static,
{
    fn is_wanted(&self) -> bool {
        self.undo.is_none() || !self.reply.is_closed()
    }

    fn run(&mut self, db: &Db<'_>) -> bool {
        let Some(work) = self.work.take() else { return false };
        let result = caught(self.operation, || work(db));
        let is_kept = result.is_ok();
        self.result = Some(result);
        is_kept
    }

    fn answer(self: Box<Self>, committed: &Result<(), ProviderError>) -> Option<Box<dyn Request>> {
        let result = match (committed, self.result) {
            (_, Some(Err(error))) => Err(error),
            (Err(error), _) => Err(error.clone()),
            (Ok(()), Some(result)) => result,
            (Ok(()), None) => Err(stopped(self.operation)),
        };
        match (self.reply.send(result), self.undo) {
            (Err(Ok(unheard)), Some(undo)) => Some(undo(self.operation, unheard)),
            _ => None,
        }
    }
}

/// A request that undoes a lease whose caller was dropped. It has no caller, so it runs again by itself if
/// its transaction is not committed.
struct Undoing<R> {
    operation: &'static str,
    lease: R,
    has_failed: bool,
    tries: u32,
}

/// Bounds how often an undo runs again for another reason than that another process writes. A lease that is
/// not undone ends by itself.
const MOST_UNDO_TRIES: u32 = 64;

impl<R: Undo> Request for Undoing<R> {
    fn is_wanted(&self) -> bool {
        true
    }

    fn run(&mut self, db: &Db<'_>) -> bool {
        let undone = caught(self.operation, || self.lease.undo(db));
        self.has_failed = undone.is_err();
        !self.has_failed
    }

    fn answer(mut self: Box<Self>, committed: &Result<(), ProviderError>) -> Option<Box<dyn Request>> {
        let Err(error) = committed else { return None };
        if error.kind != ProviderErrorKind::Busy {
            self.tries += 1;
        }
        let runs_again = error.is_retryable() && !self.has_failed && self.tries < MOST_UNDO_TRIES;
        runs_again.then_some(self as Box<dyn Request>)
    }
}

/// Runs a step of a request. A panic in it becomes an error.
fn caught<R>(operation: &str, run: impl FnOnce() -> DbResult<R>) -> Result<R, ProviderError> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|fault| fault.of(operation)),
        Err(_) => {
            let text = "the store met a bug of its own; nothing was changed";
            tracing::error!(target: "steadfast::store", operation, text);
            Err(ProviderError::new(ProviderErrorKind::Unavailable, operation, text))
        }
    }
}

/// A request that cannot be part of a transaction.
pub(super) struct Between<R, F> {
    pub(super) operation: &'static str,
    pub(super) work: Option<F>,
    pub(super) reply: Option<oneshot::Sender<Result<R, ProviderError>>>,
}

impl<R, F> Request for Between<R, F>
where
    R: Send + 'static,
    F: FnOnce(&Connection) -> DbResult<R> + Send + 'static,
{
    fn run_outside(&mut self, connection: &Connection) -> bool {
        let Some(work) = self.work.take() else { return true };
        let result = caught(self.operation, || work(connection));
        if let Some(reply) = self.reply.take() {
            // The caller may have been dropped; the work is done either way.
            drop(reply.send(result));
        }
        true
    }

    fn is_outside(&self) -> bool {
        true
    }

    fn is_wanted(&self) -> bool {
        true
    }

    fn run(&mut self, _db: &Db<'_>) -> bool {
        true
    }

    fn answer(self: Box<Self>, _committed: &Result<(), ProviderError>) -> Option<Box<dyn Request>> {
        None
    }
}

/// A result that holds a lease, which must be undone if its caller was dropped.
pub(crate) trait Undo: Send + 'static {
    fn undo(&self, db: &Db<'_>) -> DbResult<()>;
}

/// Without a lease there is nothing to undo.
impl<R: Undo> Undo for Option<R> {
    fn undo(&self, db: &Db<'_>) -> DbResult<()> {
        self.as_ref().map_or(Ok(()), |taken| taken.undo(db))
    }
}

/// Makes the request that undoes a lease whose caller was dropped.
pub(super) fn undoing<R: Undo>(operation: &'static str, lease: R) -> Box<dyn Request> {
    Box::new(Undoing { operation, lease, has_failed: false, tries: 0 })
}

/// Makes the error for a call of a store that is closed: `Unavailable`.
pub(super) fn stopped(operation: &str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Unavailable, operation, "the store is closed")
}
