//! Plays the new events to the code, and makes events of the calls that the code makes.

use std::collections::BTreeSet;

use super::drive::never_settles;
use super::execution::Due;
use super::ledger::Call;
use super::{AnsweredChild, Execution, Identity, Notice, SessionChange};
use crate::limits::MAX_DECISION_POLLS;
use crate::operation::continue_as_new::Continuation;
use crate::operation::{Effect, Kind, Role, session};
use crate::{Event, EventKind, WorkItem};

/// A turn that is being decided.
pub(crate) struct Draft {
    pub(super) now_ms: u64,
    pub(super) events: Vec<Event>,
    /// How many of `events` were made from messages, before the code ran. They come first.
    pub(super) arrived: usize,
    /// Was the execution stuck already before this turn: its code waited, and no message could answer it?
    pub(super) was_stuck: bool,
    /// The id of the first event of this turn.
    pub(crate) first_event_id: u64,
    next_event_id: u64,
    /// The work and the messages that this turn sends, in the order in which it decided them.
    pub(super) effects: Vec<DraftEffect>,
    pub(super) continuation: Option<Continuation>,
    /// The ids of the events that scheduled the activities to withdraw.
    pub(crate) withdrawn: BTreeSet<u64>,
    /// The messages of the timers that the code does not await any more.
    pub(crate) dropped_timers: Vec<WorkItem>,
    pub(super) sessions: Vec<SessionChange>,
    pub(super) notices: Vec<Notice>,
    pub(super) answered: Vec<AnsweredChild>,
}

/// An effect, and whether it takes place although the execution ends in the same turn.
pub(super) struct DraftEffect {
    pub(super) effect: Effect,
    pub(super) is_sent_at_end: bool,
}

impl Draft {
    pub(super) fn new(now_ms: u64, first_event_id: u64) -> Self {
        Self {
            now_ms,
            events: Vec::new(),
            arrived: 0,
            was_stuck: false,
            first_event_id,
            next_event_id: first_event_id,
            effects: Vec::new(),
            continuation: None,
            withdrawn: BTreeSet::new(),
            dropped_timers: Vec::new(),
            sessions: Vec::new(),
            notices: Vec::new(),
            answered: Vec::new(),
        }
    }

    /// Adds an effect. A session change takes effect even if the execution ends in this turn, whatever
    /// `is_sent_at_end` says.
    pub(crate) fn push_effect(&mut self, effect: Effect, is_sent_at_end: bool) {
        match effect {
            Effect::Session(change) => self.sessions.push(change),
            Effect::Work(_) | Effect::Message(_) => self.effects.push(DraftEffect { effect, is_sent_at_end }),
        }
    }

    fn take_id(&mut self) -> u64 {
        let id = self.next_event_id;
        self.next_event_id = id.saturating_add(1);
        id
    }

    /// Makes the next event follow `last_event_id`. This frees the id that a continue-as-new took, unless a
    /// later event was recorded.
    pub(super) fn go_on_after(&mut self, last_event_id: u64) {
        self.next_event_id = last_event_id.saturating_add(1);
    }

    /// Makes the next event of this turn; the caller records it.
    pub(super) fn event(&mut self, identity: &Identity, source: Option<u64>, kind: EventKind) -> Event {
        let id = self.take_id();
        Event::at(self.now_ms, id, identity.instance.clone(), identity.execution_id, source, kind)
    }
}

impl Execution {
    pub(super) fn decide(&mut self, draft: &mut Draft) {
        self.play_arrivals(draft);
        self.record_calls(draft);
    }

    /// Plays each event that was made from a message. If an event asks for a poll, the poll comes before the
    /// next event.
    fn play_arrivals(&mut self, draft: &mut Draft) {
        let due = Due { now_ms: draft.now_ms, replaying: false };
        for index in 0..draft.arrived {
            let Some(event) = draft.events.get(index).cloned() else { return };
            self.effort.events_visited += 1;
            self.poll_before(&event);
            if let Role::Answers(kind) = event.kind.role() {
                draft.notices.extend(kind.rules().notice(&event, &self.scope.lock()));
            }
            if let Err(mismatch) = self.play_arrival(event, due) {
                self.part(mismatch);
            }
        }
    }

    /// Records the calls of the code until no call is left. A call becomes an event, the event is played like
    /// a recorded one, and if the event asks for a poll, that poll comes before the next call.
    fn record_calls(&mut self, draft: &mut Draft) {
        for _ in 0..MAX_DECISION_POLLS {
            self.poll_due();
            while self.failure.is_none() && (self.due.is_none() || self.output.is_some()) {
                let call = self.scope.lock().next_call();
                match call {
                    Some(call) => self.record_call(call, draft),
                    None => return,
                }
            }
            if self.failure.is_some() {
                return;
            }
        }
        self.failure = Some(never_settles(MAX_DECISION_POLLS));
    }

    fn record_call(&mut self, call: Call, draft: &mut Draft) {
        let Call { token, action, terms, .. } = call;
        let kind = action.kind();
        if let Err(refused) = kind.rules().refuse(&action, draft.next_event_id, &self.site()) {
            self.failure = Some(refused);
            return;
        }
        // Continue-as-new takes an id too, which stays a gap when something is recorded after it.
        let event_id = draft.take_id();
        let Some(record) = kind.rules().record(&action, event_id, &self.identity) else {
            draft.continuation = draft.continuation.take().or_else(|| Continuation::of(action));
            return;
        };
        let Identity { instance, execution_id, .. } = &self.identity;
        let mut event = Event::at(draft.now_ms, event_id, instance.clone(), *execution_id, None, record.kind);
        event.child_version = record.child_version;
        event.call = terms;
        let orphans = self.orphans_of(&event, Role::Records(kind));
        let is_running = |orphan: &u64| !self.outline.is_cancel_requested(*orphan);
        let running: Vec<u64> = orphans.iter().copied().filter(is_running).collect();
        self.outline.play(&event, &self.identity);
        self.play_call(&event, kind, token, &orphans, Due { now_ms: draft.now_ms, replaying: false });
        if let Some(effect) = kind.rules().send(action, &event, &self.site()) {
            draft.push_effect(effect, kind.rules().is_sent_at_end());
        }
        draft.events.push(event);
        for orphan in running {
            self.record_cancellation(Kind::Activity, orphan, session::CLOSED, draft);
            let mut ledger = self.scope.lock();
            let dropped = ledger.dropped(Kind::Activity);
            dropped.unreported.remove(&orphan);
            dropped.marked.insert(orphan);
        }
    }

    /// Records that the operation of schedule `id` is cancelled, and stops it.
    pub(super) fn record_cancellation(&mut self, kind: Kind, id: u64, reason: &str, draft: &mut Draft) {
        let Some(cancellation) = kind.rules().cancellation() else { return };
        let event = draft.event(&self.identity, Some(id), (cancellation.event)(reason.to_owned()));
        self.outline.play(&event, &self.identity);
        draft.events.push(event);
        kind.rules().stop(id, &self.site(), draft);
    }
}
