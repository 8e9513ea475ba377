//! The inputs of an execution: its identity, its start and its options.

use crate::limits::{MAX_PAYLOAD_BYTES, MAX_SESSIONS_PER_ORCHESTRATION};
use crate::{CarriedSession, Failure, WorkItem};

/// Identifies one execution of one orchestration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The id that the caller of the start chose, or that the engine made for a child.
    pub instance: String,
    /// The number of the execution within its instance, from 1; each continue-as-new adds one.
    pub execution_id: u64,
    /// The name that the orchestration is registered under.
    pub name: String,
    /// The version of the handler that runs this execution.
    pub version: String,
}

/// The facts that a new execution begins with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Start {
    /// The input of the handler, as the caller encoded it.
    pub input: String,
    /// Identifies the schedule of the parent that waits for the result; `None` without a parent.
    pub parent: Option<ParentLink>,
    /// The queue messages (name, data) that the previous execution did not read, in the order of delivery;
    /// empty for a first execution.
    pub carry_forward: Vec<(String, String)>,
    /// The custom status that the previous execution ended with; `None` if it had none, and for a first
    /// execution.
    pub custom_status: Option<String>,
    /// The sessions that the previous execution left open, in the order in which they were opened.
    pub sessions: Vec<CarriedSession>,
    /// The W3C trace context that the start came with; the first event records it.
    pub traceparent: Option<String>,
    /// The random number of the execution, which the keys of its calls hold; the first event records it.
    /// With `None` the number is made of that event.
    pub random: Option<u64>,
}

/// A message that arrived for an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// The message.
    pub item: WorkItem,
    /// How an activity failed, beside the error in the message; `None` if there is nothing to tell.
    pub failure: Option<Box<Failure>>,
}

impl From<WorkItem> for Arrival {
    fn from(item: WorkItem) -> Self {
        Self { item, failure: None }
    }
}

/// Identifies the schedule of a parent that waits for this orchestration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentLink {
    /// The instance id of the parent, which gets the outcome as a message.
    pub instance: String,
    /// The id of the event in the history of the parent that scheduled this orchestration.
    pub id: u64,
    /// The number of the execution of the parent; `None` if an older engine, which does not record it,
    /// scheduled the child.
    pub execution_id: Option<u64>,
}

impl ParentLink {
    /// Makes a link of the three optional fields that events and work items carry; `None` without instance or
    /// id.
    pub fn of(instance: Option<&str>, id: Option<u64>, execution_id: Option<u64>) -> Option<Self> {
        Some(Self { instance: instance?.to_owned(), id: id?, execution_id })
    }

    /// Takes a link apart into the three optional fields that events and work items carry.
    pub fn fields(link: Option<Self>) -> (Option<String>, Option<u64>, Option<u64>) {
        match link {
            Some(Self { instance, id, execution_id }) => (Some(instance), Some(id), execution_id),
            None => (None, None, None),
        }
    }
}

/// The limits of the calls of an execution. Only new calls are checked, never replayed ones: a change of
/// options cannot break a recorded execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The largest input or output that the orchestration may write, in bytes; by default
    /// [`MAX_PAYLOAD_BYTES`]. A larger one fails the orchestration.
    pub max_payload_bytes: usize,
    /// The largest number of sessions that an orchestration may have open at a time; by default
    /// [`MAX_SESSIONS_PER_ORCHESTRATION`]. Opening one more fails the orchestration.
    pub max_sessions: usize,
    /// Fails an orchestration that schedules an activity on a session which it did not open. By default such
    /// an id means the shared session of that name.
    pub require_open_sessions: bool,
    /// Whether the store keeps sessions that belong to an instance. If not, the default, opening a session
    /// fails the orchestration.
    pub owned_sessions: bool,
    /// How unread queue messages beyond the number that a continue-as-new can carry are treated; by default
    /// they are dropped.
    pub carry_forward_overflow: CarryForwardOverflow,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_payload_bytes: MAX_PAYLOAD_BYTES,
            max_sessions: MAX_SESSIONS_PER_ORCHESTRATION,
            require_open_sessions: false,
            owned_sessions: false,
            carry_forward_overflow: CarryForwardOverflow::Drop,
        }
    }
}

/// How a continue-as-new treats unread queue messages beyond
/// [`MAX_CARRY_FORWARD_EVENTS`](crate::limits::MAX_CARRY_FORWARD_EVENTS).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CarryForwardOverflow {
    /// They are dropped, with a notice for each.
    #[default]
    Drop,
    /// They are sent to the next execution as ordinary messages, behind its start.
    Keep,
}
