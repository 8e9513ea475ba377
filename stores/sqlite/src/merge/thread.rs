//! The writing thread: one transaction for all requests that wait, each in its own savepoint.

use rusqlite::Connection;
use steadfast_store::{ProviderError, ProviderErrorKind, Woken};
use tokio::sync::mpsc;

use super::alarm::NextMoments;
use super::log::Log;
use super::others::{OtherProcesses, SeenChanges};
use super::pace::Pace;
use super::request::Request;
use super::writer::Wakes;
use crate::link::clock::{FileClock, Moment};
use crate::link::db::Db;
use crate::link::error::provider_error;
use crate::link::lease::{is_torn_page, list_torn_leases};
use crate::link::look::Looks;
use crate::link::presence::Presence;

/// The thread, or the task, that owns the writing connection.
pub(super) struct WriterThread {
    pub(super) connection: Connection,
    pub(super) clock: FileClock,
    pub(super) wakes: Wakes,
    /// Bounds the requests of one transaction.
    pub(super) max_group: usize,
    pub(super) log: Log,
    pub(super) others: OtherProcesses,
    /// The last changes that were seen of the instances that calls wait for.
    pub(super) seen_changes: SeenChanges,
    pub(super) pace: Pace,
    /// Looks at the file beside a transaction that has met a torn page.
    pub(super) looks: Looks,
    /// Held until the connection is closed.
    pub(super) _presence: Presence,
}

/// What a transaction made runnable, at once and at later moments.
#[derive(Default)]
struct News {
    woken: Woken,
    moments: NextMoments,
}

impl News {
    fn absorb(&mut self, next: Self) {
        self.woken.absorb(next.woken);
        self.moments.absorb(next.moments);
    }
}

/// The reason why the thread woke up: a request, a due look for commits of other processes, or the end.
enum Next {
    Request(Box<dyn Request>),
    Look,
    Closed,
}

/// Bounds the looks for the next request before the thread sleeps. A caller that was just answered often asks
/// again at once, and waking a thread takes longer than these looks.
const LOOKS: u32 = 300;

/// The requests that wait for the thread.
pub(super) struct Inbox {
    pub(super) incoming: mpsc::Receiver<Box<dyn Request>>,
    /// Requests that undo leases. They go first: a lease without a holder must not wait behind the fetches
    /// that want the same row.
    pub(super) undoing: mpsc::UnboundedReceiver<Box<dyn Request>>,
    /// A request that could not be part of the transaction that was under way.
    pub(super) held_back: Option<Box<dyn Request>>,
}

impl Inbox {
    fn try_next(&mut self) -> Option<Box<dyn Request>> {
        let held_back = self.held_back.take();
        held_back.or_else(|| self.undoing.try_recv().ok()).or_else(|| self.incoming.try_recv().ok())
    }

    /// Returns the next request if it arrives soon, without sleeping.
    fn next_soon(&mut self) -> Option<Box<dyn Request>> {
        for _ in 0..LOOKS {
            if let Some(request) = self.try_next() {
                return Some(request);
            }
            std::thread::yield_now();
        }
        None
    }

    /// Returns the next request if it can be part of a transaction that has begun.
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

impl WriterThread {
    /// Runs requests on a thread of its own until the handle is dropped.
    pub(super) fn run(mut self, mut inbox: Inbox) {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else { return };
        let (mut undone, mut was_busy) = (Vec::new(), false);
        loop {
            let mut group: Vec<Box<dyn Request>> = std::mem::take(&mut undone);
            if group.is_empty() && was_busy {
                group.extend(inbox.next_soon());
            }
            if group.is_empty() {
                match runtime.block_on(self.next(&mut inbox)) {
                    Next::Request(request) => group.push(request),
                    Next::Look => {}
                    Next::Closed => break,
                }
            }
            was_busy = !group.is_empty();
            undone = self.round(group, &mut inbox);
        }
        self.close(undone, inbox);
    }

    /// Runs requests on the runtime of the caller until the handle is dropped. A task that is dropped itself
    /// undoes nothing, as a process that is killed.
    pub(super) async fn run_as_task(mut self, mut inbox: Inbox) {
        let mut undone = Vec::new();
        loop {
            let mut group: Vec<Box<dyn Request>> = std::mem::take(&mut undone);
            if group.is_empty() {
                group.extend(inbox.held_back.take());
            }
            if group.is_empty() {
                match self.next(&mut inbox).await {
                    Next::Request(request) => group.push(request),
                    Next::Look => {}
                    Next::Closed => break,
                }
            }
            undone = self.round(group, &mut inbox);
            // No other task runs during a transaction, so they get their turn after each.
            tokio::task::yield_now().await;
        }
        self.close(undone, inbox);
    }

