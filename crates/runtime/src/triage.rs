//! What to do with a leased instance: run it, settle it, or leave it for later. A pure function.

use steadfast_core::replay::{ParentLink, Start};
use steadfast_core::{AppErrorKind, ErrorDetails, Event, EventKind, WorkItem};
use steadfast_store::{History, Message, TurnLease};

/// What to do with a leased instance.
#[derive(Debug)]
pub(crate) enum Triage {
    /// Run its code.
    Run(Box<Run>),
    /// Remove the messages; tell parents of children that cannot be started.
    Settle { execution_id: u64, collisions: Vec<WorkItem> },
    /// Leave it for later.
    Wait(Wait),
    /// Fail it: its attempts are used up.
    Poison(Box<Poison>),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Its history cannot be read.
    Unreadable(String),
    /// Its execution ended as continued, and the start of the next one is not here.
    BetweenExecutions,
    /// This runtime does not run the engine version that it began with.
    Incompatible { version: String },
}

#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) instance: String,
    pub(crate) execution_id: u64,
    pub(crate) name: String,
    /// The version that was asked for or recorded; None leaves it to the registry.
    pub(crate) version: Option<String>,
    pub(crate) begin: Begin,
    pub(crate) arrivals: Vec<WorkItem>,
    pub(crate) collisions: Vec<WorkItem>,
}

#[derive(Debug)]
pub(crate) enum Begin {
    Start(Start),
    Replay(Vec<Event>),
}

#[derive(Debug)]
pub(crate) struct Poison {
    pub(crate) instance: String,
    pub(crate) execution_id: u64,
    pub(crate) name: String,
    pub(crate) version: String,
    /// The events of the execution; for one that never began, how it would have.
    pub(crate) begin: Option<Begin>,
    pub(crate) details: ErrorDetails,
    pub(crate) unreadable: bool,
    pub(crate) last_event_id: u64,
    pub(crate) collisions: Vec<WorkItem>,
}

/// The start of an execution among the messages.
struct Opening {
    orchestration: String,
    version: Option<String>,
    start: Start,
    continues: bool,
}

pub(crate) fn triage(lease: TurnLease, max_attempts: u32, runs: impl Fn(&str) -> bool) -> Triage {
    let TurnLease {
        instance, name, version, execution_id, history, messages, attempt, last_event_id, ..
    } = lease;
    let poisoned = attempt > max_attempts;
    let history = match history {
        History::Whole(events) | History::Tail { events, .. } => events,
        History::Unreadable(error) if !poisoned => return Triage::Wait(Wait::Unreadable(error)),
        History::Unreadable(error) => {
            let message_type = steadfast_core::PoisonMessageType::FailedDeserialization {
                instance: instance.clone(),
                execution_id,
                error,
            };
            let details = poison(attempt, max_attempts, message_type, &messages);
            let (begin, unreadable, collisions) = (None, true, Vec::new());
            return Triage::Poison(Box::new(Poison {
                instance,
                execution_id,
                name,
                version,
                begin,
                details,
                unreadable,
                last_event_id,
                collisions,
            }));
        }
    };
    if let Some(version) = started_by(&history).filter(|version| !runs(version)) {
        return Triage::Wait(Wait::Incompatible { version });
    }
    let ending = Ending::of(&history);
    let (opening, arrivals, collisions, texts) = split(messages, &history, &ending, &instance);
    if ending == Ending::Over {
        return Triage::Settle { execution_id, collisions };
    }
    let (execution_id, history) = match &opening {
        Some(opening) if opening.continues => (execution_id + 1, Vec::new()),
        _ => (execution_id, history),
    };
    let continues = opening.as_ref().is_some_and(|opening| opening.continues);
    let is_between = !continues && ending == Ending::Continued;
    if poisoned {
        // Between two executions it is the next one that fails: the one before has ended.
        let execution_id = execution_id + u64::from(is_between);
        let message_type =
            steadfast_core::PoisonMessageType::Orchestration { instance: instance.clone(), execution_id };
        let details =
            ErrorDetails::Poison { attempt_count: attempt, max_attempts, message_type, message: texts };
        let name = opening.as_ref().map_or(name, |opening| opening.orchestration.clone());
        let begin = match (opening, history.is_empty()) {
            _ if is_between => {
                Some(Begin::Start(Start { parent: parent_of(&history), ..Start::default() }))
            }
            (Some(opening), true) => Some(Begin::Start(opening.start)),
            (_, false) => Some(Begin::Replay(history)),
            (None, true) => None,
        };
        let unreadable = false;
        return Triage::Poison(Box::new(Poison {
            instance,
            execution_id,
            name,
            version,
            begin,
            details,
            unreadable,
            last_event_id,
            collisions,
        }));
    }
    if is_between {
        return Triage::Wait(Wait::BetweenExecutions);
    }
    let (name, version, begin) = match (opening, recorded(&history)) {
        (Some(opening), None) => (opening.orchestration, opening.version, Begin::Start(opening.start)),
        (_, Some((name, version))) => (name, version, Begin::Replay(history)),
        (None, None) if history.is_empty() => return Triage::Settle { execution_id, collisions },
        (None, None) => (name, Some(version), Begin::Replay(history)),
    };
    Triage::Run(Box::new(Run { instance, execution_id, name, version, begin, arrivals, collisions }))
}

#[derive(PartialEq, Eq)]
enum Ending {
    None,
    Over,
    Continued,
}

impl Ending {
    /// A failure after a continue-as-new is how older engines recorded that the successor could not start.
    fn of(history: &[Event]) -> Self {
        let mut ending = Self::None;
        for event in history {
            match event.kind {
                EventKind::OrchestrationCompleted { .. } | EventKind::OrchestrationFailed { .. } => {
                    return Self::Over;
                }
                EventKind::OrchestrationContinuedAsNew { .. } => ending = Self::Continued,
                _ => {}
            }
        }
        ending
    }
}

