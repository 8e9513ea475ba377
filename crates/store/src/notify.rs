//! Wake-ups within a process: which waiting calls look again after a commit.
//!
//! A call that finds nothing registers its [`Interest`] with [`Waiters::sit`] and looks again when it is
//! woken. The registration is called a *seat*. A commit lists the turns and activities that it made runnable
//! and the instances that it changed ([`Woken`]). For each runnable turn or activity one seat of each worker
//! is woken: the one that has waited for the longest among those that could take it. (Which workers are given
//! it is known only to the store, S21; usually a process has one worker.) For a change of an instance all
//! seats that wait for that instance are woken. Seats are found by their interest, so a commit costs nothing
//! for the other seats, however many there are.
//!
//! The turn or activity that a seat alone was woken for is its *errand*: no other seat looks for it until the
//! woken seat has looked. If that seat is dropped before its look is answered, the errand passes to another
//! seat.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast_core::TagFilter;
use tokio::sync::Notify;

use crate::WorkerId;

/// Lists what a transaction made runnable and which instances it changed, so that [`Waiters::wake`] can wake
/// the calls that wait for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Woken {
    /// The number of instances that became ready for a turn.
    pub turns: usize,
    /// Set when turns may have become available that not every worker is given (S21): all fetches of turns
    /// must look.
    pub any_turn: bool,
    /// The tag of each activity that became ready, and whether the activity belongs to a session.
    pub work: Vec<(Option<String>, bool)>,
    /// Set when any number of activities may have become available: a session was released, or work was
    /// abandoned.
    pub any_work: bool,
    /// Instances that changed and did not end.
    pub instances: Vec<String>,
    /// Instances that may have ended with the change, or were deleted.
    pub ended: Vec<String>,
}

impl Woken {
    /// Adds the lists of another transaction.
    pub fn absorb(&mut self, other: Self) {
        self.turns += other.turns;
        self.any_turn |= other.any_turn;
        self.work.extend(other.work);
        self.any_work |= other.any_work;
        self.instances.extend(other.instances);
        self.ended.extend(other.ended);
    }
}

/// Tells what a waiting call waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interest {
    /// A turn of any instance.
    Turn,
    /// An activity that a fetch accepts.
    Work {
        /// The tags that the fetch accepts.
        tags: TagFilter,
        /// Whether the fetch accepts activities on sessions.
        sessions: bool,
    },
    /// An activity of any tag, with or without a session.
    AnyWork,
    /// A change of the instance with this id; its end and its deletion count.
    Instance(String),
    /// The end of the instance with this id; its deletion counts.
    End(String),
}

impl Interest {
    fn is_of_one_instance(&self) -> bool {
        matches!(self, Self::Instance(_) | Self::End(_))
    }
}

/// A turn or an activity that became runnable: one of the waiting fetches that could take it must look.
#[derive(Debug, Clone)]
enum Runnable {
    Turn,
    Work { tag: Option<String>, session: bool },
}

impl Runnable {
    fn is_for(&self, interest: &Interest) -> bool {
        match (self, interest) {
            (Self::Turn, Interest::Turn) | (Self::Work { .. }, Interest::AnyWork) => true,
            (Self::Work { tag, session }, Interest::Work { tags, sessions }) => {
                tags.matches(tag.as_deref()) && (*sessions || !session)
            }
            (Self::Turn, Interest::Work { .. } | Interest::AnyWork)
            | (Self::Work { .. }, Interest::Turn)
            | (_, Interest::Instance(_) | Interest::End(_)) => false,
        }
    }
}

/// Holds the calls of this process that wait, one *seat* for each, and wakes them after a commit.
#[derive(Debug, Default)]
pub struct Waiters {
    seats: Mutex<Seats>,
}

/// The seats that were not woken since they last looked, by number. A seat with a lower number has waited for
/// longer.
type Idle = BTreeMap<u64, Arc<Notify>>;