    /// Waits for the next request, or for the next look for commits of other processes.
    async fn next(&mut self, inbox: &mut Inbox) -> Next {
        tokio::select! {
            biased;
            Some(undo) = inbox.undoing.recv() => Next::Request(undo),
            request = inbox.incoming.recv() => request.map_or(Next::Closed, Next::Request),
            () = self.others.rest(self.clock.clock()) => Next::Look,
        }
    }

    /// Commits a group, and does what is due between two transactions. Returns the requests to run next.
    fn round(&mut self, group: Vec<Box<dyn Request>>, inbox: &mut Inbox) -> Vec<Box<dyn Request>> {
        let changes = self.connection.total_changes();
        let undone = self.commit(group, inbox);
        if self.connection.total_changes() != changes {
            self.others.stir(self.clock.clock());
        }
        self.log.tidy(&self.connection);
        if self.others.sees_others(&self.connection, self.clock.clock()) {
            self.clock.refresh(&self.connection);
            self.wake_for_others();
        }
        if self.pace.has_jumped(&self.clock) {
            self.wakes.waiters.wake_all();
        }
        undone
    }

    /// Undoes the leases without a holder before the file is closed.
    fn close(&self, mut undone: Vec<Box<dyn Request>>, mut inbox: Inbox) {
        while let Ok(request) = inbox.undoing.try_recv() {
            undone.push(request);
        }
        self.commit(undone, &mut inbox);
    }

    /// Runs a group in one transaction and answers every request. Returns the requests to run next, which
    /// undo the leases of callers that were dropped.
    fn commit(&self, mut group: Vec<Box<dyn Request>>, inbox: &mut Inbox) -> Vec<Box<dyn Request>> {
        group.retain_mut(|request| request.is_wanted() && !request.run_outside(&self.connection));
        if group.is_empty() && !self.clock.has_slept() {
            return Vec::new();
        }
        let (committed, news, later) = self.transaction(&mut group, inbox);
        let is_committed = committed.is_ok();
        if is_committed {
            // Before the answers: a call that found nothing waits for the moment that its look has noted.
            self.wakes.alarms.apply(news.moments);
        }
        let undone = group.into_iter().filter_map(|request| request.answer(&committed));
        let next = undone.chain(later).collect();
        if is_committed {
            self.wakes.waiters.wake(&news.woken);
        }
        next
    }

    /// Runs a group in one transaction, with the requests that arrive meanwhile, up to `max_group` requests
    /// together. Returns whether it was committed, which waiting calls to wake, and requests that did not
    /// run: after one that met a torn page, SQLite neither writes more in the transaction nor commits it.
    fn transaction(
        &self,
        group: &mut Vec<Box<dyn Request>>,
        inbox: &mut Inbox,
    ) -> (Result<(), ProviderError>, News, Vec<Box<dyn Request>>) {
        let (mut news, mut later) = (News::default(), Vec::new());
        // More requests join before the transaction begins, so that all of them wait together for another
        // process that writes.
        self.gather(group, inbox);
        let mut moment = match self.begin() {
            Ok(moment) => moment,
            Err(error) => return (Err(of_group(error, group.len())), news, later),
        };
        self.gather(group, inbox);
        let (mut number, mut kept_any, mut is_damaged) = (0, moment.moves(), false);
        while number < group.len() {
            // A single request needs no savepoint: if it fails, all is rolled back.
            let alone = group.len() == 1 && !moment.moves();
            let (kept, met_damage) = match self.run_one(&mut group[number], &moment, alone) {
                Ok(ran) => ran,
                Err(error) => return (Err(of_group(error, group.len())), News::default(), later),
            };
            // No request can join a transaction that will be rolled back.
            let is_shared = !alone || kept.is_some();
            kept_any |= kept.is_some();
            news.absorb(kept.unwrap_or_default());
            number += 1;
            is_damaged |= met_damage;
            if is_damaged {
                later = group.split_off(number);
            } else if number == group.len() && is_shared {
                self.gather(group, inbox);
            }
        }
        let ended = match is_damaged {
            true => self.execute("ROLLBACK").map(|()| !kept_any),
            false => self.end(kept_any, &mut moment).map(|()| true),
        };
        match ended {
            Ok(true) => (Ok(()), news, later),
            Ok(false) => (Err(taken_along()), News::default(), later),
            Err(error) => (Err(of_group(self.roll_back(error), group.len())), News::default(), later),
        }
    }

