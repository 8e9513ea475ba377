//! Workers: the row that each runtime keeps about itself, and the refusal of work whose code a worker lacks.

use std::time::Duration;

use steadfast_core::{DispatcherCapabilityFilter, TagFilter};

use crate::Abandon;

/// How long after its last report a worker counts as live. Workers report about every 10 seconds.
pub const WORKER_LIVE_FOR: Duration = Duration::from_secs(60);

/// How long the row of a worker is kept after its last report.
pub const WORKER_KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Identifies one start of a runtime. Never given twice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub String);

/// What a runtime reports about itself, at its start, about every 10 seconds, and at its stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerReport {
    /// The id of this start of the runtime.
    pub id: WorkerId,
    /// The process that runs it.
    pub process: WorkerProcess,
    /// The orchestrations that its turns would run now. Empty while it takes no turns: it has no slot for
    /// them, is fenced, or stops.
    pub orchestrations: Vec<ListedHandler>,
    /// The activities that it would run now. Empty while it takes no activities.
    pub activities: Vec<ListedHandler>,
    /// The tags that it accepts.
    pub tags: TagFilter,
    /// Whether it takes activities of sessions. A worker that serves none does not list them for such work.
    pub serves_sessions: bool,
    /// The engine versions whose executions it runs; `None` means all. It lists its orchestrations for these
    /// executions only.
    pub engines: Option<DispatcherCapabilityFilter>,
    /// Whether it takes work whose handler no live worker lists, to refuse it and count the delivery. A
    /// worker that parks such work leaves it alone.
    pub takes_unlisted: bool,
    /// How many slots of each kind it has, and how many are busy.
    pub slots: WorkerSlots,
    /// How many sessions it holds.
    pub sessions: u64,
    /// Whether the runtime has stopped. The row of a stopped worker is kept for a day.
    pub is_stopped: bool,
}

/// The process of a worker, for people, and to judge whether a process on the same host is dead.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerProcess {
    /// The `worker_node_id`; `None` for a worker without a name.
    pub node: Option<String>,
    /// The number of this start of the node; `None` without a name, or until the node is registered.
    pub incarnation: Option<u64>,
    /// The name of the host; `None` if it is not known.
    pub host: Option<String>,
    /// The id of the host's current boot; `None` where the platform has none.
    pub boot_id: Option<String>,
    /// The pid namespace of the process; `None` where the platform has none.
    pub pid_namespace: Option<String>,
    /// The id of the process in its pid namespace.
    pub pid: u32,
    /// When the process started, in the unit of the platform; tells apart two processes with the same pid.
    pub pid_started: Option<u64>,
    /// The id of the build: of the executable and its registered handlers.
    pub build_id: Option<String>,
    /// The version of this library that the worker was built with.
    pub version: String,
}

/// A handler that a worker has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedHandler {
    /// The registered name.
    pub name: String,
    /// The registered versions; empty for an activity.
    pub versions: Vec<String>,
}

/// The slots of a worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkerSlots {
    /// How many turns the worker runs at a time (`orchestration_concurrency`).
    pub turns: u64,
    /// How many turns ran when the worker reported.
    pub turns_busy: u64,
    /// How many activities the worker runs at a time (`worker_concurrency`).
    pub activities: u64,
    /// How many activities ran when the worker reported.
    pub activities_busy: u64,
}

/// The row of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerInfo {
    /// The last report of the worker.
    pub report: WorkerReport,
    /// When the worker reported first, in milliseconds since the Unix epoch by the store's clock.
    pub since_ms: u64,
    /// When the worker reported last.
    pub last_seen_ms: u64,
    /// Whether the worker is live: seen within [`WORKER_LIVE_FOR`], and not stopped.
    pub is_live: bool,
}

/// The handler that a turn or an activity needs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NeededHandler {
    /// The name of the orchestration or the activity.
    pub name: String,
    /// The version that the execution must run with; `None` if any version does, and for an activity.
    pub version: Option<String>,
}

/// Refuses leased work: the caller lacks the handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The handler that the caller lacks.
    pub handler: NeededHandler,
    /// How the lease is abandoned if no live worker lists the handler.
    pub if_unlisted: Abandon,
}

/// What became of refused work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// A live worker lists the handler: the work is left to such workers, at once and uncounted.
    Routed,
    /// No live worker lists the handler: the lease was abandoned as the refusal says. A worker that lists the
    /// handler later is given the work at once, whatever its delay.
    Unlisted,
}

/// Numbers for gauges: how much is live.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Instances whose current execution has not ended.
    pub running_instances: u64,
    /// Messages that wait for a turn or are leased, delayed ones included.
    pub messages: u64,
    /// Activities that wait for a worker or are leased, delayed ones included.
    pub work: u64,
}
