//! What holds of every history and every turn, whatever the program does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use steadfast_core::{
    Event, EventKind, WorkItem, build_child_instance_id,
    replay::{Effects, SessionChange, Turn, Verdict},
};
use steadfast_testing::program::{
    generate::{self, Palette},
    journal::Call,
    script::Chances,
};

use crate::{
    chapter::{Chapter, Story, chapters},
    feed::{INSTANCE, cases},
};

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn every_history_is_well_formed_and_every_end_closes_what_is_open(
        program in generate::program(Palette::FULL), seed in any::<u64>().no_shrink(),
    ) {
        for chapter in chapters(&Arc::new(program), seed, Chances::ROUGH)? {
            let history = chapter.history(chapter.turns.len());
            check(&chapter, &history)
                .map_err(|error| TestCaseError::fail(format!("{error}\n{}", Story(&history))))?;
        }
    }
}

fn check(chapter: &Chapter, history: &[Event]) -> Result<(), TestCaseError> {
    ids_rise(chapter, history)?;
    one_end(history)?;
    one_answer_each(history)?;
    let mut open = Open::default();
    for turn in &chapter.turns {
        open.observe(&turn.events);
        what_is_recorded_is_sent(turn)?;
        no_cancel_without_start(&mut open, &turn.effects)?;
        the_parent_is_told(turn, open.has_parent)?;
        if turn.verdict.is_terminal() {
            open.is_closed(turn)?;
        }
    }
    Ok(())
}

/// Ids rise from 1 by one; only a call of continue-as-new leaves a gap.
fn ids_rise(chapter: &Chapter, history: &[Event]) -> Result<(), TestCaseError> {
    let mut gaps = 0;
    for (place, event) in (1..).zip(history) {
        prop_assert!(event.event_id >= place + gaps, "id {} comes again", event.event_id);
        gaps = event.event_id - place;
    }
    let continues = chapter.calls.iter().filter(|call| matches!(call, Call::ContinueAsNew { .. })).count();
    prop_assert!(gaps <= continues as u64, "{gaps} gaps after {continues} calls of continue-as-new");
    Ok(())
}

/// At most one terminal event, and after it only requests to stop activities (I9).
fn one_end(history: &[Event]) -> Result<(), TestCaseError> {
    let mut events = history.iter().skip_while(|event| !event.is_terminal());
    events.next();
    let after = events.find(|event| !matches!(event.kind, EventKind::ActivityCancelRequested { .. }));
    prop_assert!(after.is_none(), "after the end: {after:?}");
    Ok(())
}