    /// Begins a transaction. If its time jumps forward and the lease of a torn activity cannot be extended,
    /// the activity is listed first. If none is torn, what was met has passed: it begins once more.
    fn begin(&self) -> Result<Moment, ProviderError> {
        let mut is_first = true;
        loop {
            self.execute("BEGIN IMMEDIATE").map_err(|error| provider_error("begin", error))?;
            let error = match self.clock.begin(&self.connection) {
                Ok(moment) => return Ok(moment),
                Err(error) => error,
            };
            let is_torn = is_first && is_torn_page(&error);
            let failed = self.roll_back(error);
            if !is_torn || list_torn_leases(&self.connection, &self.looks).is_err() {
                return Err(failed);
            }
            is_first = false;
        }
    }

    fn end(&self, kept_any: bool, moment: &mut Moment) -> rusqlite::Result<()> {
        if !kept_any {
            return self.execute("ROLLBACK");
        }
        self.clock.note(&self.connection, moment)?;
        self.execute("COMMIT")?;
        self.clock.committed(moment);
        Ok(())
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

    /// Runs one request of a group. Returns the turns and work that it made runnable, or `None` if it failed
    /// and was rolled back, and whether it met a torn page; an error if the whole transaction was rolled
    /// back.
    fn run_one(
        &self,
        request: &mut Box<dyn Request>,
        moment: &Moment,
        alone: bool,
    ) -> Result<(Option<News>, bool), ProviderError> {
        let db = Db::new(&self.connection, self.clock.at(moment)).with_looks(&self.looks);
        if !alone {
            self.execute("SAVEPOINT request").map_err(|error| self.roll_back(error))?;
        }
        let outcome = request.run(&db);
        // A full disk or an I/O error may have rolled back everything: then nothing of the group is
        // committed. The request that met it keeps its own error.
        if self.connection.is_autocommit() {
            return Err(taken_along());
        }
        if !alone {
            let undone = if outcome { Ok(()) } else { self.execute("ROLLBACK TO request") };
            undone.and_then(|()| self.execute("RELEASE request")).map_err(|error| self.roll_back(error))?;
        }
        let is_damaged = db.is_damaged.get();
        let news = News { woken: db.woken.into_inner(), moments: db.moments.into_inner() };
        Ok((outcome.then_some(news), is_damaged))
    }

    /// Looks once, for all waiting calls, for what other processes have made runnable or changed. A look that
    /// fails wakes all.
    fn wake_for_others(&mut self) {
        if self.wakes.waiters.is_empty() {
            return;
        }
        let waited = self.wakes.waiters.instances();
        let db = Db::new(&self.connection, self.clock.now_ms());
        match db.made_by_others(&waited, &mut self.seen_changes) {
            Ok(woken) => {
                self.wakes.alarms.apply(db.moments.into_inner());
                self.wakes.waiters.wake(&woken);
            }
            Err(fault) => {
                let error = fault.of("look");
                tracing::debug!(
                    target: "steadfast::store",
                    %error,
                    "commits of other processes cannot be looked at; all waiting calls look"
                );
                self.wakes.waiters.wake_all();
            }
        }
    }

    fn roll_back(&self, error: rusqlite::Error) -> ProviderError {
        if !self.connection.is_autocommit()
            && let Err(second) = self.execute("ROLLBACK")
        {
            tracing::error!(
                target: "steadfast::store",
                error = %second,
                "a failed transaction could not be rolled back"
            );
        }
        provider_error("commit", error)
    }

    fn execute(&self, statement: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(statement)?.execute([]).map(drop)
    }
}

/// Returns the error that a group is answered with when its transaction was rolled back. A request alone is
/// told what SQLite said; of several it is not known whose fault it is, so they may try again.
fn of_group(error: ProviderError, size: usize) -> ProviderError {
    if size == 1 || error.is_retryable() {
        return error;
    }
    ProviderError { kind: ProviderErrorKind::Unavailable, retryable: true, ..error }
}

/// Makes the error for requests whose commit another request has failed: they may try again.
fn taken_along() -> ProviderError {
    let text = "a request of the same commit failed, and took the commit with it; nothing was changed";
    ProviderError::new(ProviderErrorKind::Unavailable, "commit", text)
}
