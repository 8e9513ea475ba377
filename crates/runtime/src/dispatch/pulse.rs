//! The pulse of the process: how long it has run, without the time in which it stood still.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast_clock::Clock;

/// The shortest and the longest tick: a thread that wakes more often costs something, one that wakes less
/// often measures nothing.
const TICKS: [Duration; 2] = [Duration::from_millis(5), Duration::from_secs(1)];

/// Measures how long the process has run. While the process is stopped (SIGSTOP), or its machine sleeps or is
/// paused, it does not run.
///
/// A thread of its own ticks: it is not held up by code that holds the threads of tokio, and it stands still
/// with the process. Two ticks that are further apart than they should be show that all of the process stood
/// still. The thread ends when the pulse is stopped or dropped.
#[derive(Debug)]
pub(crate) struct Pulse {
    clock: Arc<dyn Clock>,
    /// The most that one tick adds, so a pause adds at most this much.
    tick: Duration,
    /// `None` without a thread: then the pulse measures nothing.
    last: Option<Arc<Mutex<LastTick>>>,
    /// Keeps the thread while it is there.
    thread: Mutex<Option<mpsc::Sender<()>>>,
}

/// How long the process has run, up to a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LastTick {
    at: Duration,
    lived: Duration,
}

impl LastTick {
    /// Goes on to a moment. More than a tick since the last one means that the process stood still.
    fn go_on(self, now: Duration, tick: Duration) -> Self {
        let passed = now.saturating_sub(self.at).min(tick);
        Self { at: now, lived: self.lived.saturating_add(passed) }
    }
}

impl Pulse {
    /// Starts a pulse that is exact enough for leases of this length. A clock whose time does not pass by
    /// itself gets one without a thread, and so does a machine that has no thread left.
    pub(crate) fn start(clock: Arc<dyn Clock>, shortest_lease: Duration) -> Self {
        let tick = (shortest_lease / 8).clamp(TICKS[0], TICKS[1]);
        let mut pulse = Self { clock, tick, last: None, thread: Mutex::default() };
        if !pulse.clock.passes_by_itself() {
            return pulse;
        }
        let last = Arc::new(Mutex::new(LastTick { at: pulse.clock.monotonic(), lived: Duration::ZERO }));
        let (stop, is_stopped) = mpsc::channel();
        let (clock, ticking) = (Arc::clone(&pulse.clock), Arc::clone(&last));
        let run = move || {
            // Twice as often as needed: a thread that is scheduled a little late misses nothing.
            while is_stopped.recv_timeout(tick / 2) == Err(RecvTimeoutError::Timeout) {
                let mut last = lock(&ticking);
                *last = last.go_on(clock.monotonic(), tick);
            }
        };
        match std::thread::Builder::new().name("steadfast-pulse".to_owned()).spawn(run) {
            // The thread ends by itself when the sender is dropped.
            Ok(_) => {
                pulse.last = Some(last);
                pulse.thread = Mutex::new(Some(stop));
            }
            Err(error) => {
                tracing::warn!(
                    target: "steadfast::runtime",
                    %error,
                    "no thread for the pulse: a lease that code kept from being renewed counts no attempt"
                );
            }
        }
        pulse
    }

    /// Returns how long the process has run since some moment before. `None` if that is not measured: then
    /// lateness has to be taken for a pause.
    pub(crate) fn lived(&self) -> Option<Duration> {
        let last = self.last.as_ref()?;
        let last = lock(last);
        Some(last.go_on(self.clock.monotonic(), self.tick).lived)
    }

    /// Returns how long the process has run since an earlier reading.
    pub(crate) fn lived_since(&self, before: Option<Duration>) -> Option<Duration> {
        Some(self.lived()?.saturating_sub(before?))
    }

    /// How often a task that waits should note that it is not held up. `None` if nothing is measured.
    pub(crate) fn tick(&self) -> Option<Duration> {
        self.last.as_ref().map(|_| self.tick)
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        drop(self.thread.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

fn lock(last: &Mutex<LastTick>) -> MutexGuard<'_, LastTick> {
    last.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use steadfast_clock::{SystemClock, VirtualClock};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn ticks(moments: &[u64]) -> u64 {
        let first = LastTick { at: Duration::ZERO, lived: Duration::ZERO };
        let last =
            moments.iter().fold(first, |last, moment| last.go_on(Duration::from_millis(*moment), SECOND));
        last.lived.as_millis() as u64
    }

    #[test]
    fn a_process_that_runs_lives_as_long_as_time_passes() {
        assert_eq!(ticks(&[500, 1_000, 1_600, 2_000]), 2_000);
    }

    #[test]
    fn a_pause_of_any_length_adds_at_most_one_tick() {
        assert_eq!(ticks(&[500, 1_000, 3_601_000]), 2_000);
        assert_eq!(ticks(&[500, 400, 600]), 700, "a clock that goes back adds nothing while it does");
    }

    #[test]
    fn a_clock_that_is_told_the_time_has_a_pulse_without_a_thread_that_measures_nothing() {
        let clock = VirtualClock::new(0);
        let pulse = Pulse::start(Arc::new(clock.clone()), SECOND);
        clock.advance(SECOND);
        assert_eq!((pulse.lived(), pulse.tick()), (None, None));
        assert_eq!(Arc::strong_count(&pulse.clock), 1, "no thread has it");
    }

    #[test]
    fn the_thread_ends_when_the_pulse_is_stopped() {
        let pulse = Pulse::start(Arc::new(SystemClock), Duration::from_millis(40));
        let before = pulse.lived();
        while pulse.lived_since(before).is_some_and(|lived| lived < Duration::from_millis(20)) {
            std::thread::yield_now();
        }
        pulse.stop();
        while Arc::strong_count(&pulse.clock) > 1 {
            std::thread::yield_now();
        }
    }
}
