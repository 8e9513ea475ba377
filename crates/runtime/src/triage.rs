//! What a batch asks for: run, settle, wait, or fail. Pure, so that the order of the questions can be read.

use semver::Version;
use steadfast_core::replay::{ParentLink, Start, StartMessage};
use steadfast_core::{AppErrorKind, ErrorDetails, Event, EventKind, PoisonMessageType, WorkItem};
use steadfast_store::Message;

/// A leased batch, without the history that it stands on.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) instance: String,
    /// Names the orchestration, as the store knows it.
    pub(crate) name: String,
    /// Names the version of its handler, as the store knows it.
    pub(crate) version: String,
    pub(crate) execution_id: u64,
    pub(crate) messages: Vec<Message>,
    pub(crate) attempt: u32,
}

/// What must be known of a history to judge a batch. One that is kept warm has it at hand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Names the orchestration and the version of its handler, once it has started.
    pub(crate) started: Option<Started>,
    pub(crate) is_empty: bool,
    pub(crate) ending: Ending,
    /// Counts the turns: exactly while an execution is kept, else the moments at which something was recorded.
    pub(crate) turns: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Started {
    pub(crate) name: String,
    /// None leaves it to the registry: histories of older engines do not always say it.
    pub(crate) version: Option<String>,
    /// The engine version that it began with, if it can be read.
    pub(crate) engine: Option<Version>,
    pub(crate) parent: Option<ParentLink>,
    pub(crate) at_ms: u64,
    /// The trace context that it began with.
    pub(crate) traceparent: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    #[default]
    None,
    Over,
    Continued,
}

impl Standing {
    pub(crate) fn of(history: &[Event]) -> Self {
        let mut standing = Self { is_empty: history.is_empty(), ..Self::default() };
        let mut moment = None;
        for event in history {
            if moment != Some(event.timestamp_ms) {
                moment = Some(event.timestamp_ms);
                standing.turns += 1;
            }
            match &event.kind {
                EventKind::OrchestrationStarted { .. } if standing.started.is_none() => {
                    standing.started = Started::of(event);
                }
                EventKind::OrchestrationCompleted { .. } | EventKind::OrchestrationFailed { .. } => {
                    standing.ending = Ending::Over;
                }
                // A failure after it is how older engines recorded that the successor could not start.
                EventKind::OrchestrationContinuedAsNew { .. } if standing.ending == Ending::None => {
                    standing.ending = Ending::Continued;
                }
                _ => {}
            }
        }
        standing
    }

    /// The trace context that the execution began with.
    pub(crate) fn traceparent(&self) -> Option<&str> {
        self.started.as_ref()?.traceparent.as_deref()
    }
}

impl Started {
    fn of(event: &Event) -> Option<Self> {
        let EventKind::OrchestrationStarted {
            name,
            version,
            parent_instance,
            parent_id,
            parent_execution_id,
            ..
        } = &event.kind
        else {
            return None;
        };
        Some(Self {
            name: name.clone(),
            version: (version != "0.0.0").then(|| version.clone()),
            engine: Version::parse(&event.duroxide_version).ok(),
            parent: ParentLink::of(parent_instance.as_deref(), *parent_id, *parent_execution_id),
            at_ms: event.timestamp_ms,
            traceparent: event.traceparent.clone(),
        })
    }
}

/// What to do with a batch.
#[derive(Debug)]
pub(crate) enum Triage {
    /// Run the code.
    Run(Run),
    /// Remove the messages: nobody needs them. Parents whose child could not be started are told.
    Settle { execution_id: u64, collisions: Vec<WorkItem> },
    /// Leave it for later.
    Wait(Wait),
    /// End it without running its code.
    Fail(Fail),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Its history cannot be read.
    Unreadable(String),
    /// Its execution ended as continued, and the start of the next one is not here.
    BetweenExecutions,
    /// Its start is not here: it waits for a handler, and what came after it waits too.
    NotStarted,
    /// This runtime does not run the engine version that it began with.
    Incompatible { version: String },
}

#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) execution_id: u64,
    pub(crate) name: String,
    /// The version that was asked for or recorded; None leaves it to the registry.
    pub(crate) version: Option<String>,
    /// How the execution begins, if it does now.
    pub(crate) start: Option<Start>,
    pub(crate) arrivals: Vec<WorkItem>,
    pub(crate) collisions: Vec<WorkItem>,
}

#[derive(Debug)]
pub(crate) struct Fail {
    pub(crate) execution_id: u64,
    pub(crate) name: String,
    pub(crate) version: String,
    /// How the execution would have begun, if it did not.
    pub(crate) start: Option<Start>,
    pub(crate) details: ErrorDetails,
    pub(crate) collisions: Vec<WorkItem>,
}

