//! What an application does with orchestrations from outside: start, signal, wait, inspect, manage.

pub use steadfast_client::{Client, ClientError, InstanceHandle};
pub use steadfast_store::{Cursor, ExecutionState, InstancePage, InstanceQuery, SessionInfo, Started};
