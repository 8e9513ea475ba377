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
    /// undoes the lease of a caller that was dropped, or this one again if it has no caller and the file was
    /// busy.
    fn answer(self: Box<Self>, committed: &Result<(), ProviderError>) -> Option<Box<dyn Request>>;
}

/// A request that runs a function in a transaction.
pub(super) struct Call<R, F> {
    pub(super) operation: &'static str,
    pub(super) work: Option<F>,
    pub(super) result: Option<Result<R, ProviderError>>,
    /// `None` for a request that has no caller, such as an undo.
    pub(super) reply: Option<oneshot::Sender<Result<R, ProviderError>>>,
    pub(super) undo: Option<fn(&Db<'_>, R) -> DbResult<()>>,
}

impl<R, F> Request for Call<R, F>
where
    R: Send + 'static,
    F: FnOnce(&Db<'_>) -> DbResult<R> + Send + 'static,
{
    fn is_wanted(&self) -> bool {
        self.undo.is_none() || self.reply.as_ref().is_none_or(|reply| !reply.is_closed())
    }

    fn run(&mut self, db: &Db<'_>) -> bool {
        let Some(work) = self.work.take() else { return false };
        let done = catch_unwind(AssertUnwindSafe(|| work(db)));
        let result = match done {
            Ok(result) => result.map_err(|fault| fault.of(self.operation)),
            Err(_) => {
                let text = "the store met a bug of its own; nothing was changed";
                tracing::error!(target: "steadfast::store", operation = self.operation, text);
                Err(ProviderError::new(ProviderErrorKind::Unavailable, self.operation, text))
            }
        };
        let is_kept = result.is_ok();
        self.result = Some(result);
        is_kept
    }

    fn answer(self: Box<Self>, committed: &Result<(), ProviderError>) -> Option<Box<dyn Request>> {
        // A request without a caller tries again while another process writes.
        if let Err(error) = committed
            && error.kind == ProviderErrorKind::Busy
            && self.reply.is_none()
            && self.work.is_some()
        {
            return Some(self);
        }
        let result = match (committed, self.result) {
            (_, Some(Err(error))) => Err(error),
            (Err(error), _) => Err(error.clone()),
            (Ok(()), Some(result)) => result,
            (Ok(()), None) => Err(stopped(self.operation)),
        };
        let unheard = match self.reply {
            Some(reply) => reply.send(result).err(),
            None => None,
        };
        match (unheard, self.undo) {
            (Some(Ok(result)), Some(undo)) => Some(Box::new(undoing(self.operation, undo, result))),
            _ => None,
        }
    }
}

/// A request that cannot be part of a transaction.
pub(super) struct Between {
    pub(super) operation: &'static str,
    pub(super) work: fn(&Connection) -> DbResult<()>,
    pub(super) reply: Option<oneshot::Sender<Result<(), ProviderError>>>,
}

impl Request for Between {
    fn run_outside(&mut self, connection: &Connection) -> bool {
        let result = (self.work)(connection).map_err(|fault| fault.of(self.operation));
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
    fn undo(self, db: &Db<'_>) -> DbResult<()>;
}

/// Without a lease there is nothing to undo.
impl<R: Undo> Undo for Option<R> {
    fn undo(self, db: &Db<'_>) -> DbResult<()> {
        self.map_or(Ok(()), |taken| taken.undo(db))
    }
}

/// Makes the request that runs `undo` on a lease whose caller was dropped.
pub(super) fn undoing<R: Send + 'static>(
    operation: &'static str,
    undo: fn(&Db<'_>, R) -> DbResult<()>,
    result: R,
) -> Call<(), impl FnOnce(&Db<'_>) -> DbResult<()> + Send + 'static> {
    Call { operation, work: Some(move |db: &Db<'_>| undo(db, result)), result: None, reply: None, undo: None }
}

/// Makes the error for a call of a store that is closed: `Unavailable`.
pub(super) fn stopped(operation: &str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Unavailable, operation, "the store is closed")
}
