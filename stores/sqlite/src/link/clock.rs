//! The time of the file (S16, G2). All processes that have the file open are on one machine, so they agree on
//! a time by an anchor in the file: a time of the file, and the time awake of the machine at that moment.
//! Every transaction reads it. A process that opens the file alone moves the time to its wall clock, never
//! backwards; any other takes the time of the file, whatever its wall clock says. A sleep of the machine is
//! counted by the first process that notices it, and extends the live leases by as much.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use steadfast_clock::{BootId, Clock, MachineTime};

use crate::link::connection::Location;
use crate::link::db::{sql, time};
use crate::link::lease::{extend_leases, is_torn_page, list_torn_leases};
use crate::link::look::Looks;
use crate::link::open::OpenError;
use crate::link::options::SqliteOptions;
use crate::link::presence::{Company, Presence};

/// Tells the time of a file.
#[derive(Debug, Clone)]
pub(crate) struct FileClock {
    clock: Arc<dyn Clock>,
    offset: Offset,
    /// The anchor as it was read last.
    known: Arc<Mutex<Anchor>>,
}

/// Ties the time of the file to the time of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Anchor {
    /// The time of the file, in milliseconds since the Unix epoch, at `awake_ns`.
    store_ms: i64,
    /// The time awake of the machine, in nanoseconds.
    awake_ns: i64,
    /// How much of the sleep of the machine is counted in `store_ms`, in nanoseconds.
    slept_ns: i64,
    /// A time that the file has reached.
    noted_ms: i64,
}

/// What must be added to this process's readings of the machine to get those of the file. Zero for processes
/// that read the same clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Offset {
    awake_ns: i64,
    slept_ns: i64,
}

/// The anchor that a transaction goes by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    anchor: Anchor,
    /// The sleep of the machine that this transaction counts, in milliseconds.
    counted_ms: Option<i64>,
}

impl Moment {
    /// Tells whether the transaction counts a sleep of the machine: then it must be committed.
    pub(crate) fn moves(&self) -> bool {
        self.counted_ms.is_some()
    }
}

/// A difference of two clocks that is worth a warning.
const NOTABLE_MS: i64 = 1_000;

/// A jump of the time of a file to the wall clock that is worth a warning: it cannot be taken back.
const FAR_MS: i64 = 3_600_000;

/// The same for a file that an earlier run of the machine used last, which may have been long ago.
const FAR_AFTER_RESTART_MS: i64 = 366 * 86_400_000;

/// How much two clocks differ that are read one after the other and in milliseconds.
const ROUNDING_MS: i64 = 2;

/// A shorter sleep of the machine is not counted: two clocks are never read at exactly one moment.
const SHORTEST_SLEEP_NS: i64 = 100_000_000;

/// How often a transaction that is committed notes the time of the file.
const NOTE_EVERY_MS: i64 = 10_000;

impl FileClock {
    /// Agrees on the time with the processes that have the file open, or sets it if there are none. Returns
    /// the presence of this process too, which lasts as long as it is kept.
    pub(crate) fn open(
        connection: &mut Connection,
        place: &Location,
        options: &SqliteOptions,
    ) -> Result<(Self, Presence), OpenError> {
        let explain = |error| place.explain(error);
        let looks = Looks::of(place, options);
        let opened = Self::try_open(connection, place, options);
        match opened {
            // Those that are torn are listed; if none is, what was met has passed.
            Err(error) if is_torn_page(&error) => {
                list_torn_leases(connection, &looks).map_err(explain)?;
                Self::try_open(connection, place, options).map_err(explain)
            }
            opened => opened.map_err(explain),
        }
    }

    fn try_open(
        connection: &mut Connection,
        place: &Location,
        options: &SqliteOptions,
    ) -> rusqlite::Result<(Self, Presence)> {
        let clock = Arc::clone(&options.clock);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (presence, company) = Presence::enter(place, options.vfs.as_deref());
        let found = read(&transaction)?;
        let (machine, wall_ms) = (clock.machine(), time(clock.now_ms()));
        let (offset, anchor) = match found {
            Some((anchor, boot)) if company.is_joined(boot, machine.boot) => {
                let offset = Offset::of(&anchor, boot, machine, wall_ms);
                let slept_ms = anchor.uncounted_sleep(machine, offset).unwrap_or(0) / NS_PER_MS;
                let now = anchor.time_at(machine, offset).saturating_add(slept_ms);
                tell_of_difference(place, wall_ms.saturating_sub(now), "another process has it open");
                (offset, anchor)
            }
            found => {
                let set = found.map_or_else(
                    || Setting::new(wall_ms),
                    |(anchor, boot)| Setting::of(&anchor, boot, machine, wall_ms),
                );
                tell_of_difference(place, wall_ms.saturating_sub(set.to_ms), "its time does not go back");
                if let Some((anchor, boot)) = &found
                    && let Some(reached_ms) = anchor.far_behind(*boot, machine, set.to_ms)
                {
                    tell_of_jump(place, reached_ms, set.to_ms);
                }
                let anchor = Anchor::new(set.to_ms, machine);
                match found {
                    Some((kept, boot)) if boot == machine.boot && kept.agrees_with(&anchor) => {
                        (Offset::default(), kept)
                    }
                    _ => {
                        set.write(&transaction, &anchor, machine.boot)?;
                        (Offset::default(), anchor)
                    }
                }
            }
        };
        transaction.commit()?;
        Ok((Self { clock, offset, known: Arc::new(Mutex::new(anchor)) }, presence))
    }

