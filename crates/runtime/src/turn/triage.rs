//! What to do with a leased turn: run, settle, wait, or fail. Pure, so that the order of the questions can be
//! read.

use semver::Version;
use steadfast_core::replay::{Arrival, ParentLink, Start, StartMessage};
use steadfast_core::{AppErrorKind, ErrorDetails, PoisonMessageType, WorkItem};
use steadfast_store::Message;

use super::standing::{RecordedEnding, Standing};

/// A leased turn without its history.
#[derive(Debug)]
pub(super) struct TurnInput {
    pub(super) instance: String,
    /// The name of the orchestration, from the store's row.
    pub(super) name: String,
    /// The version of its handler, from the store's row.
    pub(super) version: String,
    pub(super) execution_id: u64,
    pub(super) messages: Vec<Message>,
    /// The places of starts that ask for another instance of this id (S17).
    pub(super) rival_starts: Vec<usize>,
    /// How often the messages have been leased, from 1.
    pub(super) deliveries: u32,
}

/// What to do with a leased turn.
#[derive(Debug)]
pub(super) enum Triage {
    /// Run the code.
    Run(Run),
    /// Remove the messages: the instance has ended or never starts. Parents whose child could not be started
    /// are told.
    Settle { execution_id: u64, collisions: Vec<WorkItem> },
    /// Abandon the turn until later.
    Wait(Wait),
    /// End the execution without running its code.
    Fail(Fail),
}

/// Why a turn must wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Its history cannot be read.
    Unreadable(String),
    /// Its execution continued as new, and the start of the next execution is not among the messages.
    BetweenExecutions,
    /// Its start is not among the messages: the start is delayed until a handler is registered.
    NotStarted,
    /// This runtime does not run the engine version that the execution began with.
    Incompatible { version: String },
}

/// A turn whose code runs.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) execution_id: u64,
    pub(super) name: String,
    /// The version that the start names or the history records. `None` leaves it to the registry.
    pub(super) version: Option<String>,
    /// How the execution begins, if this is its first turn.
    pub(super) start: Option<Start>,
    pub(super) arrivals: Vec<Arrival>,
    /// Messages to parents whose child could not be started.
    pub(super) collisions: Vec<WorkItem>,
}

/// An execution that ends without its code.
#[derive(Debug)]
pub(super) struct Fail {
    pub(super) execution_id: u64,
    pub(super) name: String,
    pub(super) version: String,
    /// How the execution would have begun, if it has not.
    pub(super) start: Option<Start>,
    pub(super) details: ErrorDetails,
    /// Messages to parents whose child could not be started.
    pub(super) collisions: Vec<WorkItem>,
    /// Parents that ask for a child of this id. Empty if the history can be read: then `collisions` has them.
    pub(super) callers: Vec<Caller>,
}

/// A parent that asks for a child whose id an instance has that cannot be read. The row of the instance tells
/// whether the parent is its own.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) parent: ParentLink,
    /// The parent asks for another instance of this id (S17).
    pub(super) is_rival: bool,
}

