//! Evidence: what happened beside the store, one fact after the other.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};
use steadfast_core::SessionKey;

/// What happened, in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    entries: Vec<Entry>,
}

/// One fact with its moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The moment, in microseconds since a beginning that all processes share.
    pub at_us: u64,
    /// What happened.
    pub fact: Fact,
}

/// What can happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fact {
    /// A process began or ended its life.
    Process(String, Life),
    /// An activity began to run.
    Began(Run),
    /// A run ended with an outcome. A run that was killed has no such fact.
    Ended {
        /// The process of the run.
        process: String,
        /// The number of the run in that process.
        number: u64,
        /// The text that the activity returned.
        outcome: Result<String, String>,
    },
    /// A run ended without an outcome: its future was dropped.
    Dropped {
        /// The process of the run.
        process: String,
        /// The number of the run in that process.
        number: u64,
    },
    /// A client is about to make a call. It may have its effect although no answer comes.
    Asked(Told),
    /// A call of a client succeeded.
    Told(Told),
    /// A fault began.
    Fault(Fault),
}

/// The ends of a process's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Life {
    /// It started.
    Started,
    /// It is about to shut down, and lets its activities finish.
    Stopping,
    /// It is no more: killed, or shut down.
    Dead,
}

/// One run of an activity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Counts the runs of the process.
    pub number: u64,
    /// One life of a process: a name that no other start of a process has.
    pub process: String,
    /// The instance that scheduled the activity.
    pub instance: String,
    /// The execution of that instance.
    pub execution: u64,
    /// The event that scheduled the activity.
    pub id: u64,
    /// The activity.
    pub name: String,
    /// The delivery that the code was told, of those that count in this try.
    pub attempt: u32,
    /// The number of the try, from 1.
    #[serde(default = "first_try")]
    pub tried: u32,
    /// The idempotency key of the call.
    #[serde(default)]
    pub call_key: String,
    /// The session that it runs on.
    pub session: Option<SessionRun>,
}

/// The session of a run, as the activity sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRun {
    /// The instance that owns the session; `None` for a shared one.
    pub owner: Option<String>,
    /// The id of the session.
    pub id: String,
    /// The number of the claim.
    pub epoch: u64,
    /// Whether the activity was told that it is the first one after the session was attached.
    pub is_first: bool,
    /// The epoch that the in-memory state was built for, as the code that built it saw it; `None` if the
    /// activity did not look.
    pub state_epoch: Option<u64>,
}

/// A call of a client that changes something. The texts are instance, then name and data if it has them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Told {
    /// An instance was started.
    Started(String),
    /// An event was raised.
    Raised(String, String, String),
    /// A message was put into a queue.
    Enqueued(String, String, String),
    /// An instance was asked to cancel.
    Cancelled(String),
    /// An instance was terminated.
    Terminated(String),
    /// An instance was deleted.
    Deleted(String),
    /// Old executions of an instance were removed.
    Pruned(String),
}

/// Something went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What it was.
    pub kind: FaultKind,
    /// The process that it concerns; `None` concerns all.
    pub process: Option<String>,
    /// How long it lasts, in microseconds; 0 for a moment.
    pub lasts_us: u64,
}

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FaultKind {
    /// The process is killed.
    Killed,
    /// The process, or its machine, is stopped for a while.
    Paused,
    /// The machine of the store and of all processes sleeps. The store extends live leases by as much, so it
    /// explains nothing that runs twice.
    Slept,
    /// The process does not reach the store for a while.
    Cut,
    /// The calls of the process take longer.
    Slow,
    /// One call of the process fails and has no effect.
    Failed,
    /// One call of the process is answered with an error that is not true: the process may have to give up.
    Misled,
    /// One call of the process has its effect, and an error comes instead of the answer.
    Unanswered,
    /// The answer to one call of the process is late.
    Late,
    /// The process drains and shuts down.
    Drained,
    /// The wall clock of the process is set.
    Stepped,
    /// The store itself is killed and comes back.
    StoreKilled,
    /// An operator released a session.
    Released,
}

impl Evidence {
    /// Sorts entries by their moments; entries of one moment stay in their order.
    pub fn of(mut entries: Vec<Entry>) -> Self {
        entries.sort_by_key(|entry| entry.at_us);
        Self { entries }
    }

    /// Returns the entries in the order of time.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

impl FaultKind {
    /// Tells whether a fault of this kind ends leases however short it is.
    pub(crate) fn ends_leases_at_once(self) -> bool {
        match self {
            Self::Killed | Self::Drained | Self::StoreKilled | Self::Released | Self::Misled => true,
            Self::Paused
            | Self::Slept
            | Self::Cut
            | Self::Slow
            | Self::Failed
            | Self::Unanswered
            | Self::Late
            | Self::Stepped => false,
        }
    }
}

impl Fault {
    /// Tells whether the fault can concern a process.
    pub fn concerns(&self, process: &str) -> bool {
        self.process.as_deref().is_none_or(|named| named == process)
    }
}

fn first_try() -> u32 {
    1
}

impl Run {
    /// Returns the key of the activity, which all of its runs share.
    pub fn key(&self) -> (&str, u64, u64) {
        (&self.instance, self.execution, self.id)
    }
}

impl SessionRun {
    /// Returns the key of the session.
    pub fn key(&self) -> SessionKey {
        SessionKey { instance: self.owner.clone(), session_id: self.id.clone() }
    }
}

impl Told {
    /// Returns the instance that the call is about.
    pub fn instance(&self) -> &str {
        match self {
            Self::Started(instance)
            | Self::Raised(instance, ..)
            | Self::Enqueued(instance, ..)
            | Self::Cancelled(instance)
            | Self::Terminated(instance)
            | Self::Deleted(instance)
            | Self::Pruned(instance) => instance,
        }
    }
}

impl Display for Run {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { process, instance, execution, id, name, attempt, tried, session, .. } = self;
        write!(f, "{name} of {instance}/{execution} #{id} in {process}, try {tried}, delivery {attempt}")?;
        match session {
            Some(session) => write!(f, ", session {} epoch {}", session.id, session.epoch),
            None => Ok(()),
        }
    }
}
