//! Noticing what other processes commit: a look at the file's data version, at a modest interval.
//!
//! It is the only statement that an idle store runs, and only when something was written to the log since it was last
//! quiet: otherwise a look at the file's size and time is enough. The writing connection looks, because what it commits
//! itself does not change the version that it sees: only the commits of others wake anybody.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rusqlite::Connection;
use steadfast_clock::Clock;

use crate::connection::Place;
use crate::options::SqliteOptions;

/// The statement by which another connection's commits are noticed.
pub(crate) const DATA_VERSION: &str = "PRAGMA data_version";

/// Knows the data version that was seen last, and when to look again.
#[derive(Debug)]
pub(crate) struct Watch {
    /// None when nobody else can write: a database in memory, or one that is said to be alone.
    interval: Option<Duration>,
    due: Duration,
    seen: Option<i64>,
    /// When somebody last committed, here or elsewhere.
    stirred: Duration,
    log: PathBuf,
    trace: Option<Trace>,
}

/// How long after the last commit the looks stay frequent.
const LIVELY: Duration = Duration::from_secs(10);

/// How much rarer they are after that: an idle process should cost nothing that anybody could measure.
const CALM: u32 = 4;

/// What can be seen of the log from outside, and since when it looks so.
#[derive(Debug)]
struct Trace {
    length: u64,
    written: SystemTime,
    since: Duration,
}

/// How long the log must look the same before its looks are trusted: file times have steps, and a second write within one
/// step does not show.
const QUIET: Duration = Duration::from_millis(100);

impl Watch {
    pub(crate) fn of(place: &Place, options: &SqliteOptions) -> Self {
        let interval = options.other_processes.filter(|_| *place != Place::Memory);
        let log = match place {
            Place::File(file) => {
                let mut name = file.clone().into_os_string();
                name.push("-wal");
                name.into()
            }
            Place::Memory => PathBuf::new(),
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

    /// Notes that this process has committed something: where one is at work, others may be.
    pub(crate) fn stir(&mut self, clock: &Arc<dyn Clock>) {
        self.stirred = clock.monotonic();
    }

    /// Looks, if it is time to. True when others have committed since the last look.
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
                tracing::debug!(target: "steadfast::store", %error, "the data version cannot be read; the next look may");
                false
            }
        }
    }

    /// Tells whether nobody has written to the log for a while.
    fn is_quiet(&mut self, now: Duration) -> bool {
        let Ok(found) = std::fs::metadata(&self.log) else { return false };
        let Ok(written) = found.modified() else { return false };
        match &self.trace {
            Some(trace) if trace.length == found.len() && trace.written == written => {
                now.saturating_sub(trace.since) > QUIET
            }
            _ => {
                self.trace = Some(Trace { length: found.len(), written, since: now });
                false
            }
        }
    }
}
