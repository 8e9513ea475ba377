//! The time of a simulated world, and the clocks of its hosts, which may disagree with it.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use steadfast_clock::{BootId, Clock, MachineTime, Sleep};

/// Wall time at the beginning of every world, in milliseconds since the epoch.
pub const FIRST_WALL_MS: u64 = 1_700_000_000_000;

/// The one true time of a world. It moves from alarm to alarm; clones share it.
#[derive(Clone, Debug, Default)]
pub struct WorldTime(Arc<Mutex<Timeline>>);

#[derive(Debug, Default)]
struct Timeline {
    now: Duration,
    set: u64,
    alarms: BTreeMap<Ticket, Waker>,
}

/// The place of an alarm: by moment, then by the order in which the alarms were set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ticket {
    at: Duration,
    order: u64,
}

impl WorldTime {
    /// Returns the time since the world began.
    pub fn now(&self) -> Duration {
        self.lock().now
    }

    /// Waits until a moment of true time.
    pub fn until(&self, at: Duration) -> Alarm {
        Alarm { time: self.clone(), at, ticket: None }
    }

    /// Returns the moment of the first alarm.
    pub fn next(&self) -> Option<Duration> {
        self.lock().alarms.first_key_value().map(|(ticket, _)| ticket.at)
    }

    /// Moves to `at`, never back, and rings one alarm that is due. Returns whether one was.
    pub fn ring_one(&self, at: Duration) -> bool {
        let waker = {
            let mut line = self.lock();
            line.now = line.now.max(at);
            let now = line.now;
            let due = line.alarms.first_entry().filter(|first| first.key().at <= now);
            due.map(|first| first.remove())
        };
        waker.map(Waker::wake).is_some()
    }

    /// Moves to `at`, never back, and rings nothing.
    pub fn move_to(&self, at: Duration) {
        let mut line = self.lock();
        line.now = line.now.max(at);
    }

    fn lock(&self) -> MutexGuard<'_, Timeline> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Completes at a moment of true time.
#[derive(Debug)]
pub struct Alarm {
    time: WorldTime,
    at: Duration,
    ticket: Option<Ticket>,
}

impl Future for Alarm {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let (time, at) = (self.time.clone(), self.at);
        let mut line = time.lock();
        if line.now >= at {
            return Poll::Ready(());
        }
        let ticket = *self.ticket.get_or_insert_with(|| {
            line.set += 1;
            Ticket { at, order: line.set }
        });
        line.alarms.insert(ticket, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.time.lock().alarms.remove(&ticket);
        }
    }
}

/// The clock of one host: it runs at its own rate, its wall time may be wrong, and it may sleep.
#[derive(Debug)]
pub struct HostClock {
    time: WorldTime,
    reading: Mutex<Reading>,
}

#[derive(Debug)]
struct Reading {
    /// True time from which the monotonic time is counted.
    since: Duration,
    /// The monotonic time at `since`.
    base: Duration,
    /// How much faster than true time the host's time runs, in millionths; negative is slower.
    drift: i64,
    /// How far the wall time is ahead, in milliseconds; negative is behind.
    ahead_ms: i64,
    slept: Duration,
    /// Counts the runs of a machine whose processes are told which one it is.
    run: Option<u128>,
}

/// A million, the unit of drift.
const MILLION: i128 = 1_000_000;

impl HostClock {
    /// Makes the clock of a host whose wall time is ahead by so many milliseconds, and which gains so many
    /// millionths.
    pub fn new(time: &WorldTime, ahead_ms: i64, drift: i64) -> Arc<Self> {
        let reading = Reading {
            since: time.now(),
            // A host that was started some time before the world began.
            base: Duration::from_secs(1_000),
            drift,
            ahead_ms,
            slept: Duration::ZERO,
            run: None,
        };
        Arc::new(Self { time: time.clone(), reading: Mutex::new(reading) })
    }

    /// Makes the clock of a machine that tells its processes in which run of it they are.
    pub fn of_machine(time: &WorldTime, ahead_ms: i64, drift: i64) -> Arc<Self> {
        let clock = Self::new(time, ahead_ms, drift);
        clock.lock().run = Some(1);
        clock
    }

