//! Workers: the rows that runtimes keep about themselves, and what becomes runnable because of them.
//! [`refuse`] leaves work to the workers that have its code, [`excuse`] takes a delivery off the count.

pub(crate) mod excuse;
pub(crate) mod refuse;
pub(crate) mod report;

use std::borrow::Cow;

use sha2::{Digest, Sha256};
use steadfast_store::rules::{is_live_worker, stored_tags};
use steadfast_store::{ListedHandler, MAX_PAGE, ProviderError, Woken, WorkerId, WorkerInfo, WorkerReport};
use tokio_postgres::Row;

use crate::link::db::{Db, column, unsigned};
use crate::link::escape::{escape, unescape};
use crate::link::statement::{Statement, calls, params, sql};
use crate::schema::functions::{Function, functions};
use crate::verbs::backend::Backend;
use crate::verbs::turn::pins_of;
use crate::verbs::worker::report::{read_report, write_report};

pub(crate) const FUNCTIONS: &[Function] = functions![
    "worker/accepts",
    "worker/is_listed",
    "worker/takes_route",
    "worker/next_silence",
    "worker/release_bound",
    "worker/release_refused",
    "worker/tidy_workers",
    "worker/report_worker",
    "route/plain_tag",
    "route/shut_pins",
    "route/open_routes",
    "route/routed_pin",
    "route/make_route",
    "route/keep_routes",
    "route/open_instances",
    "route/refuse_turn",
    "route/refuse_work",
    "lease/code_of_lost_work",
    "lease/remember_turns",
    "lease/forget_turns",
    "lease/drop_work",
    "lease/forget_leases",
    "lease/excuse_turn",
    "lease/excuse_work",
];

calls! {
    /// Writes the row of a worker.
    ReportWorker<'a> => report_worker {
        worker: Cow<'a, str>,
        /// The stored tags that it accepts; `None` for all.
        tags: Option<Vec<String>>,
        takes_unlisted: bool,
        is_stopped: bool,
        /// The whole report, as JSON.
        report: String,
        kinds: Vec<i32>,
        handlers: Vec<String>,
        /// The place of the handler that a version belongs to, counted from 1.
        version_of: Vec<i32>,
        versions: Vec<Cow<'a, str>>,
        now_ms: Option<i64>,
        notify: Option<String>,
        me: &'a str,
        serves_sessions: bool,
        /// The lowest and the highest pins of the engine versions that it runs; `None` for all.
        engine_lo: Option<Vec<i64>>,
        engine_hi: Option<Vec<i64>>,
    }

    /// Forgets leases that no call can ask for any more.
    ForgetLeases => forget_leases {
        now_ms: Option<i64>,
    }
}

/// The kind of a handler, as it is stored.
#[derive(Debug, Clone, Copy)]
enum HandlerKind {
    Orchestration = 0,
    Activity = 1,
}

impl Backend {
    /// Writes the row of a worker, and makes work due that was refused for a handler that the worker lists
    /// (S21). Each call releases a bounded number, so that it is repeated while more is left.
    pub(crate) async fn report_worker(&self, report: &WorkerReport) -> Result<(), ProviderError> {
        const OPERATION: &str = "report_worker";
        let (engine_lo, engine_hi) = report.engines.as_ref().map(pins_of).unzip();
        let mut call = ReportWorker {
            worker: escape(&report.id.0),
            tags: stored_tags(&report.tags)
                .map(|tags| tags.iter().map(|tag| escape(tag).into_owned()).collect()),
            takes_unlisted: report.takes_unlisted,
            is_stopped: report.is_stopped,
            report: write_report(OPERATION, report)?,
            kinds: Vec::new(),
            handlers: Vec::new(),
            version_of: Vec::new(),
            versions: Vec::new(),
            now_ms: self.db.now(),
            notify: self.payload(&all_fetches()),
            me: &self.me,
            serves_sessions: report.serves_sessions,
            engine_lo,
            engine_hi,
        };
        call.list(HandlerKind::Orchestration, &report.orchestrations);
        call.list(HandlerKind::Activity, &report.activities);
        loop {
            call.now_ms = self.db.now();
            let answer = self.db.one(OPERATION, call.statement()).await;
            let Some(row) = self.wake_if_unsure(answer, &all_fetches())? else { return Ok(()) };
            if column(OPERATION, &row, "wakes")? {
                self.waiters.wake(&all_fetches());
            }
            if !column(OPERATION, &row, "is_more")? {
                return Ok(());
            }
        }
    }
}

