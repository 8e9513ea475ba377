//! Runs the code over what arrived, and makes events of what it asks for.

use std::collections::BTreeSet;

use super::drive::never_settles;
use super::execution::Due;
use super::play::Next;
use super::{AnsweredChild, Execution, Identity, Notice, SessionChange};
use crate::limits::MAX_DECISION_POLLS;
use crate::operation::{self, activity};
use crate::replay::ledger::{Call, DropGroup};
use crate::{Action, Event, EventKind, SessionKey};

/// A turn that is being decided.
pub(super) struct Draft {
    pub(super) now_ms: u64,
    pub(super) events: Vec<Event>,
    /// How many of the events were made of arrivals, before the code ran.
    pub(super) arrived: usize,
    /// Did the code wait for nothing that could answer it before this turn?
    pub(super) was_stuck: bool,
    /// The first id that belongs to this turn.
    pub(super) first_event_id: u64,
    next_event_id: u64,
    /// What the code asked for in this turn, each with the event that records it.
    pub(super) asked: Vec<Asked>,
    pub(super) continue_as_new: Option<(String, Option<String>)>,
    /// Activities to withdraw.
    pub(super) cancelled: BTreeSet<u64>,
    pub(super) sessions: Vec<SessionChange>,
    pub(super) notices: Vec<Notice>,
    pub(super) answered: Vec<AnsweredChild>,
}

/// A recorded call, and the session that it means at that point of history.
pub(super) struct Asked {
    pub(super) action: Action,
    pub(super) session: Option<SessionKey>,
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
            asked: Vec::new(),
            continue_as_new: None,
            cancelled: BTreeSet::new(),
            sessions: Vec::new(),
            notices: Vec::new(),
            answered: Vec::new(),
        }
    }

    fn take_id(&mut self) -> u64 {
        let id = self.next_event_id;
        self.next_event_id = id.saturating_add(1);
        id
    }

    /// Gives back an id that was taken for a continue-as-new when nothing was recorded after it.
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
        self.consume_arrivals(draft);
        self.record_calls(draft);
    }

    /// Gives each arrival to the code, with a poll before the next one.
    fn consume_arrivals(&mut self, draft: &mut Draft) {
        let due = Due { now_ms: draft.now_ms, replaying: false };
        for index in 0..draft.arrived {
            let Some(event) = draft.events.get(index).cloned() else { return };
            self.effort.events_visited += 1;
            if !matches!(event.kind, EventKind::SessionsCarried { .. }) {
                self.poll_due();
            }
            draft.notices.extend(self.early_event(&event));
            match self.apply(event) {
                Ok(Next::Poll) => self.due = Some(due),
                Ok(Next::Go) => {}
                Err(mismatch) => self.part(mismatch),
            }
        }
    }

    /// Records what the code asks for until it asks for nothing more. A call becomes an event, the event is
    /// treated like a recorded one, and if it asks for a poll, that poll comes before the next call.
    fn record_calls(&mut self, draft: &mut Draft) {
        for _ in 0..MAX_DECISION_POLLS {
            self.poll_due();
            while self.failure.is_none() && (self.due.is_none() || self.output.is_some()) {
                let call = self.shared.lock().next_call();
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
        let Call { token, mut action, .. } = call;
        if let Err(refused) = self.refuse(&action, draft.next_event_id) {
            self.failure = Some(refused);
            return;
        }
        // Continue-as-new takes an id too, which stays a gap when something is recorded after it.
        let event_id = draft.take_id();
        operation::set_scheduling_event(&mut action, event_id);
        let Some(kind) = operation::event_of(&action, &self.identity, event_id) else {
            if let Action::ContinueAsNew { input, version } = action {
                draft.continue_as_new.get_or_insert((input, version));
            }
            return;
        };
        let Identity { instance, execution_id, .. } = &self.identity;
        let mut event = Event::at(draft.now_ms, event_id, instance.clone(), *execution_id, None, kind);
        event.child_version = operation::requested_version(&action);
        let orphans = self.orphans_of(&event);
        let asked_to_stop: BTreeSet<u64> =
            orphans.iter().copied().filter(|orphan| self.outline.is_cancel_requested(*orphan)).collect();
        self.outline.observe(&event, &self.identity);
        if self.bind(&event, token, &orphans) == Next::Poll {
            self.due = Some(Due { now_ms: draft.now_ms, replaying: false });
        }
        draft.sessions.extend(session_change(&event.kind));
        draft.events.push(event);
        let session = session_of(&action).map(|id| self.outline.sessions.key(&self.identity.instance, id));
        draft.asked.push(Asked { action, session });
        for orphan in orphans.difference(&asked_to_stop).copied() {
            let kind = EventKind::ActivityCancelRequested { reason: activity::CANCELLED_BY_CLOSE.to_owned() };
            let event = draft.event(&self.identity, Some(orphan), kind);
            self.outline.observe(&event, &self.identity);
            draft.events.push(event);
            draft.cancelled.insert(orphan);
            let mut ledger = self.shared.lock();
            let dropped = ledger.dropped(DropGroup::Activities);
            dropped.unreported.remove(&orphan);
            dropped.marked.insert(orphan);
        }
    }
}

fn session_of(action: &Action) -> Option<&str> {
    match action {
        Action::CallActivity { session_id, .. } => session_id.as_deref(),
        _ => None,
    }
}

fn session_change(kind: &EventKind) -> Option<SessionChange> {
    match kind {
        EventKind::SessionOpened { session_id, idle_timeout_ms, concurrency } => Some(SessionChange::Open {
            session_id: session_id.clone(),
            idle_timeout_ms: *idle_timeout_ms,
            concurrency: *concurrency,
        }),
        EventKind::SessionClosed { session_id } => {
            Some(SessionChange::Close { session_id: session_id.clone() })
        }
        _ => None,
    }
}
