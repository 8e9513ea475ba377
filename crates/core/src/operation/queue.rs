//! Queues: messages sent with `enqueue_event` and taken with `dequeue_event`.
//!
//! The messages of a queue wait in the order in which they were delivered; its takers (the dequeues) stand in
//! line in the order in which history recorded them. The first message is for the first taker, the second for
//! the second, and a taker that was not polled yet keeps its place. A taker that is cancelled passes its
//! place to the next in line; a message that was read does not move (F18).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::task::Waker;

use super::bounds::check_name;
use super::{Cancellation, CancelledAt, Operation, Record, Recorded, Site};
use crate::replay::Identity;
use crate::replay::admit::Judgement;
use crate::replay::ledger::{Answer, BYTES_PER_ENTRY, Ledger, Place};
use crate::replay::outline::Outline;
use crate::replay::play::Next;
use crate::{Action, ErrorDetails, Event, EventKind, OpenKind, WorkItem};

pub(crate) struct QueueRules;

impl Operation for QueueRules {
    fn label(&self) -> &'static str {
        "QueueDequeue"
    }

    fn refuse(&self, action: &Action, _event_id: u64, _site: &Site<'_>) -> Result<(), ErrorDetails> {
        let Action::DequeueEvent { name, .. } = action else { return Ok(()) };
        check_name("queue name", name)
    }

    fn record(&self, action: &Action, _event_id: u64, _identity: &Identity) -> Option<Record> {
        let Action::DequeueEvent { name, .. } = action else { return None };
        Some(EventKind::QueueSubscribed { name: name.clone() }.into())
    }

    fn matches(&self, action: &Action, event: &Event) -> bool {
        let EventKind::QueueSubscribed { name } = &event.kind else { return false };
        matches!(action, Action::DequeueEvent { name: queue, .. } if queue == name)
    }

    fn recorded(&self, recorded: &Recorded<'_>, ledger: &mut Ledger) -> Next {
        let EventKind::QueueSubscribed { name } = &recorded.event.kind else { return Next::Go };
        let taker = recorded.event.event_id;
        let is_served = recorded.is_alive && ledger.queues.join(name, taker);
        let waker = if is_served { ledger.waker_of_recorded(taker) } else { None };
        Next::poll(waker)
    }

    fn open(&self, event: &Event, _identity: &Identity, outline: &mut Outline) {
        let EventKind::QueueSubscribed { name } = &event.kind else { return };
        outline.queues.join(name, event.event_id);
    }

    fn admit(&self, message: WorkItem, _site: &Site<'_>) -> Judgement {
        let WorkItem::QueueMessage { name, data, .. } = message else { return Judgement::misaddressed() };
        Judgement::record(EventKind::QueueEventDelivered { name, data })
    }

    fn settle(&self, event: Event, ledger: &mut Ledger) -> Next {
        let EventKind::QueueEventDelivered { name, data } = event.kind else { return Next::Go };
        let taker = ledger.queues.deliver(&name, data);
        Next::poll(taker.and_then(|taker| ledger.waker_of_recorded(taker)))
    }

    /// The outline counts messages and does not keep their contents.
    fn close(&self, event: &Event, outline: &mut Outline) {
        let EventKind::QueueEventDelivered { name, .. } = &event.kind else { return };
        outline.queues.deliver(name, String::new());
    }

    fn pull(&self, place: Place, ledger: &mut Ledger) -> Option<Answer> {
        let taker = place.recorded?;
        let message = ledger.queues.read(taker)?;
        ledger.note_read(taker);
        Some(Answer::Data(message))
    }

    fn dropped(&self, place: Place, ledger: &mut Ledger) -> Option<Waker> {
        let heir = ledger.queues.cancel(place.recorded?)?;
        ledger.waker_of_recorded(heir)
    }

    fn cancellation(&self) -> Option<Cancellation> {
        Some(Cancellation {
            label: "persistent waits",
            event: |reason| EventKind::QueueSubscriptionCancelled { reason },
        })
    }

    fn cancel(&self, event: &Event, outline: &mut Outline) {
        if let Some(taker) = event.source_event_id {
            outline.queues.cancel(taker);
        }
    }

    fn cancelled_at(&self) -> CancelledAt {
        CancelledAt::BeforeEnd
    }

    fn unanswered(&self, outline: &Outline) -> Vec<u64> {
        outline.queues.unanswered()
    }

    fn explain(&self, event: &Event, _instance: &str, outline: &Outline) -> Option<OpenKind> {
        let EventKind::QueueSubscribed { name } = &event.kind else { return None };
        outline.queues.is_waiting(event.event_id).then(|| OpenKind::Queue { name: name.clone() })
    }
}

/// The queues of an execution: their unread messages and their takers.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    lines: BTreeMap<String, Line>,
    /// The name of the queue that each taker waits at.
    names: BTreeMap<u64, String>,
    delivered: u64,
}

#[derive(Debug, Default)]
struct Line {
    /// Messages that no taker has read, each with its place among the messages of all queues.
    unread: VecDeque<(u64, String)>,
    /// Takers with a message in reserve: as many as there are unread messages, unless fewer stand in line.
    served: BTreeSet<u64>,
    /// Takers for which no message is left, behind the served ones.
    waiting: BTreeSet<u64>,
}

