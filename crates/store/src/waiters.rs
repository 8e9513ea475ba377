//! Who waits for what, and whom a commit wakes.
//!
//! A commit says what it made runnable. For each such item one waiting fetch is woken, and only one that could take
//! it. A fetch that was woken and goes away without having looked again passes the wake on. Who waits for an instance is
//! found by its id: a commit costs those nothing whom it does not concern, however many they are.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast_core::TagFilter;
use tokio::sync::Notify;

/// Says what a transaction made runnable, or changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Woken {
    /// Counts the instances that became ready.
    pub turns: usize,
    /// Holds the tag of each activity that became ready, and whether it belongs to a session.
    pub work: Vec<(Option<String>, bool)>,
    /// Says that activities of any number and kind may have become somebody else's.
    pub any_work: bool,
    /// Names the instances that changed and go on.
    pub instances: Vec<String>,
    /// Names the instances that changed and may have ended with it, or are gone.
    pub ended: Vec<String>,
}

impl Woken {
    /// Adds what another transaction made runnable.
    pub fn absorb(&mut self, other: Self) {
        self.turns += other.turns;
        self.work.extend(other.work);
        self.any_work |= other.any_work;
        self.instances.extend(other.instances);
        self.ended.extend(other.ended);
    }
}

/// Says what somebody waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interest {
    /// A turn.
    Turn,
    /// An activity that a fetch accepts.
    Work {
        /// Says which tags the fetch accepts.
        tags: TagFilter,
        /// Says whether it accepts activities on sessions.
        sessions: bool,
    },
    /// An activity of any kind.
    AnyWork,
    /// A change of this instance.
    Instance(String),
    /// The end of this instance.
    End(String),
}

impl Interest {
    fn is_of_one_instance(&self) -> bool {
        matches!(self, Self::Instance(_) | Self::End(_))
    }
}

/// What becomes runnable, and one of those who could take it must look.
#[derive(Debug, Clone)]
enum Item {
    Turn,
    Work { tag: Option<String>, session: bool },
}

impl Item {
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

/// Holds everybody who waits.
#[derive(Debug, Default)]
pub struct Waiters {
    seats: Mutex<Seats>,
}

/// Those who were not called since they last looked, each by the number of its seat. A lower number sat down earlier.
type Idle = BTreeMap<u64, Arc<Notify>>;

#[derive(Debug, Default)]
struct Seats {
    /// Numbers the next seat.
    next: u64,
    /// Those who wait for turns and work, one line for each kind of wish.
    lines: Vec<Line>,
    /// Those who wait for a change of an instance, by its id.
    changes: HashMap<String, Idle>,
    /// Those who wait for the end of an instance, by its id.
    ends: HashMap<String, Idle>,
    /// What a seat was called for, and nobody else, until it looks.
    errands: HashMap<u64, Item>,
}

#[derive(Debug)]
struct Line {
    interest: Interest,
    /// Counts the seats, idle or not. A line without any is removed.
    seats: usize,
    idle: Idle,
}

impl Waiters {
    /// Takes a seat. Whatever is committed from now on is not missed.
    pub fn sit(self: &Arc<Self>, interest: Interest) -> Waiter {
        let bell = Arc::new(Notify::new());
        let seat = self.lock().join(&interest, Arc::clone(&bell));
        Waiter { waiters: Arc::clone(self), interest, seat, bell }
    }

