//! A clock that moves only when told.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use crate::{Clock, MachineTime, Sleep};

/// Stands still until a test moves it.
///
/// Clones share one state: give a clone to the code under test and keep one to [`advance`](Self::advance).
/// Monotonic time starts at zero, wall time at a chosen millisecond. Arithmetic saturates and nothing panics.
///
/// ```
/// use std::time::Duration;
/// # mod steadfast { pub use steadfast_clock as runtime; }
/// use steadfast::runtime::{Clock, VirtualClock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let clock = VirtualClock::new(0);
/// let nap = clock.sleep(Duration::from_secs(86_400));
/// assert_eq!(clock.next_deadline(), Some(Duration::from_secs(86_400)));
///
/// clock.advance(Duration::from_secs(86_400));
/// nap.await;
/// assert_eq!(clock.sleepers(), 0);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct VirtualClock {
    shared: Arc<Mutex<VirtualTime>>,
}

impl VirtualClock {
    /// Creates a clock whose wall time is `wall_ms` milliseconds since the epoch and whose monotonic time is
    /// zero.
    pub fn new(wall_ms: u64) -> Self {
        let time = VirtualTime {
            wall: Duration::from_millis(wall_ms),
            monotonic: Duration::ZERO,
            slept: Duration::ZERO,
            sleepers: BTreeMap::new(),
            registered: 0,
        };
        Self { shared: Arc::new(Mutex::new(time)) }
    }

    /// Moves both wall and monotonic time forward, then wakes every sleeper whose deadline has come.
    ///
    /// Sleepers are woken in the order of their deadlines, equal deadlines in the order in which the sleeps
    /// were created. All of them observe the time *after* the move; to have each observe its own deadline,
    /// advance to [`next_deadline`](Self::next_deadline) step by step.
    pub fn advance(&self, by: Duration) {
        let due = {
            let mut time = lock(&self.shared);
            time.wall = time.wall.saturating_add(by);
            time.monotonic = time.monotonic.saturating_add(by);
            time.take_due()
        };
        // The lock is free: a waker may run the task on the spot, and the task may use this clock.
        due.into_iter().for_each(Waker::wake);
    }

    /// Lets the machine sleep: wall time moves on, monotonic time and every sleep stay as they are.
    ///
    /// ```
    /// use std::time::Duration;
    /// # mod steadfast { pub use steadfast_clock as runtime; }
    /// use steadfast::runtime::{Clock, VirtualClock};
    ///
    /// let clock = VirtualClock::new(0);
    /// clock.suspend(Duration::from_secs(3600));
    /// assert_eq!((clock.now_ms(), clock.monotonic()), (3_600_000, Duration::ZERO));
    /// assert_eq!(clock.machine().slept, Duration::from_secs(3600));
    /// ```
    pub fn suspend(&self, lasts: Duration) {
        let mut time = lock(&self.shared);
        time.wall = time.wall.saturating_add(lasts);
        time.slept = time.slept.saturating_add(lasts);
    }

    /// Sets wall time, forwards or backwards, as an operator or NTP would.
    ///
    /// Monotonic time and every sleep stay as they are.
    ///
    /// ```
    /// use std::time::Duration;
    /// # mod steadfast { pub use steadfast_clock as runtime; }
    /// use steadfast::runtime::{Clock, VirtualClock};
    ///
    /// let clock = VirtualClock::new(50_000);
    /// clock.advance(Duration::from_secs(1));
    /// clock.set_wall_ms(20_000);
    /// assert_eq!(clock.now_ms(), 20_000);
    /// assert_eq!(clock.monotonic(), Duration::from_secs(1));
    /// ```
    pub fn set_wall_ms(&self, wall_ms: u64) {
        lock(&self.shared).wall = Duration::from_millis(wall_ms);
    }

    /// Returns the earliest monotonic deadline that a sleeper waits for.
    pub fn next_deadline(&self) -> Option<Duration> {
        lock(&self.shared).sleepers.first_key_value().map(|(ticket, _)| ticket.deadline)
    }

    /// Counts the sleeps whose deadline has not come and that have not been dropped, polled or not.
    pub fn sleepers(&self) -> usize {
        lock(&self.shared).sleepers.len()
    }
}

impl Clock for VirtualClock {
    fn now_ms(&self) -> u64 {
        u64::try_from(lock(&self.shared).wall.as_millis()).unwrap_or(u64::MAX)
    }

    fn monotonic(&self) -> Duration {
        lock(&self.shared).monotonic
    }

    fn machine(&self) -> MachineTime {
        let time = lock(&self.shared);
        MachineTime { awake: time.monotonic, slept: time.slept, boot: None }
    }

    fn passes_by_itself(&self) -> bool {
        false
    }

