//! The one writer: a thread that owns the writing connection and commits what waits together.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use rusqlite::Connection;
use steadfast_store::{ProviderError, ProviderErrorKind, StoreClock, Waiters, Woken};
use tokio::sync::{mpsc, oneshot};

use crate::connection::Place;
use crate::db::Db;
use crate::error::{Done, provider_error};
use crate::log::Log;
use crate::open::OpenError;
use crate::options::SqliteOptions;
use crate::watch::Watch;

/// Sends requests to the writing thread. The thread ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Writer {
    requests: Option<mpsc::Sender<Box<dyn Request>>>,
    /// What must be undone because nobody took the answer. Unbounded: each entry stands for a call that has ended.
    undos: mpsc::UnboundedSender<Box<dyn Request>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn spawn(
        mut connection: Connection,
        place: &Place,
        options: &SqliteOptions,
        clock: StoreClock,
        waiters: Arc<Waiters>,
    ) -> Result<Self, OpenError> {
        let (requests, incoming) = mpsc::channel(options.max_waiting.max(1));
        let (undos, abandoned) = mpsc::unbounded_channel();
        let log = Log::watch(&mut connection, options).map_err(OpenError::driver)?;
        let watch = Watch::of(place, options);
        let thread = Thread { connection, clock, waiters, max_group: options.max_group.max(1), log, watch };
        let thread = std::thread::Builder::new()
            .name("steadfast-sqlite".to_owned())
            .spawn(move || thread.run(Inbox { incoming, abandoned, held_back: None }))?;
        Ok(Self { requests: Some(requests), undos, thread: Some(thread) })
    }

    /// Runs a transaction and returns its result after it is committed.
    pub(crate) async fn write<R, F>(&self, operation: &'static str, work: F) -> Result<R, ProviderError>
    where
        R: Send + 'static,
        F: FnOnce(&Db<'_>) -> Done<R> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.submit(
            operation,
            Call { operation, work: Some(work), result: None, reply: Some(reply), undo: None },
        )
        .await?;
        answer.await.unwrap_or_else(|_| Err(stopped(operation)))
    }

    /// Runs something on the writing connection between two transactions.
    pub(crate) async fn outside(
        &self,
        operation: &'static str,
        work: fn(&Connection) -> Done<()>,
    ) -> Result<(), ProviderError> {
        let (reply, answer) = oneshot::channel();
        self.submit(operation, Between { operation, work, reply: Some(reply) }).await?;
        answer.await.unwrap_or_else(|_| Err(stopped(operation)))
    }

    /// Runs a transaction that takes something. What it took is given back if the caller goes away, or drops it
    /// without keeping it.
    pub(crate) async fn take<R, F>(&self, operation: &'static str, work: F) -> Result<Taken<R>, ProviderError>
    where
        R: Undo,
        F: FnOnce(&Db<'_>) -> Done<R> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let undo: fn(&Db<'_>, R) -> Done<()> = |db, taken| taken.undo(db);
        let call = Call { operation, work: Some(work), result: None, reply: Some(reply), undo: Some(undo) };
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
        if let Some(thread) = self.thread.take() {
            let (closed, _) = mpsc::unbounded_channel();
            self.undos = closed;
            // The thread catches panics of requests; should it have died, there is nothing left to close.
            drop(thread.join());
        }
    }
}

/// Something that a transaction took and that can be given back.
pub(crate) trait Undo: Send + 'static {
    fn undo(self, db: &Db<'_>) -> Done<()>;
}

/// Nothing was taken: nothing is given back.
impl<R: Undo> Undo for Option<R> {
    fn undo(self, db: &Db<'_>) -> Done<()> {
        self.map_or(Ok(()), |taken| taken.undo(db))
    }
}

/// Holds what was taken until it is kept.
pub(crate) struct Taken<R: Undo> {
    value: Option<R>,
    undos: mpsc::UnboundedSender<Box<dyn Request>>,
    operation: &'static str,
}