#[derive(Debug, Default)]
struct Seats {
    /// The number of the next seat.
    next: u64,
    /// Seats that wait for turns and work, one line for each different interest.
    lines: Vec<Line>,
    /// Seats that wait for a change of an instance, by its id.
    changes: BTreeMap<String, Idle>,
    /// Seats that wait for the end of an instance, by its id.
    ends: BTreeMap<String, Idle>,
    /// For each seat that alone was woken for a turn or an activity and has not looked yet: that turn or
    /// activity. If the seat is removed first, another seat is woken for it.
    errands: HashMap<u64, Runnable>,
}

/// The seats of one worker that wait for the same interest.
#[derive(Debug)]
struct Line {
    interest: Interest,
    worker: Option<WorkerId>,
    /// The number of seats of the line, woken ones included. A line without seats is removed.
    seats: usize,
    idle: Idle,
}

impl Waiters {
    /// Registers a call that waits for `interest`. A commit from now on that concerns the interest wakes this
    /// call, or another one that waits for the same turn or activity. Look once after this, for the commits
    /// before.
    pub fn sit(self: &Arc<Self>, interest: Interest) -> Waiter {
        self.sit_as(interest, None)
    }

    /// Registers a call of a worker, as [`sit`](Self::sit) does. A turn or an activity that became runnable
    /// wakes a call of each worker, because only the store knows to which of them it is given (S21).
    pub fn sit_as(self: &Arc<Self>, interest: Interest, worker: Option<WorkerId>) -> Waiter {
        let bell = Arc::new(Notify::new());
        let seat = self.lock().add(&interest, worker.as_ref(), Arc::clone(&bell));
        Waiter { waiters: Arc::clone(self), interest, worker, seat, bell }
    }

    /// Wakes one waiting call of each worker for each turn and each activity without a session that became
    /// runnable, all calls that accept an activity on a session that became runnable, and all calls that wait
    /// for an instance that changed.
    pub fn wake(&self, woken: &Woken) {
        let mut seats = self.lock();
        for _ in 0..woken.turns {
            if !seats.call_each(&Runnable::Turn) {
                break;
            }
        }
        if woken.any_turn {
            seats.call_all(|interest| *interest == Interest::Turn);
        }
        for (tag, session) in &woken.work {
            let runnable = Runnable::Work { tag: tag.clone(), session: *session };
            // Only the store knows which process may take the work of a session, so all fetches that ask for
            // sessions look.
            if *session {
                seats.call_all(|interest| runnable.is_for(interest));
            } else {
                seats.call_each(&runnable);
            }
        }
        if woken.any_work {
            seats.call_all(|interest| matches!(interest, Interest::Work { .. } | Interest::AnyWork));
        }
        for instance in woken.instances.iter().chain(&woken.ended) {
            ring(seats.changes.remove(instance));
        }
        for instance in &woken.ended {
            ring(seats.ends.remove(instance));
        }
    }

    /// Wakes all waiting calls. For a commit of another process, whose changes are not known here.
    pub fn wake_all(&self) {
        let mut seats = self.lock();
        seats.call_all(|_| true);
        ring(std::mem::take(&mut seats.changes).into_values());
        ring(std::mem::take(&mut seats.ends).into_values());
    }

    /// Tells whether no call waits.
    pub fn is_empty(&self) -> bool {
        let seats = self.lock();
        seats.lines.is_empty() && seats.changes.is_empty() && seats.ends.is_empty()
    }

