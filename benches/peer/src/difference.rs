//! How our decisions differ from the published crate's, and which of that is meant.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    ours::Answer,
    record::{Run, Turn},
};

/// A difference that is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Known {
    /// A cancellation for a child that was never started.
    UnstartedChild,
    /// A cancellation for the children of an orchestration that failed.
    OrphanedChild,
    /// A detached start in a turn that continues as new or is cancelled.
    DetachedStart,
    /// A cancellation for a child that has answered.
    AnsweredChild,
    /// A message that the code had no time to read before it continued as new.
    UnreadMessage,
    /// An answer that moved when another dequeue was dropped.
    MovedAnswer,
    /// Calls that are recorded before the poll which panics.
    PanicAtPoll,
    /// A history that its own engine does not repeat.
    OwnReplay,
    /// A turn that is polled at other points, in a program that is made to show it.
    PollPoint,
    /// A history that its own engine repeats and ours does not, in such a program.
    ForeignPollPoint,
}

impl Known {
    /// Every one of them.
    pub const ALL: [Self; 10] = [
        Self::UnstartedChild,
        Self::OrphanedChild,
        Self::DetachedStart,
        Self::AnsweredChild,
        Self::UnreadMessage,
        Self::MovedAnswer,
        Self::PanicAtPoll,
        Self::OwnReplay,
        Self::PollPoint,
        Self::ForeignPollPoint,
    ];

    /// Gives the clause that it rests on, and why.
    pub fn reason(self) -> (&'static str, &'static str) {
        match self {
            Self::UnstartedChild => ("F2", "a child whose start is not sent gets no cancellation"),
            Self::OrphanedChild => ("F6", "every end cancels the children that still run"),
            Self::DetachedStart => ("F25", "a recorded detached start is sent, whatever ends the turn"),
            Self::AnsweredChild => ("2.3", "a child that has answered is not told to stop"),
            Self::UnreadMessage => ("2.3", "a message that comes behind the last poll is carried forward"),
            Self::MovedAnswer => ("F18", "a message that a dropped dequeue leaves goes to the next in line"),
            Self::PanicAtPoll => ("P2", "a dequeue is answered before the next call is recorded"),
            Self::OwnReplay => ("P1, P2", "the published crate fails its own replay of this history"),
            Self::PollPoint => ("P1, P2", "a channel, or a race of held futures, goes on in the same turn"),
            Self::ForeignPollPoint => {
                ("P1, P2", "such a history parts here, though not on the published crate")
            }
        }
    }
}

/// Something that one side has and the other has not.
#[derive(Debug, Clone, PartialEq)]
pub enum Difference {
    /// It is meant.
    Known(Known),
    /// Nobody expects it.
    Unknown(String),
}

/// Whether a program has statements that the two engines poll at different points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polls {
    /// It has not.
    Alike,
    /// It has: a channel between branches, or a race of held futures.
    Apart,
}

/// Compares a turn of the published crate with ours.
pub fn differences(run: &Run, answer: &Answer, polls: Polls) -> Vec<Difference> {
    let Some(scene) = Scene::of(run, answer, polls) else {
        return vec![Difference::Unknown("there is no such turn".to_owned())];
    };
    if let Some(cause) = scene.poll_points() {
        return vec![cause];
    }
    let mut differences = scene.messages();
    for (what, differs) in [
        ("work", scene.theirs.work != scene.ours.work),
        ("cancelled activities", scene.theirs.cancelled != scene.ours.cancelled),
    ] {
        if differs {
            differences.push(Difference::Unknown(what.to_owned()));
        }
    }
    differences
}

struct Scene<'a> {
    theirs: &'a Turn,
    ours: &'a Turn,
    polls: Polls,
    /// What the execution recorded until the end of this turn.
    history: Vec<&'a Value>,
    /// Whether the published crate repeats all of that as far as it can be asked.
    replays: bool,
    /// Where our engine parts from it.
    parted: Option<String>,
}

impl<'a> Scene<'a> {
    fn of(run: &'a Run, answer: &'a Answer, polls: Polls) -> Option<Self> {
        let theirs = run.turns.get(answer.index)?;
        let execution: Vec<_> = run.turns[..=answer.index]
            .iter()
            .filter(|turn| turn.execution_id == theirs.execution_id)
            .collect();
        let parted = answer.parted.as_ref().or(answer.refuted.as_ref());
        Some(Self {
            theirs,
            ours: &answer.turn,
            polls,
            replays: execution.iter().all(|turn| turn.replays != Some(false)),
            history: execution.into_iter().flat_map(|turn| &turn.events).collect(),
            parted: parted.map(ToString::to_string),
        })
    }

    /// A difference in what is recorded comes from polls at other points, or from an answer that moved.
    fn poll_points(&self) -> Option<Difference> {
        if self.theirs.events == self.ours.events && self.parted.is_none() {
            return None;
        }
        let known = if !self.replays {
            Known::OwnReplay
        } else if self.panics_at_a_dequeue() {
            Known::PanicAtPoll
        } else if self.drops_a_dequeue_before_another() {
            Known::MovedAnswer
        } else if self.polls == Polls::Apart && self.parted.is_some() {
            Known::ForeignPollPoint
        } else if self.polls == Polls::Apart {
            Known::PollPoint
        } else {
            let parted = self.parted.clone().unwrap_or_default();
            return Some(Difference::Unknown(format!("events {parted}")));
        };
        Some(Difference::Known(known))
    }