    fn sleep_until(&self, deadline: Duration) -> Sleep {
        let ticket = lock(&self.shared).register(deadline);
        Box::pin(Sleeper { shared: Arc::clone(&self.shared), ticket })
    }
}

#[derive(Debug)]
struct VirtualTime {
    /// Wall time since the epoch; a `Duration` so that advances below a millisecond add up.
    wall: Duration,
    monotonic: Duration,
    /// How long the machine has slept.
    slept: Duration,
    /// The sleeps that wait, in the order in which they are woken. A sleep has no waker until its first poll.
    sleepers: BTreeMap<Ticket, Option<Waker>>,
    registered: u64,
}

impl VirtualTime {
    fn register(&mut self, deadline: Duration) -> Ticket {
        let ticket = Ticket { deadline, order: self.registered };
        self.registered = self.registered.saturating_add(1);
        if deadline > self.monotonic {
            self.sleepers.insert(ticket, None);
        }
        ticket
    }

    fn take_due(&mut self) -> Vec<Waker> {
        let mut due = Vec::new();
        while let Some(first) = self.sleepers.first_entry()
            && first.key().deadline <= self.monotonic
        {
            due.extend(first.remove());
        }
        due
    }
}

/// Orders sleepers by deadline, then by creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ticket {
    deadline: Duration,
    order: u64,
}

struct Sleeper {
    shared: Arc<Mutex<VirtualTime>>,
    ticket: Ticket,
}

impl Future for Sleeper {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let waker = context.waker().clone();
        let replaced = {
            let mut time = lock(&self.shared);
            if self.ticket.deadline <= time.monotonic {
                return Poll::Ready(());
            }
            time.sleepers.insert(self.ticket, Some(waker))
        };
        // Dropping a waker may drop a task, and with it another sleep of this clock: never under the lock.
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let unregistered = lock(&self.shared).sleepers.remove(&self.ticket);
        // As in `poll`: the statement above has released the lock.
        drop(unregistered);
    }
}