    /// Lists the instances that calls wait for and have not been woken for, each once.
    pub fn instances(&self) -> Vec<String> {
        let seats = self.lock();
        let ends = seats.ends.keys().filter(|id| !seats.changes.contains_key(*id));
        seats.changes.keys().chain(ends).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ring(idle: impl IntoIterator<Item = Idle>) {
    idle.into_iter().flat_map(Idle::into_values).for_each(|bell| bell.notify_one());
}

impl Seats {
    fn add(&mut self, interest: &Interest, worker: Option<&WorkerId>, bell: Arc<Notify>) -> u64 {
        let seat = self.next;
        self.next += 1;
        if !interest.is_of_one_instance() {
            self.line_of(interest, worker).seats += 1;
        }
        self.idle_of(interest, worker).insert(seat, bell);
        seat
    }

    /// Removes a seat. If it alone was woken for a turn or an activity and has not looked since, another seat
    /// is woken instead.
    fn remove(&mut self, interest: &Interest, worker: Option<&WorkerId>, seat: u64) {
        match interest {
            Interest::Instance(id) => forget(&mut self.changes, id, seat),
            Interest::End(id) => forget(&mut self.ends, id, seat),
            Interest::Turn | Interest::Work { .. } | Interest::AnyWork => {
                let line = self.line_of(interest, worker);
                line.idle.remove(&seat);
                line.seats -= 1;
                self.lines.retain(|line| line.seats > 0);
            }
        }
        if let Some(runnable) = self.errands.remove(&seat) {
            self.call_one(&runnable, worker);
        }
    }

    /// Wakes a seat of each worker that could take the turn or activity. False if there is no such seat.
    fn call_each(&mut self, runnable: &Runnable) -> bool {
        let mut workers: Vec<Option<WorkerId>> = Vec::new();
        for line in self.lines.iter().filter(|line| runnable.is_for(&line.interest)) {
            if !workers.contains(&line.worker) {
                workers.push(line.worker.clone());
            }
        }
        workers.iter().filter(|worker| self.call_one(runnable, worker.as_ref())).count() > 0
    }

    /// Wakes the longest waiting seat of a worker that could take the turn or activity. False if there is no
    /// such seat.
    fn call_one(&mut self, runnable: &Runnable, worker: Option<&WorkerId>) -> bool {
        let is_for = |line: &&mut Line| line.worker.as_ref() == worker && runnable.is_for(&line.interest);
        let lines = self.lines.iter_mut().filter(is_for);
        let first = lines.filter_map(|line| line.idle.first_entry()).min_by_key(|entry| *entry.key());
        let Some((seat, bell)) = first.map(|entry| entry.remove_entry()) else { return false };
        self.errands.insert(seat, runnable.clone());
        bell.notify_one();
        true
    }

    fn call_all(&mut self, concerns: impl Fn(&Interest) -> bool) {
        let lines = self.lines.iter_mut().filter(|line| concerns(&line.interest));
        ring(lines.map(|line| std::mem::take(&mut line.idle)));
    }

    fn idle_of(&mut self, interest: &Interest, worker: Option<&WorkerId>) -> &mut Idle {
        match interest {
            Interest::Instance(id) => self.changes.entry(id.clone()).or_default(),
            Interest::End(id) => self.ends.entry(id.clone()).or_default(),
            Interest::Turn | Interest::Work { .. } | Interest::AnyWork => {
                &mut self.line_of(interest, worker).idle
            }
        }
    }

    /// Returns the line of an interest of a worker, and makes it for the first seat. There are few lines: one
    /// for each kind of fetch.
    fn line_of(&mut self, interest: &Interest, worker: Option<&WorkerId>) -> &mut Line {
        let is_it = |line: &Line| line.interest == *interest && line.worker.as_ref() == worker;
        let known = self.lines.iter().position(is_it);
        let place = known.unwrap_or_else(|| {
            let (interest, worker) = (interest.clone(), worker.cloned());
            self.lines.push(Line { interest, worker, seats: 0, idle: Idle::new() });
            self.lines.len() - 1
        });
        &mut self.lines[place]
    }
}

fn forget(waiting: &mut BTreeMap<String, Idle>, instance: &str, seat: u64) {
    if let Some(idle) = waiting.get_mut(instance) {
        idle.remove(&seat);
        if idle.is_empty() {
            waiting.remove(instance);
        }
    }
}

/// The seat of one waiting call, made by [`Waiters::sit`]. Dropping it ends the wait; if this call alone was
/// woken for a turn or an activity and has not looked, another call is woken instead.
#[derive(Debug)]
pub struct Waiter {
    waiters: Arc<Waiters>,
    interest: Interest,
    worker: Option<WorkerId>,
    seat: u64,
    bell: Arc<Notify>,
}

impl Waiter {
    /// Waits until this call is woken.
    ///
    /// # Cancel safety
    /// A wake-up is not lost when the future is dropped: the next `called` returns at once.
    pub async fn called(&self) {
        self.bell.notified().await;
    }

    /// Begins a look at the store. From here on the seat can be woken again. The turn or activity that it was
    /// woken for passes to the returned value, which must be [`answered`](Looking::answered) after the look.
    pub fn look(&self) -> Looking {
        let mut seats = self.waiters.lock();
        seats.idle_of(&self.interest, self.worker.as_ref()).insert(self.seat, Arc::clone(&self.bell));
        let errand = seats.errands.remove(&self.seat);
        drop(seats);
        Looking { waiters: Arc::clone(&self.waiters), worker: self.worker.clone(), errand }
    }
}

/// A look at the store that is under way. If it is dropped before it is [`answered`](Self::answered), because
/// the look failed or its caller was dropped, another waiting call is woken for the same turn or activity.
#[derive(Debug)]
#[must_use = "a look that is not answered is passed on"]
pub struct Looking {
    waiters: Arc<Waiters>,
    worker: Option<WorkerId>,
    errand: Option<Runnable>,
}

impl Looking {
    /// Ends the look: the store was asked, whatever it found. No other call is woken in place of this one.
    pub fn answered(mut self) {
        self.errand = None;
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        if let Some(runnable) = self.errand.take() {
            self.waiters.lock().call_one(&runnable, self.worker.as_ref());
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.waiters.lock().remove(&self.interest, self.worker.as_ref(), self.seat);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn is_called(waiter: &Waiter) -> bool {
        let mut called = pin!(waiter.called());
        called.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    fn work(tag: Option<&str>) -> Woken {
        Woken { work: vec![(tag.map(str::to_owned), false)], ..Woken::default() }
    }

    fn changed(instance: &str) -> Woken {
        Woken { instances: vec![instance.to_owned()], ..Woken::default() }
    }

    fn ended(instance: &str) -> Woken {
        Woken { ended: vec![instance.to_owned()], ..Woken::default() }
    }

    fn any_tag() -> Interest {
        Interest::Work { tags: TagFilter::Any, sessions: false }
    }

    fn no_tag() -> Interest {
        Interest::Work { tags: TagFilter::DefaultOnly, sessions: false }
    }

    #[test]
    fn a_change_calls_only_the_seats_that_wait_for_a_change_of_that_instance() {
        let waiters = Arc::new(Waiters::default());
        let [mine, other] = ["a", "b"].map(|id| waiters.sit(Interest::Instance(id.to_owned())));
        let end = waiters.sit(Interest::End("a".to_owned()));
        waiters.wake(&changed("a"));
        assert_eq!([&mine, &other, &end].map(is_called), [true, false, false]);
    }

    #[test]
    fn an_end_calls_all_seats_that_wait_for_the_instance() {
        let waiters = Arc::new(Waiters::default());
        let change = waiters.sit(Interest::Instance("a".to_owned()));
        let [one, another, other] = ["a", "a", "b"].map(|id| waiters.sit(Interest::End(id.to_owned())));
        waiters.wake(&ended("a"));
        assert_eq!([&change, &one, &another, &other].map(is_called), [true, true, true, false]);
    }

    #[test]
    fn a_seat_that_looked_is_called_again() {
        let waiters = Arc::new(Waiters::default());
        let seats = [Interest::End("a".to_owned()), Interest::Turn].map(|interest| waiters.sit(interest));
        let woken = Woken { turns: 1, ..ended("a") };
        for _ in 0..3 {
            waiters.wake(&woken);
            assert_eq!(seats.each_ref().map(is_called), [true, true]);
            waiters.wake(&woken);
            assert_eq!(seats.each_ref().map(is_called), [false, false], "it has not looked yet");
            seats.iter().for_each(|seat| seat.look().answered());
        }
    }

    #[test]
    fn the_longest_waiting_seat_is_called_first_whatever_else_it_accepts() {
        let waiters = Arc::new(Waiters::default());
        let first = waiters.sit(any_tag());
        let second = waiters.sit(no_tag());
        let third = waiters.sit(any_tag());
        for (tag, called) in
            [(None, [true, false, false]), (Some("gpu"), [false, false, true]), (None, [false, true, false])]
        {
            waiters.wake(&work(tag));
            assert_eq!([&first, &second, &third].map(is_called), called);
        }
        [&third, &second, &first].into_iter().for_each(|seat| seat.look().answered());
        waiters.wake(&work(None));
        assert!(is_called(&first), "a look does not cost the place in line");
    }

    #[test]
    fn g40_one_seat_of_each_worker_is_called_because_only_the_store_knows_who_is_given_a_turn() {
        let waiters = Arc::new(Waiters::default());
        let worker = |id: &str| Some(WorkerId(id.to_owned()));
        let sit = |id| waiters.sit_as(Interest::Turn, worker(id));
        let [one, same, other] = [sit("a"), sit("a"), sit("b")];
        waiters.wake(&Woken { turns: 1, ..Woken::default() });
        assert_eq!([&one, &same, &other].map(is_called), [true, false, true]);
        drop(one);
        assert!(is_called(&same), "the errand stays with the worker");
    }

    #[test]
    fn a_seat_that_is_dropped_passes_its_errand_on() {
        let waiters = Arc::new(Waiters::default());
        let [first, second, third] = [any_tag(), any_tag(), Interest::Turn].map(|wish| waiters.sit(wish));
        waiters.wake(&work(None));
        drop(first);
        assert_eq!([&second, &third].map(is_called), [true, false]);
        let fourth = waiters.sit(any_tag());
        second.look().answered();
        drop(second);
        assert!(!is_called(&fourth), "the errand was dealt with");
    }

    #[test]
    fn a_look_that_is_dropped_is_made_by_another_seat() {
        let waiters = Arc::new(Waiters::default());
        let [first, second] = [any_tag(), any_tag()].map(|wish| waiters.sit(wish));
        waiters.wake(&work(None));
        assert!(is_called(&first));
        let looking = first.look();
        // As when the fetch is dropped while its statement is under way, or fails.
        drop((looking, first));
        assert!(is_called(&second));
        let third = waiters.sit(any_tag());
        drop((second.look(), second));
        assert!(is_called(&third), "and by the next");
    }

    #[test]
    fn turns_that_not_every_worker_is_given_call_all_fetches_of_turns() {
        let waiters = Arc::new(Waiters::default());
        let turns = [Interest::Turn, Interest::Turn].map(|wish| waiters.sit(wish));
        let work = waiters.sit(any_tag());
        waiters.wake(&Woken { turns: 1, any_turn: true, ..Woken::default() });
        assert!(turns.iter().all(is_called) && !is_called(&work));
    }

    #[test]
    fn all_seats_can_be_called() {
        let waiters = Arc::new(Waiters::default());
        let wishes = [Interest::Turn, any_tag(), Interest::AnyWork, Interest::Instance("a".to_owned())];
        let seats = wishes.map(|wish| waiters.sit(wish));
        let end = waiters.sit(Interest::End("a".to_owned()));
        waiters.wake_all();
        assert!(seats.iter().all(is_called) && is_called(&end));
    }

    #[test]
    fn dropped_seats_leave_no_trace() {
        let waiters = Arc::new(Waiters::default());
        for called in [false, true] {
            let wishes = [Interest::Turn, any_tag(), Interest::Instance("a".to_owned())];
            let seats = wishes.map(|wish| waiters.sit(wish));
            let end = waiters.sit(Interest::End("a".to_owned()));
            if called {
                waiters.wake(&Woken { turns: 1, ..ended("a") });
                end.look().answered();
            }
            drop((seats, end));
            let seats = waiters.lock();
            assert!(seats.lines.is_empty() && seats.changes.is_empty());
            assert!(seats.ends.is_empty() && seats.errands.is_empty());
        }
    }
}
