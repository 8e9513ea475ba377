//! The next moment at which a row becomes runnable by itself, known to all waiting calls of the process.
//!
//! A transaction notes the moments that it makes: a delayed row, the end of a lease. A look that found
//! nothing knows the next moment of the whole store. The writing thread applies both in the order of its
//! transactions. When the moment comes, one of the waiting calls looks; if it takes work, another one looks
//! after it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// What a transaction tells about the next moments of turns and of work.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct NextMoments {
    pub(crate) turn: MomentNote,
    pub(crate) work: MomentNote,
}

impl NextMoments {
    /// Adds the notes of the next transaction.
    pub(crate) fn absorb(&mut self, next: Self) {
        self.turn.absorb(next.turn);
        self.work.absorb(next.work);
    }
}

/// What a transaction tells about the next moment of one kind of row.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MomentNote {
    at: Option<i64>,
    /// Whether `at` is the next moment of the whole store; else one that the transaction made.
    is_whole: bool,
}

impl MomentNote {
    /// Notes a moment that the transaction made.
    pub(crate) fn add(&mut self, at: i64) {
        self.at = Some(self.at.map_or(at, |known| known.min(at)));
    }

    /// Notes the next moment of the whole store.
    pub(crate) fn know(&mut self, next: Option<i64>) {
        *self = Self { at: next, is_whole: true };
    }

    fn absorb(&mut self, next: Self) {
        match (next.is_whole, next.at) {
            (true, _) => *self = next,
            (false, Some(at)) => self.add(at),
            (false, None) => {}
        }
    }
}

/// The next moments of turns and of work, as far as the process knows.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    pub(crate) turns: Alarm,
    pub(crate) work: Alarm,
}

impl Alarms {
    pub(crate) fn apply(&self, notes: NextMoments) {
        self.turns.apply(notes.turn);
        self.work.apply(notes.work);
    }
}

/// The next moment of one kind of row, as far as the process knows.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    next: Mutex<Option<i64>>,
    /// Notified when the next moment becomes an earlier one.
    pub(crate) is_earlier: Notify,
}

impl Alarm {
    pub(crate) fn apply(&self, note: MomentNote) {
        let mut next = self.lock();
        let mut kept = MomentNote { at: *next, is_whole: true };
        kept.absorb(note);
        let is_earlier = kept.at.is_some_and(|at| next.is_none_or(|known| at < known));
        *next = kept.at;
        drop(next);
        if is_earlier {
            self.is_earlier.notify_waiters();
        }
    }

    pub(crate) fn next(&self) -> Option<i64> {
        *self.lock()
    }

    /// Takes the moment if it has come: the caller looks for all waiting calls.
    pub(crate) fn take(&self, now: i64) -> Option<DueMoment<'_>> {
        let mut next = self.lock();
        let at = (*next)?;
        if at > now {
            return None;
        }
        *next = None;
        Some(DueMoment { alarm: self, at })
    }

    fn lock(&self) -> MutexGuard<'_, Option<i64>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A moment that has come, for which one call looks. Dropping it passes the moment to another waiting call:
/// the look failed, was dropped, or took work and does not know whether there is more.
#[derive(Debug)]
pub(crate) struct DueMoment<'a> {
    alarm: &'a Alarm,
    at: i64,
}

impl DueMoment<'_> {
    /// Ends the look: it found nothing, so the writing thread has noted the next moment of the store.
    pub(crate) fn found_nothing(self) {
        std::mem::forget(self);
    }
}

impl Drop for DueMoment<'_> {
    fn drop(&mut self) {
        let mut note = MomentNote::default();
        note.add(self.at);
        self.alarm.apply(note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(at: i64) -> MomentNote {
        let mut note = MomentNote::default();
        note.add(at);
        note
    }

    fn known(next: Option<i64>) -> MomentNote {
        let mut note = MomentNote::default();
        note.know(next);
        note
    }

    #[test]
    fn an_earlier_moment_replaces_a_later_one_and_a_known_one_any() {
        let alarm = Alarm::default();
        for (note, next) in [
            (made(5), Some(5)),
            (made(7), Some(5)),
            (made(3), Some(3)),
            (known(Some(9)), Some(9)),
            (made(8), Some(8)),
            (known(None), None),
        ] {
            alarm.apply(note);
            assert_eq!(alarm.next(), next, "{note:?}");
        }
    }

    #[test]
    fn a_moment_that_has_come_is_taken_once_and_passed_on_unless_nothing_was_found() {
        let alarm = Alarm::default();
        alarm.apply(made(5));
        assert!(alarm.take(4).is_none(), "it has not come");
        let taken = alarm.take(5).expect("it has come");
        assert!(alarm.take(5).is_none(), "one looks for all");
        drop(taken);
        alarm.take(5).expect("the next one looks").found_nothing();
        assert!(alarm.take(5).is_none());
    }
}
