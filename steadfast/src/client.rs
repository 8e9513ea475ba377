//! The client, by which an application starts, signals, awaits, inspects and manages orchestrations.

pub use steadfast_client::{
    Client, ClientError, Explanation, InstanceHandle, LeakedSessions, OpenSession, Place, SessionObstacle,
    Through, Waiting, WaitingActivity,
};
pub use steadfast_store::{
    Cursor, Envelope, ExecutionState, InstancePage, InstanceQuery, InstanceState, ListedHandler,
    MAX_SESSION_TRAIL, Message, NeededHandler, Outbox, Owner, Queue, ReleaseReason, SessionChange,
    SessionInfo, SessionTrailEntry, SetAside, Started, Tries, TurnState, WaitingStart, WorkPhase, WorkState,
    WorkerId, WorkerInfo, WorkerProcess, WorkerReport, WorkerSlots,
};
