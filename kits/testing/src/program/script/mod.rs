//! What arrives, and when: a chooser that is a function of its seed and of what the turns asked for.
//!
//! A driver shows every committed turn to the script and asks it for the next batch of messages. Answers
//! come in any order, several at once, late, twice, or as failures; events are raised before, after and
//! without a wait for them. Everything is a plain [`WorkItem`], as a store would hand it out.

mod answer;

use super::{
    api::{ErrorDetails, Event, EventKind, WorkItem},
    ast::names,
    dice::Dice,
    own,
};
use answer::Open;

/// The most batches that one script hands out.
const MAX_BATCHES: u32 = 60;
/// The most arrivals in one batch, a successor's start not counted.
const MAX_ARRIVALS: usize = 4;

/// How often, in a thousand arrivals or answers, something unusual happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chances {
    /// An activity or a child fails instead of completing.
    pub failures: u32,
    /// Such a failure is not the application's, and ends the orchestration.
    pub fatal: u32,
    /// An event or a queue message comes without being asked for.
    pub unsolicited: u32,
    /// A completion comes a second time.
    pub repeats: u32,
    /// The second time it says the contrary, or fails again (F15: the published crate gives up then).
    pub contradictions: u32,
    /// An answer comes for something that was cancelled, or for an earlier execution.
    pub late: u32,
    /// A completion comes that nothing ever asked for.
    pub strays: u32,
    /// The instance is cancelled.
    pub cancels: u32,
}

impl Chances {
    /// Everything that can happen to a healthy store and careless clients.
    pub const ROUGH: Self = Self {
        failures: 250,
        fatal: 20,
        unsolicited: 120,
        repeats: 60,
        contradictions: 300,
        late: 80,
        strays: 3,
        cancels: 10,
    };

    /// What the published crate survives as well.
    pub const PUBLISHED: Self = Self { contradictions: 0, ..Self::ROUGH };
}

/// One committed turn, as the script sees it.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    /// The events it added.
    pub events: &'a [Event],
    /// What it put into the worker queue.
    pub work: &'a [WorkItem],
    /// What it put into the orchestrator queue.
    pub messages: &'a [WorkItem],
    /// The schedule ids of the activities it cancelled.
    pub cancelled: &'a [u64],
}

/// Chooses the arrivals of one instance.
#[derive(Debug)]
pub struct Script {
    dice: Dice,
    chances: Chances,
    instance: String,
    execution: u64,
    /// What is owed an answer.
    open: Vec<Open>,
    /// What is owed none any more, and may get one all the same.
    cancelled: Vec<Open>,
    /// What was delivered and may come again.
    delivered: Vec<WorkItem>,
    /// Waits and dequeues that nothing was raised for yet.
    subscriptions: Vec<Subscription>,
    /// The start of the next execution, which comes in the next batch.
    successor: Option<WorkItem>,
    serial: u64,
    batches: u32,
}

/// A name that the orchestration listens to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Subscription {
    id: u64,
    name: String,
    queue: bool,
}

impl Script {
    /// Starts a script for the instance.
    pub fn new(seed: u64, instance: impl Into<String>, chances: Chances) -> Self {
        Self {
            dice: Dice::new(seed),
            chances,
            instance: instance.into(),
            execution: 1,
            open: Vec::new(),
            cancelled: Vec::new(),
            delivered: Vec::new(),
            subscriptions: Vec::new(),
            successor: None,
            serial: 0,
            batches: 0,
        }
    }

    /// Gives the first batch: the start, and now and then something that came with it.
    pub fn opening(&mut self, orchestration: &str, input: &str) -> Vec<WorkItem> {
        let mut batch = vec![WorkItem::StartOrchestration {
            instance: self.instance.clone(),
            orchestration: orchestration.to_owned(),
            input: input.to_owned(),
            version: None,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: 1,
        }];
        for _ in 0..self.dice.below(3) {
            let company = self.unusual();
            batch.extend(company);
        }
        batch
    }

