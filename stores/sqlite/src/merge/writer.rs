//! The handle of the writing thread: requests go in, answers come out after the commit.

use std::sync::Arc;
use std::thread::JoinHandle;

use rusqlite::Connection;
use steadfast_store::{ProviderError, Waiters};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::alarm::Alarms;
use super::log::Log;
use super::others::{OtherProcesses, SeenChanges};
use super::pace::Pace;
use super::request::{Between, Call, MakeUndo, Request, Undo, stopped, undoing};
use super::thread::{Inbox, WriterThread};
use crate::link::clock::FileClock;
use crate::link::connection::Location;
use crate::link::db::Db;
use crate::link::error::DbResult;
use crate::link::look::Looks;
use crate::link::open::OpenError;
use crate::link::options::{SqliteOptions, Threads};
use crate::link::presence::Presence;

/// Sends requests to the writing thread, or to the task in its place, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Writer {
    requests: Option<mpsc::Sender<Box<dyn Request>>>,
    /// Requests that undo a lease whose caller was dropped. Unbounded: each one stands for a call that has
    /// ended.
    undos: mpsc::UnboundedSender<Box<dyn Request>>,
    /// `None` if the writer is a task of the caller's runtime.
    thread: Option<JoinHandle<()>>,
}

/// What the writing thread wakes: waiting calls, and alarms of calls that wait for a moment.
pub(crate) struct Wakes {
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) alarms: Arc<Alarms>,
}

/// A database that is open for writing.
pub(crate) struct OpenFile<'p> {
    pub(crate) connection: Connection,
    pub(crate) place: &'p Location,
    pub(crate) presence: Presence,
    pub(crate) looks: Looks,
}

impl Writer {
    pub(crate) fn spawn(
        file: OpenFile<'_>,
        options: &SqliteOptions,
        clock: FileClock,
        wakes: Wakes,
    ) -> Result<Self, OpenError> {
        let OpenFile { mut connection, place, presence, looks } = file;
        let (requests, incoming) = mpsc::channel(options.max_waiting.max(1));
        let (undos, undoing) = mpsc::unbounded_channel();
        let log = Log::watch(&mut connection, options).map_err(OpenError::driver)?;
        let others = OtherProcesses::of(place, options).begin(&connection).map_err(OpenError::driver)?;
        let pace = Pace::of(&clock);
        let thread = WriterThread {
            connection,
            clock,
            wakes,
            max_group: options.max_group.max(1),
            log,
            others,
            seen_changes: SeenChanges::default(),
            pace,
            looks,
            _presence: presence,
        };
        let inbox = Inbox { incoming, undoing, held_back: None };
        let thread = match options.threads {
            Threads::Own => {
                let named = std::thread::Builder::new().name("steadfast-sqlite".to_owned());
                Some(named.spawn(move || thread.run(inbox))?)
            }
            Threads::Caller => {
                let caller = Handle::try_current().map_err(std::io::Error::other)?;
                drop(caller.spawn(thread.run_as_task(inbox)));
                None
            }
        };
        Ok(Self { requests: Some(requests), undos, thread })
    }

    /// Runs a transaction and returns its result after it is committed.
    pub(crate) async fn write<R, F>(&self, operation: &'static str, work: F) -> Result<R, ProviderError>
    where
        R: Send + 'static,
        F: FnOnce(&Db<'_>) -> DbResult<R> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.submit(operation, Call { operation, work: Some(work), result: None, reply, undo: None }).await?;
        answer.await.unwrap_or_else(|_| Err(stopped(operation)))
    }

    /// Runs a function on the writing connection between two transactions.
    pub(crate) async fn outside<R, F>(&self, operation: &'static str, work: F) -> Result<R, ProviderError>
    where
        R: Send + 'static,
        F: FnOnce(&Connection) -> DbResult<R> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.submit(operation, Between { operation, work: Some(work), reply: Some(reply) }).await?;
        answer.await.unwrap_or_else(|_| Err(stopped(operation)))
    }

    /// Runs a transaction that takes a lease. The lease is undone if the caller is dropped, or drops the
    /// result without calling [`keep`](Taken::keep).
    pub(crate) async fn take<R, F>(&self, operation: &'static str, work: F) -> Result<Taken<R>, ProviderError>
    where
        R: Undo,
        F: FnOnce(&Db<'_>) -> DbResult<R> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let undo: MakeUndo<R> = undoing;
        let call = Call { operation, work: Some(work), result: None, reply, undo: Some(undo) };
        let mut awaited = Awaited { answer, undos: &self.undos, operation };
        self.submit(operation, call).await?;
        let taken = (&mut awaited.answer).await.unwrap_or_else(|_| Err(stopped(operation)))?;
        Ok(Taken { value: Some(taken), undos: self.undos.clone(), operation })
    }

    async fn submit(
        &self,
        operation: &'static str,
        call: impl Request + 'static,
    ) -> Result<(), ProviderError> {
        let requests = self.requests.as_ref().ok_or_else(|| stopped(operation))?;
        requests.send(Box::new(call)).await.map_err(|_| stopped(operation))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.requests = None;
        let (closed, _) = mpsc::unbounded_channel();
        self.undos = closed;
        if let Some(thread) = self.thread.take() {
            // The thread catches panics of requests. If it has died nevertheless, there is nothing to close.
            drop(thread.join());
        }
    }
}

/// A lease that was taken. Dropping it undoes the lease, unless [`keep`](Self::keep) was called.
pub(crate) struct Taken<R: Undo> {
    value: Option<R>,
    undos: mpsc::UnboundedSender<Box<dyn Request>>,
    operation: &'static str,
}

impl<R: Undo> Taken<R> {
    pub(crate) fn get(&self) -> Option<&R> {
        self.value.as_ref()
    }

    /// Hands the lease to the caller: it is not undone from here on.
    pub(crate) fn keep(mut self) -> Option<R> {
        self.value.take()
    }
}

impl<R: Undo> Drop for Taken<R> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            undo_later(&self.undos, self.operation, value);
        }
    }
}

/// An answer that is waited for. If the caller is dropped before it reads the answer, the lease is undone.
struct Awaited<'a, R: Undo> {
    answer: oneshot::Receiver<Result<R, ProviderError>>,
    undos: &'a mpsc::UnboundedSender<Box<dyn Request>>,
    operation: &'static str,
}

impl<R: Undo> Drop for Awaited<'_, R> {
    fn drop(&mut self) {
        // From here on the writer sees the closed channel and undoes by itself; an answer that it sent before
        // is undone here.
        self.answer.close();
        if let Ok(Ok(value)) = self.answer.try_recv() {
            undo_later(self.undos, self.operation, value);
        }
    }
}

fn undo_later<R: Undo>(undos: &mpsc::UnboundedSender<Box<dyn Request>>, operation: &'static str, value: R) {
    // A closed store takes no requests; its leases end by themselves.
    drop(undos.send(undoing(operation, value)));
}