impl<'a> ReportWorker<'a> {
    fn list(&mut self, kind: HandlerKind, handlers: &'a [ListedHandler]) {
        for handler in handlers {
            self.kinds.push(kind as i32);
            self.handlers.push(handler_key(&handler.name));
            let place = i32::try_from(self.handlers.len()).unwrap_or(i32::MAX);
            self.version_of.extend(handler.versions.iter().map(|_| place));
            self.versions.extend(handler.versions.iter().map(|version| escape(version)));
        }
    }
}

impl Db {
    /// Lists a page of workers in the order of their ids. A row that cannot be read is left out with a
    /// warning.
    pub(crate) async fn workers(&self, after: Option<&WorkerId>) -> Result<Vec<WorkerInfo>, ProviderError> {
        const OPERATION: &str = "workers";
        let page = i64::try_from(MAX_PAGE).unwrap_or(i64::MAX);
        let (after, now) = (escape(after.map_or("", |after| &after.0)), self.now());
        let rows =
            self.rows(OPERATION, Statement::of(sql!("worker/page"), params![after, page, now])).await?;
        let mut workers = Vec::with_capacity(rows.len());
        for row in &rows {
            workers.extend(read_worker(OPERATION, row)?);
        }
        Ok(workers)
    }

    /// Forgets leases that no call can ask for any more, a bounded number.
    pub(crate) async fn forget_leases(&self, operation: &'static str) -> Result<(), ProviderError> {
        self.rows(operation, ForgetLeases { now_ms: self.now() }.statement()).await.map(drop)
    }
}

fn read_worker(operation: &'static str, row: &Row) -> Result<Option<WorkerInfo>, ProviderError> {
    let id = WorkerId(unescape(column(operation, row, "worker_id")?));
    let number = |name: &str| column::<i64>(operation, row, name).map(unsigned);
    let (since_ms, last_seen_ms) = (number("since_ms")?, number("last_seen_ms")?);
    let is_stopped: bool = column(operation, row, "is_stopped")?;
    let is_live = is_live_worker(is_stopped, last_seen_ms, number("now_ms")?);
    match read_report(column(operation, row, "report")?, id.clone(), is_stopped) {
        Ok(report) => Ok(Some(WorkerInfo { report, since_ms, last_seen_ms, is_live })),
        Err(error) => {
            let worker = id.0;
            tracing::warn!(target: "steadfast::store", worker, %error, "the row of a worker cannot be read");
            Ok(None)
        }
    }
}

/// Returns a wake-up for all fetches: which of them may take the work is known only to the database.
pub(super) fn all_fetches() -> Woken {
    Woken { any_turn: true, any_work: true, ..Woken::default() }
}

/// Returns the key that a handler is stored by: names have any length, and an index has a bound.
pub(super) fn handler_key(name: &str) -> String {
    let digest = Sha256::digest(name.as_bytes());
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::verbs::turn::TurnFetch;

    #[test]
    fn fetches_of_two_workers_are_not_merged() {
        let fetch = |worker: Option<&str>| TurnFetch {
            lock_timeout: Duration::ZERO,
            filter: None,
            worker: worker.map(|id| WorkerId(id.to_owned())),
        };
        assert!(fetch(Some("a")).is_like(&fetch(Some("a"))));
        assert!(!fetch(Some("a")).is_like(&fetch(Some("b"))));
        assert!(!fetch(Some("a")).is_like(&fetch(None)));
    }

    #[test]
    fn the_key_of_a_handler_has_the_length_that_a_routed_tag_has_room_for() {
        assert_eq!(handler_key(&"long".repeat(1_000)).len(), 32);
        assert_ne!(handler_key("a"), handler_key("b"));
    }
}
