//! Where an orchestration's code and its engine meet.
//!
//! The code holds clones of the context, the engine polls the code: both reach the same [`Ledger`]. This
//! module owns the lock around it and knows, at every moment, whether the thread that asks is inside a poll
//! of *this* orchestration. A call from anywhere else (a spawned task, a clone that was kept) would depend on
//! thread scheduling, so it fails the orchestration instead of being served.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use crate::context::misuse::Misuse;
use crate::replay::ledger::Ledger;

/// The ledger of one execution, shared by its context, its futures and its engine.
pub(crate) struct PollScope {
    ledger: Mutex<Ledger>,
    root: Arc<RootWaker>,
    /// A context made with `OrchestrationContext::new`: no engine polls it, so any thread may use it.
    standalone: bool,
}

impl PollScope {
    pub(crate) fn driven(ledger: Ledger) -> Arc<Self> {
        Self::with(ledger, false)
    }

    pub(crate) fn standalone(ledger: Ledger) -> Arc<Self> {
        Self::with(ledger, true)
    }

    fn with(ledger: Ledger, standalone: bool) -> Arc<Self> {
        Arc::new(Self { ledger: Mutex::new(ledger), root: Arc::default(), standalone })
    }

    /// Locks the ledger for the engine and for reads that are the same at any time.
    ///
    /// No user code runs under this lock, so a poisoned lock can only mean a panic of the engine itself; the
    /// ledger is still usable and the turn that panicked has already failed.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the ledger for a call of the orchestration's code. A call from outside a poll is reported and
    /// gets `None`; so does any call after the end of the execution.
    pub(crate) fn enter(
        &self,
        what: &'static str,
        at: &'static Location<'static>,
    ) -> Option<MutexGuard<'_, Ledger>> {
        if self.has_ended() {
            return None;
        }
        let mut ledger = self.lock();
        if self.standalone || self.is_polled_here() {
            return Some(ledger);
        }
        ledger.report(Misuse::OutsidePoll { call: what, at });
        drop(ledger);
        self.root.ring();
        None
    }

    /// Is this thread inside a poll of this orchestration?
    pub(crate) fn is_polled_here(&self) -> bool {
        HERE.get() == Here::Polling(self.root.id())
    }

    pub(crate) fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.root))
    }

    /// Runs one poll of the root: wakes inside it are legal and ask for another poll.
    pub(crate) fn polling<R>(&self, poll: impl FnOnce() -> R) -> R {
        self.root.woken.store(false, Ordering::Relaxed);
        let _entered = Entered::enter(Here::Polling(self.root.id()));
        poll()
    }

    /// Wakes the futures that an event answered. A wake of the root during this call comes from the engine:
    /// it asks for no poll and is no misuse.
    pub(crate) fn deliver(&self, wakers: impl IntoIterator<Item = Waker>) {
        let _entered = Entered::enter(Here::Delivering(self.root.id()));
        for waker in wakers {
            // A combinator may bring its own waker, which is user code.
            if let Err(text) = guarded(|| waker.wake()) {
                self.lock().report(Misuse::WakerPanicked { text });
            }
        }
    }

    /// Did something wake the root during the last poll?
    pub(crate) fn was_woken(&self) -> bool {
        self.root.woken.load(Ordering::Relaxed)
    }

    /// Did a waker that the engine does not know wake the root between two polls? Such a wake cannot be
    /// repeated on replay.
    pub(crate) fn was_woken_from_outside(&self) -> bool {
        self.root.foreign.load(Ordering::Acquire)
    }

    /// Sets the waker to call when the context is used, or the root is woken, outside a poll.
    pub(crate) fn set_alarm(&self, alarm: Waker) {
        *self.root.alarm.lock().unwrap_or_else(PoisonError::into_inner) = Some(alarm);
        // The misuse may have happened between the last turn and now.
        if self.was_woken_from_outside() || self.lock().misuse().is_some() {
            self.root.ring();
        }
    }

    /// Ends the execution: later calls, drops and wakes change nothing.
    pub(crate) fn end(&self) {
        self.root.ended.store(true, Ordering::Release);
        let forgotten = self.lock().forget();
        drop(guarded(move || drop(forgotten)));
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.root.ended.load(Ordering::Acquire)
    }
}

/// Runs user code. A panic is caught and its text is returned as the error.
pub(crate) fn guarded<R>(code: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| {
        let text = text_of(payload.as_ref());
        // The payload is user code too. If dropping it panics, the second payload is leaked.
        if let Err(again) = catch_unwind(AssertUnwindSafe(move || drop(payload))) {
            std::mem::forget(again);
        }
        text
    })
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "orchestration panicked".to_owned())
}

/// The waker that the root future is polled with.
#[derive(Default)]
struct RootWaker {
    woken: AtomicBool,
    foreign: AtomicBool,
    ended: AtomicBool,
    alarm: Mutex<Option<Waker>>,
}

impl RootWaker {
    /// Returns a number that no other live root waker has: the address of the shared allocation.
    fn id(self: &Arc<Self>) -> usize {
        Arc::as_ptr(self).addr()
    }

    fn ring(&self) {
        let alarm = self.alarm.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(alarm) = alarm {
            alarm.wake();
        }
    }
}

impl Wake for RootWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let id = self.id();
        match HERE.get() {
            Here::Polling(polled) if polled == id => self.woken.store(true, Ordering::Relaxed),
            Here::Delivering(delivered) if delivered == id => {}
            Here::Elsewhere | Here::Polling(_) | Here::Delivering(_) => {
                if !self.ended.load(Ordering::Acquire) {
                    self.foreign.store(true, Ordering::Release);
                    self.ring();
                }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Here {
    Elsewhere,
    Polling(usize),
    Delivering(usize),
}

thread_local! {
    static HERE: Cell<Here> = const { Cell::new(Here::Elsewhere) };
}

/// Guards [`HERE`]: holds its former value and restores it when dropped, also when a poll panics.
struct Entered(Here);

impl Entered {
    fn enter(here: Here) -> Self {
        Self(HERE.replace(here))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        HERE.set(self.0);
    }
}
