//! Noticing the commits of other processes: a look at the file's data version, at a modest interval.
//!
//! It is the only statement that an idle store runs, and only if the log was written to since the last look:
//! a look at the size and time of the log tells. The writing connection looks, because its own commits do not
//! change the version that it sees: only the commits of other processes wake the waiting calls.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rusqlite::Connection;
use steadfast_clock::Clock;

use crate::link::connection::Location;
use crate::link::options::SqliteOptions;

/// The statement by which another connection's commits are noticed.
pub(crate) const DATA_VERSION: &str = "PRAGMA data_version";

/// Knows the data version that was seen last, and when to look again.
#[derive(Debug)]
pub(crate) struct OtherProcesses {
    /// `None` if no other process can write: a database in memory, or an option that says so.
    interval: Option<Duration>,
    due: Duration,
    seen: Option<i64>,
    /// When a process last committed, this one included.
    stirred: Duration,
    log: PathBuf,
    trace: Option<LogTrace>,
}

/// How long after the last commit the looks stay frequent.
const LIVELY: Duration = Duration::from_secs(10);

/// How much rarer they are after that: an idle process should cost next to nothing.
const CALM: u32 = 4;

/// The size and time of the log, and since when they are so.
#[derive(Debug)]
struct LogTrace {
    length: u64,
    written: SystemTime,
    since: Duration,
}

/// How long the size and time of the log must stay the same before they are trusted: file times have steps,
/// and a second write within one step does not show.
const QUIET: Duration = Duration::from_millis(100);

impl OtherProcesses {
    pub(crate) fn of(place: &Location, options: &SqliteOptions) -> Self {
        let interval = options.other_processes.filter(|_| *place != Location::Memory);
        let log = match place {
            Location::File(file) => {
                let mut name = file.clone().into_os_string();
                name.push("-wal");
                name.into()
            }
            Location::Memory => PathBuf::new(),
        };
        Self { interval, due: Duration::ZERO, seen: None, stirred: Duration::ZERO, log, trace: None }
    }

    /// Waits until it is time to look.
    pub(crate) async fn rest(&self, clock: &Arc<dyn Clock>) {
        match self.interval {
            Some(_) => clock.sleep_until(self.due).await,
            None => std::future::pending().await,
        }
    }

    /// Call this after a commit of this process: while one process works, others may, and the looks are
    /// frequent.
    pub(crate) fn stir(&mut self, clock: &Arc<dyn Clock>) {
        self.stirred = clock.monotonic();
    }

    /// Looks, if it is time to. True if other processes have committed since the last look.
    pub(crate) fn sees_others(&mut self, connection: &Connection, clock: &Arc<dyn Clock>) -> bool {
        let Some(interval) = self.interval else { return false };
        let now = clock.monotonic();
        if now < self.due {
            return false;
        }
        let is_lively = now.saturating_sub(self.stirred) < LIVELY;
        self.due = now.saturating_add(if is_lively { interval } else { interval.saturating_mul(CALM) });
        if self.is_quiet(now) {
            return false;
        }
        let look = || connection.prepare_cached(DATA_VERSION)?.query_row([], |row| row.get::<_, i64>(0));
        match look() {
            Ok(found) => {
                let others = self.seen.replace(found) != Some(found);
                if others {
                    self.stirred = now;
                }
                others
            }
            Err(error) => {
                tracing::debug!(
                    target: "steadfast::store",
                    %error,
                    "the data version cannot be read; the next look may"
                );
                false
            }
        }
    }

    /// Tells whether the log was not written to for a while.
    fn is_quiet(&mut self, now: Duration) -> bool {
        let Ok(found) = std::fs::metadata(&self.log) else { return false };
        let Ok(written) = found.modified() else { return false };
        match &self.trace {
            Some(trace) if trace.length == found.len() && trace.written == written => {
                now.saturating_sub(trace.since) > QUIET
            }
            _ => {
                self.trace = Some(LogTrace { length: found.len(), written, since: now });
                false
            }
        }
    }
}
