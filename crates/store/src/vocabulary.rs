//! The arguments and results of store calls: plain data, no rules.

mod inspect;
mod instance;
mod lease;
mod session;
mod set_aside;
mod trail;
mod turn;
mod work;
mod worker;

pub use inspect::{OldestWaiting, TurnState, WaitingStart, WorkPhase, WorkState};
pub use instance::{
    Cursor, DEFAULT_PAGE, Envelope, ExecutionState, InstancePage, InstanceQuery, InstanceState, MAX_PAGE,
    Started, WaitFor, Waited,
};
pub use lease::{Abandon, Attempt, LeaseToken, WITHDRAWN_KNOWN_FOR};
pub use session::{Appetite, RenewSessions, SessionInfo, SessionRef, SessionsRenewed};
pub use set_aside::{MAX_UNREADABLE_ATTEMPTS, Queue, SetAside, UNREADABLE_RETRY};
pub use trail::{
    MAX_SESSION_TRAIL, MAX_TRAIL, ReleaseReason, SessionChange, SessionTrailEntry, TRAIL_KEPT_FOR,
};
pub use turn::{
    Cold, Committed, Held, History, MAX_TURN_MESSAGES, Message, NewWork, OrchestrationItem, RunId,
    TurnCommit, TurnLease, TurnRequest, Warm,
};
pub use work::{
    Claim, ClaimedSession, EndedTry, NodeRegistration, NodeStart, Outcome, Owner, SessionFetchConfig,
    SessionRequest, SessionScope, Tries, WorkLease, WorkRequest,
};
pub use worker::{
    Gauges, ListedHandler, NeededHandler, Refusal, Refused, WORKER_KEPT_FOR, WORKER_LIVE_FOR, WorkerId,
    WorkerInfo, WorkerProcess, WorkerReport, WorkerSlots,
};