impl Queues {
    pub(crate) fn estimated_bytes(&self) -> usize {
        let line = |(name, line): (&String, &Line)| {
            let unread: usize = line.unread.iter().map(|(_, data)| data.len() + BYTES_PER_ENTRY).sum();
            name.len() + unread + (line.served.len() + line.waiting.len()) * BYTES_PER_ENTRY
        };
        self.lines.iter().map(line).sum()
    }

    /// Counts the takers of all queues, served and waiting.
    pub(crate) fn takers(&self) -> usize {
        self.names.len()
    }

    /// Adds a taker to the line of its queue. Returns whether a message is there for it already.
    pub(crate) fn join(&mut self, name: &str, taker: u64) -> bool {
        self.names.insert(taker, name.to_owned());
        let line = self.line(name);
        line.waiting.insert(taker);
        line.serve() == Some(taker)
    }

    /// Adds a message. Returns the taker that can read it, if one was waiting.
    pub(crate) fn deliver(&mut self, name: &str, data: String) -> Option<u64> {
        let place = self.delivered;
        self.delivered += 1;
        let line = self.line(name);
        line.unread.push_back((place, data));
        line.serve()
    }

    /// Takes out the message that `taker` has in reserve.
    pub(crate) fn read(&mut self, taker: u64) -> Option<String> {
        let line = self.lines.get_mut(self.names.get(&taker)?)?;
        if !line.served.contains(&taker) {
            return None;
        }
        let place = line.served.range(..taker).count();
        line.served.remove(&taker);
        self.names.remove(&taker);
        line.unread.remove(place).map(|(_, data)| data)
    }

    /// Removes a taker whose message the code has read. A taker without a message in reserve stays: the code
    /// read through it because it dropped an older taker, and history does not record that yet. Which takers
    /// are unanswered must follow from history alone.
    pub(crate) fn consume(&mut self, taker: u64) {
        let Some(line) = self.names.get(&taker).and_then(|name| self.lines.get_mut(name)) else { return };
        if line.served.remove(&taker) {
            line.unread.pop_front();
            self.names.remove(&taker);
        }
    }

    /// Removes a taker. Returns the taker that now gets the message that the removed one had in reserve.
    pub(crate) fn cancel(&mut self, taker: u64) -> Option<u64> {
        let line = self.lines.get_mut(&self.names.remove(&taker)?)?;
        line.waiting.remove(&taker);
        if line.served.remove(&taker) { line.serve() } else { None }
    }

    /// Takes out every message that no taker has read, in the order of delivery over all queues.
    pub(crate) fn take_unread(&mut self) -> Vec<(String, String)> {
        let mut all: Vec<(u64, String, String)> = Vec::new();
        for (name, line) in &mut self.lines {
            all.extend(line.unread.drain(..).map(|(place, data)| (place, name.clone(), data)));
        }
        all.sort_unstable_by_key(|(place, ..)| *place);
        all.into_iter().map(|(_, name, data)| (name, data)).collect()
    }

    /// Does the taker still wait, with no message in reserve?
    pub(crate) fn is_waiting(&self, taker: u64) -> bool {
        let line = self.names.get(&taker).and_then(|name| self.lines.get(name));
        line.is_some_and(|line| line.waiting.contains(&taker))
    }

    /// The takers without a message in reserve, oldest first.
    pub(crate) fn unanswered(&self) -> Vec<u64> {
        let mut takers: Vec<u64> = self.lines.values().flat_map(|line| &line.waiting).copied().collect();
        takers.sort_unstable();
        takers
    }

    fn line(&mut self, name: &str) -> &mut Line {
        self.lines.entry(name.to_owned()).or_default()
    }
}

impl Line {
    fn serve(&mut self) -> Option<u64> {
        if self.unread.len() <= self.served.len() {
            return None;
        }
        let taker = self.waiting.pop_first()?;
        self.served.insert(taker);
        Some(taker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue_with(takers: &[u64], messages: &[&str]) -> Queues {
        let mut queues = Queues::default();
        for taker in takers {
            queues.join("q", *taker);
        }
        for message in messages {
            queues.deliver("q", (*message).to_owned());
        }
        queues
    }

    #[test]
    fn a_held_dequeue_keeps_its_place() {
        let mut queues = queue_with(&[1, 2], &["a", "b"]);
        assert_eq!(queues.read(2).as_deref(), Some("b"));
        assert_eq!(queues.read(1).as_deref(), Some("a"));
    }

    #[test]
    fn a_dropped_dequeue_gives_its_place_to_the_next() {
        let mut queues = queue_with(&[1, 2], &["a"]);
        assert_eq!(queues.cancel(1), Some(2));
        assert_eq!(queues.read(2).as_deref(), Some("a"));
    }

    #[test]
    fn an_answer_once_given_does_not_move() {
        let mut queues = queue_with(&[1, 2], &["a", "b"]);
        assert_eq!(queues.read(2).as_deref(), Some("b"));
        queues.cancel(1);
        assert!(queues.join("q", 3));
        assert_eq!(queues.read(3).as_deref(), Some("a"));
    }

    #[test]
    fn unread_messages_come_in_order_of_delivery_over_all_names() {
        let mut queues = Queues::default();
        queues.deliver("b", "1".into());
        queues.deliver("a", "2".into());
        queues.deliver("b", "3".into());
        let unread: Vec<_> = queues.take_unread().into_iter().map(|(_, data)| data).collect();
        assert_eq!(unread, ["1", "2", "3"]);
    }
}