impl<R: Undo> Taken<R> {
    pub(crate) fn get(&self) -> Option<&R> {
        self.value.as_ref()
    }

    /// From now on it is the caller's.
    pub(crate) fn keep(mut self) -> Option<R> {
        self.value.take()
    }
}

impl<R: Undo> Drop for Taken<R> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            give_back(&self.undos, self.operation, value);
        }
    }
}

/// Watches over an answer that the caller may never come to read.
struct Awaited<'a, R: Undo> {
    answer: oneshot::Receiver<Result<R, ProviderError>>,
    undos: &'a mpsc::UnboundedSender<Box<dyn Request>>,
    operation: &'static str,
}

impl<R: Undo> Drop for Awaited<'_, R> {
    fn drop(&mut self) {
        // From here on the writer sees that nobody listens, and undoes by itself; what it sent before is undone here.
        self.answer.close();
        if let Ok(Ok(value)) = self.answer.try_recv() {
            give_back(self.undos, self.operation, value);
        }
    }
}

fn give_back<R: Undo>(undos: &mpsc::UnboundedSender<Box<dyn Request>>, operation: &'static str, value: R) {
    let undo: fn(&Db<'_>, R) -> Done<()> = |db, taken| taken.undo(db);
    let request: Box<dyn Request> = Box::new(undoing(operation, undo, value));
    // A closed store has no leases of this process to give back in time; they end by themselves.
    drop(undos.send(request));
}

fn undoing<R: Send + 'static>(
    operation: &'static str,
    undo: fn(&Db<'_>, R) -> Done<()>,
    result: R,
) -> Call<(), impl FnOnce(&Db<'_>) -> Done<()> + Send + 'static> {
    Call { operation, work: Some(move |db: &Db<'_>| undo(db, result)), result: None, reply: None, undo: None }
}

fn stopped(operation: &str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Unavailable, operation, "the store is closed")
}

/// Something to be done in a transaction, and answered after its commit.
trait Request: Send {
    /// Does it between two transactions, if that is where it belongs. False for everything else.
    fn run_outside(&mut self, _connection: &Connection) -> bool {
        false
    }

    /// Does it belong between two transactions?
    fn is_outside(&self) -> bool {
        false
    }

    /// Is there still somebody who wants it?
    fn is_wanted(&self) -> bool;

    /// Does it. An error means that its savepoint is rolled back.
    fn run(&mut self, db: &Db<'_>) -> Result<(), ProviderErrorKind>;

    /// Answers: with the result if the commit succeeded. Returns what must be undone because nobody listens.
    fn answer(self: Box<Self>, committed: &Result<(), ProviderError>) -> Option<Box<dyn Request>>;
}

struct Call<R, F> {
    operation: &'static str,
    work: Option<F>,
    result: Option<Result<R, ProviderError>>,
    /// None for what nobody waits for.
    reply: Option<oneshot::Sender<Result<R, ProviderError>>>,
    undo: Option<fn(&Db<'_>, R) -> Done<()>>,
}

impl<R, F> Request for Call<R, F>
where
    R: Send + 'static,
    F: FnOnce(&Db<'_>) -> Done<R> + Send + 'static,
{
    fn is_wanted(&self) -> bool {
        self.undo.is_none() || self.reply.as_ref().is_none_or(|reply| !reply.is_closed())
    }

    fn run(&mut self, db: &Db<'_>) -> Result<(), ProviderErrorKind> {
        let Some(work) = self.work.take() else { return Err(ProviderErrorKind::Other) };
        let done = catch_unwind(AssertUnwindSafe(|| work(db)));
        let result = match done {
            Ok(result) => result.map_err(|fault| fault.of(self.operation)),
            Err(_) => Err(ProviderError::permanent(
                self.operation,
                "the store met a bug of its own; nothing was changed",
            )),
        };
        let kept = result.as_ref().map(drop).map_err(|error| error.kind);
        self.result = Some(result);
        kept
    }

    fn answer(self: Box<Self>, committed: &Result<(), ProviderError>) -> Option<Box<dyn Request>> {
        // What nobody waits for waits itself while another process writes.
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

/// Something that cannot be part of a transaction.
struct Between {
    operation: &'static str,
    work: fn(&Connection) -> Done<()>,
    reply: Option<oneshot::Sender<Result<(), ProviderError>>>,
}

impl Request for Between {
    fn run_outside(&mut self, connection: &Connection) -> bool {
        let result = (self.work)(connection).map_err(|fault| fault.of(self.operation));
        if let Some(reply) = self.reply.take() {
            // Nobody may be listening any more; the work is done either way.
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

    fn run(&mut self, _db: &Db<'_>) -> Result<(), ProviderErrorKind> {
        Ok(())
    }

    fn answer(self: Box<Self>, _committed: &Result<(), ProviderError>) -> Option<Box<dyn Request>> {
        None
    }
}

struct Thread {
    connection: Connection,
    clock: StoreClock,
    waiters: Arc<Waiters>,
    max_group: usize,
    log: Log,
    watch: Watch,
}

/// What the thread does next.
enum Next {
    Request(Box<dyn Request>),
    Look,
    Closed,
}

/// Bounds the looks for the next request before the thread sleeps. Who was just answered often asks again at once,
/// and to wake a thread takes longer than that.
const LOOKS: u32 = 300;

/// What waits for the thread.
struct Inbox {
    incoming: mpsc::Receiver<Box<dyn Request>>,
    /// Goes first: what somebody left must not wait for those who want it.
    abandoned: mpsc::UnboundedReceiver<Box<dyn Request>>,
    /// What could not be part of the transaction that it met.
    held_back: Option<Box<dyn Request>>,
}

impl Inbox {
    fn try_next(&mut self) -> Option<Box<dyn Request>> {
        let held_back = self.held_back.take();
        held_back.or_else(|| self.abandoned.try_recv().ok()).or_else(|| self.incoming.try_recv().ok())
    }

    /// Looks for a while without sleeping.
    fn next_soon(&mut self) -> Option<Box<dyn Request>> {
        for _ in 0..LOOKS {
            if let Some(request) = self.try_next() {
                return Some(request);
            }
            std::thread::yield_now();
        }
        None
    }

    /// Takes what can be part of a transaction that has begun.
    fn try_join(&mut self) -> Option<Box<dyn Request>> {
        if self.held_back.is_some() {
            return None;
        }
        let next = self.try_next()?;
        if next.is_outside() {
            self.held_back = Some(next);
            return None;
        }
        Some(next)
    }
}

impl Thread {
    fn run(mut self, mut inbox: Inbox) {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else { return };
        let (mut undone, mut was_busy) = (Vec::new(), false);
        loop {
            let mut group: Vec<Box<dyn Request>> = std::mem::take(&mut undone);
            if group.is_empty() && was_busy {
                group.extend(inbox.next_soon());
            }
            if group.is_empty() {
                let first = runtime.block_on(async {
                    tokio::select! {
                        biased;
                        Some(undo) = inbox.abandoned.recv() => Next::Request(undo),
                        request = inbox.incoming.recv() => request.map_or(Next::Closed, Next::Request),
                        () = self.watch.rest(self.clock.clock()) => Next::Look,
                    }
                });
                match first {
                    Next::Request(request) => group.push(request),
                    Next::Look => {}
                    Next::Closed => break,
                }
            }
            was_busy = !group.is_empty();
            let changes = self.connection.total_changes();
            undone = self.commit(group, &mut inbox);
            if self.connection.total_changes() != changes {
                self.watch.stir(self.clock.clock());
            }
            self.log.tidy(&self.connection);
            if self.watch.sees_others(&self.connection, self.clock.clock()) {
                self.waiters.wake_all();
            }
        }
        // What nobody waits for any more is undone before the file is closed.
        while let Ok(request) = inbox.abandoned.try_recv() {
            undone.push(request);
        }
        self.commit(undone, &mut inbox);
    }

    /// Runs a group in one transaction and answers all of it. Returns what must be undone.
    fn commit(&self, mut group: Vec<Box<dyn Request>>, inbox: &mut Inbox) -> Vec<Box<dyn Request>> {
        group.retain_mut(|request| request.is_wanted() && !request.run_outside(&self.connection));
        if group.is_empty() {
            return Vec::new();
        }
        let (committed, woken) = self.transaction(&mut group, inbox);
        let undone = group.into_iter().filter_map(|request| request.answer(&committed)).collect();
        if committed.is_ok() {
            self.waiters.wake(&woken);
        }
        undone
    }

    /// Runs a group, and who comes meanwhile, up to the bound.
    fn transaction(
        &self,
        group: &mut Vec<Box<dyn Request>>,
        inbox: &mut Inbox,
    ) -> (Result<(), ProviderError>, Woken) {
        let mut woken = Woken::default();
        // Before it begins, so that all who wait share the wait for another process, and its end.
        self.gather(group, inbox);
        if let Err(error) = self.execute("BEGIN IMMEDIATE") {
            return (Err(provider_error("begin", error)), woken);
        }
        self.gather(group, inbox);
        let (mut number, mut kept_any) = (0, false);
        while number < group.len() {
            // Who is alone needs no savepoint: should it fail, all is rolled back.
            let alone = group.len() == 1;
            let kept = match self.run_one(&mut group[number], alone) {
                Ok(kept) => kept,
                Err(error) => return (Err(error), Woken::default()),
            };
            // Nobody can share a transaction that will be rolled back.
            let is_shared = !alone || kept.is_some();
            kept_any |= kept.is_some();
            woken.absorb(kept.unwrap_or_default());
            number += 1;
            if number == group.len() && is_shared {
                self.gather(group, inbox);
            }
        }
        let end = if kept_any { self.execute("COMMIT") } else { self.execute("ROLLBACK") };
        match end {
            Ok(()) => (Ok(()), woken),
            Err(error) => (Err(self.roll_back(error)), Woken::default()),
        }
    }

    fn gather(&self, group: &mut Vec<Box<dyn Request>>, inbox: &mut Inbox) {
        while group.len() < self.max_group
            && let Some(request) = inbox.try_join()
        {
            if request.is_wanted() {
                group.push(request);
            }
        }
    }

    /// Runs one request of a group. Returns what it made runnable, or nothing if it failed and was rolled back; an
    /// error if the whole transaction was.
    fn run_one(&self, request: &mut Box<dyn Request>, alone: bool) -> Result<Option<Woken>, ProviderError> {
        let db = Db::new(&self.connection, self.clock.now_ms());
        if !alone {
            self.execute("SAVEPOINT request").map_err(|error| self.roll_back(error))?;
        }
        let outcome = request.run(&db);
        // A full disk or an I/O error may have rolled back everything: then nothing of the group is committed.
        if self.connection.is_autocommit() {
            let kind = outcome.err().unwrap_or(ProviderErrorKind::Unavailable);
            let text =
                "a request of the same commit failed, and took the commit with it; nothing was changed";
            return Err(ProviderError::new(kind, "commit", text));
        }
        if !alone {
            let undone = if outcome.is_ok() { Ok(()) } else { self.execute("ROLLBACK TO request") };
            undone.and_then(|()| self.execute("RELEASE request")).map_err(|error| self.roll_back(error))?;
        }
        Ok(outcome.ok().map(|()| db.woken.into_inner()))
    }

    fn roll_back(&self, error: rusqlite::Error) -> ProviderError {
        if !self.connection.is_autocommit()
            && let Err(second) = self.execute("ROLLBACK")
        {
            tracing::error!(target: "steadfast::store", error = %second, "a failed transaction could not be rolled back");
        }
        provider_error("commit", error)
    }

    fn execute(&self, statement: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(statement)?.execute([]).map(drop)
    }
}