/// A schedule is answered at most once, and only by its own kind (I6).
fn one_answer_each(history: &[Event]) -> Result<(), TestCaseError> {
    let mut unanswered = BTreeMap::new();
    for event in history {
        if let Some(family) = scheduled_family(&event.kind) {
            unanswered.insert(event.event_id, family);
        } else if let Some(family) = answered_family(&event.kind) {
            let asked = event.source_event_id.and_then(|source| unanswered.remove(&source));
            prop_assert_eq!(asked, Some(family), "event {}", event.event_id);
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Activity,
    Timer,
    Child,
}

pub(crate) fn scheduled_family(kind: &EventKind) -> Option<Family> {
    match kind {
        EventKind::ActivityScheduled { .. } => Some(Family::Activity),
        EventKind::TimerCreated { .. } => Some(Family::Timer),
        EventKind::SubOrchestrationScheduled { .. } => Some(Family::Child),
        _ => None,
    }
}

pub(crate) fn answered_family(kind: &EventKind) -> Option<Family> {
    match kind {
        EventKind::ActivityCompleted { .. } | EventKind::ActivityFailed { .. } => Some(Family::Activity),
        EventKind::TimerFired { .. } => Some(Family::Timer),
        EventKind::SubOrchestrationCompleted { .. } | EventKind::SubOrchestrationFailed { .. } => {
            Some(Family::Child)
        }
        _ => None,
    }
}

/// A turn that goes on sends all it records; one that ends sends the detached starts (F25) and nothing else.
fn what_is_recorded_is_sent(turn: &Turn) -> Result<(), TestCaseError> {
    let goes_on = !turn.verdict.is_terminal();
    let (mut recorded, mut activities) = (Vec::new(), Vec::new());
    for event in &turn.events {
        match &event.kind {
            EventKind::OrchestrationChained { instance, .. } => {
                recorded.push(("start", instance.clone(), None));
            }
            EventKind::SubOrchestrationScheduled { instance, .. } if goes_on => {
                let instance = build_child_instance_id(INSTANCE, instance);
                recorded.push(("start", instance, Some(event.event_id)));
            }
            EventKind::TimerCreated { .. } if goes_on => {
                recorded.push(("timer", INSTANCE.to_owned(), Some(event.event_id)));
            }
            EventKind::ActivityScheduled { .. } if goes_on => activities.push(event.event_id),
            _ => {}
        }
    }
    let sent: Vec<_> = turn.effects.messages.iter().filter_map(asks).collect();
    prop_assert_eq!(sent, recorded, "starts and timers");
    let queued = turn.effects.work.iter().filter_map(|queued| match queued.item {
        WorkItem::ActivityExecute { id, .. } => Some(id),
        _ => None,
    });
    prop_assert_eq!(queued.collect::<Vec<_>>(), activities, "activities");
    Ok(())
}

fn asks(message: &WorkItem) -> Option<(&'static str, String, Option<u64>)> {
    match message {
        WorkItem::StartOrchestration { instance, parent_id, .. } => {
            Some(("start", instance.clone(), *parent_id))
        }
        WorkItem::TimerFired { instance, id, .. } => Some(("timer", instance.clone(), Some(*id))),
        _ => None,
    }
}

/// A child is cancelled at most as often as it was started (F2).
fn no_cancel_without_start(open: &mut Open, effects: &Effects) -> Result<(), TestCaseError> {
    for message in &effects.messages {
        match message {
            WorkItem::StartOrchestration { instance, parent_id: Some(_), .. } => {
                *open.started.entry(instance.clone()).or_default() += 1;
            }
            WorkItem::CancelInstance { instance, .. } => {
                let started = open.started.get_mut(instance).filter(|starts| **starts > 0);
                prop_assert!(started.is_some(), "{instance} is cancelled and was not started");
                started.into_iter().for_each(|starts| *starts -= 1);
            }
            _ => {}
        }
    }
    Ok(())
}

/// The end of an instance is told to its parent, if it has one, and nothing else is (F6).
fn the_parent_is_told(turn: &Turn, has_parent: bool) -> Result<(), TestCaseError> {
    let expected = match &turn.verdict {
        Verdict::Completed { output } => Some(Ok(output.clone())),
        Verdict::Failed { details } => Some(Err(details.clone())),
        Verdict::Waiting { .. } | Verdict::ContinuedAsNew { .. } | Verdict::Ended => None,
    };
    let told = turn.effects.parent.as_ref().map(|notice| notice.outcome.clone());
    prop_assert_eq!(told, expected.filter(|_| has_parent));
    Ok(())
}

/// What history leaves open, by its own account.
#[derive(Default)]
struct Open {
    has_parent: bool,
    activities: BTreeSet<u64>,
    /// Children by schedule, until they answer or are asked to stop.
    children: BTreeMap<u64, String>,
    /// How often a child was started and not yet cancelled.
    started: BTreeMap<String, u32>,
    sessions: BTreeSet<String>,
}

impl Open {
    fn observe(&mut self, events: &[Event]) {
        for event in events {
            let (id, source) = (event.event_id, event.source_event_id.unwrap_or(0));
            match &event.kind {
                EventKind::OrchestrationStarted { parent_instance, .. } => {
                    self.has_parent = parent_instance.is_some();
                }
                EventKind::SessionsCarried { sessions } => {
                    self.sessions.extend(sessions.iter().map(|session| session.session_id.clone()));
                }
                EventKind::SessionOpened { session_id, .. } => {
                    self.sessions.insert(session_id.clone());
                }
                EventKind::SessionClosed { session_id } => {
                    self.sessions.remove(session_id);
                }
                EventKind::ActivityScheduled { .. } => {
                    self.activities.insert(id);
                }
                EventKind::SubOrchestrationScheduled { instance, .. } => {
                    self.children.insert(id, build_child_instance_id(INSTANCE, instance));
                }
                EventKind::ActivityCompleted { .. }
                | EventKind::ActivityFailed { .. }
                | EventKind::ActivityCancelRequested { .. } => {
                    self.activities.remove(&source);
                }
                EventKind::SubOrchestrationCompleted { .. }
                | EventKind::SubOrchestrationFailed { .. }
                | EventKind::SubOrchestrationCancelRequested { .. } => {
                    self.children.remove(&source);
                }
                _ => {}
            }
        }
    }

    /// An end stops activities, children and sessions; a continue-as-new leaves the latter two alone (F6).
    fn is_closed(&self, turn: &Turn) -> Result<(), TestCaseError> {
        prop_assert!(self.activities.is_empty(), "activities {:?} stay open", self.activities);
        let withdrawn: BTreeSet<_> =
            turn.effects.cancelled_activities.iter().map(|activity| activity.activity_id).collect();
        let requested: BTreeSet<_> = turn.events.iter().filter_map(cancelled_activity).collect();
        prop_assert_eq!(withdrawn, requested);
        let continues = matches!(turn.verdict, Verdict::ContinuedAsNew { .. });
        let mut sessions = self.sessions.clone();
        for change in &turn.effects.sessions {
            if let SessionChange::Close { session_id, .. } = change {
                sessions.remove(session_id);
            }
        }
        prop_assert!(continues || sessions.is_empty(), "sessions {sessions:?} stay open");
        let mut cancels = turn.effects.messages.iter().filter_map(cancelled_child).collect::<Vec<_>>();
        for child in self.children.iter().filter(|(id, _)| **id < first_id(turn)).map(|(_, child)| child) {
            let cancel = cancels.iter().position(|cancelled| cancelled == child);
            prop_assert!(continues || cancel.is_some(), "child {child} stays open");
            if let Some(cancel) = cancel {
                cancels.swap_remove(cancel);
            }
        }
        Ok(())
    }
}

fn first_id(turn: &Turn) -> u64 {
    turn.events.first().map_or(u64::MAX, |event| event.event_id)
}

fn cancelled_activity(event: &Event) -> Option<u64> {
    match event.kind {
        EventKind::ActivityCancelRequested { .. } => event.source_event_id,
        _ => None,
    }
}

fn cancelled_child(message: &WorkItem) -> Option<String> {
    match message {
        WorkItem::CancelInstance { instance, .. } => Some(instance.clone()),
        _ => None,
    }
}