    /// Returns the clock of the process, for waiting.
    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Returns the time of the file outside a transaction, in milliseconds since the Unix epoch.
    pub(crate) fn now_ms(&self) -> i64 {
        self.at(&self.seen())
    }

    /// Returns the time of the file inside a transaction.
    pub(crate) fn at(&self, moment: &Moment) -> i64 {
        moment.anchor.time_at(self.clock.machine(), self.offset)
    }

    /// Returns the moment of a transaction that only reads.
    pub(crate) fn look(&self, connection: &Connection) -> rusqlite::Result<Moment> {
        let found = read(connection)?;
        Ok(found.map_or_else(|| self.seen(), |(anchor, _)| Moment { anchor, counted_ms: None }))
    }

    /// Returns the moment of a transaction that writes. If the machine has slept and no process has counted
    /// it, this one does: the time jumps forward, and the live leases with it.
    pub(crate) fn begin(&self, connection: &Connection) -> rusqlite::Result<Moment> {
        let Moment { anchor, .. } = self.look(connection)?;
        let machine = self.clock.machine();
        let Some(slept_ns) = anchor.uncounted_sleep(machine, self.offset) else {
            *self.known() = anchor;
            return Ok(Moment { anchor, counted_ms: None });
        };
        let (before, by_ms) = (anchor.time_at(machine, self.offset), slept_ns / NS_PER_MS);
        let moved = Anchor {
            store_ms: anchor.store_ms.saturating_add(by_ms),
            // The part below a millisecond is counted with the next sleep.
            slept_ns: anchor.slept_ns.saturating_add(by_ms * NS_PER_MS),
            noted_ms: anchor.noted_ms.saturating_add(by_ms),
            ..anchor
        };
        extend_leases(connection, before, by_ms)?;
        connection.prepare_cached(sql!("clock/advance"))?.execute(params![
            moved.store_ms,
            moved.slept_ns,
            moved.noted_ms
        ])?;
        Ok(Moment { anchor: moved, counted_ms: Some(by_ms) })
    }

    /// Notes the time of the file, from time to time. Call this in a transaction that is to be committed. A
    /// process that goes by its wall clock notes none: others would take it for theirs.
    pub(crate) fn note(&self, connection: &Connection, moment: &mut Moment) -> rusqlite::Result<()> {
        let now = self.at(moment);
        let is_soon = now.saturating_sub(moment.anchor.noted_ms) < NOTE_EVERY_MS;
        if is_soon || self.offset.awake_ns != 0 {
            return Ok(());
        }
        connection.prepare_cached(sql!("clock/note"))?.execute([now])?;
        moment.anchor.noted_ms = now;
        Ok(())
    }

    /// Call this after a transaction is committed: its moment is that of the file.
    pub(crate) fn committed(&self, moment: &Moment) {
        *self.known() = moment.anchor;
        if let Some(slept_ms) = moment.counted_ms {
            tracing::info!(
                target: "steadfast::store",
                slept_ms,
                "the machine has slept: the time of the file goes on, and live leases last that much longer"
            );
        }
    }

    /// Reads the anchor again, because other processes have written to the file and may have counted a sleep.
    /// The clock of a machine that tells its run notices a sleep by itself, and is not read for.
    pub(crate) fn refresh(&self, connection: &Connection) {
        if self.clock.machine().boot.is_some() {
            return;
        }
        match self.look(connection) {
            Ok(moment) => *self.known() = moment.anchor,
            Err(error) => tracing::debug!(
                target: "steadfast::store",
                %error,
                "the time of the file cannot be read; the next transaction reads it"
            ),
        }
    }

    /// Tells whether the machine has slept since the anchor was read last.
    pub(crate) fn has_slept(&self) -> bool {
        self.seen().anchor.uncounted_sleep(self.clock.machine(), self.offset).is_some()
    }

    fn seen(&self) -> Moment {
        Moment { anchor: *self.known(), counted_ms: None }
    }