/// Judges a batch. `standing` is an error when the history cannot be read.
pub(crate) fn triage(
    batch: Batch,
    standing: Result<&Standing, &str>,
    max_attempts: u32,
    runs: impl Fn(&Version) -> bool,
) -> Triage {
    let Batch { instance, name, version, execution_id, messages, attempt } = batch;
    let poisoned = attempt > max_attempts;
    let poison = |message_type, message| ErrorDetails::Poison {
        attempt_count: attempt,
        max_attempts,
        message_type,
        message,
    };
    let standing = match standing {
        Ok(standing) => standing,
        Err(error) => {
            let (text, terminated) = (texts(&messages), termination(&messages));
            let error = error.to_owned();
            let details = match terminated {
                Some(details) => details,
                None if !poisoned => return Triage::Wait(Wait::Unreadable(error)),
                None => {
                    let instance = instance.clone();
                    let kind = PoisonMessageType::FailedDeserialization { instance, execution_id, error };
                    poison(kind, text)
                }
            };
            let (start, collisions) = (None, Vec::new());
            return Triage::Fail(Fail { execution_id, name, version, start, details, collisions });
        }
    };
    let engine = standing.started.as_ref().and_then(|started| started.engine.as_ref());
    if let Some(version) = engine.filter(|version| !runs(version)) {
        return Triage::Wait(Wait::Incompatible { version: version.to_string() });
    }
    let text = if poisoned { texts(&messages) } else { String::new() };
    let Sorted { opening, arrivals, collisions, terminated } = sort(messages, standing, &instance);
    if standing.ending == Ending::Over {
        return Triage::Settle { execution_id, collisions };
    }
    let continues = opening.as_ref().is_some_and(|opening| opening.continues);
    let between = !continues && standing.ending == Ending::Continued;
    // The start of the next execution may be held back for as long as its code is not registered: an end does not wait.
    if between && !poisoned && terminated.is_none() {
        return Triage::Wait(Wait::BetweenExecutions);
    }
    let (execution_id, begun) =
        if continues || between { (execution_id + 1, false) } else { (execution_id, !standing.is_empty) };
    if opening.is_none() && !begun && !between {
        // What waits with a start that never comes is no poison for it: it is dropped when its own attempts are used up.
        return match poisoned {
            true => Triage::Settle { execution_id, collisions },
            false => Triage::Wait(Wait::NotStarted),
        };
    }
    let details = terminated.or_else(|| {
        let instance = instance.clone();
        poisoned.then(|| poison(PoisonMessageType::Orchestration { instance, execution_id }, text))
    });
    let recorded = standing.started.as_ref().filter(|_| begun);
    if let Some(details) = details {
        let (name, start) = match opening {
            Some(opening) if !begun => (opening.orchestration, Some(opening.start)),
            None if between => {
                let started = standing.started.as_ref();
                let parent = started.and_then(|started| started.parent.clone());
                let traceparent = started.and_then(|started| started.traceparent.clone());
                (name, Some(Start { parent, traceparent, ..Start::default() }))
            }
            _ => (name, None),
        };
        return Triage::Fail(Fail { execution_id, name, version, start, details, collisions });
    }
    let (name, version, start) = match (opening, recorded) {
        (Some(opening), None) if !begun => (opening.orchestration, opening.version, Some(opening.start)),
        (_, Some(started)) => (started.name.clone(), started.version.clone(), None),
        (_, None) => (name, Some(version), None),
    };
    Triage::Run(Run { execution_id, name, version, start, arrivals, collisions })
}

/// The messages of a batch, by what they are for.
struct Sorted {
    opening: Option<Opening>,
    arrivals: Vec<WorkItem>,
    collisions: Vec<WorkItem>,
    terminated: Option<ErrorDetails>,
}

/// The start of an execution among the messages.
struct Opening {
    orchestration: String,
    version: Option<String>,
    start: Start,
    continues: bool,
}

/// Separates the start from what else arrived. A start for an instance that has a history is none; if it comes from a
/// parent, the parent is told.
fn sort(messages: Vec<Message>, standing: &Standing, instance: &str) -> Sorted {
    let terminated = termination(&messages);
    let mut sorted = Sorted { opening: None, arrivals: Vec::new(), collisions: Vec::new(), terminated };
    for Message { item, traceparent } in messages {
        match item {
            WorkItem::ActivityExecute { .. }
            | WorkItem::TerminateInstance { .. }
            | WorkItem::Nudge { .. } => {}
            WorkItem::StartOrchestration { parent_instance, parent_id, parent_execution_id, .. }
                if !standing.is_empty =>
            {
                let parent = ParentLink::of(parent_instance.as_deref(), parent_id, parent_execution_id);
                sorted.collisions.extend(parent.and_then(|parent| collision(parent, standing, instance)));
            }
            item => match (opening_of(item), &sorted.opening) {
                (Ok(mut found), None) => {
                    found.start.traceparent = traceparent;
                    sorted.opening = Some(found);
                }
                // Another parent wants the id that the first start takes, and must not wait for ever (I7).
                (Ok(second), Some(first)) if second.start.parent != first.start.parent => {
                    let parent = second.start.parent;
                    sorted.collisions.extend(parent.and_then(|parent| collision(parent, standing, instance)));
                }
                (Ok(_), Some(_)) => {}
                (Err(arrival), _) => sorted.arrivals.push(*arrival),
            },
        }
    }
    sorted
}

/// The failure that an operator asked for, if one did.
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

/// Tells a parent that the id of its child is taken; not when the live instance is that very child.
fn collision(parent: ParentLink, standing: &Standing, instance: &str) -> Option<WorkItem> {
    let own = standing.started.as_ref().and_then(|started| started.parent.as_ref());
    let is_own = own == Some(&parent) && parent.execution_id.is_some();
    let is_over = standing.ending == Ending::Over;
    if is_own && !is_over {
        return None;
    }
    let state = if is_over { " and is terminal" } else { "" };
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

/// Takes the start out of a message that is one.
fn opening_of(item: WorkItem) -> Result<Opening, Box<WorkItem>> {
    let StartMessage { orchestration, version, start, continues } = StartMessage::read(item)?;
    Ok(Opening { orchestration, version, start, continues })
}

fn texts(messages: &[Message]) -> String {
    let items: Vec<&WorkItem> = messages.iter().map(|message| &message.item).collect();
    serde_json::to_string(&items).unwrap_or_default()
}
