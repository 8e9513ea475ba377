//! What an application does with orchestrations from outside: start, signal, wait, inspect, manage.

pub use steadfast_client::{
    Client, ClientError, Explanation, InstanceHandle, Place, Through, Waiting, WaitingActivity,
};
pub use steadfast_store::{
    Cursor, Envelope, ExecutionState, InstancePage, InstanceQuery, InstanceState, Message, Outbox, Owner,
    Queue, SessionInfo, SetAside, Started, TurnState, WorkPhase, WorkState,
};