    /// Locks the anchor. It is replaced as a whole, so a poisoned lock is still good.
    fn known(&self) -> MutexGuard<'_, Anchor> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Anchor {
    fn new(store_ms: i64, machine: MachineTime) -> Self {
        let (awake_ns, slept_ns) = (nanos(machine.awake), nanos(machine.slept));
        Self { store_ms, awake_ns, slept_ns, noted_ms: store_ms }
    }

    fn time_at(&self, machine: MachineTime, offset: Offset) -> i64 {
        let awake_ns = nanos(machine.awake).saturating_add(offset.awake_ns);
        let passed_ns = awake_ns.saturating_sub(self.awake_ns).max(0);
        self.store_ms.saturating_add(passed_ns / NS_PER_MS)
    }

    /// Tells whether another anchor of the same readings gives the same time.
    fn agrees_with(&self, other: &Self) -> bool {
        let passed_ms = other.awake_ns.saturating_sub(self.awake_ns) / NS_PER_MS;
        let differ_ms = other.store_ms.saturating_sub(self.store_ms.saturating_add(passed_ms));
        let sleep_ns = other.slept_ns.saturating_sub(self.slept_ns);
        differ_ms.abs() <= ROUNDING_MS && sleep_ns < SHORTEST_SLEEP_NS
    }

    /// Returns how long the machine has slept that is not counted yet, in nanoseconds.
    fn uncounted_sleep(&self, machine: MachineTime, offset: Offset) -> Option<i64> {
        let slept_ns = nanos(machine.slept).saturating_add(offset.slept_ns).saturating_sub(self.slept_ns);
        Some(slept_ns).filter(|slept_ns| *slept_ns >= SHORTEST_SLEEP_NS)
    }

    /// Returns the time that the file has reached, if a time is far ahead of it: more than a wall clock that
    /// is right can be.
    fn far_behind(&self, boot: Option<BootId>, machine: MachineTime, to_ms: i64) -> Option<i64> {
        let is_exact = Run::of(boot, machine.boot) == Run::This && self.is_readable_by(machine);
        let (reached_ms, far_ms) = if is_exact {
            let slept_ns = self.uncounted_sleep(machine, Offset::default()).unwrap_or(0);
            (self.time_at(machine, Offset::default()).saturating_add(slept_ns / NS_PER_MS), FAR_MS)
        } else {
            (self.noted_ms, FAR_AFTER_RESTART_MS)
        };
        Some(reached_ms).filter(|reached_ms| to_ms.saturating_sub(*reached_ms) > far_ms)
    }

    /// Tells whether this process reads the same time awake as the one that wrote the anchor: its reading is
    /// not behind the anchor, and gives no time that is behind one that the file has reached.
    fn is_readable_by(&self, machine: MachineTime) -> bool {
        nanos(machine.awake) >= self.awake_ns
            && self.time_at(machine, Offset::default()).saturating_add(NOTE_EVERY_MS) >= self.noted_ms
    }
}

impl Company {
    /// Tells whether the time of the file is that of other processes: they have it open, or it cannot be told
    /// and the anchor may be of this run of the machine.
    fn is_joined(self, theirs: Option<BootId>, ours: Option<BootId>) -> bool {
        match self {
            Self::Alone => false,
            Self::Others => true,
            Self::Unknown => Run::of(theirs, ours) != Run::Another,
        }
    }
}

/// Whether the anchor was written in this run of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    This,
    Another,
    Unknown,
}

impl Run {
    fn of(theirs: Option<BootId>, ours: Option<BootId>) -> Self {
        match (theirs, ours) {
            (Some(theirs), Some(ours)) if theirs == ours => Self::This,
            (Some(_), Some(_)) => Self::Another,
            _ => Self::Unknown,
        }
    }
}

impl Offset {
    /// Returns the offset of a process that takes over the time of others. A process whose clock has another
    /// origin than theirs can only go by its wall clock.
    fn of(anchor: &Anchor, boot: Option<BootId>, machine: MachineTime, wall_ms: i64) -> Self {
        let run = Run::of(boot, machine.boot);
        let slept_ns = match run {
            Run::This => 0,
            Run::Another | Run::Unknown => anchor.slept_ns.saturating_sub(nanos(machine.slept)),
        };
        if run != Run::Another && anchor.is_readable_by(machine) {
            return Self { awake_ns: 0, slept_ns };
        }
        let passed_ms = wall_ms.max(anchor.noted_ms).saturating_sub(anchor.store_ms).max(0);
        let awake_ns = anchor.awake_ns.saturating_add(passed_ms.saturating_mul(NS_PER_MS));
        Self { awake_ns: awake_ns.saturating_sub(nanos(machine.awake)), slept_ns }
    }
}

/// How a process that is alone sets the time of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Setting {
    /// The time of the file before.
    from_ms: i64,
    /// The time of the file from here on, which is not less.
    to_ms: i64,
}

