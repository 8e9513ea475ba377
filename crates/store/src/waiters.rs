//! Who waits for what, and whom a commit wakes.
//!
//! A commit says what it made runnable. For each such item one waiting fetch is woken, and only one that could take
//! it. A fetch that was woken and goes away without having looked again passes the wake on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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
    /// Names the instances that changed.
    pub instances: Vec<String>,
}

impl Woken {
    /// Adds what another transaction made runnable.
    pub fn absorb(&mut self, other: Self) {
        self.turns += other.turns;
        self.work.extend(other.work);
        self.any_work |= other.any_work;
        self.instances.extend(other.instances);
    }
}

/// Says what somebody waits for.
#[derive(Debug, Clone)]
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
}

impl Interest {
    fn takes(&self, item: &Item<'_>) -> bool {
        match (self, item) {
            (_, Item::Anything) | (Self::Turn, Item::Turn) | (Self::AnyWork, Item::Work { .. }) => true,
            (Self::Work { tags, sessions }, Item::Work { tag, session }) => {
                tags.matches(*tag) && (*sessions || !session)
            }
            (Self::Work { .. } | Self::AnyWork, Item::AnyWork) => true,
            (Self::Instance(waited), Item::Instance(changed)) => waited == changed,
            _ => false,
        }
    }
}

#[derive(Debug)]
enum Item<'a> {
    Turn,
    Work { tag: Option<&'a str>, session: bool },
    AnyWork,
    Instance(&'a str),
    Anything,
}

/// What one waiting fetch was woken for, and nobody else.
#[derive(Debug)]
enum Errand {
    Turn,
    Work { tag: Option<String>, session: bool },
}

impl Errand {
    fn of(item: &Item<'_>) -> Option<Self> {
        match item {
            Item::Turn => Some(Self::Turn),
            Item::Work { tag, session } => {
                Some(Self::Work { tag: tag.map(str::to_owned), session: *session })
            }
            Item::AnyWork | Item::Instance(_) | Item::Anything => None,
        }
    }

    fn item(&self) -> Item<'_> {
        match self {
            Self::Turn => Item::Turn,
            Self::Work { tag, session } => Item::Work { tag: tag.as_deref(), session: *session },
        }
    }
}

/// Holds everybody who waits.
#[derive(Debug, Default)]
pub struct Waiters {
    waiting: Mutex<Vec<Arc<Seat>>>,
}

#[derive(Debug)]
struct Seat {
    interest: Interest,
    called: AtomicBool,
    errand: Mutex<Option<Errand>>,
    bell: Notify,
}

impl Waiters {
    /// Takes a seat. Whatever is committed from now on is not missed.
    pub fn sit(self: &Arc<Self>, interest: Interest) -> Waiter {
        let seat = Arc::new(Seat {
            interest,
            called: AtomicBool::new(false),
            errand: Mutex::default(),
            bell: Notify::new(),
        });
        self.lock().push(Arc::clone(&seat));
        Waiter { waiters: Arc::clone(self), seat }
    }

    /// Wakes whom it concerns: one for each thing that became runnable.
    pub fn wake(&self, woken: &Woken) {
        for _ in 0..woken.turns {
            self.call_one(&Item::Turn);
        }
        for (tag, session) in &woken.work {
            let item = Item::Work { tag: tag.as_deref(), session: *session };
            // Who may have the work of a session is the store's to say: everybody who asks for sessions looks.
            if *session { self.call_all(&item) } else { self.call_one(&item) }
        }
        if woken.any_work {
            self.call_all(&Item::AnyWork);
        }
        for instance in &woken.instances {
            self.call_all(&Item::Instance(instance));
        }
    }

    /// Wakes everybody: something changed that this process knows nothing of.
    pub fn wake_all(&self) {
        self.call_all(&Item::Anything);
    }

    fn call_one(&self, item: &Item<'_>) {
        let waiting = self.lock();
        let fits = |seat: &&Arc<Seat>| seat.interest.takes(item) && !seat.called.load(Ordering::Acquire);
        if let Some(seat) = waiting.iter().find(fits) {
            *seat.errand() = Errand::of(item);
            seat.call();
        }
    }

    fn call_all(&self, item: &Item<'_>) {
        for seat in self.lock().iter().filter(|seat| seat.interest.takes(item)) {
            seat.call();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Seat>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    fn errand(&self) -> std::sync::MutexGuard<'_, Option<Errand>> {
        self.errand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(&self) {
        self.called.store(true, Ordering::Release);
        self.bell.notify_one();
    }
}

/// Waits. Dropping it gives the seat up.
#[derive(Debug)]
pub struct Waiter {
    waiters: Arc<Waiters>,
    seat: Arc<Seat>,
}

impl Waiter {
    /// Waits until it is called.
    ///
    /// # Cancel safety
    /// A call that came is not lost when the future is dropped.
    pub async fn called(&self) {
        self.seat.bell.notified().await;
    }

    /// Looks again: what it was called for up to now is dealt with by that.
    pub fn look(&self) {
        // Under the lock of those who call, so that no call falls between the two.
        let _calling = self.waiters.lock();
        self.seat.called.store(false, Ordering::Release);
        *self.seat.errand() = None;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.waiters.lock().retain(|seat| !Arc::ptr_eq(seat, &self.seat));
        // Called since it last looked, and now it goes: somebody else must look.
        if let Some(errand) = self.seat.errand().take() {
            self.waiters.call_one(&errand.item());
        }
    }
}
