//! Panics of activities: caught where the code is polled, with their message and their place (G33).
//!
//! The payload of a panic does not tell the place; only the panic hook of the process is told. So the runtime
//! adds a hook in front of the one that it finds. Its only work is to note the message and the place of a
//! panic on a thread that polls an activity; then it calls the hook that it found.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::pin::Pin;
use std::sync::Once;
use std::task::{Context, Poll};

/// Runs a future to its end. A panic is caught, and its text is the error.
pub(super) struct Caught<F> {
    future: Pin<Box<F>>,
}

impl<F: Future> Caught<F> {
    pub(super) fn new(future: F) -> Self {
        Self { future: Box::pin(future) }
    }
}

impl<F: Future> Future for Caught<F> {
    type Output = Result<F::Output, String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let watch = WatchedPoll::begin();
        let polled = catch_unwind(AssertUnwindSafe(|| self.future.as_mut().poll(cx)));
        match polled {
            Ok(polled) => polled.map(Ok),
            Err(payload) => Poll::Ready(Err(text_of(payload, watch.end()))),
        }
    }
}

/// A panic as the hook was told of it.
struct NotedPanic {
    message: Option<String>,
    place: Option<String>,
}

/// What a thread knows about panics of the activity that it polls.
enum PanicWatch {
    /// The thread polls no activity.
    No,
    /// The thread polls an activity, which has not panicked since, or whose last panic this was.
    Yes(Option<NotedPanic>),
}

thread_local! {
    static WATCHED: RefCell<PanicWatch> = const { RefCell::new(PanicWatch::No) };
}

/// Notes the panics of this thread until it is dropped.
struct WatchedPoll;

impl WatchedPoll {
    fn begin() -> Self {
        WATCHED.set(PanicWatch::Yes(None));
        Self
    }

    fn end(self) -> Option<NotedPanic> {
        match WATCHED.replace(PanicWatch::No) {
            PanicWatch::Yes(noted) => noted,
            PanicWatch::No => None,
        }
    }
}

impl Drop for WatchedPoll {
    fn drop(&mut self) {
        WATCHED.set(PanicWatch::No);
    }
}

/// Adds the hook, once in a process. A thread that unwinds may not set a hook: then the next start adds it,
/// and until then panics are recorded without their place.
pub(crate) fn watch_panics() {
    static ADDED: Once = Once::new();
    if std::thread::panicking() {
        return;
    }
    ADDED.call_once(|| {
        let found = take_hook();
        set_hook(Box::new(move |info| {
            note(info);
            found(info);
        }));
    });
}

/// Notes a panic if this thread polls an activity. Must not panic itself: that would abort the process.
fn note(info: &PanicHookInfo<'_>) {
    let noted = || NotedPanic {
        message: message_of(info.payload()),
        place: info.location().map(ToString::to_string),
    };
    // The thread's values may be gone already, or be borrowed by the code that panics: then nothing is noted.
    let _unnoted = WATCHED.try_with(|watched| {
        if let Ok(mut watched) = watched.try_borrow_mut()
            && matches!(*watched, PanicWatch::Yes(_))
        {
            *watched = PanicWatch::Yes(Some(noted()));
        }
    });
}

/// Makes the text of a caught panic. The place is left out if the hook was told of another panic than this
/// one. The payload is the application's: its drop may panic again, and must not end the slot.
fn text_of(payload: Box<dyn Any + Send>, noted: Option<NotedPanic>) -> String {
    let message = message_of(payload.as_ref());
    if let Err(again) = catch_unwind(AssertUnwindSafe(move || drop(payload))) {
        std::mem::forget(again);
    }
    let noted = noted.filter(|noted| noted.message == message);
    let place = noted.and_then(|noted| noted.place).map(|place| format!(" at {place}")).unwrap_or_default();
    match message {
        Some(message) => format!("activity panicked{place}: {message}"),
        None => format!("activity panicked{place}"),
    }
}

/// Returns the message of a panic, if its payload is a text.
fn message_of(payload: &(dyn Any + Send)) -> Option<String> {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
}