/// Decides what to do with a leased turn. `standing` is an error if the history cannot be read.
pub(super) fn triage(
    input: TurnInput,
    standing: Result<&Standing, &str>,
    max_deliveries: u32,
    runs: impl Fn(&Version) -> bool,
) -> Triage {
    let standing = match standing {
        Ok(standing) => standing,
        Err(error) => return triage_unreadable(input, error, max_deliveries),
    };
    let poison = Poison::of(&input, max_deliveries);
    let engine = standing.started.as_ref().and_then(|started| started.engine.as_ref());
    if let Some(version) = engine.filter(|version| !runs(version)) {
        return Triage::Wait(Wait::Incompatible { version: version.to_string() });
    }
    let TurnInput { instance, name, version, execution_id, messages, rival_starts, .. } = input;
    let Sorted { opening, arrivals, collisions, terminated } =
        sort(messages, &rival_starts, standing, &instance);
    if standing.ending == RecordedEnding::Ended {
        return Triage::Settle { execution_id, collisions };
    }
    let continues = opening.as_ref().is_some_and(|opening| opening.continues);
    let between = !continues && standing.ending == RecordedEnding::Continued;
    // The start of the next execution may be delayed for as long as its code is not registered: a termination
    // and poison do not wait for it.
    if between && poison.is_none() && terminated.is_none() {
        return Triage::Wait(Wait::BetweenExecutions);
    }
    let (execution_id, begun) =
        if continues || between { (execution_id + 1, false) } else { (execution_id, !standing.is_empty) };
    if opening.is_none() && !begun && !between {
        // The start is delayed or never comes. Messages that were delivered too often are dropped, and the
        // instance does not fail because of them.
        return match poison {
            Some(_) => Triage::Settle { execution_id, collisions },
            None => Triage::Wait(Wait::NotStarted),
        };
    }
    let details = terminated.or_else(|| {
        let kind = PoisonMessageType::Orchestration { instance, execution_id };
        poison.map(|poison| poison.details(kind))
    });
    if let Some(details) = details {
        let (name, start) = match opening {
            Some(opening) if !begun => (opening.orchestration, Some(opening.start)),
            None if between => (name, Some(start_of_next(standing))),
            _ => (name, None),
        };
        let callers = Vec::new();
        return Triage::Fail(Fail { execution_id, name, version, start, details, collisions, callers });
    }
    let recorded = standing.started.as_ref().filter(|_| begun);
    let (name, version, start) = match (opening, recorded) {
        (Some(opening), None) if !begun => (opening.orchestration, opening.version, Some(opening.start)),
        (_, Some(started)) => (started.name.clone(), started.version.clone(), None),
        (_, None) => (name, Some(version), None),
    };
    Triage::Run(Run { execution_id, name, version, start, arrivals, collisions })
}

/// Decides about an execution whose history cannot be read: it waits, until it is terminated or poisoned.
fn triage_unreadable(input: TurnInput, error: &str, max_deliveries: u32) -> Triage {
    let poison = Poison::of(&input, max_deliveries);
    let terminated = termination(&input.messages);
    let callers = callers(&input);
    let TurnInput { instance, name, version, execution_id, .. } = input;
    let error = error.to_owned();
    let details = match (terminated, poison) {
        (Some(details), _) => details,
        (None, None) => return Triage::Wait(Wait::Unreadable(error)),
        (None, Some(poison)) => {
            poison.details(PoisonMessageType::FailedDeserialization { instance, execution_id, error })
        }
    };
    let (start, collisions) = (None, Vec::new());
    Triage::Fail(Fail { execution_id, name, version, start, details, collisions, callers })
}

/// The parents that ask for a child of this id.
fn callers(input: &TurnInput) -> Vec<Caller> {
    let caller = |(place, message): (usize, &Message)| {
        let WorkItem::StartOrchestration { parent_instance, parent_id, parent_execution_id, .. } =
            &message.item
        else {
            return None;
        };
        let parent = ParentLink::of(parent_instance.as_deref(), *parent_id, *parent_execution_id)?;
        Some(Caller { parent, is_rival: input.rival_starts.contains(&place) })
    };
    input.messages.iter().enumerate().filter_map(caller).collect()
}

/// Messages that were leased more often than `max_attempts` allows.
struct Poison {
    deliveries: u32,
    max_deliveries: u32,
    /// The messages, as JSON.
    text: String,
}

impl Poison {
    fn of(input: &TurnInput, max_deliveries: u32) -> Option<Self> {
        let deliveries = input.deliveries;
        (deliveries > max_deliveries).then(|| Self {
            deliveries,
            max_deliveries,
            text: texts(&input.messages),
        })
    }

    fn details(self, message_type: PoisonMessageType) -> ErrorDetails {
        ErrorDetails::Poison {
            attempt_count: self.deliveries,
            max_attempts: self.max_deliveries,
            message_type,
            message: self.text,
        }
    }
}

