//! Workers: the row that each runtime keeps about itself (S21).

mod route;

use std::time::Duration;

use steadfast_store::rules::is_live_worker;
use steadfast_store::{MAX_PAGE, WORKER_KEPT_FOR, WorkerId, WorkerInfo, WorkerReport};

use crate::millis;
use crate::state::State;

/// The row of a worker: its last report, and when it reported first and last.
#[derive(Debug)]
pub(crate) struct WorkerRow {
    report: WorkerReport,
    since_ms: u64,
    last_seen_ms: u64,
}

impl WorkerRow {
    fn is_live(&self, now: u64) -> bool {
        is_live_worker(self.report.is_stopped, self.last_seen_ms, now)
    }

    /// Keeps a worker live that is live when the time jumps forward.
    pub(crate) fn outlive(&mut self, now: u64, by_ms: u64) {
        if self.is_live(now) {
            self.last_seen_ms = self.last_seen_ms.saturating_add(by_ms);
        }
    }

    /// Returns the time that is so long after the last report.
    fn seen_and(&self, time: Duration) -> u64 {
        self.last_seen_ms.saturating_add(millis(time))
    }
}

impl State {
    pub(crate) fn report_worker(&mut self, report: &WorkerReport, now: u64) {
        let since_ms = self.workers.get(&report.id).map_or(now, |row| row.since_ms);
        let row = WorkerRow { report: report.clone(), since_ms, last_seen_ms: now };
        self.workers.insert(report.id.clone(), row);
        self.workers.retain(|_, row| row.seen_and(WORKER_KEPT_FOR) > now);
        if !report.is_stopped {
            self.free_refused(report, now);
        }
    }

    pub(crate) fn worker_page(&self, after: Option<&WorkerId>, now: u64) -> Vec<WorkerInfo> {
        let behind = self.workers.iter().filter(|(id, _)| after.is_none_or(|after| *id > after));
        let info = |row: &WorkerRow| WorkerInfo {
            report: row.report.clone(),
            since_ms: row.since_ms,
            last_seen_ms: row.last_seen_ms,
            is_live: row.is_live(now),
        };
        behind.take(MAX_PAGE).map(|(_, row)| info(row)).collect()
    }
}
