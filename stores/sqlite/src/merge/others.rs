//! Noticing the commits of other processes: the data version of the file is read at a modest interval.
//!
//! Reading it is the only statement that an idle store runs, once a second unless the size or the time of the
//! log file has changed. The writing connection reads it: its own commits do not change the
//! version that it sees, so only the commits of other processes are noticed. The writing thread then looks
//! once for what they made runnable or changed, and wakes the calls that it concerns.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, params};
use steadfast_clock::Clock;
use steadfast_store::Woken;
use steadfast_store::rules::{stored_tag, tag_of};

use crate::link::connection::Location;
use crate::link::db::{Db, sql};
use crate::link::error::DbResult;
use crate::link::options::SqliteOptions;

/// The statement by which another connection's commits are noticed.
pub(crate) const DATA_VERSION: &str = "PRAGMA data_version";

/// The data version that was read last, and the time of the next look.
#[derive(Debug)]
pub(crate) struct OtherProcesses {
    /// The time between two looks for commits of other processes; [`CALM`] times as long after [`LIVELY`]
    /// without a commit. `None` never looks: a database in memory, or an option that says that no other
    /// process writes.
    interval: Option<Duration>,
    /// True if the clock is that of a machine, which may sleep: then the thread wakes up from time to time
    /// all the same, and learns of it.
    may_sleep: bool,
    due: Duration,
    seen: Option<i64>,
    /// The monotonic time at which the data version was read last.
    read_at: Duration,
    /// The monotonic time of the last commit that was noticed, of this process or another.
    stirred: Duration,
    log: PathBuf,
    trace: Option<LogTrace>,
}

/// How long after the last commit the looks stay frequent.
const LIVELY: Duration = Duration::from_secs(10);

/// Multiplies the interval between looks after [`LIVELY`] has passed, so that an idle process costs next to
/// nothing.
const CALM: u32 = 4;

/// How soon a sleep of the machine is noticed by a store that does not look for other processes.
const NOTICES_SLEEP: Duration = Duration::from_secs(1);

/// The size and the modification time of the log file, and since when they have not changed.
#[derive(Debug)]
struct LogTrace {
    length: u64,
    written: SystemTime,
    since: Duration,
}

/// How long the size and time of the log must stay the same before they are trusted. File times have steps,
/// and a second write within one step does not show. A commit is seen only after the log was synced, and that
/// changes neither.
const QUIET: Duration = Duration::from_secs(1);

/// How often the data version is read although the log is quiet: a sync may take longer than [`QUIET`].
const READ_ANYWAY: Duration = Duration::from_secs(1);

impl OtherProcesses {
    pub(crate) fn of(place: &Location, options: &SqliteOptions) -> Self {
        let interval = options.other_processes.filter(|_| *place != Location::Memory);
        let log = match place {
            // The log of a file that a VFS keeps cannot be seen from here.
            Location::File(file) if options.vfs.is_none() => {
                let mut name = file.clone().into_os_string();
                name.push("-wal");
                name.into()
            }
            _ => PathBuf::new(),
        };
        let stirred = options.clock.monotonic();
        let may_sleep = options.clock.machine().boot.is_some();
        Self {
            interval,
            may_sleep,
            due: Duration::ZERO,
            seen: None,
            read_at: Duration::ZERO,
            stirred,
            log,
            trace: None,
        }
    }

    /// Reads the data version for the first time. Later looks notice the commits since then.
    pub(crate) fn begin(mut self, connection: &Connection) -> rusqlite::Result<Self> {
        if self.interval.is_some() {
            self.seen = Some(data_version(connection)?);
        }
        Ok(self)
    }

    /// Waits until the next look is due; for ever if no other process can write and the machine never sleeps.
    pub(crate) async fn rest(&self, clock: &Arc<dyn Clock>) {
        if self.interval.is_some() || self.may_sleep {
            clock.sleep_until(self.due).await;
        } else {
            std::future::pending().await
        }
    }

    /// Call this after a commit of this process: it keeps the looks frequent, because other processes may be
    /// at work too.
    pub(crate) fn stir(&mut self, clock: &Arc<dyn Clock>) {
        self.stirred = clock.monotonic();
    }

