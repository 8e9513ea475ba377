//! Workers: the rows that they write about themselves, and who lists a handler (S21).

mod ended_lease;
mod refuse;
pub(crate) mod route;
mod stored_report;

use rusqlite::params;
use semver::Version;
use steadfast_store::rules::{is_live_worker, runs_engine};
use steadfast_store::{
    ListedHandler, MAX_PAGE, NeededHandler, ProviderError, ProviderErrorKind, WORKER_KEPT_FOR,
    WORKER_LIVE_FOR, WorkerId, WorkerInfo, WorkerReport,
};

use self::stored_report::{StoredAccepts, StoredHandlers, StoredReport};
use crate::link::db::{Db, sql, unsigned};
use crate::link::error::DbResult;
use crate::verbs::turn::SWEEP;

/// The two kinds of handlers, by their stored numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandlerKind {
    Orchestration = 0,
    Activity = 1,
}

/// A report with its JSON texts, made by the caller, so that the writer only stores them.
pub(crate) struct PreparedReport {
    pub(crate) report: WorkerReport,
    accepts: String,
    handlers: String,
    text: String,
}

impl PreparedReport {
    pub(crate) fn new(report: &WorkerReport) -> Result<Self, ProviderError> {
        Ok(Self {
            accepts: StoredAccepts::of(report).to_text()?,
            handlers: StoredHandlers::of(report).to_text()?,
            text: StoredReport::of(report).to_text()?,
            report: report.clone(),
        })
    }
}

/// What is stored of the last report of a worker, as far as fetches need it.
struct WorkerRow {
    takes_unlisted: bool,
    is_listed: bool,
    is_stopped: bool,
    accepts: String,
    handlers: String,
}

/// What a turn or an activity requires of a worker beside its handler.
pub(crate) enum Requirement<'a> {
    Turn {
        /// The engine version that the execution is pinned to.
        pinned: Option<Version>,
    },
    Work {
        tag: Option<&'a str>,
        is_on_session: bool,
    },
}

impl Requirement<'_> {
    fn kind(&self) -> HandlerKind {
        match self {
            Self::Turn { .. } => HandlerKind::Orchestration,
            Self::Work { .. } => HandlerKind::Activity,
        }
    }
}