/// The engine version that the execution began with, if it can be read.
fn started_by(history: &[Event]) -> Option<String> {
    let first = history.iter().find(|event| matches!(event.kind, EventKind::OrchestrationStarted { .. }))?;
    semver::Version::parse(&first.duroxide_version).ok().map(|version| version.to_string())
}

fn recorded(history: &[Event]) -> Option<(String, Option<String>)> {
    history.iter().rev().find_map(|event| match &event.kind {
        EventKind::OrchestrationStarted { name, version, .. } => {
            Some((name.clone(), (version != "0.0.0").then(|| version.clone())))
        }
        _ => None,
    })
}

/// Separates the start from what else arrived. A start for an instance that has a history is none; if it comes from a
/// parent, the parent is told.
fn split(
    messages: Vec<Message>,
    history: &[Event],
    ending: &Ending,
    instance: &str,
) -> (Option<Opening>, Vec<WorkItem>, Vec<WorkItem>, String) {
    let items: Vec<&WorkItem> = messages.iter().map(|message| &message.item).collect();
    let texts = serde_json::to_string(&items).unwrap_or_default();
    let own_parent = parent_of(history);
    let (mut opening, mut arrivals, mut collisions) = (None::<Opening>, Vec::new(), Vec::new());
    for Message { item, .. } in messages {
        match item {
            WorkItem::ActivityExecute { .. } => {}
            WorkItem::StartOrchestration { parent_instance, parent_id, parent_execution_id, .. }
                if !history.is_empty() =>
            {
                tracing::warn!(target: "steadfast::runtime", instance, "a start is ignored: the instance has begun already");
                let parent = ParentLink::of(parent_instance.as_deref(), parent_id, parent_execution_id);
                collisions.extend(parent.and_then(|parent| collision(parent, &own_parent, ending, instance)));
            }
            item => match (opening_of(item), &opening) {
                (Ok(found), None) => opening = Some(found),
                // Another parent wants the id that the first start takes, and must not wait for ever (I7).
                (Ok(second), Some(first)) if second.start.parent != first.start.parent => {
                    let parent = second.start.parent;
                    collisions.extend(parent.and_then(|parent| collision(parent, &None, ending, instance)));
                }
                (Ok(_), Some(_)) => {}
                (Err(arrival), _) => arrivals.push(*arrival),
            },
        }
    }
    (opening, arrivals, collisions, texts)
}

fn parent_of(history: &[Event]) -> Option<ParentLink> {
    history.iter().find_map(|event| match &event.kind {
        EventKind::OrchestrationStarted { parent_instance, parent_id, parent_execution_id, .. } => {
            ParentLink::of(parent_instance.as_deref(), *parent_id, *parent_execution_id)
        }
        _ => None,
    })
}

/// Tells a parent that the id of its child is taken; not when the live instance is that very child.
fn collision(
    parent: ParentLink,
    own: &Option<ParentLink>,
    ending: &Ending,
    instance: &str,
) -> Option<WorkItem> {
    let is_own = own.as_ref() == Some(&parent) && parent.execution_id.is_some();
    if is_own && *ending != Ending::Over {
        return None;
    }
    let state = if *ending == Ending::Over { " and is terminal" } else { "" };
    let message = format!("sub-orchestration instance id '{instance}' already exists{state}");
    Some(WorkItem::SubOrchFailed {
        parent_instance: parent.instance,
        parent_execution_id: parent.execution_id.unwrap_or(1),
        parent_id: parent.id,
        details: ErrorDetails::Application {
            kind: AppErrorKind::OrchestrationFailed,
            message,
            retryable: false,
        },
    })
}

fn opening_of(item: WorkItem) -> Result<Opening, Box<WorkItem>> {
    match item {
        WorkItem::StartOrchestration {
            orchestration,
            input,
            version,
            parent_instance,
            parent_id,
            parent_execution_id,
            ..
        } => {
            let parent = ParentLink::of(parent_instance.as_deref(), parent_id, parent_execution_id);
            let start = Start { input, parent, ..Start::default() };
            Ok(Opening { orchestration, version, start, continues: false })
        }
        WorkItem::ContinueAsNew {
            orchestration,
            input,
            version,
            parent_instance,
            parent_id,
            parent_execution_id,
            carry_forward_events: carry_forward,
            initial_custom_status: custom_status,
            ..
        } => {
            let parent = ParentLink::of(parent_instance.as_deref(), parent_id, parent_execution_id);
            let start = Start { input, parent, carry_forward, custom_status, sessions: Vec::new() };
            Ok(Opening { orchestration, version, start, continues: true })
        }
        WorkItem::ContinueAsNewWithSessions {
            orchestration,
            input,
            version,
            parent_instance,
            parent_id,
            parent_execution_id,
            carry_forward_events: carry_forward,
            initial_custom_status: custom_status,
            sessions,
            ..
        } => {
            let parent = ParentLink::of(parent_instance.as_deref(), parent_id, parent_execution_id);
            let start = Start { input, parent, carry_forward, custom_status, sessions };
            Ok(Opening { orchestration, version, start, continues: true })
        }
        arrival => Err(Box::new(arrival)),
    }
}

fn poison(
    attempt_count: u32,
    max_attempts: u32,
    message_type: steadfast_core::PoisonMessageType,
    messages: &[Message],
) -> ErrorDetails {
    let items: Vec<&WorkItem> = messages.iter().map(|message| &message.item).collect();
    let message = serde_json::to_string(&items).unwrap_or_default();
    ErrorDetails::Poison { attempt_count, max_attempts, message_type, message }
}
