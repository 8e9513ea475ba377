//! Signals: positional events, raised with `raise_event` and awaited with `schedule_wait`.
//!
//! A raise is accepted only if a wait for its name is open at that point of history, and goes to the oldest
//! such wait. A raise that comes early stays in history and is never delivered.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Waker;

use super::bounds::check_name;
use super::{Cancellation, CancelledAt, Operation, Record, Recorded, Site};
use crate::replay::admit::Judgement;
use crate::replay::ledger::{Answer, Ledger, Place};
use crate::replay::outline::Outline;
use crate::replay::play::Next;
use crate::replay::{Identity, Notice};
use crate::{Action, ErrorDetails, Event, EventKind, OpenKind, WorkItem};

pub(crate) struct SignalRules;

impl Operation for SignalRules {
    fn label(&self) -> &'static str {
        "ExternalWait"
    }

    fn refuse(&self, action: &Action, _event_id: u64, _site: &Site<'_>) -> Result<(), ErrorDetails> {
        let Action::WaitExternal { name, .. } = action else { return Ok(()) };
        check_name("event name", name)
    }

    fn record(&self, action: &Action, _event_id: u64, _identity: &Identity) -> Option<Record> {
        let Action::WaitExternal { name, .. } = action else { return None };
        Some(EventKind::ExternalSubscribed { name: name.clone() }.into())
    }

    fn matches(&self, action: &Action, event: &Event) -> bool {
        let EventKind::ExternalSubscribed { name } = &event.kind else { return false };
        matches!(action, Action::WaitExternal { name: awaited, .. } if awaited == name)
    }

    /// A wait that was dropped before its event takes nothing: its cancellation ends the same turn, and no
    /// raise can come between the two.
    fn recorded(&self, recorded: &Recorded<'_>, ledger: &mut Ledger) -> Next {
        if let EventKind::ExternalSubscribed { name } = &recorded.event.kind
            && recorded.is_alive
        {
            ledger.signals.open(name, recorded.event.event_id);
        }
        Next::Go
    }

    fn open(&self, event: &Event, _identity: &Identity, outline: &mut Outline) {
        let EventKind::ExternalSubscribed { name } = &event.kind else { return };
        outline.signals.open(name, event.event_id);
    }

    fn admit(&self, message: WorkItem, _site: &Site<'_>) -> Judgement {
        let WorkItem::ExternalRaised { name, data, .. } = message else { return Judgement::misaddressed() };
        Judgement::record(EventKind::ExternalEvent { name, data })
    }

    fn notice(&self, event: &Event, ledger: &Ledger) -> Option<Notice> {
        let EventKind::ExternalEvent { name, .. } = &event.kind else { return None };
        (!ledger.signals.is_awaited(name)).then(|| Notice::EarlyEvent { name: name.clone() })
    }

    fn settle(&self, event: Event, ledger: &mut Ledger) -> Next {
        let EventKind::ExternalEvent { name, data } = event.kind else { return Next::Go };
        Next::settle(ledger.signals.accept(&name), Answer::Data(data), ledger)
    }

    fn close(&self, event: &Event, outline: &mut Outline) {
        let EventKind::ExternalEvent { name, .. } = &event.kind else { return };
        outline.signals.accept(name);
    }

    fn dropped(&self, place: Place, ledger: &mut Ledger) -> Option<Waker> {
        ledger.signals.cancel(place.recorded?);
        None
    }

    fn cancellation(&self) -> Option<Cancellation> {
        Some(Cancellation {
            label: "external waits",
            event: |reason| EventKind::ExternalSubscribedCancelled { reason },
        })
    }

    fn cancel(&self, event: &Event, outline: &mut Outline) {
        if let Some(wait) = event.source_event_id {
            outline.signals.cancel(wait);
        }
    }

    fn cancelled_at(&self) -> CancelledAt {
        CancelledAt::BeforeEnd
    }

    fn unanswered(&self, outline: &Outline) -> Vec<u64> {
        outline.signals.unanswered()
    }

    fn explain(&self, event: &Event, _instance: &str, outline: &Outline) -> Option<OpenKind> {
        let EventKind::ExternalSubscribed { name } = &event.kind else { return None };
        outline.signals.is_open(event.event_id).then(|| OpenKind::Event { name: name.clone() })
    }
}

/// The open waits of an execution.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// By name, then in the order in which history recorded them.
    open: BTreeMap<String, BTreeSet<u64>>,
    /// The name that each open wait is for.
    names: BTreeMap<u64, String>,
}

impl Signals {
    /// Returns how many waits for a signal are open, over all names.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn open(&mut self, name: &str, wait: u64) {
        self.names.insert(wait, name.to_owned());
        match self.open.get_mut(name) {
            Some(waits) => _ = waits.insert(wait),
            None => _ = self.open.insert(name.to_owned(), [wait].into()),
        }
    }

    /// Accepts a raise: the oldest open wait takes it, if there is one.
    pub(crate) fn accept(&mut self, name: &str) -> Option<u64> {
        let wait = *self.open.get(name)?.first()?;
        self.cancel(wait);
        Some(wait)
    }

    pub(crate) fn is_awaited(&self, name: &str) -> bool {
        self.open.contains_key(name)
    }

    pub(crate) fn is_open(&self, wait: u64) -> bool {
        self.names.contains_key(&wait)
    }

    /// Forgets a wait, whether it is open or not.
    pub(crate) fn cancel(&mut self, wait: u64) {
        let Some(name) = self.names.remove(&wait) else { return };
        if let Some(waits) = self.open.get_mut(&name) {
            waits.remove(&wait);
            if waits.is_empty() {
                self.open.remove(&name);
            }
        }
    }

    /// All open waits, oldest first.
    pub(crate) fn unanswered(&self) -> Vec<u64> {
        self.names.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_open_wait_takes_a_raise() {
        let mut signals = Signals::default();
        signals.open("go", 2);
        signals.open("go", 5);
        assert_eq!(signals.accept("go"), Some(2));
        assert_eq!(signals.accept("go"), Some(5));
        assert_eq!(signals.accept("go"), None);
    }

    #[test]
    fn a_raise_without_an_open_wait_is_not_accepted() {
        assert_eq!(Signals::default().accept("go"), None);
    }

    #[test]
    fn a_cancelled_wait_takes_nothing() {
        let mut signals = Signals::default();
        signals.open("go", 2);
        signals.open("go", 5);
        signals.cancel(2);
        assert_eq!(signals.accept("go"), Some(5));
    }
}