    /// Wakes whom it concerns: one for each thing that became runnable.
    pub fn wake(&self, woken: &Woken) {
        let mut seats = self.lock();
        for _ in 0..woken.turns {
            if !seats.call_one(&Item::Turn) {
                break;
            }
        }
        for (tag, session) in &woken.work {
            let item = Item::Work { tag: tag.clone(), session: *session };
            // Who may have the work of a session is the store's to say: everybody who asks for sessions looks.
            if *session {
                seats.call_all(|interest| item.is_for(interest));
            } else {
                seats.call_one(&item);
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

    /// Wakes everybody: something changed that this process knows nothing of.
    pub fn wake_all(&self) {
        let mut seats = self.lock();
        seats.call_all(|_| true);
        ring(seats.changes.drain().map(|(_, idle)| idle));
        ring(seats.ends.drain().map(|(_, idle)| idle));
    }

    fn lock(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ring(idle: impl IntoIterator<Item = Idle>) {
    idle.into_iter().flat_map(Idle::into_values).for_each(|bell| bell.notify_one());
}

impl Seats {
    fn join(&mut self, interest: &Interest, bell: Arc<Notify>) -> u64 {
        let seat = self.next;
        self.next += 1;
        if !interest.is_of_one_instance() {
            self.line_of(interest).seats += 1;
        }
        self.idle_of(interest).insert(seat, bell);
        seat
    }

    /// Frees a seat. Called since it last looked, and now it goes: somebody else must look.
    fn leave(&mut self, interest: &Interest, seat: u64) {
        match interest {
            Interest::Instance(id) => forget(&mut self.changes, id, seat),
            Interest::End(id) => forget(&mut self.ends, id, seat),
            Interest::Turn | Interest::Work { .. } | Interest::AnyWork => {
                let line = self.line_of(interest);
                line.idle.remove(&seat);
                line.seats -= 1;
                self.lines.retain(|line| line.seats > 0);
            }
        }
        if let Some(item) = self.errands.remove(&seat) {
            self.call_one(&item);
        }
    }

    /// Calls the one who sat down first of those who could take it. False when there is none.
    fn call_one(&mut self, item: &Item) -> bool {
        let lines = self.lines.iter_mut().filter(|line| item.is_for(&line.interest));
        let first = lines.filter_map(|line| line.idle.first_entry()).min_by_key(|entry| *entry.key());
        let Some((seat, bell)) = first.map(|entry| entry.remove_entry()) else { return false };
        self.errands.insert(seat, item.clone());
        bell.notify_one();
        true
    }

    fn call_all(&mut self, concerns: impl Fn(&Interest) -> bool) {
        let lines = self.lines.iter_mut().filter(|line| concerns(&line.interest));
        ring(lines.map(|line| std::mem::take(&mut line.idle)));
    }

    fn idle_of(&mut self, interest: &Interest) -> &mut Idle {
        match interest {
            Interest::Instance(id) => self.changes.entry(id.clone()).or_default(),
            Interest::End(id) => self.ends.entry(id.clone()).or_default(),
            Interest::Turn | Interest::Work { .. } | Interest::AnyWork => &mut self.line_of(interest).idle,
        }
    }

    /// The line of a wish, which is made if nobody has the wish yet. There are few: one for each kind of fetch.
    fn line_of(&mut self, interest: &Interest) -> &mut Line {
        let known = self.lines.iter().position(|line| line.interest == *interest);
        let place = known.unwrap_or_else(|| {
            self.lines.push(Line { interest: interest.clone(), seats: 0, idle: Idle::new() });
            self.lines.len() - 1
        });
        &mut self.lines[place]
    }
}

fn forget(waiting: &mut HashMap<String, Idle>, instance: &str, seat: u64) {
    if let Some(idle) = waiting.get_mut(instance) {
        idle.remove(&seat);
        if idle.is_empty() {
            waiting.remove(instance);
        }
    }
}

/// Waits. Dropping it gives the seat up.
#[derive(Debug)]
pub struct Waiter {
    waiters: Arc<Waiters>,
    interest: Interest,
    seat: u64,
    bell: Arc<Notify>,
}

impl Waiter {
    /// Waits until it is called.
    ///
    /// # Cancel safety
    /// A call that came is not lost when the future is dropped.
    pub async fn called(&self) {
        self.bell.notified().await;
    }

    /// Begins to look again: what it was called for up to now is dealt with by that, once the look is answered.
    pub fn look(&self) -> Looking {
        let mut seats = self.waiters.lock();
        seats.idle_of(&self.interest).insert(self.seat, Arc::clone(&self.bell));
        let errand = seats.errands.remove(&self.seat);
        drop(seats);
        Looking { waiters: Arc::clone(&self.waiters), errand }
    }
}

/// A look that is not answered yet. One that is dropped before, because it failed or nobody waits for it any more, is made by
/// somebody else.
#[derive(Debug)]
#[must_use = "a look that is not answered is passed on"]
pub struct Looking {
    waiters: Arc<Waiters>,
    errand: Option<Item>,
}

impl Looking {
    /// The look has been made, whatever it found.
    pub fn answered(mut self) {
        self.errand = None;
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        if let Some(item) = self.errand.take() {
            self.waiters.lock().call_one(&item);
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.waiters.lock().leave(&self.interest, self.seat);
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
    fn a_change_calls_who_waits_for_a_change_of_that_instance_and_nobody_else() {
        let waiters = Arc::new(Waiters::default());
        let [mine, other] = ["a", "b"].map(|id| waiters.sit(Interest::Instance(id.to_owned())));
        let end = waiters.sit(Interest::End("a".to_owned()));
        waiters.wake(&changed("a"));
        assert_eq!([&mine, &other, &end].map(is_called), [true, false, false]);
    }

    #[test]
    fn an_end_calls_all_who_wait_for_the_instance() {
        let waiters = Arc::new(Waiters::default());
        let change = waiters.sit(Interest::Instance("a".to_owned()));
        let [one, another, other] = ["a", "a", "b"].map(|id| waiters.sit(Interest::End(id.to_owned())));
        waiters.wake(&ended("a"));
        assert_eq!([&change, &one, &another, &other].map(is_called), [true, true, true, false]);
    }

    #[test]
    fn who_looked_is_called_again() {
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
    fn who_sat_down_first_is_called_first_whatever_else_it_accepts() {
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
        assert!(is_called(&first), "to have looked does not cost the place");
    }

    #[test]
    fn who_was_called_and_goes_passes_the_call_on() {
        let waiters = Arc::new(Waiters::default());
        let [first, second, third] = [any_tag(), any_tag(), Interest::Turn].map(|wish| waiters.sit(wish));
        waiters.wake(&work(None));
        drop(first);
        assert_eq!([&second, &third].map(is_called), [true, false]);
        let fourth = waiters.sit(any_tag());
        second.look().answered();
        drop(second);
        assert!(!is_called(&fourth), "who looked has dealt with it");
    }

    #[test]
    fn a_look_that_is_given_up_is_made_by_another() {
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
    fn everybody_can_be_called() {
        let waiters = Arc::new(Waiters::default());
        let wishes = [Interest::Turn, any_tag(), Interest::AnyWork, Interest::Instance("a".to_owned())];
        let seats = wishes.map(|wish| waiters.sit(wish));
        let end = waiters.sit(Interest::End("a".to_owned()));
        waiters.wake_all();
        assert!(seats.iter().all(is_called) && is_called(&end));
    }

    #[test]
    fn nothing_is_left_of_those_who_went() {
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
            let left = waiters.lock();
            assert!(left.lines.is_empty() && left.changes.is_empty());
            assert!(left.ends.is_empty() && left.errands.is_empty());
        }
    }
}