/// The start of the next execution, if it fails before its start message has come.
fn start_of_next(standing: &Standing) -> Start {
    let started = standing.started.as_ref();
    let parent = started.and_then(|started| started.parent.clone());
    let traceparent = started.and_then(|started| started.traceparent.clone());
    Start { parent, traceparent, ..Start::default() }
}

/// The messages of a turn, by their purpose.
struct Sorted {
    opening: Option<StartMessage>,
    arrivals: Vec<Arrival>,
    collisions: Vec<WorkItem>,
    terminated: Option<ErrorDetails>,
}

/// Separates the start from the other messages. A start for an instance that has a history is ignored; if a
/// parent sent it, the parent is told.
fn sort(messages: Vec<Message>, rivals: &[usize], standing: &Standing, instance: &str) -> Sorted {
    let terminated = termination(&messages);
    let has_ended = standing.ending == RecordedEnding::Ended;
    let mut sorted = Sorted { opening: None, arrivals: Vec::new(), collisions: Vec::new(), terminated };
    for (place, Message { item, traceparent, failure }) in messages.into_iter().enumerate() {
        match item {
            WorkItem::ActivityExecute { .. }
            | WorkItem::TerminateInstance { .. }
            | WorkItem::Nudge { .. } => {}
            WorkItem::StartOrchestration { parent_instance, parent_id, parent_execution_id, .. }
                if !standing.is_empty =>
            {
                let parent = ParentLink::of(parent_instance.as_deref(), parent_id, parent_execution_id);
                let is_told = |parent: &ParentLink| rivals.contains(&place) || !is_own(parent, standing);
                let told = parent.filter(is_told).map(|parent| collision(parent, has_ended, instance));
                sorted.collisions.extend(told);
            }
            item => match (StartMessage::read(item), &sorted.opening) {
                (Ok(mut found), None) => {
                    found.start.traceparent = traceparent;
                    sorted.opening = Some(found);
                }
                // A second parent starts a child with the same id. Its start is ignored, so it is told, or it
                // would wait for ever (I7).
                (Ok(second), Some(first)) if second.start.parent != first.start.parent => {
                    let parent = second.start.parent;
                    sorted.collisions.extend(parent.map(|parent| collision(parent, has_ended, instance)));
                }
                (Ok(_), Some(_)) => {}
                (Err(item), _) => sorted.arrivals.push(Arrival { item: *item, failure }),
            },
        }
    }
    sorted
}

/// The failure that an operator asked for with a termination, if there is one.
fn termination(messages: &[Message]) -> Option<ErrorDetails> {
    messages.iter().find_map(|message| match &message.item {
        WorkItem::TerminateInstance { reason, .. } => Some(ErrorDetails::Application {
            kind: AppErrorKind::Terminated { reason: reason.clone() },
            message: String::new(),
            retryable: false,
        }),
        _ => None,
    })
}

/// Tells whether the running instance is the child that this call of a parent asks for.
fn is_own(parent: &ParentLink, standing: &Standing) -> bool {
    let own = standing.started.as_ref().and_then(|started| started.parent.as_ref());
    own == Some(parent) && parent.execution_id.is_some() && standing.ending != RecordedEnding::Ended
}

/// The message that tells a parent that the id of its child is taken.
pub(super) fn collision(parent: ParentLink, has_ended: bool, instance: &str) -> WorkItem {
    let state = if has_ended { " and is terminal" } else { "" };
    let message = format!("sub-orchestration instance id '{instance}' already exists{state}");
    WorkItem::SubOrchFailed {
        parent_instance: parent.instance,
        parent_execution_id: parent.execution_id.unwrap_or(1),
        parent_id: parent.id,
        details: ErrorDetails::Application {
            kind: AppErrorKind::OrchestrationFailed,
            message,
            retryable: false,
        },
    }
}

fn texts(messages: &[Message]) -> String {
    let items: Vec<&WorkItem> = messages.iter().map(|message| &message.item).collect();
    serde_json::to_string(&items).unwrap_or_default()
}