impl Setting {
    fn new(wall_ms: i64) -> Self {
        Self { from_ms: wall_ms, to_ms: wall_ms }
    }

    /// Moves the time of a file to the wall clock, never backwards.
    fn of(anchor: &Anchor, boot: Option<BootId>, machine: MachineTime, wall_ms: i64) -> Self {
        let now = anchor.time_at(machine, Offset::default());
        match Run::of(boot, machine.boot) {
            // The time of the file went on while it was closed.
            Run::This if anchor.is_readable_by(machine) => {
                let slept_ns = anchor.uncounted_sleep(machine, Offset::default()).unwrap_or(0);
                let passed = now.saturating_add(slept_ns / NS_PER_MS);
                Self { from_ms: now, to_ms: passed.max(wall_ms) }
            }
            // Every holder of a lease ended with the run of the machine, so that no lease is extended. The
            // file may also be a copy from another machine.
            Run::Another => Self::new(wall_ms.max(anchor.noted_ms)),
            Run::Unknown if anchor.is_readable_by(machine) => {
                // An anchor of another machine may read as any time: only a wall clock that is later confirms
                // it.
                let to_ms = wall_ms.max(anchor.noted_ms);
                Self { from_ms: now.min(to_ms), to_ms }
            }
            Run::This | Run::Unknown => {
                Self { from_ms: anchor.noted_ms, to_ms: wall_ms.max(anchor.noted_ms) }
            }
        }
    }

    fn write(self, connection: &Connection, anchor: &Anchor, boot: Option<BootId>) -> rusqlite::Result<()> {
        let by_ms = self.to_ms.saturating_sub(self.from_ms);
        if by_ms > 0 {
            extend_leases(connection, self.from_ms, by_ms)?;
        }
        connection.prepare_cached(sql!("clock/set"))?.execute(params![
            anchor.store_ms,
            anchor.awake_ns,
            anchor.slept_ns,
            anchor.noted_ms,
            boot.map_or_else(String::new, |BootId(id)| format!("{id:032x}"))
        ])?;
        // No process is seen later than now, whatever the clock was by which it reported.
        connection.prepare_cached(sql!("clock/unsee_workers"))?.execute([self.to_ms])?;
        Ok(())
    }
}

fn tell_of_difference(place: &Location, ahead_ms: i64, why: &str) {
    if ahead_ms.abs() > NOTABLE_MS {
        tracing::warn!(
            target: "steadfast::store",
            ahead_ms,
            "the wall clock of this process is not the time of {place}, and {why}: leases and timers go by \
             the time of the file"
        );
    }
}

fn tell_of_jump(place: &Location, from_ms: i64, to_ms: i64) {
    tracing::warn!(
        target: "steadfast::store",
        from_ms,
        to_ms,
        "the wall clock is far ahead of the time of {place}, which jumps to it and will not go back: if the \
         wall clock is wrong, stop all processes, set it right, and remove the time of the file (DELETE FROM \
         clock)"
    );
}

fn read(connection: &Connection) -> rusqlite::Result<Option<(Anchor, Option<BootId>)>> {
    let found = connection.prepare_cached(sql!("clock/show"))?.query_row([], |row| {
        let anchor = Anchor {
            store_ms: row.get(0)?,
            awake_ns: row.get(1)?,
            slept_ns: row.get(2)?,
            noted_ms: row.get(3)?,
        };
        Ok((anchor, u128::from_str_radix(row.get_ref(4)?.as_str()?, 16).ok().map(BootId)))
    });
    found.optional()
}

const NS_PER_MS: i64 = 1_000_000;

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON_MS: i64 = 1_700_000_000_000;

    fn machine(awake: u64, slept: u64, boot: u128) -> MachineTime {
        let seconds = Duration::from_secs;
        MachineTime { awake: seconds(awake), slept: seconds(slept), boot: Some(BootId(boot)) }
    }

    #[test]
    fn g2_a_jump_is_told_if_it_is_larger_than_a_right_clock_makes() {
        let anchor = Anchor::new(NOON_MS, machine(100, 0, 1));
        let far = |then, to_ms| anchor.far_behind(Some(BootId(1)), then, to_ms);
        // A day has passed, awake or asleep.
        for then in [machine(86_500, 0, 1), machine(100, 86_400, 1)] {
            let day_later = NOON_MS + 86_400_000;
            assert_eq!(far(then, day_later + FAR_MS), None);
            assert_eq!(far(then, day_later + FAR_MS + 1), Some(day_later));
        }
        // After a restart it is not known how long the machine was off.
        let restarted = machine(5, 0, 2);
        assert_eq!(far(restarted, NOON_MS + FAR_AFTER_RESTART_MS), None);
        assert_eq!(far(restarted, NOON_MS + FAR_AFTER_RESTART_MS + 1), Some(NOON_MS));
    }
}