/// Locks the state. Every change to it is complete when a guard is dropped, so a poisoned lock is still good.
fn lock(shared: &Mutex<VirtualTime>) -> MutexGuard<'_, VirtualTime> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::task::Wake;

    use futures::FutureExt;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Writes its name into a shared list when woken.
    struct Named {
        name: &'static str,
        woken: Arc<Mutex<Vec<&'static str>>>,
    }

    impl Wake for Named {
        fn wake(self: Arc<Self>) {
            self.woken.lock().unwrap().push(self.name);
        }
    }

    #[derive(Default)]
    struct Bell {
        woken: Arc<Mutex<Vec<&'static str>>>,
    }

    impl Bell {
        fn waker(&self, name: &'static str) -> Waker {
            Waker::from(Arc::new(Named { name, woken: Arc::clone(&self.woken) }))
        }

        fn poll(&self, name: &'static str, sleep: &mut Sleep) -> Poll<()> {
            sleep.as_mut().poll(&mut Context::from_waker(&self.waker(name)))
        }

        fn woken(&self) -> Vec<&'static str> {
            self.woken.lock().unwrap().clone()
        }
    }

    #[test]
    fn time_stands_still_until_told() {
        let clock = VirtualClock::new(7);
        assert_eq!((clock.now_ms(), clock.monotonic()), (7, Duration::ZERO));
        assert_eq!((clock.now_ms(), clock.monotonic()), (7, Duration::ZERO));
    }

    #[test]
    fn advance_moves_wall_and_monotonic_time_together() {
        let clock = VirtualClock::new(1_000);
        clock.advance(Duration::from_millis(250));
        assert_eq!((clock.now_ms(), clock.monotonic()), (1_250, Duration::from_millis(250)));
    }

    #[test]
    fn advances_below_a_millisecond_add_up() {
        let clock = VirtualClock::new(0);
        for _ in 0..1_000 {
            clock.advance(Duration::from_micros(500));
        }
        assert_eq!(clock.now_ms(), 500);
    }

    #[test]
    fn clones_share_one_time() {
        let clock = VirtualClock::new(0);
        let clone = clock.clone();
        clock.advance(SECOND);
        assert_eq!(clone.now_ms(), 1_000);
        let sleep = clone.sleep(SECOND);
        assert_eq!(clock.sleepers(), 1);
        drop(sleep);
    }

    #[test]
    fn a_sleep_is_pending_before_its_deadline_and_ready_at_it() {
        let clock = VirtualClock::new(0);
        let bell = Bell::default();
        let mut sleep = clock.sleep(SECOND);
        assert_eq!(bell.poll("a", &mut sleep), Poll::Pending);
        clock.advance(SECOND - Duration::from_nanos(1));
        assert_eq!((bell.woken(), bell.poll("a", &mut sleep)), (vec![], Poll::Pending));
        clock.advance(Duration::from_nanos(1));
        assert_eq!((bell.woken(), bell.poll("a", &mut sleep)), (vec!["a"], Poll::Ready(())));
    }

    #[test]
    fn a_deadline_that_has_come_is_ready_at_once_and_never_counts_as_a_sleeper() {
        let clock = VirtualClock::new(0);
        clock.advance(SECOND);
        let now = clock.sleep_until(SECOND);
        let past = clock.sleep_until(Duration::ZERO);
        assert_eq!((clock.sleepers(), clock.next_deadline()), (0, None));
        assert_eq!((now.now_or_never(), past.now_or_never()), (Some(()), Some(())));
    }

    #[test]
    fn a_sleep_counts_from_its_creation_and_not_from_its_first_poll() {
        let clock = VirtualClock::new(0);
        let sleep = clock.sleep(SECOND);
        clock.advance(SECOND);
        assert_eq!(sleep.now_or_never(), Some(()));
    }

    #[test]
    fn sleepers_wake_in_deadline_order_and_ties_in_the_order_of_creation() {
        let clock = VirtualClock::new(0);
        let bell = Bell::default();
        let mut late = clock.sleep(SECOND * 3);
        let mut tie_first = clock.sleep(SECOND * 2);
        let mut tie_second = clock.sleep(SECOND * 2);
        let mut early = clock.sleep(SECOND);
        // Polled in another order than created: polling does not decide.
        for (name, sleep) in [
            ("tie 2", &mut tie_second),
            ("late", &mut late),
            ("early", &mut early),
            ("tie 1", &mut tie_first),
        ] {
            assert_eq!(bell.poll(name, sleep), Poll::Pending);
        }
        clock.advance(SECOND * 10);
        assert_eq!(bell.woken(), ["early", "tie 1", "tie 2", "late"]);
    }

    #[test]
    fn advance_wakes_only_those_whose_deadline_has_come() {
        let clock = VirtualClock::new(0);
        let bell = Bell::default();
        let mut early = clock.sleep(SECOND);
        let mut late = clock.sleep(SECOND * 2);
        assert!(bell.poll("early", &mut early).is_pending() && bell.poll("late", &mut late).is_pending());
        clock.advance(SECOND);
        assert_eq!(bell.woken(), ["early"]);
        assert_eq!((clock.sleepers(), clock.next_deadline()), (1, Some(SECOND * 2)));
    }

    #[test]
    fn a_dropped_sleep_is_unregistered_and_never_woken() {
        let clock = VirtualClock::new(0);
        let bell = Bell::default();
        let mut sleep = clock.sleep(SECOND);
        assert_eq!(bell.poll("dropped", &mut sleep), Poll::Pending);
        let unpolled = clock.sleep(SECOND);
        assert_eq!(clock.sleepers(), 2);
        drop((sleep, unpolled));
        assert_eq!((clock.sleepers(), clock.next_deadline()), (0, None));
        clock.advance(SECOND);
        assert!(bell.woken().is_empty());
    }

    #[test]
    fn only_the_last_waker_of_a_sleep_is_woken() {
        let clock = VirtualClock::new(0);
        let bell = Bell::default();
        let mut sleep = clock.sleep(SECOND);
        assert!(bell.poll("first", &mut sleep).is_pending() && bell.poll("second", &mut sleep).is_pending());
        assert_eq!(clock.sleepers(), 1);
        clock.advance(SECOND);
        assert_eq!(bell.woken(), ["second"]);
    }

    #[test]
    fn a_sleeper_is_woken_once() {
        let clock = VirtualClock::new(0);
        let bell = Bell::default();
        let mut sleep = clock.sleep(SECOND);
        assert_eq!(bell.poll("a", &mut sleep), Poll::Pending);
        clock.advance(SECOND);
        clock.advance(SECOND);
        assert_eq!(bell.woken(), ["a"]);
    }

    #[test]
    fn a_wall_clock_that_jumps_touches_neither_monotonic_time_nor_sleeps() {
        let clock = VirtualClock::new(50_000);
        let bell = Bell::default();
        let mut sleep = clock.sleep(SECOND);
        assert_eq!(bell.poll("a", &mut sleep), Poll::Pending);
        clock.set_wall_ms(u64::MAX);
        assert_eq!((clock.now_ms(), clock.monotonic()), (u64::MAX, Duration::ZERO));
        clock.set_wall_ms(10);
        assert_eq!((clock.now_ms(), clock.monotonic()), (10, Duration::ZERO));
        assert_eq!((bell.woken(), clock.next_deadline()), (vec![], Some(SECOND)));
        clock.advance(SECOND);
        assert_eq!((clock.now_ms(), bell.woken()), (1_010, vec!["a"]));
    }

    #[test]
    fn a_machine_that_sleeps_wakes_no_sleeper_and_stays_awake_no_longer() {
        let clock = VirtualClock::new(50_000);
        let bell = Bell::default();
        let mut sleep = clock.sleep(SECOND);
        assert_eq!(bell.poll("a", &mut sleep), Poll::Pending);
        clock.suspend(SECOND * 60);
        assert_eq!((clock.now_ms(), clock.monotonic(), bell.woken()), (110_000, Duration::ZERO, vec![]));
        clock.advance(SECOND);
        let machine = clock.machine();
        assert_eq!((machine.awake, machine.slept, bell.woken()), (SECOND, SECOND * 60, vec!["a"]));
    }

    #[test]
    fn the_end_of_time_saturates_instead_of_overflowing() {
        let clock = VirtualClock::new(u64::MAX);
        clock.advance(SECOND);
        assert_eq!(clock.now_ms(), u64::MAX);
        let forever = clock.sleep(Duration::MAX);
        assert_eq!(clock.next_deadline(), Some(Duration::MAX));
        clock.advance(Duration::MAX);
        clock.advance(Duration::MAX);
        assert_eq!((clock.now_ms(), clock.monotonic()), (u64::MAX, Duration::MAX));
        assert_eq!(forever.now_or_never(), Some(()));
    }

    #[test]
    fn a_waker_may_use_the_clock_that_wakes_it() {
        struct Reader(VirtualClock, Mutex<Option<u64>>);
        impl Wake for Reader {
            fn wake(self: Arc<Self>) {
                drop(self.0.sleep(SECOND));
                *self.1.lock().unwrap() = Some(self.0.now_ms());
            }
        }
        let clock = VirtualClock::new(0);
        let reader = Arc::new(Reader(clock.clone(), Mutex::new(None)));
        let mut sleep = clock.sleep(SECOND);
        assert!(sleep.as_mut().poll(&mut Context::from_waker(&Arc::clone(&reader).into())).is_pending());
        clock.advance(SECOND);
        assert_eq!(*reader.1.lock().unwrap(), Some(1_000));
    }

    #[test]
    fn a_waker_that_owns_another_sleep_can_be_dropped_by_a_poll_and_by_a_drop() {
        /// Stands for the waker of a task whose last owner it is: dropping it drops the sleep inside.
        struct Task(#[expect(dead_code, reason = "only its drop matters")] Mutex<Sleep>);
        impl Wake for Task {
            fn wake(self: Arc<Self>) {}
        }
        let clock = VirtualClock::new(0);
        let owner = || Waker::from(Arc::new(Task(Mutex::new(clock.sleep(SECOND)))));
        let mut sleep = clock.sleep(SECOND);
        for _ in 0..2 {
            assert!(sleep.as_mut().poll(&mut Context::from_waker(&owner())).is_pending());
            assert_eq!(clock.sleepers(), 2);
        }
        drop(sleep);
        assert_eq!(clock.sleepers(), 0);
    }

    #[test]
    fn a_panicking_waker_leaves_the_clock_usable() {
        struct Broken;
        impl Wake for Broken {
            fn wake(self: Arc<Self>) {
                panic!("broken waker");
            }
        }
        let clock = VirtualClock::new(0);
        let mut sleep = clock.sleep(SECOND);
        assert!(sleep.as_mut().poll(&mut Context::from_waker(&Arc::new(Broken).into())).is_pending());
        let advanced = clock.clone();
        assert!(std::panic::catch_unwind(move || advanced.advance(SECOND)).is_err());
        assert_eq!((clock.now_ms(), clock.sleepers()), (1_000, 0));
    }

    #[test]
    fn time_can_be_walked_from_deadline_to_deadline() {
        let clock = VirtualClock::new(0);
        let _sleeps = [clock.sleep(SECOND * 5), clock.sleep(SECOND), clock.sleep(SECOND * 5)];
        let mut seen = vec![];
        while let Some(deadline) = clock.next_deadline() {
            clock.advance(deadline - clock.monotonic());
            seen.push(clock.now_ms());
        }
        assert_eq!(seen, [1_000, 5_000]);
    }

    #[tokio::test]
    async fn another_task_sleeps_for_a_day_without_waiting() {
        let clock = VirtualClock::new(0);
        let theirs = clock.clone();
        let task = tokio::spawn(async move {
            theirs.sleep(Duration::from_secs(86_400)).await;
            theirs.now_ms()
        });
        while clock.sleepers() == 0 {
            tokio::task::yield_now().await;
        }
        clock.advance(Duration::from_secs(86_400));
        assert_eq!(task.await.unwrap(), 86_400_000);
    }
}
