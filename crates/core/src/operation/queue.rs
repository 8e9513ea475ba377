//! Queues: messages sent with `enqueue_event` and taken with `dequeue_event`.
//!
//! Messages of a name wait in arrival order; takers of a name stand in line in the order in which history
//! recorded them. The first message is for the first in line, the second for the second, and a taker that
//! has not looked yet keeps its place. A taker that leaves gives its place to the next in line; what was
//! already taken does not move (F18).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::replay::ledger::BYTES_PER_ENTRY;
use crate::{Action, EventKind};

pub(crate) fn event(name: &str) -> EventKind {
    EventKind::QueueSubscribed { name: name.to_owned() }
}

pub(crate) fn matches(action: &Action, recorded: &str) -> bool {
    matches!(action, Action::DequeueEvent { name, .. } if name == recorded)
}

#[derive(Debug, Default)]
pub(crate) struct Queues {
    lines: BTreeMap<String, Line>,
    next_arrival: u64,
}

#[derive(Debug, Default)]
struct Line {
    /// Messages nobody has taken, each with its place among the arrivals of all names.
    unread: VecDeque<(u64, String)>,
    /// Takers with a message in reserve: as many as there are unread messages, unless fewer stand in line.
    served: BTreeSet<u64>,
    /// Takers behind them.
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

    /// A taker joins the line. Returns whether a message is there for it already.
    pub(crate) fn join(&mut self, name: &str, taker: u64) -> bool {
        let line = self.line(name);
        line.waiting.insert(taker);
        line.serve() == Some(taker)
    }

    /// A message arrives. Returns the taker that can read it, if one was waiting.
    pub(crate) fn arrive(&mut self, name: &str, data: String) -> Option<u64> {
        let place = self.next_arrival;
        self.next_arrival += 1;
        let line = self.line(name);
        line.unread.push_back((place, data));
        line.serve()
    }

    pub(crate) fn read(&mut self, name: &str, taker: u64) -> Option<String> {
        let line = self.lines.get_mut(name)?;
        if !line.served.contains(&taker) {
            return None;
        }
        let place = line.served.range(..taker).count();
        line.served.remove(&taker);
        line.unread.remove(place).map(|(_, data)| data)
    }

    /// Forgets a taker that has its message, and returns whether it had one here. One that was served only
    /// because the code dropped an older one stays until history says so: which takers are unanswered follows
    /// from history alone.
    pub(crate) fn consume(&mut self, name: &str, taker: u64) -> bool {
        let Some(line) = self.lines.get_mut(name) else { return false };
        let served = line.served.remove(&taker);
        if served {
            line.unread.pop_front();
        }
        served
    }

    /// A taker leaves the line. Returns the taker that gets a message because of it.
    pub(crate) fn cancel(&mut self, name: &str, taker: u64) -> Option<u64> {
        let line = self.lines.get_mut(name)?;
        line.waiting.remove(&taker);
        if line.served.remove(&taker) { line.serve() } else { None }
    }

    /// Every message that no taker has read, in the order of arrival over all names.
    pub(crate) fn unread(&mut self) -> Vec<(String, String)> {
        let mut all: Vec<(u64, String, String)> = Vec::new();
        for (name, line) in &mut self.lines {
            all.extend(line.unread.drain(..).map(|(place, data)| (place, name.clone(), data)));
        }
        all.sort_unstable_by_key(|(place, ..)| *place);
        all.into_iter().map(|(_, name, data)| (name, data)).collect()
    }

    /// Takers that no message is there for, oldest first.
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
            queues.arrive("q", (*message).to_owned());
        }
        queues
    }

    #[test]
    fn a_held_dequeue_keeps_its_place() {
        let mut queues = queue_with(&[1, 2], &["a", "b"]);
        assert_eq!(queues.read("q", 2).as_deref(), Some("b"));
        assert_eq!(queues.read("q", 1).as_deref(), Some("a"));
    }

    #[test]
    fn a_dropped_dequeue_gives_its_place_to_the_next() {
        let mut queues = queue_with(&[1, 2], &["a"]);
        assert_eq!(queues.cancel("q", 1), Some(2));
        assert_eq!(queues.read("q", 2).as_deref(), Some("a"));
    }

    #[test]
    fn an_answer_once_given_does_not_move() {
        let mut queues = queue_with(&[1, 2], &["a", "b"]);
        assert_eq!(queues.read("q", 2).as_deref(), Some("b"));
        queues.cancel("q", 1);
        assert!(queues.join("q", 3));
        assert_eq!(queues.read("q", 3).as_deref(), Some("a"));
    }

    #[test]
    fn unread_messages_come_in_order_of_arrival_over_all_names() {
        let mut queues = Queues::default();
        queues.arrive("b", "1".into());
        queues.arrive("a", "2".into());
        queues.arrive("b", "3".into());
        let unread: Vec<_> = queues.unread().into_iter().map(|(_, data)| data).collect();
        assert_eq!(unread, ["1", "2", "3"]);
    }
}
