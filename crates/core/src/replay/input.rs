//! What an execution is given: who it is, how it starts, what it may do.

use crate::CarriedSession;
use crate::limits::{MAX_PAYLOAD_BYTES, MAX_SESSIONS_PER_ORCHESTRATION};

/// Names one execution of one orchestration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Holds the id of the instance.
    pub instance: String,
    /// Holds the number of the execution, from 1.
    pub execution_id: u64,
    /// Holds the name that the orchestration is registered under.
    pub name: String,
    /// Holds the version of the handler.
    pub version: String,
}

/// Says how a new execution begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Start {
    /// Holds the input of the handler.
    pub input: String,
    /// Names the orchestration that waits for the result.
    pub parent: Option<ParentLink>,
    /// Holds the queue messages that the previous execution did not read.
    pub carry_forward: Vec<(String, String)>,
    /// Holds the custom status that the previous execution left.
    pub custom_status: Option<String>,
    /// Holds the sessions that the previous execution left open.
    pub sessions: Vec<CarriedSession>,
    /// Holds the W3C trace context that the start came with.
    pub traceparent: Option<String>,
}

/// Names the schedule of another orchestration that waits for this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentLink {
    /// Holds the id of the parent.
    pub instance: String,
    /// Holds the event of the parent that scheduled this orchestration.
    pub id: u64,
    /// Holds the execution of the parent; histories of older engines do not say it.
    pub execution_id: Option<u64>,
}

impl ParentLink {
    /// Makes a link of the three optional fields that events and work items carry.
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

/// Bounds what an execution may do. Judged when something is first decided, never on replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Bounds every input, output and message that the orchestration writes, in bytes.
    pub max_payload_bytes: usize,
    /// Bounds the sessions that an orchestration may have open at a time.
    pub max_sessions: usize,
    /// Refuses activities on sessions that the orchestration did not open.
    pub require_open_sessions: bool,
    /// Says whether the store can keep sessions that belong to an instance.
    pub owned_sessions: bool,
    /// Says what becomes of unread queue messages beyond the number that a continue-as-new can carry.
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

/// Says what becomes of unread queue messages beyond
/// [`MAX_CARRY_FORWARD_EVENTS`](crate::limits::MAX_CARRY_FORWARD_EVENTS).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CarryForwardOverflow {
    /// Drops them, with a notice for each.
    #[default]
    Drop,
    /// Sends them to the successor as ordinary messages, behind its start.
    Keep,
}