    /// Both panic; ours does so right after a dequeue was recorded, theirs after more calls.
    fn panics_at_a_dequeue(&self) -> bool {
        let panics = |turn: &Turn| turn.events.iter().any(|event| event.to_string().contains("\"Panicked\""));
        let pairs = self.theirs.events.iter().zip(&self.ours.events);
        let last_alike = pairs.take_while(|(theirs, ours)| theirs == ours).last();
        let dequeues = last_alike.is_some_and(|(event, _)| kind(event) == DEQUEUE);
        panics(self.theirs) && panics(self.ours) && dequeues && self.parted.is_none()
    }

    /// A dequeue was dropped while a newer one of the same queue stood behind it.
    fn drops_a_dequeue_before_another(&self) -> bool {
        let dequeues = || self.history.iter().filter(|event| kind(event) == DEQUEUE);
        let dropped = self.history.iter().filter(|event| kind(event) == DEQUEUE_CANCELLED);
        dropped.filter_map(|event| event["source_event_id"].as_u64()).any(|dropped| {
            let queue = dequeues().find(|event| id(event) == dropped).map(|event| &event["name"]);
            dequeues().any(|event| id(event) > dropped && Some(&event["name"]) == queue)
        })
    }

    fn messages(&self) -> Vec<Difference> {
        let (mut theirs, mut ours) = (self.theirs.messages.clone(), Vec::new());
        for message in &self.ours.messages {
            match theirs.iter().position(|other| other == message) {
                Some(index) => drop(theirs.remove(index)),
                None => ours.push(message),
            }
        }
        let mut differences = Vec::new();
        if let (Some(message), Some(index)) =
            (ours.pop_if(|message| is_successor(message)), theirs.iter().position(is_successor))
        {
            differences.push(self.carried(&theirs.remove(index), message));
        }
        let others = theirs
            .iter()
            .map(|message| self.only_theirs(message).ok_or(("theirs", message)))
            .chain(ours.iter().map(|message| self.only_ours(message).ok_or(("ours", *message))))
            .map(|known| match known {
                Ok(known) => Difference::Known(known),
                Err((whose, message)) => Difference::Unknown(format!("only {whose}: {message}")),
            });
        differences.extend(others);
        if differences.is_empty() && self.theirs.messages != self.ours.messages {
            return vec![Difference::Unknown("the order of messages".to_owned())];
        }
        differences
    }

    /// Two starts of the next execution that are not alike: ours may carry messages of this turn that theirs
    /// does not.
    fn carried(&self, theirs: &Value, ours: &Value) -> Difference {
        let (mut theirs, mut ours) = (theirs["ContinueAsNew"].clone(), ours["ContinueAsNew"].clone());
        let (less, more) = (theirs["carry_forward_events"].take(), ours["carry_forward_events"].take());
        let mut less = less.as_array().into_iter().flatten().peekable();
        let carried = more.as_array().into_iter().flatten();
        let unread: Vec<_> = carried.filter(|message| less.next_if_eq(message).is_none()).collect();
        let arrived = |message: &Value| {
            let is_it = |event: &Value| {
                kind(event) == MESSAGE && event["name"] == message[0] && event["data"] == message[1]
            };
            self.theirs.events.iter().any(is_it)
        };
        if theirs == ours && less.next().is_none() && unread.into_iter().all(arrived) {
            Difference::Known(Known::UnreadMessage)
        } else {
            Difference::Unknown("the start of the next execution".to_owned())
        }
    }

    fn only_theirs(&self, message: &Value) -> Option<Known> {
        let instance = message["CancelInstance"]["instance"].as_str()?;
        let children = self.history.iter().filter(|event| kind(event) == CHILD && names(event, instance));
        let children: BTreeSet<u64> = children.map(|event| id(event)).collect();
        let ends = self.theirs.events.iter().any(|event| TERMINAL.contains(&kind(event)));
        if ends && self.theirs.events.iter().any(|event| children.contains(&id(event))) {
            return Some(Known::UnstartedChild);
        }
        let answers = |event: &&&Value| CHILD_ANSWERS.contains(&kind(event));
        let source = |event: &&Value| event["source_event_id"].as_u64();
        let answered =
            self.history.iter().filter(answers).filter_map(source).any(|id| children.contains(&id));
        answered.then_some(Known::AnsweredChild)
    }

    fn only_ours(&self, message: &Value) -> Option<Known> {
        let start = &message["StartOrchestration"];
        if start.is_object() && start["parent_instance"].is_null() {
            return Some(Known::DetachedStart);
        }
        let reason = message["CancelInstance"]["reason"].as_str()?;
        ["parent failed", "parent completed"].contains(&reason).then_some(Known::OrphanedChild)
    }
}

const MESSAGE: &str = "ExternalEventPersistent";
const DEQUEUE: &str = "ExternalSubscribedPersistent";
const DEQUEUE_CANCELLED: &str = "ExternalSubscribedPersistentCancelled";
const CHILD: &str = "SubOrchestrationScheduled";
const CHILD_ANSWERS: [&str; 2] = ["SubOrchestrationCompleted", "SubOrchestrationFailed"];
const TERMINAL: [&str; 3] = ["OrchestrationCompleted", "OrchestrationFailed", "OrchestrationContinuedAsNew"];

fn kind(event: &Value) -> &str {
    event["type"].as_str().unwrap_or_default()
}

fn id(event: &Value) -> u64 {
    event["event_id"].as_u64().unwrap_or_default()
}

fn is_successor(message: &Value) -> bool {
    message["ContinueAsNew"].is_object()
}

/// Is this the child of that instance id? Ids that the engine makes are recorded without the parent's.
fn names(child: &Value, instance: &str) -> bool {
    let recorded = child["instance"].as_str().unwrap_or_default();
    recorded == instance || instance.strip_suffix(recorded).is_some_and(|parent| parent.ends_with("::"))
}