impl Db<'_> {
    /// Writes the row of a worker, and cleans up in bounded batches: rows of workers that are gone, routes
    /// that are not used, ended leases that are of no use.
    pub(crate) fn report_worker(&self, prepared: &PreparedReport) -> DbResult<()> {
        let PreparedReport { report, accepts, handlers, text } = prepared;
        let id = &report.id.0;
        let known = self.worker_row(&report.id)?;
        let is_same = known.as_ref().is_some_and(|row| row.accepts == *accepts && row.handlers == *handlers);
        let is_listed = !report.is_stopped;
        let was_listed = known.as_ref().is_some_and(|row| row.is_listed);
        if !is_same || was_listed != is_listed {
            self.run(sql!("worker/unlist"), [id])?;
            if is_listed {
                self.list_handlers(id, HandlerKind::Orchestration, &report.orchestrations)?;
                self.list_handlers(id, HandlerKind::Activity, &report.activities)?;
            }
        }
        let (is_stopped, takes_unlisted) = (report.is_stopped, report.takes_unlisted);
        let columns = params![id, self.now, is_stopped, takes_unlisted, is_listed, accepts, handlers, text];
        self.run(sql!("worker/put"), columns)?;
        let as_before = known.is_some_and(|row| {
            row.is_stopped == report.is_stopped && row.takes_unlisted == report.takes_unlisted
        });
        if !(is_same && as_before && was_listed == is_listed) && self.number(sql!("route/any"), [])? == 1 {
            // Another worker may be given what is routed, so all fetches look.
            self.wake_all_fetches();
        }
        self.forget_workers()?;
        self.run(sql!("route/unused"), [SWEEP])?;
        self.forget_ended_leases()
    }

    fn list_handlers(&self, worker: &str, kind: HandlerKind, handlers: &[ListedHandler]) -> DbResult<()> {
        for ListedHandler { name, versions } in handlers {
            let mut stored: Vec<String> =
                versions.iter().map(|version| stored_version(Some(version))).collect();
            if stored.is_empty() {
                stored.push(stored_version(None));
            }
            for version in stored {
                self.run(sql!("worker/list"), params![kind as i64, name, worker, version])?;
            }
        }
        Ok(())
    }

    /// Takes the handlers of workers that fell silent off the listed ones, in a bounded batch. What was left
    /// to them may be given to other workers, so all fetches look.
    fn unlist_silent(&self) -> DbResult<()> {
        let silent = params![self.silent_since(), SWEEP];
        let silent = self.all(sql!("worker/silent"), silent, |row| row.get::<_, String>(0))?;
        for id in &silent {
            self.run(sql!("worker/unlist"), [id])?;
            self.run(sql!("worker/fell_silent"), [id])?;
        }
        if !silent.is_empty() {
            self.wake_all_fetches();
        }
        Ok(())
    }

    /// Removes the rows of workers that have been gone for long, in a bounded batch.
    fn forget_workers(&self) -> DbResult<()> {
        self.unlist_silent()?;
        let kept_for = i64::try_from(WORKER_KEPT_FOR.as_millis()).unwrap_or(i64::MAX);
        self.run(sql!("worker/forget_old"), params![self.now.saturating_sub(kept_for), SWEEP])?;
        Ok(())
    }

    /// Returns the latest time of a last report that is too long ago for a live worker.
    fn silent_since(&self) -> i64 {
        self.now.saturating_sub(i64::try_from(WORKER_LIVE_FOR.as_millis()).unwrap_or(i64::MAX))
    }

    /// Returns the next time at which a live worker counts as gone unless it reports, if anything is routed:
    /// what is left to it may then be given to others. That of a worker that is gone and still listed has
    /// passed: the look of a waiting fetch takes its handlers off the listed ones.
    pub(crate) fn next_silence(&self) -> DbResult<Option<i64>> {
        let last_seen = self.maybe(sql!("worker/next_silence"), [])?;
        Ok(last_seen.map(|at| at.saturating_add(self.now.saturating_sub(self.silent_since()))))
    }

    /// Takes the handlers of workers that fell silent off the listed ones, if anything is routed. Returns the
    /// next silence, which has not passed.
    pub(crate) fn end_silence(&self) -> DbResult<Option<i64>> {
        match self.next_silence()? {
            Some(at) if at <= self.now => {
                self.unlist_silent()?;
                self.next_silence()
            }
            next => Ok(next),
        }
    }

    fn worker_row(&self, id: &WorkerId) -> DbResult<Option<WorkerRow>> {
        self.one(sql!("worker/show"), [&id.0], |row| {
            Ok(WorkerRow {
                takes_unlisted: row.get(0)?,
                is_listed: row.get(1)?,
                is_stopped: row.get(2)?,
                accepts: row.get(3)?,
                handlers: row.get(4)?,
            })
        })
    }

    /// Tells whether the worker that asks is given what is routed to a handler: its own report lists the
    /// handler, or it takes what no live worker lists. A request without a worker, or of one that never
    /// reported, is given all.
    fn takes(
        &self,
        asks: Option<&WorkerId>,
        needed: &NeededHandler,
        required: &Requirement<'_>,
    ) -> DbResult<bool> {
        let Some(id) = asks else { return Ok(true) };
        let Some(row) = self.worker_row(id)? else { return Ok(true) };
        if self.row_lists(id, &row, needed, required)? {
            return Ok(true);
        }
        Ok(row.takes_unlisted && !self.is_listed(needed, required)?)
    }

    /// Tells whether the report of a worker lists a handler. Those of a worker that fell silent are in its
    /// row only.
    fn row_lists(
        &self,
        id: &WorkerId,
        row: &WorkerRow,
        needed: &NeededHandler,
        required: &Requirement<'_>,
    ) -> DbResult<bool> {
        let kind = required.kind();
        if !accepts(&row.accepts, required) {
            return Ok(false);
        }
        if !row.is_listed {
            return Ok(StoredHandlers::read(&row.handlers).is_some_and(|listed| listed.has(kind, needed)));
        }
        let columns = params![kind as i64, needed.name, id.0, stored_version(needed.version.as_deref())];
        Ok(self.number(sql!("worker/lists"), columns)? == 1)
    }

    /// Tells whether a live worker lists a handler and accepts what needs it.
    fn is_listed(&self, needed: &NeededHandler, required: &Requirement<'_>) -> DbResult<bool> {
        let version = stored_version(needed.version.as_deref());
        let columns = params![required.kind() as i64, needed.name, version, self.silent_since()];
        let listing = self.all(sql!("worker/listing"), columns, |row| row.get::<_, String>(0))?;
        Ok(listing.iter().any(|accepted| accepts(accepted, required)))
    }

    pub(crate) fn workers(&self, after: Option<&WorkerId>) -> DbResult<Vec<WorkerInfo>> {
        let page = i64::try_from(MAX_PAGE).unwrap_or(i64::MAX);
        let rows = self.all(sql!("worker/page"), params![after.map(|id| &id.0), page], |row| {
            let texts: [String; 3] = [row.get(5)?, row.get(6)?, row.get(7)?];
            let flags: [bool; 2] = [row.get(3)?, row.get(4)?];
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?, flags, texts))
        })?;
        let infos = rows.into_iter().map(|(id, since, last_seen, [is_stopped, takes_unlisted], texts)| {
            let (since_ms, last_seen_ms) = (unsigned(since), unsigned(last_seen));
            let is_live = is_live_worker(is_stopped, last_seen_ms, unsigned(self.now));
            let report = report_of(&id, is_stopped, takes_unlisted, &texts);
            let report = report.ok_or_else(|| unreadable_worker(&id))?;
            Ok(WorkerInfo { report, since_ms, last_seen_ms, is_live })
        });
        infos.collect()
    }

    fn wake_all_fetches(&self) {
        let mut woken = self.woken.borrow_mut();
        (woken.any_turn, woken.any_work) = (true, true);
    }
}