    /// Takes note of what a turn asked for.
    pub fn observe(&mut self, turn: Turn<'_>) {
        for event in turn.events {
            self.observe_event(event);
        }
        for item in turn.work.iter().chain(turn.messages) {
            self.observe_item(item);
        }
        for id in turn.cancelled {
            self.give_up(|open| open.is_activity(*id));
        }
    }

    /// Chooses the next batch; `None` when nothing is left that could move the orchestration.
    pub fn next_batch(&mut self) -> Option<Vec<WorkItem>> {
        if self.batches == MAX_BATCHES {
            return None;
        }
        self.batches += 1;
        let mut batch = Vec::new();
        for _ in 0..=self.dice.below(MAX_ARRIVALS) {
            let arrival = self.arrival();
            batch.extend(arrival);
        }
        if let Some(successor) = self.successor.take() {
            batch.insert(self.dice.below(batch.len() + 1), successor);
        }
        if batch.is_empty() {
            batch.extend(self.answer().or_else(|| self.signal()));
        }
        (!batch.is_empty()).then_some(batch)
    }

    fn arrival(&mut self) -> Option<WorkItem> {
        let odd = self.unusual();
        if odd.is_some() {
            return odd;
        }
        let listens = !self.subscriptions.is_empty();
        if listens && (self.open.is_empty() || self.dice.chance(300)) { self.signal() } else { self.answer() }
    }

    fn answer(&mut self) -> Option<WorkItem> {
        if self.open.is_empty() {
            return None;
        }
        let open = self.open.swap_remove(self.dice.below(self.open.len()));
        let item = self.settle(&open);
        self.delivered.push(item.clone());
        Some(item)
    }

    fn signal(&mut self) -> Option<WorkItem> {
        if self.subscriptions.is_empty() {
            return None;
        }
        let subscription = self.subscriptions.remove(self.dice.below(self.subscriptions.len()));
        Some(self.raise(subscription.name, subscription.queue))
    }

    /// Draws an arrival that no operation waits for, if chance has it.
    fn unusual(&mut self) -> Option<WorkItem> {
        let Chances { unsolicited, repeats, late, strays, cancels, .. } = self.chances;
        if self.dice.chance(cancels) {
            Some(self.cancel())
        } else if self.dice.chance(strays) {
            Some(self.stray())
        } else if self.dice.chance(late) {
            self.late()
        } else if self.dice.chance(repeats) {
            self.repeat()
        } else if self.dice.chance(unsolicited) {
            Some(self.uninvited())
        } else {
            None
        }
    }

    fn uninvited(&mut self) -> WorkItem {
        let queue = self.dice.chance(500);
        let names = if queue { names::QUEUES } else { names::EVENTS };
        let name = self.dice.pick(names).copied().unwrap_or_default();
        self.raise(name.to_owned(), queue)
    }

    fn raise(&mut self, name: String, queue: bool) -> WorkItem {
        let (instance, data) = (self.instance.clone(), self.text("d"));
        if queue {
            WorkItem::QueueMessage { instance, name, data }
        } else {
            WorkItem::ExternalRaised { instance, name, data }
        }
    }

    fn cancel(&mut self) -> WorkItem {
        WorkItem::CancelInstance { instance: self.instance.clone(), reason: self.text("c") }
    }

    fn late(&mut self) -> Option<WorkItem> {
        if self.cancelled.is_empty() {
            return None;
        }
        let open = self.cancelled.swap_remove(self.dice.below(self.cancelled.len()));
        let item = self.settle(&open);
        self.delivered.push(item.clone());
        Some(item)
    }

    /// A text of its own, of odd or even length.
    fn text(&mut self, prefix: &str) -> String {
        self.serial += 1;
        let tail = if self.dice.chance(500) { "x" } else { "" };
        format!("{prefix}{}{tail}", self.serial)
    }
}