    /// Reads the data version if a look is due. True if other processes have committed since the last look.
    pub(crate) fn sees_others(&mut self, connection: &Connection, clock: &Arc<dyn Clock>) -> bool {
        let now = clock.monotonic();
        if now < self.due {
            return false;
        }
        let Some(interval) = self.interval else {
            self.due = now.saturating_add(NOTICES_SLEEP);
            return false;
        };
        let is_lively = now.saturating_sub(self.stirred) < LIVELY;
        self.due = now.saturating_add(if is_lively { interval } else { interval.saturating_mul(CALM) });
        if self.is_quiet(now) && now.saturating_sub(self.read_at) < READ_ANYWAY {
            return false;
        }
        self.read_at = now;
        match data_version(connection) {
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

    /// Tells whether the log file has not changed for longer than [`QUIET`].
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

fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached(DATA_VERSION)?.query_row([], |row| row.get(0))
}

/// The last change that was seen of each instance that calls of this process wait for.
pub(crate) type SeenChanges = HashMap<String, InstanceChange>;

/// Tells one commit of an instance from another: the change of its row, and the last event of a history that
/// has no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InstanceChange {
    change: Option<i64>,
    event: Option<i64>,
    has_ended: bool,
}

/// Bounds how many ready turns, or ready activities of one tag, one look counts: so many calls are woken.
const MOST_WOKEN: i64 = 64;

impl Db<'_> {
    /// Looks for what other processes may have made runnable, and for changes of the instances that calls of
    /// this process wait for. Notes the next moments. Only reads: it runs in no transaction.
    pub(crate) fn made_by_others(&self, waited: &[String], seen: &mut SeenChanges) -> DbResult<Woken> {
        let mut woken = Woken::default();
        let turns = self.number(sql!("turn/ready/count"), params![self.now, MOST_WOKEN])?;
        woken.turns = usize::try_from(turns).unwrap_or(0);
        woken.any_turn = self.number(sql!("turn/ready/any_routed"), [])? == 1;
        let mut tag = Some(stored_tag(None));
        while let Some(current) = tag {
            let ready = self.number(sql!("work/ready/count_of_tag"), params![current, MOST_WOKEN])?;
            let name = tag_of(&current).map(str::to_owned);
            woken.work.extend((0..ready).map(|_| (name.clone(), false)));
            let next = self.one(sql!("work/ready/next_tag"), [current], |row| row.get(0))?;
            tag = next.flatten();
        }
        // Which process may take the work of a session is decided by the fetch.
        woken.any_work = self.number(sql!("work/ready/any_other"), [self.now])? == 1;
        let silence = self.next_silence()?;
        self.note_next_turn(silence)?;
        self.note_next_work(silence)?;
        seen.retain(|id, _| waited.contains(id));
        for id in waited {
            let found = self.change_of(id)?;
            if seen.insert(id.clone(), found) != Some(found) {
                let is_over = found.has_ended || found.change.is_none();
                let list = if is_over { &mut woken.ended } else { &mut woken.instances };
                list.push(id.clone());
            }
        }
        Ok(woken)
    }

    fn change_of(&self, instance: &str) -> DbResult<InstanceChange> {
        let found = self.one(sql!("instance/change"), [instance], |row| {
            Ok(InstanceChange { change: row.get(0)?, event: row.get(1)?, has_ended: row.get(2)? })
        })?;
        Ok(found.unwrap_or(InstanceChange { change: None, event: None, has_ended: false }))
    }
}

#[cfg(test)]
mod tests {
    use steadfast_clock::VirtualClock;

    use super::*;

    #[test]
    fn g87_a_commit_with_a_slow_sync_is_noticed() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("db");
        let [own, other] = [Connection::open(&file)?, Connection::open(&file)?];
        own.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x)")?;
        let time = Arc::new(VirtualClock::new(0));
        let clock: Arc<dyn Clock> = Arc::clone(&time) as _;
        let options = SqliteOptions { clock: Arc::clone(&clock), ..SqliteOptions::default() };
        // What the process that commits wrote into the log before it synced it.
        let log = folder.path().join("log");
        std::fs::write(&log, "frames")?;
        let others = OtherProcesses::of(&Location::File(file), &options);
        let mut others = OtherProcesses { log, ..others }.begin(&own)?;
        let mut looks = |seconds| {
            (0..seconds * 10).any(|_| {
                time.advance(Duration::from_millis(100));
                others.sees_others(&own, &clock)
            })
        };
        assert!(!looks(30), "the sync takes its time");
        other.execute_batch("INSERT INTO t VALUES (1)")?;
        assert!(looks(1), "the log is as it was");
        assert!(!looks(30), "nothing more is committed");
        Ok(())
    }
}