    /// Tells that the machine was started again: its monotonic time begins anew.
    pub fn restart(&self) {
        let mut reading = self.lock();
        reading.since = self.time.now();
        (reading.base, reading.slept) = (Duration::from_secs(5), Duration::ZERO);
        reading.run = reading.run.map(|run| run + 1);
    }

    /// Sets wall time forwards or backwards, as an operator or NTP would.
    pub fn step(&self, by_ms: i64) {
        let mut reading = self.lock();
        reading.ahead_ms = reading.ahead_ms.saturating_add(by_ms);
    }

    /// Tells that the host has slept until now, for so long: its monotonic time stood still meanwhile.
    pub fn woke_after(&self, slept: Duration) {
        let now = self.time.now();
        let mut reading = self.lock();
        reading.base = reading.monotonic(now.saturating_sub(slept));
        reading.since = now;
        reading.slept = reading.slept.saturating_add(slept);
    }

    /// Returns the first moment of true time at which the host's monotonic time reads `deadline`.
    fn moment_of(&self, deadline: Duration) -> Duration {
        let reading = self.lock();
        let local = i128::try_from(deadline.saturating_sub(reading.base).as_nanos()).unwrap_or(i128::MAX);
        let rate = MILLION + i128::from(reading.drift);
        let real = local.saturating_mul(MILLION).div_euclid(rate).saturating_add(1);
        reading.since.saturating_add(Duration::from_nanos(u64::try_from(real).unwrap_or(u64::MAX)))
    }

    fn lock(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reading {
    fn monotonic(&self, now: Duration) -> Duration {
        let real = i128::try_from(now.saturating_sub(self.since).as_nanos()).unwrap_or(i128::MAX);
        let local = real.saturating_mul(MILLION + i128::from(self.drift)).div_euclid(MILLION);
        self.base.saturating_add(Duration::from_nanos(u64::try_from(local).unwrap_or(u64::MAX)))
    }
}

impl HostClock {
    async fn wait(clock: Arc<Self>, deadline: Duration) {
        while clock.monotonic() < deadline {
            clock.time.until(clock.moment_of(deadline)).await;
        }
    }
}

/// The clock of a host as an engine holds it.
#[derive(Clone, Debug)]
pub struct HostTime(pub Arc<HostClock>);

impl Clock for HostTime {
    fn now_ms(&self) -> u64 {
        let now = u64::try_from(self.0.time.now().as_millis()).unwrap_or(u64::MAX);
        FIRST_WALL_MS.saturating_add(now).saturating_add_signed(self.0.lock().ahead_ms)
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }

    fn machine(&self) -> MachineTime {
        let awake = self.monotonic();
        let reading = self.0.lock();
        MachineTime { awake, slept: reading.slept, boot: reading.run.map(BootId) }
    }

    fn passes_by_itself(&self) -> bool {
        false
    }

    fn sleep_until(&self, deadline: Duration) -> Sleep {
        Box::pin(HostClock::wait(Arc::clone(&self.0), deadline))
    }
}

impl HostClock {
    /// Reads the time that the host has been awake.
    pub fn monotonic(&self) -> Duration {
        self.lock().monotonic(self.time.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_gains_reaches_a_deadline_early_and_never_before_it() {
        let time = WorldTime::default();
        for drift in [-500, 0, 200_000] {
            let clock = HostClock::new(&time, 0, drift);
            let deadline = clock.monotonic() + Duration::from_secs(10);
            let moment = clock.moment_of(deadline);
            time.ring_one(moment);
            assert!(clock.monotonic() >= deadline, "{drift}");
            assert!(clock.monotonic() - deadline < Duration::from_micros(1), "{drift}");
        }
    }

    #[test]
    fn a_host_that_slept_counts_the_time_apart() {
        let time = WorldTime::default();
        let clock = HostClock::new(&time, 0, 0);
        let before = clock.monotonic();
        time.ring_one(Duration::from_secs(5));
        clock.woke_after(Duration::from_secs(3));
        assert_eq!(clock.monotonic() - before, Duration::from_secs(2));
        assert_eq!(HostTime(clock).machine().slept, Duration::from_secs(3));
    }
}