fn report_of(
    id: &str,
    is_stopped: bool,
    takes_unlisted: bool,
    [accepts, handlers, rest]: &[String; 3],
) -> Option<WorkerReport> {
    let (accepts, handlers) = (StoredAccepts::read(accepts)?, StoredHandlers::read(handlers)?);
    let rest = StoredReport::read(rest)?;
    let (orchestrations, activities) = handlers.lists();
    Some(WorkerReport {
        id: WorkerId(id.to_owned()),
        orchestrations,
        activities,
        serves_sessions: accepts.serves_sessions,
        engines: accepts.engines(),
        tags: accepts.tags.filter(),
        takes_unlisted,
        slots: rest.slots(),
        sessions: rest.sessions,
        is_stopped,
        process: rest.process(),
    })
}

fn unreadable_worker(id: &str) -> ProviderError {
    let text = format!("the row of worker '{id}' cannot be read");
    ProviderError::new(ProviderErrorKind::Corrupt, "workers", text)
}

/// Tells whether a worker accepts what needs one of its handlers; a row that cannot be read accepts nothing.
fn accepts(stored: &str, required: &Requirement<'_>) -> bool {
    StoredAccepts::read(stored).is_some_and(|accepts| match required {
        Requirement::Turn { pinned } => runs_engine(accepts.engines().as_ref(), pinned.as_ref()),
        Requirement::Work { tag, is_on_session } => {
            (accepts.serves_sessions || !is_on_session) && accepts.tags.filter().matches(*tag)
        }
    })
}

/// Returns the stored form of a version: `''` for none, `':' + version` otherwise.
fn stored_version(version: Option<&str>) -> String {
    version.map_or_else(String::new, |version| format!(":{version}"))
}

/// Returns the version of a stored form.
fn version_of(stored: &str) -> Option<String> {
    stored.strip_prefix(':').map(str::to_owned)
}