/// What the turns tell.
impl Script {
    fn observe_event(&mut self, event: &Event) {
        self.execution = event.execution_id;
        match &event.kind {
            EventKind::ExternalSubscribed { name } => self.subscribe(event.event_id, name, false),
            EventKind::QueueSubscribed { name } => self.subscribe(event.event_id, name, true),
            EventKind::ExternalSubscribedCancelled { .. } | EventKind::QueueSubscriptionCancelled { .. } => {
                self.subscriptions.retain(|known| Some(known.id) != event.source_event_id);
            }
            EventKind::OrchestrationContinuedAsNew { .. } => self.subscriptions.clear(),
            _ => {}
        }
    }

    fn subscribe(&mut self, id: u64, name: &str, queue: bool) {
        self.subscriptions.push(Subscription { id, name: name.to_owned(), queue });
    }

    fn observe_item(&mut self, item: &WorkItem) {
        if own::is_successor(item) {
            self.successor = Some(item.clone());
        } else if let WorkItem::CancelInstance { instance, .. } = item {
            self.give_up(|open| open.is_child(instance));
        } else if let Some(open) = Open::asked_by(item) {
            self.open.push(open);
        }
    }

    fn give_up(&mut self, is_meant: impl Fn(&Open) -> bool) {
        let (given_up, open) = std::mem::take(&mut self.open).into_iter().partition(is_meant);
        self.open = open;
        self.cancelled.extend::<Vec<_>>(given_up);
    }

    fn failure(&mut self) -> ErrorDetails {
        let fatal = self.dice.chance(self.chances.fatal);
        answer::failure(self.text("e"), fatal.then(|| self.dice.below(3)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity() -> WorkItem {
        WorkItem::ActivityExecute {
            instance: "me".to_owned(),
            execution_id: 1,
            id: 2,
            name: "a".to_owned(),
            input: String::new(),
            session_id: None,
            tag: None,
        }
    }

    /// A turn that schedules one activity, and the batches that follow it.
    fn batches(seed: u64, chances: Chances) -> Vec<Vec<WorkItem>> {
        let mut script = Script::new(seed, "me", chances);
        let mut batches = vec![script.opening("Program", "in")];
        script.observe(Turn { events: &[], work: &[activity()], messages: &[], cancelled: &[] });
        batches.extend(std::iter::from_fn(|| script.next_batch()));
        batches
    }

    #[test]
    fn the_arrivals_are_a_function_of_the_seed() {
        assert_eq!(batches(5, Chances::ROUGH), batches(5, Chances::ROUGH));
        assert!((6..26).any(|seed| batches(seed, Chances::ROUGH) != batches(5, Chances::ROUGH)));
    }

    #[test]
    fn what_was_asked_for_is_answered_once_when_nothing_goes_wrong() {
        let calm = Chances {
            failures: 0,
            fatal: 0,
            unsolicited: 0,
            repeats: 0,
            contradictions: 0,
            late: 0,
            strays: 0,
            cancels: 0,
        };
        for seed in 0..50 {
            let batches = batches(seed, calm);
            assert_eq!(batches.len(), 2, "{batches:?}");
            assert!(matches!(batches[1].as_slice(), [WorkItem::ActivityCompleted { id: 2, .. }]));
        }
    }

    #[test]
    fn a_cancelled_activity_is_answered_late_or_never() {
        for seed in 0..50 {
            let mut script = Script::new(seed, "me", Chances { late: 1000, ..Chances::ROUGH });
            script.observe(Turn { events: &[], work: &[activity()], messages: &[], cancelled: &[2] });
            let answers = std::iter::from_fn(|| script.next_batch())
                .flatten()
                .filter(|item| {
                    matches!(
                        item,
                        WorkItem::ActivityCompleted { id: 2, .. } | WorkItem::ActivityFailed { id: 2, .. }
                    )
                })
                .count();
            assert!(answers <= 1, "seed {seed}");
        }
    }
}
